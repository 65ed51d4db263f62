// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
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
  };

  ConnectKeyServer connector() {
    return [this] { return std::make_unique<Connection>(*this); };
  }
  // The next ones to change something, in this order.
  void plan(std::vector<Fault> faults) { state_.lock()->faults = std::move(faults); }
  // Nobody is answered until it is false.
  void cut(bool cut) { state_.lock()->cut = cut; }

  std::map<std::string, KeyRow> rows() { return state_.lock()->rows; }
  std::string value(const std::string& key) { return rows()[key].value; }
  void put(const std::string& key, std::string value) {
    auto state = state_.lock();
    state->rows[key] = {key, std::move(value), ++state->revision};
  }
  void erase(const std::string& key) { state_.lock()->rows.erase(key); }
  size_t commits() { return state_.lock()->commits; }

 private:
  struct State {
    std::map<std::string, KeyRow> rows;
    KeyRevision revision = 0;
    std::vector<Fault> faults;
    bool cut = false;
    size_t commits = 0;  // that changed something

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
      KeyOutcome outcome;
      outcome.done = std::ranges::all_of(transaction.if_all, [&](const KeyTransaction::Known& known) {
        return state->revision_of(known.key) == known.revision;
      });
      if (outcome.done) {
        outcome.revision = ++state->revision;
        state->commits += changes ? 1 : 0;
        for (const auto& put : transaction.puts) state->rows[put.key] = {put.key, put.value, state->revision};
        for (const std::string& key : transaction.erases) state->rows.erase(key);
      } else {
        for (const std::string& key : transaction.otherwise_read) {
          if (const auto found = state->rows.find(key); found != state->rows.end())
            outcome.found.push_back(found->second);
        }
      }
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

    Result<> trim(std::string_view from, std::string_view end) override {
      auto state = keys_.state_.lock();
      if (state->cut) return fail(EIO, "cut off");
      state->rows.erase(state->rows.lower_bound(std::string(from)),
                        state->rows.lower_bound(std::string(end)));
      return {};
    }

   private:
    MemoryKeys& keys_;
  };

  Guarded<State> state_;
};

}  // namespace pnfsrdma::mds
