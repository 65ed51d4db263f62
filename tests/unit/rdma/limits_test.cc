// SPDX-License-Identifier: Apache-2.0
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/unit/rdma/transport_fixture.h"

namespace pnfsrdma::rdma::testing {
namespace {

class Limits : public TransportTest {};
PNFSRDMA_EVERY_TRANSPORT(Limits);

TEST_P(Limits, QueuesRefuseMoreThanTheirDepth) {
  auto client = connect(65536, {.send_depth = 4, .receive_depth = 2});
  Bytes memory(65536);
  auto region = expose(*client, memory);
  LocalSlice local = client->slice(0, 8);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(client->queue_pair->post_write(1, {&local, 1}, region->remote()));
  EXPECT_EQ(client->queue_pair->post_write(1, {&local, 1}, region->remote()).error().number(), ENOBUFS);
  EXPECT_EQ(client->queue_pair->post_read(1, local, region->remote()).error().number(), ENOBUFS);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(client->queue_pair->post_receive(1, local));
  EXPECT_EQ(client->queue_pair->post_receive(1, local).error().number(), ENOBUFS);
  client->queue_pair->submit();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(client->next_completion().outcome, Outcome::kSuccess);
  EXPECT_TRUE(client->queue_pair->post_write(1, {&local, 1}, region->remote()));
}

TEST_P(Limits, ReadsBeyondTheReadDepthAreQueued) {
  accept_limits.read_depth = 3;
  auto client = connect(1 << 20, {.read_depth = 8});
  EXPECT_EQ(client->queue_pair->limits().read_depth, 3u);
  Bytes memory = pattern(1 << 20, 9);
  auto region = expose(*client, memory);
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(client->queue_pair->post_read(i, client->slice(i * 10000, 10000),
                                              region->remote().slice(i * 10000, 10000)));
  }
  client->queue_pair->submit();
  for (uint32_t i = 0; i < 100; ++i) {
    Completion completion = client->next_completion();
    EXPECT_EQ(completion.work_id, i);
    EXPECT_EQ(completion.outcome, Outcome::kSuccess);
  }
  EXPECT_TRUE(same(ByteSpan(client->memory).first(1000000), ByteSpan(memory).first(1000000)));
}

TEST_P(Limits, BadArgumentsAreRefusedAtOnce) {
  auto client = connect();
  LocalSlice local = client->slice(0, 4096);
  auto& queue_pair = *client->queue_pair;
  EXPECT_EQ(queue_pair.post_write(1, {&local, 1}, {100, 4095, 1}).error().number(), EINVAL);
  EXPECT_EQ(queue_pair.post_read(1, local, {~uint64_t{0} - 10, 4096, 1}).error().number(), EINVAL);
  EXPECT_EQ(queue_pair.post_write(1, {&local, 1}, {0, uint64_t{1} << 32, 1}).error().number(), EINVAL);
  std::vector<LocalSlice> many(kGatherMax + 1, client->slice(0, 1));
  EXPECT_EQ(queue_pair.post_write(1, many, {0, 4096, 1}).error().number(), EINVAL);
  LocalSlice large = client->slice(0, 65537);
  EXPECT_EQ(queue_pair.post_send(1, {&large, 1}).error().number(), EMSGSIZE);
  EXPECT_TRUE(queue_pair.connected());
}

TEST_P(Limits, NativeFlushNeedsBothSides) {
  accept_limits.native_flush = false;
  auto client = connect();
  EXPECT_FALSE(client->queue_pair->limits().native_flush);
  EXPECT_EQ(client->queue_pair->post_flush(1, {0, 8, 1}, FlushLevel::kPersistent).error().number(),
            EOPNOTSUPP);
  accept_limits.native_flush = true;
  auto unwilling = connect(4096, {.native_flush = false});
  EXPECT_FALSE(unwilling->queue_pair->limits().native_flush);
}

TEST_P(Limits, RegionsThatCannotBeAreRefused) {
  auto domain = transport->make_protection_domain();
  EXPECT_EQ(transport->register_region(domain, {}, Access::kRemoteRead).error().number(), EINVAL);
  Bytes memory(8);
  EXPECT_EQ(transport->register_region(domain, memory, Access::kRemoteFlush).error().number(), EOPNOTSUPP);
}

// As a user has it who was given little locked memory; a thread has its own capabilities.
TEST_P(Limits, TooLittleLockedMemoryIsNamedWithItsLimit) {
  if (software()) GTEST_SKIP() << "software pins nothing";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  const rlimit small{.rlim_cur = 64 << 10, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &small), 0);
  std::string said;
  std::thread user([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    ::syscall(SYS_capget, &header, data);
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    ::syscall(SYS_capset, &header, data);
    Bytes memory(16 << 20);
    auto region =
        transport->register_region(transport->make_protection_domain(), memory, Access::kRemoteRead);
    said = region ? "registered" : region.error().to_string();
  });
  user.join();
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before), 0);
  EXPECT_NE(said.find("RLIMIT_MEMLOCK is 64 KiB"), std::string::npos) << said;
}

TEST_P(Limits, ConnectingToNobodyIsRefused) {
  listener.reset();
  auto domain = transport->make_protection_domain();
  auto connected = transport->connect(here("1"), domain, {.deadline = soon()});
  EXPECT_EQ(connected.error().number(), ECONNREFUSED);
}

TEST_P(Limits, ARejectCarriesItsReason) {
  auto refusing = transport->listen(here("0"), [](auto request) { request->reject(as_bytes("no ticket")); });
  auto dropping = transport->listen(here("0"), [](auto request) { request.reset(); });
  auto domain = transport->make_protection_domain();
  auto refused = transport->connect((*refusing)->address(), domain, {.deadline = soon()});
  EXPECT_EQ(refused.error().number(), ECONNREFUSED);
  EXPECT_EQ(refused.error().what(), "no ticket");
  auto dropped = transport->connect((*dropping)->address(), domain, {.deadline = soon()});
  EXPECT_EQ(dropped.error().number(), ECONNREFUSED);
}

TEST_P(Limits, ConnectGivesUpAtItsDeadline) {
  std::unique_ptr<ConnectionRequest> kept;
  auto silent = transport->listen(here("0"), [&](auto request) { kept = std::move(request); });
  auto domain = transport->make_protection_domain();
  auto connected = transport->connect((*silent)->address(), domain, {.deadline = soon(50ms)});
  EXPECT_EQ(connected.error().number(), ETIMEDOUT);
}

}  // namespace
}  // namespace pnfsrdma::rdma::testing
