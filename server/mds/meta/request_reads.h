// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/mds/meta/pinned_reads.h"

namespace pnfsrdma::mds {

class KeyValueStore;

// The reads of one request that can be run again from its top, so that none of them waits for the medium in
// the control loop. A run reads what is in memory. At the first row that is not, the run is void: the read
// fails with kNotAtHand, from then on the store commits nothing and the caller starts nothing, and whatever
// the run returns is thrown away. What it missed (the reads behind the first one included) is fetched, and
// the request runs again; the rows that came are its own until it ends, whatever the engine's cache keeps,
// but for those that a commit has changed meanwhile.
//
// The first effect of a run (a commit, or end_reading()) ends that: it cannot be run again from its top, so
// reads behind it wait for the medium, and are counted. Control loop only; the store outlives it.
class RequestReads {
 public:
  explicit RequestReads(KeyValueStore& store);
  ~RequestReads();
  RequestReads(const RequestReads&) = delete;
  RequestReads& operator=(const RequestReads&) = delete;

  // One run: while this lives, what the store is asked belongs to the request. Runs nest: one may resume
  // another request.
  class Run {
   public:
    explicit Run(RequestReads& reads);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    RequestReads& reads_;
    RequestReads* const outer_;
  };

  // The run is void.
  bool missed() const { return !wanted_.empty(); }
  void end_reading() { reading_ = false; }
  // Fetches what the last run missed. `arrived` is called from the loop, never from inside, and not when this
  // has gone or has been cleared before.
  void fetch(std::function<void()> arrived);
  // Takes over what the last run of `other` missed.
  void adopt(RequestReads& other) { wanted_ = std::exchange(other.wanted_, {}); }
  // The request has ended, or goes on with something else.
  void clear();

 private:
  friend class KeyValueStore;

  // What was brought for this request; null: nothing, or it is stale.
  const Brought* row(std::string_view key) const;
  const Brought* page(std::string_view prefix, std::string_view key) const;
  // False: the request cannot wait for it.
  bool want(std::string_view key, const std::string_view* prefix);

  void drop_stale();
  bool take(uint64_t round, std::vector<Brought> brought);

  KeyValueStore& store_;
  bool reading_ = false;
  std::vector<Wanted> wanted_;
  std::vector<Pinned*> under_way_;  // the last fetch
  std::list<Pinned> pinned_;
  std::unordered_map<std::string_view, Pinned*> rows_;
  std::vector<Pinned*> pages_;
  uint64_t round_ = 0;
  int voided_ = 0;  // reads that a commit made stale
  std::shared_ptr<RequestReads*> self_;
};

}  // namespace pnfsrdma::mds
