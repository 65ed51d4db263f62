// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/brickd/brick.h"
#include "shared/base/event_loop.h"
#include "shared/base/random.h"
#include "shared/brick/protocol.h"
#include "shared/pmem/mapping.h"
#include "shared/pmem/page_persistence.h"
#include "tests/crash/images/fast_clock.h"
#include "tests/crash/images/faults.h"
#include "tests/crash/images/metadata_server.h"
#include "tests/crash/images/power.h"
#include "tests/crash/images/remains.h"
#include "tests/doubles/pmem/shadow_persistence.h"
#include "tests/doubles/rdma_memory/transport.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::crash {

// Repeats itself for a seed; for any thread.
class SharedRandom final : public Random {
 public:
  explicit SharedRandom(uint64_t seed) : random_(seed) {}
  void fill(std::span<std::byte> bytes) override {
    const std::lock_guard lock(mutex_);
    random_.fill(bytes);
  }
  uint64_t below(uint64_t bound) { return next_u64() % bound; }

 private:
  std::mutex mutex_;
  SeededRandom random_;
};

// A host with a brick and one with a metadata server, started from what the last power cut left, in this
// process and (all that is not the brick's own) in this thread.
class System {
 public:
  static constexpr uint64_t kBlocks = 8;

  // Empty media: a formatted pool, no metadata yet.
  static Remains fresh(uint64_t seed, std::shared_ptr<Metadata> metadata);

  // Whether its power will be cut: if not, it does without the shadow, which takes most of the time.
  enum class Use { kToBeCut, kToLookAt };
  System(const Remains& remains, Power& power, uint64_t seed, const Faults& faults = {},
         Use use = Use::kToBeCut);
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  // What is left if power fails now. Under the power's mutex.
  Remains remains(const Journal& journal, Random& random) const;

  // One of the processes dies, memory stays, and is started again.
  void restart_brick();
  void restart_metadata_server();

  // Turns the loop until `done()`, fast. False: it never came, or the power is off and nobody cares.
  template <typename Done>
  bool until(Done done, bool even_without_power = false) {
    for (int turn = 0; turn < kTurnsMax; ++turn) {
      if (done()) return true;
      if (power_is_off && !even_without_power) return false;
      loop.run_once(Milliseconds(turn < kQuickTurns ? 0 : 1));
      if (turn >= kQuickTurns) clock.advance(Milliseconds(20));
    }
    return false;
  }
  // Waits until brick and metadata server are in agreement.
  bool ready() {
    return until([this] { return metadata->ready(); });
  }

  std::vector<brick::Run> list_blocks();
  MutableByteSpan memory() const { return memory_; }
  std::shared_ptr<rdma::Transport> transport() const { return transport_; }
  mds::KeyValueStore& store() { return *store_; }
  // Anything the parts have to say about the image before it is opened.
  const std::vector<std::string>& image_problems() const { return image_problems_; }

  Power& power;
  FastClock clock;
  EventLoop loop{clock};
  std::unique_ptr<MetadataServer> metadata;
  // Set by whoever cut it: the run is over, its remains are elsewhere.
  std::atomic<bool> power_is_off = false;

 private:
  static constexpr int kTurnsMax = 20000;
  static constexpr int kQuickTurns = 20;

  void start_brick();
  void start_metadata_server();

  const Faults faults_;
  const uint32_t boots_;
  mutable SharedRandom random_;
  std::shared_ptr<rdma::Transport> transport_;
  std::unique_ptr<pmem::Mapping> owner_;
  MutableByteSpan memory_;
  std::vector<std::string> image_problems_;
  std::optional<pmem::ShadowPersistence> shadow_;
  pmem::UnflushedPersistence plain_{Durability::kPower};
  std::shared_ptr<Metadata> medium_;
  std::unique_ptr<mds::KeyValueStore> store_;
  std::unique_ptr<brick::Brick> brick_;
};

}  // namespace pnfsrdma::crash
