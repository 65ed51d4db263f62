// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/console/history_ring.h"
#include "shared/base/guarded.h"

namespace pnfsrdma::console {

// Whose history: the server's, or that of one brick (uuid), client or export (by the id that the API has for it).
enum class HistoryOf : uint8_t { kServer, kBrick, kClient, kExport };
struct HistoryKey {
  HistoryOf of = HistoryOf::kServer;
  std::string id;  // empty: the server
  auto operator<=>(const HistoryKey&) const = default;
};
// The one that those share for whom there is no place.
inline const std::string kOthers = "others";

// A series takes 57 KiB, the server's 198 KiB: 15 MiB with all places taken.
inline constexpr size_t kBrickHistories = 64;
inline constexpr size_t kClientHistories = 128;
inline constexpr size_t kExportHistories = 64;

// What the last 24 hours were like, made of the counters the control loop hands in once a second. Where a kind has
// no place left, whoever has gone longest gives way; when all are there still, the ones that came last share the
// series `kOthers`. What a brick did while it was away is not in it: when it happened nobody knows. Thread-safe.
class History {
 public:
  struct Series {
    std::string name;     // of the client or export; it may have gone
    bool direct = false;  // the bytes straight to the bricks are known
    uint32_t step_seconds = 0;
    int64_t first_second = 0;  // since the epoch: when the first point begins
    std::vector<std::optional<Amounts>> points;
    std::vector<std::optional<LatencyHistogram>> latency;  // of the server only
  };
  struct BusyClient {
    std::string id;
    std::string name;
    bool direct = false;
    Amounts amounts;  // of the last minute
  };

  void add(const Numbers& numbers, const Activity& activity);

  // `range`: index in kHistoryRanges. None: nothing is known of it.
  std::optional<Series> get(const HistoryKey& key, size_t range, int64_t now);
  // Those that moved most bytes in the last minute, then those that asked most; the idle ones left out.
  std::vector<BusyClient> busiest_clients(size_t count, int64_t now);

 private:
  struct Record {
    std::string name;
    bool direct = false;
    int64_t newest_ms = 0;
    std::vector<HistoryRing<Amounts>> rings;
    std::vector<HistoryRing<LatencyHistogram>> latency;
  };
  // Counters as they were, and when.
  struct Before {
    Amounts totals;
    int64_t ms = 0;
  };
  // One who is there now.
  struct Subject {
    HistoryKey key;
    std::string name;
    Amounts totals;
    Amounts more = {};  // what is known as a difference already
    bool direct = false;
  };
  struct State {
    std::map<HistoryKey, Record> records;
    std::map<HistoryKey, Before> before;
    std::map<std::string, std::map<uint64_t, DirectCounters>> sessions;  // by brick and client
    LatencyHistogram latency;
  };

  // The key itself, or the one of the others.
  static HistoryKey place_of(State& state, const HistoryKey& key, int64_t ms);
  static Record& record_of(State& state, const HistoryKey& place);
  static std::map<uint64_t, Amounts> direct_since(State& state, const Activity& activity);
  static std::vector<Subject> subjects_of(State& state, const Numbers& numbers, const Activity& activity);
  struct Newest {
    const std::string& name;
    bool direct;
    int64_t ms;
  };
  static void add_to(Record& record, const Newest& newest, const Amounts& since);
  static void add_latency(State& state, const Numbers& numbers);

  Guarded<State> state_;
};

}  // namespace pnfsrdma::console
