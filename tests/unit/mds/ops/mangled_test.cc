// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/doubles/seeded_random.h"
#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds {
namespace {

// Every kind of operation that has arguments worth breaking.
Operations all_kinds(const TestClient& client) {
  nfs4::CreateArguments create;
  create.type = nfs4::CreateType::make<nfs4::FileType::kLink>("to");
  create.name = "l";
  create.attributes = mode_attribute(0644);
  auto open = client.open_arguments("f", kShareBoth);
  open.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0644)));
  nfs4::SetAttributesArguments set;
  set.attributes = mode_attribute(0600);
  set.attributes.owner = "12";
  nfs4::ReadDirectoryArguments read;
  read.max_count = 4096;
  read.requested = nfs4::known_attributes();
  nfs4::TestStateidArguments test;
  test.stateids.resize(3);
  return {nfs4::PutRootFileHandleArguments{},
          open,
          set,
          nfs4::SaveFileHandleArguments{},
          nfs4::PutRootFileHandleArguments{},
          create,
          nfs4::PutRootFileHandleArguments{},
          read,
          test};
}

TEST(Mangled, RequestsAreAnsweredOrRefusedAndTheServerGoesOn) {
  TestHost host;
  TestServer server(host);
  TestClient client(server);
  client.connect();
  SeededRandom random(42);
  for (int round = 0; round < 500; ++round) {
    nfs4::CompoundArguments arguments;
    arguments.header = {.tag = "", .minor_version = 2};
    arguments.operations = all_kinds(client);
    arguments.operations.insert(arguments.operations.begin(), client.next_sequence());
    CompoundCall call;
    call.record = xdr::encode_to_bytes(arguments);
    // Behind tag, minor version, count, and SEQUENCE.
    constexpr size_t kHead = 4 + 4 + 4 + 4 + 32;
    for (uint32_t hits = 1 + random.next_u32() % 4; hits > 0; --hits) {
      const size_t at = kHead + random.next_u32() % (call.record.size() - kHead);
      call.record[at] = static_cast<std::byte>(random.next_u32());
    }
    if (random.next_u32() % 4 == 0)
      call.record.resize(kHead + random.next_u32() % (call.record.size() - kHead));
    call.arguments = call.record;
    call.flavor = 1;
    call.caller = {.uid = 0, .gid = 0, .groups = {}};
    bool answered = false;
    server.compounds.start(std::move(call), [&](CompoundReply reply) {
      answered = true;
      ASSERT_TRUE(reply.has_value());
      EXPECT_TRUE(xdr::decode_from<nfs4::CompoundResults>(**reply).has_value());
    });
    for (int turn = 0; !answered && turn < 10; ++turn) host.turn();
    ASSERT_TRUE(answered);
  }
  EXPECT_EQ(client.status({nfs4::PutRootFileHandleArguments{}}), nfs4::Status::kOk);
}

}  // namespace
}  // namespace pnfsrdma::mds
