// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "server/mds/meta/key_value.h"

namespace pnfsrdma::sim {

// What clients of all servers were told. Outside of the system: it costs no time.
class LogOracle {
 public:
  using Violation = std::function<void(const std::string&)>;
  explicit LogOracle(Violation violated) : violated_(std::move(violated)) {}

  // The next number that is written; the register then has it, or a later one.
  uint64_t next() { return ++last_; }
  static std::string key_of(uint64_t number) { return "op" + std::to_string(number); }
  void acknowledged(uint64_t number) {
    acknowledged_.insert(number);
    answered();
  }
  bool was_acknowledged(uint64_t number) const { return acknowledged_.contains(number); }
  // Of a read that begins now: not less is what it may show.
  uint64_t newest() const { return acknowledged_.empty() ? 0 : *acknowledged_.rbegin(); }
  void read(uint64_t shown, uint64_t newest_before) {
    answered();
    if (shown < newest_before)
      violated("a read shows " + std::to_string(shown) + ", and " + std::to_string(newest_before) +
               " was acknowledged before");
  }
  // Whatever was acknowledged is there.
  void check(mds::KeyValueStore& store, const std::string& whose) {
    for (const uint64_t number : acknowledged_) {
      const auto row = store.get(key_of(number));
      if (!row || !*row) violated(whose + " does not have " + key_of(number) + ", which was acknowledged");
    }
  }
  void violated(const std::string& what) const { violated_(what); }

  uint64_t answers = 0;
  std::function<void()> on_answer = [] {};

 private:
  void answered() {
    ++answers;
    on_answer();
  }

  const Violation violated_;
  uint64_t last_ = 0;
  std::set<uint64_t> acknowledged_;
};

}  // namespace pnfsrdma::sim
