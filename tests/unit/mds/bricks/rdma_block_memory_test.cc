// SPDX-License-Identifier: Apache-2.0
#include "server/mds/bricks/rdma_block_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "server/brickd/brick.h"
#include "server/brickd/pool.h"
#include "tests/doubles/rdma_memory/transport.h"
#include "tests/unit/mds/layout/layout_world.h"

// A real brick in this process, reached over the memory transport.
namespace pnfsrdma::mds::testing {
namespace {

// Connects only when its time is over.
class SilentPeer final : public rdma::Transport {
 public:
  explicit SilentPeer(std::shared_ptr<rdma::Transport> real) : real_(std::move(real)) {}
  std::string name() const override { return real_->name(); }
  std::shared_ptr<rdma::ProtectionDomain> make_protection_domain() override {
    return real_->make_protection_domain();
  }
  Result<std::unique_ptr<rdma::Region>> register_region(std::shared_ptr<rdma::ProtectionDomain> domain,
                                                        MutableByteSpan memory, rdma::Access access,
                                                        rdma::Flusher* flusher) override {
    return real_->register_region(std::move(domain), memory, access, flusher);
  }
  Result<rdma::Connected> connect(const std::string&, std::shared_ptr<rdma::ProtectionDomain>,
                                  const rdma::ConnectOptions& options) override {
    connecting = true;
    std::this_thread::sleep_until(options.deadline);
    return fail(ETIMEDOUT, "nobody answers");
  }
  Result<std::unique_ptr<rdma::Listener>> listen(
      const std::string& address,
      std::function<void(std::unique_ptr<rdma::ConnectionRequest>)> on_request) override {
    return real_->listen(address, std::move(on_request));
  }
  std::atomic<bool> connecting = false;

 private:
  const std::shared_ptr<rdma::Transport> real_;
};

struct RealBrick : ::testing::Test {
  SystemClock clock;
  SystemRandom random;
  EventLoop loop{clock};
  std::shared_ptr<rdma::memory::Network> network = std::make_shared<rdma::memory::Network>();
  std::shared_ptr<rdma::Transport> brick_side = rdma::memory::make_transport(network, random);
  std::shared_ptr<rdma::Transport> own_side = rdma::memory::make_transport(network, random);
  std::unique_ptr<brick::Brick> brick;
  MemoryStore store{loop};
  FakeRecaller recaller{loop};
  Counters counters;
  std::unique_ptr<Namespace> names;
  BrickPlug plug;
  std::unique_ptr<BrickList> list;
  std::unique_ptr<DataPlane> mds;

  template <typename Ready>
  bool run_until(Ready ready) {
    const SteadyTime deadline = clock.now() + Milliseconds(20'000);
    while (!ready() && clock.now() < deadline) loop.run_once(Milliseconds(5));
    return ready();
  }
  void SetUp() override {
    auto pool = brick::Pool::in_memory(16, random);
    ASSERT_TRUE(pool);
    brick = std::make_unique<brick::Brick>(loop, std::move(*pool), brick::BootId{}, random,
                                           brick::BrickOptions{});
    ASSERT_TRUE(brick->listen_data(*brick_side, {.listen = "brick:0", .netid = "memory"}));
    const auto boot = open_boot(store, random, "boot");
    ASSERT_TRUE(boot);
    names = *Namespace::open(store, clock, boot->boot_count);
    plug.lend("brick", brick->control());
    list = *BrickList::open(store, clock);
    ASSERT_TRUE(list->configure({"brick"}));
    mds = std::make_unique<DataPlane>(
        DataPlane::Parts{loop, clock, random, *names, *list, plug.connector(), recaller, counters},
        DataPlane::Options{.first_epoch = boot->epoch, .owner = "test", .transports = {{own_side, nullptr}}});
    plug.up("brick");
    ASSERT_TRUE(run_until([&] { return mds->ready(); }));
  }
  void TearDown() override {
    mds.reset();
    brick.reset();
  }

  nfs4::Status write(InodeId file, uint64_t offset, const Bytes& bytes) {
    auto status = std::make_shared<std::optional<nfs4::Status>>();
    mds->io().write({.client = 5,
                     .inode = file,
                     .offset = offset,
                     .data = std::make_shared<const Bytes>(bytes),
                     .stable = nfs4::StableHow::kFileSync},
                    [status](const std::expected<nfs4::WriteResult, nfs4::Status>& got) {
                      *status = got ? nfs4::Status::kOk : got.error();
                    });
    run_until([&] { return status->has_value(); });
    return status->value_or(nfs4::Status::kServerFault);
  }
  Bytes read(InodeId file, uint64_t offset, uint32_t count) {
    auto bytes = std::make_shared<std::optional<Bytes>>();
    mds->io().read(file, offset, count, [bytes](const std::expected<FileIo::Read, nfs4::Status>& got) {
      *bytes = got ? *got->data : Bytes();
    });
    run_until([&] { return bytes->has_value(); });
    return bytes->value_or(Bytes());
  }
  Bytes noise(size_t count) {
    Bytes bytes(count);
    random.fill(bytes);
    return bytes;
  }
};

TEST_F(RealBrick, LargeWritesComeBackOverSeveralBlocks) {
  const InodeId file = names->create(kRootInode, "f", {})->inode->id;
  const Bytes first = noise(1 << 20);
  const Bytes second = noise(1 << 20);
  ASSERT_EQ(write(file, 0, first), nfs4::Status::kOk);
  ASSERT_EQ(write(file, (uint64_t{3} << 19) + 77, second), nfs4::Status::kOk);
  EXPECT_EQ(read(file, 0, 1 << 20), first);
  EXPECT_EQ(read(file, (uint64_t{3} << 19) + 77, 1 << 20), second);
  EXPECT_EQ(read(file, 1 << 20, 4096), Bytes(4096));
}

TEST_F(RealBrick, ManySmallFilesKeepTheirBytesApart) {
  std::vector<std::pair<InodeId, Bytes>> files;
  for (int i = 0; i < 50; ++i) {
    files.push_back({names->create(kRootInode, "f" + std::to_string(i), {})->inode->id, noise(100 + i * 97)});
    ASSERT_EQ(write(files.back().first, 0, files.back().second), nfs4::Status::kOk);
  }
  for (const auto& [file, bytes] : files) EXPECT_EQ(read(file, 0, 8192), bytes);
}

// The memory transport moves the bytes inside submit().
TEST_F(RealBrick, WhatATurnStartsIsSubmittedTogetherAtItsEnd) {
  RdmaBlockMemory memory(loop, *mds->bricks().find(kFirstBrick), {{own_side, nullptr}});
  const auto block = std::make_shared<Bytes>(4096);
  int done = 0;
  const auto read = [&] { memory.read(brick::kBlockSize, *block, block, [&](bool good) { done += good; }); };
  const InodeId file = names->create(kRootInode, "f", {})->inode->id;
  ASSERT_EQ(write(file, 0, noise(4096)), nfs4::Status::kOk);
  read();  // connects and exposes the block
  ASSERT_TRUE(run_until([&] { return done == 1; }));
  read();
  read();
  EXPECT_EQ(done, 1);
  loop.run_once(Milliseconds(0));
  EXPECT_EQ(done, 3);
}

// The control loop removes a brick: it cannot wait until one that hangs has had its time.
TEST_F(RealBrick, WhoEndsItNeedNotWaitForTheConnectionBeingMade) {
  const auto silent = std::make_shared<SilentPeer>(own_side);
  auto memory = std::make_unique<RdmaBlockMemory>(loop, *mds->bricks().find(kFirstBrick),
                                                  std::vector<initiator::TransportDomain>{{silent, nullptr}});
  auto sink = std::make_shared<Bytes>(4096);
  memory->read(brick::kBlockSize, *sink, sink, [](bool) {});
  ASSERT_TRUE(run_until([&] { return silent->connecting.load(); }));
  const auto begun = std::chrono::steady_clock::now();
  std::thread connecting = memory->give_up_connecting();
  memory.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, Milliseconds(1000));
  connecting.join();
  loop.run_once(Milliseconds(0));  // what it has posted finds nobody
}

TEST_F(RealBrick, BlocksWeReachedOurselvesCanBeFreed) {
  const InodeId file = names->create(kRootInode, "f", {})->inode->id;
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(write(file, 0, noise(1 << 20)), nfs4::Status::kOk);
    auto status = std::make_shared<std::optional<nfs4::Status>>();
    mds->conflicts().set_size(file, 0, 5, [status](nfs4::Status got) { *status = got; });
    ASSERT_TRUE(run_until([&] { return status->has_value(); }));
    EXPECT_EQ(*status, nfs4::Status::kOk);
  }
  EXPECT_TRUE(run_until([&] { return list->space(kFirstBrick).used_blocks() == 0; }));
}

TEST_F(RealBrick, ABrickLostAndFoundServesTheSameBytes) {
  const InodeId file = names->create(kRootInode, "f", {})->inode->id;
  const Bytes bytes = noise(300000);
  ASSERT_EQ(write(file, 0, bytes), nfs4::Status::kOk);
  plug.down("brick");
  plug.up("brick");
  ASSERT_TRUE(run_until([&] { return mds->ready(); }));
  EXPECT_EQ(read(file, 0, 300000), bytes);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
