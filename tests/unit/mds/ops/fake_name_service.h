// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <map>
#include <set>

#include "server/mds/ops/user_groups.h"

namespace pnfsrdma::mds {

// A name service whose users, speed and failures the test says.
class FakeNameService final : public NameService {
 public:
  Result<GroupList> groups_of(uint32_t uid) override {
    auto state = state_.lock();
    ++state->asked[uid];
    changed_.notify_all();
    // As it was asked, whatever is changed before it is let go of.
    const GroupList groups = state->groups[uid];
    state.wait(changed_, [uid](const State& now) { return !now.held.contains(uid); });
    if (state->failing) return fail(EIO, "asking the name service");
    return groups;
  }

  void set(uint32_t uid, GroupList groups) { state_.lock()->groups[uid] = std::move(groups); }
  void set_failing(bool failing) { state_.lock()->failing = failing; }
  // Questions about the user get no answer until release().
  void hold(uint32_t uid) { state_.lock()->held.insert(uid); }
  void release(uint32_t uid) {
    state_.lock()->held.erase(uid);
    changed_.notify_all();
  }
  int asked(uint32_t uid) { return state_.lock()->asked[uid]; }
  void wait_until_asked(uint32_t uid, int times) {
    state_.lock().wait(changed_, [=](State& now) { return now.asked[uid] >= times; });
  }

 private:
  struct State {
    std::map<uint32_t, GroupList> groups;
    std::map<uint32_t, int> asked;
    std::set<uint32_t> held;
    bool failing = false;
  };
  Guarded<State> state_;
  Condition changed_;
};

}  // namespace pnfsrdma::mds
