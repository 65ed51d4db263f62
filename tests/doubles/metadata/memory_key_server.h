// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/mds/log/key_server.h"
#include "shared/base/guarded.h"

namespace pnfsrdma::mds {

// A key server in memory, for tests: its connections may lose answers, requests, or both. Thread-safe.
class MemoryKeys {
 public:
  enum class Fault {
    kNone,
    kLostRequest,  // it was not done, and the caller does not know
    kLostAnswer,   // it was done, and the caller does not know
    kRefused,      // EPROTO: this one never
    kDoneLater,    // nobody knows yet: deliver_late()
  };

  ConnectKeyServer connector() {
    return [this] { return std::make_unique<Connection>(*this); };
  }
  // The next ones to change something, in this order.
  void plan(std::vector<Fault> faults) { state_.lock()->faults = std::move(faults); }
  // Nobody is answered until it is false.
  void cut(bool cut) { state_.lock()->cut = cut; }

  std::map<std::string, KeyRow> rows() { return state_.lock()->rows; }
  size_t size() { return state_.lock()->rows.size(); }
  bool has(const std::string& key) { return state_.lock()->revision_of(key) != 0; }
  // Empty: there is no such key.
  std::string value(const std::string& key) {
    auto state = state_.lock();
    const auto found = state->rows.find(key);
    return found == state->rows.end() ? std::string() : found->second.value;
  }
  void put(const std::string& key, std::string value) {
    auto state = state_.lock();
    state->rows[key] = {key, std::move(value), ++state->revision};
  }
  void erase(const std::string& key) { state_.lock()->rows.erase(key); }
  size_t commits() { return state_.lock()->commits; }
  // What was on its way arrives, after its senders have given up. How much of it changed something.
  size_t deliver_late() {
    auto state = state_.lock();
    size_t done = 0;
    for (const KeyTransaction& one : std::exchange(state->late, {})) done += state->apply(one).done ? 1 : 0;
    return done;
  }
  size_t late() { return state_.lock()->late.size(); }

 private:
  struct State {
    std::map<std::string, KeyRow> rows;
    KeyRevision revision = 0;
    KeyRevision forgotten = 0;
    std::vector<Fault> faults;
    bool cut = false;
    size_t commits = 0;  // that changed something
    std::vector<KeyTransaction> late;

    KeyOutcome apply(const KeyTransaction& transaction) {
      KeyOutcome outcome;
      outcome.done = std::ranges::all_of(transaction.if_all, [&](const KeyTransaction::Known& known) {
        return revision_of(known.key) == known.revision;
      });
      if (outcome.done) {
        outcome.revision = ++revision;
        commits += transaction.puts.empty() && transaction.erases.empty() ? 0 : 1;
        for (const auto& put : transaction.puts) rows[put.key] = {put.key, put.value, revision};
        for (const std::string& key : transaction.erases) rows.erase(key);
        return outcome;
      }
      for (const std::string& key : transaction.otherwise_read) {
        if (const auto found = rows.find(key); found != rows.end()) outcome.found.push_back(found->second);
      }
      return outcome;
    }
    KeyRevision revision_of(const std::string& key) const {
      const auto found = rows.find(key);
      return found == rows.end() ? 0 : found->second.revision;
    }
  };

  class Connection final : public KeyServer {
   public:
    explicit Connection(MemoryKeys& keys) : keys_(keys) {}

    Result<KeyOutcome> commit(const KeyTransaction& transaction) override {
      auto state = keys_.state_.lock();
      if (state->cut) return fail(EIO, "cut off");
      Fault fault = Fault::kNone;
      const bool changes = !transaction.puts.empty() || !transaction.erases.empty();
      if (changes && !state->faults.empty()) {
        fault = state->faults.front();
        state->faults.erase(state->faults.begin());
      }
      if (fault == Fault::kLostRequest) return fail(EIO, "lost");
      if (fault == Fault::kRefused) return fail(EPROTO, "too large");
      if (fault == Fault::kDoneLater) {
        state->late.push_back(transaction);
        return fail(EIO, "lost");
      }
      KeyOutcome outcome = state->apply(transaction);
      if (fault == Fault::kLostAnswer) return fail(EIO, "lost");
      return outcome;
    }

    Result<std::vector<KeyRow>> range(std::string_view from, std::string_view end, size_t limit) override {
      auto state = keys_.state_.lock();
      if (state->cut) return fail(EIO, "cut off");
      std::vector<KeyRow> found;
      for (auto at = state->rows.lower_bound(std::string(from));
           at != state->rows.end() && at->first < end && found.size() < limit; ++at)
        found.push_back(at->second);
      return found;
    }

    Result<KeyRevision> erase(std::string_view from, std::string_view end) override {
      auto state = keys_.state_.lock();
      if (state->cut) return fail(EIO, "cut off");
      state->rows.erase(state->rows.lower_bound(std::string(from)),
                        state->rows.lower_bound(std::string(end)));
      return ++state->revision;
    }

    Result<> forget(KeyRevision before) override {
      auto state = keys_.state_.lock();
      if (state->cut) return fail(EIO, "cut off");
      state->forgotten = before;
      return {};
    }

   private:
    MemoryKeys& keys_;
  };

  Guarded<State> state_;
};

}  // namespace pnfsrdma::mds
