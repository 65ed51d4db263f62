// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/mds/log/key_server.h"
#include "shared/base/guarded.h"
#include "tests/doubles/metadata/key_rows.h"

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

  std::map<std::string, KeyRow> rows() { return state_.lock()->rows.all(); }
  size_t size() { return state_.lock()->rows.all().size(); }
  bool has(const std::string& key) { return state_.lock()->rows.revision_of(key) != 0; }
  // Empty: there is no such key.
  std::string value(const std::string& key) {
    auto state = state_.lock();
    const auto found = state->rows.all().find(key);
    return found == state->rows.all().end() ? std::string() : found->second.value;
  }
  void put(const std::string& key, std::string value) { state_.lock()->rows.put(key, std::move(value)); }
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
    KeyRows rows;
    KeyRevision forgotten = 0;
    std::vector<Fault> faults;
    bool cut = false;
    size_t commits = 0;  // that changed something
    std::vector<KeyTransaction> late;

    KeyOutcome apply(const KeyTransaction& transaction) {
      const KeyOutcome outcome = rows.commit(transaction);
      const bool changes = !transaction.puts.empty() || !transaction.erases.empty();
      commits += outcome.done && changes ? 1 : 0;
      return outcome;
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
      return state->rows.range(from, end, limit);
    }

    Result<KeyRevision> erase(std::string_view from, std::string_view end) override {
      auto state = keys_.state_.lock();
      if (state->cut) return fail(EIO, "cut off");
      return state->rows.erase(from, end);
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
