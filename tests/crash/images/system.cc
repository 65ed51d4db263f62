// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/images/system.h"

#include "server/brickd/check_command.h"
#include "server/brickd/format.h"
#include "server/brickd/pool.h"
#include "shared/base/check.h"
#include "shared/pmem/mapping.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::crash {
namespace {

constexpr char kAddress[] = "brick:1";
constexpr uint64_t kDataOffset = brick::format::data_offset(brick::kBlockSize, System::kBlocks);
constexpr uint64_t kPoolSize = kDataOffset + System::kBlocks * brick::kBlockSize;

// Memory that outlives the brick's process.
class LentMapping final : public pmem::Mapping {
 public:
  explicit LentMapping(MutableByteSpan memory)
      : Mapping(memory, {.kind = pmem::Kind::kDeviceDax, .persistent = true}) {}
  std::unique_ptr<pmem::Persistence> make_persistence(pmem::FileFlush) const override { return nullptr; }
};

std::unique_ptr<pmem::Mapping> map_memory() {
  auto mapping = pmem::Mapping::anonymous(kPoolSize);
  CHECK(mapping);
  return std::move(*mapping);
}

brick::BootId boot_id(uint32_t boots) {
  brick::BootId id{};
  id[0] = static_cast<std::byte>(boots);
  id[1] = static_cast<std::byte>(boots >> 8);
  return id;
}

}  // namespace

Remains System::fresh(uint64_t seed, std::shared_ptr<Metadata> metadata) {
  SeededRandom random(seed);
  const auto mapping = map_memory();
  const auto persistence = mapping->make_persistence(pmem::FileFlush::kPageCache);
  CHECK(brick::Pool::format(mapping->bytes(), *persistence, {.known_zero = true}, random));
  return {.pool = PoolImage(mapping->bytes()), .metadata = std::move(metadata)};
}

System::System(const Remains& remains, Power& power_in, uint64_t seed, const Faults& faults, Use use)
    : power(power_in),
      faults_(faults),
      boots_(remains.boots + 1),
      random_(seed),
      transport_(rdma::memory::make_transport(std::make_shared<rdma::memory::Network>(), random_)),
      owner_(map_memory()),
      memory_(owner_->bytes()),
      medium_(remains.metadata) {
  remains.pool.write_to(memory_);
  const auto report = brick::check_pool(memory_);
  image_problems_ = report ? report->problems : std::vector{report.error().to_string()};
  if (use == Use::kToBeCut) {
    shadow_.emplace(memory_);
    shadow_->on_step([this](uint64_t) { power.event(); });
  }
  store_ = medium_->open(loop, power, faults_);
  start_brick();
  start_metadata_server();
}

System::~System() {
  power.disarm();
  metadata.reset();
  brick_.reset();
}

void System::start_brick() {
  pmem::Persistence& medium = shadow_ ? static_cast<pmem::Persistence&>(*shadow_) : plain_;
  auto persistence = std::make_unique<FaultyPersistence>(medium, memory_.data() + kDataOffset, faults_);
  auto pool = brick::Pool::open(std::make_unique<LentMapping>(memory_), std::move(persistence), clock.now());
  CHECK(pool);
  brick_ = std::make_unique<brick::Brick>(loop, std::move(*pool), boot_id(boots_), random_,
                                          brick::BrickOptions{.lease = std::chrono::hours(24)});
  CHECK(brick_->listen_data(*transport_, {.listen = kAddress, .netid = "memory"}));
}

void System::start_metadata_server() {
  metadata = std::make_unique<MetadataServer>(
      MetadataServer::Host{loop, clock, random_, *store_, transport_, "boot " + std::to_string(boots_)});
  metadata->brick_up(brick_->control());
}

void System::restart_brick() {
  metadata->brick_down();
  brick_.reset();
  for (int turn = 0; turn < 3; ++turn) loop.run_once(Milliseconds(0));
  start_brick();
  metadata->brick_up(brick_->control());
}

void System::restart_metadata_server() {
  metadata.reset();
  start_metadata_server();
}

Remains System::remains(const Journal& journal, Random& random) const {
  CHECK(shadow_);
  const auto tear = random.next_u32() % 2 == 0 ? pmem::ShadowPersistence::Tear::kWholeLines
                                               : pmem::ShadowPersistence::Tear::kWords;
  return {.pool = PoolImage(shadow_->crash(random, tear)),
          .metadata = medium_->remains(random),
          .journal = journal,
          .boots = boots_};
}

std::vector<brick::Run> System::list_blocks() {
  std::optional<Result<brick::ListResult>> listed;
  brick_->control().list({0, brick::kRunsMax},
                         [&](Result<brick::ListResult> result) { listed = std::move(result); });
  CHECK(until([&] { return listed.has_value(); }, true));
  CHECK(*listed && (*listed)->end);
  std::vector<brick::Run> runs;
  for (const brick::ListedRun& entry : (*listed)->runs) runs.push_back(entry.run);
  return runs;
}

}  // namespace pnfsrdma::crash
