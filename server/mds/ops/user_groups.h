// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "server/mds/meta/bounded_cache.h"
#include "shared/base/event_loop.h"
#include "shared/base/guarded.h"
#include "shared/base/lifetime.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {

using GroupList = std::vector<uint32_t>;

// Users and their groups. Thread-safe; blocks as long as whoever it asks.
class NameService {
 public:
  virtual ~NameService() = default;
  // The groups the user is in, the primary one among them; empty: there is no such user.
  virtual Result<GroupList> groups_of(uint32_t uid) = 0;
};

// This host's: whatever nsswitch.conf(5) names. A source of groups that fails is left out without an error,
// because getgrouplist(3) has none.
class HostNameService final : public NameService {
 public:
  Result<GroupList> groups_of(uint32_t uid) override;
};

// The groups of users for exports with manage_gids, asked in threads of their own and remembered, users that
// do not exist as well. Control loop only; the threads begin with the first question.
class UserGroups {
 public:
  // Null: nobody knows at present.
  using Answer = std::shared_ptr<const GroupList>;
  using Done = std::function<void(Answer)>;

  // As long as the kernel's server believes rpc.mountd(8).
  static constexpr Milliseconds kLifetime = std::chrono::minutes(30);
  // An older answer is still used for this time, while the name service gives no new one.
  static constexpr Milliseconds kOldAnswers = std::chrono::hours(1);
  // How long a caller waits for the name service.
  static constexpr Milliseconds kPatience{2000};
  // After a failure nobody asks for that user again before.
  static constexpr Milliseconds kRetry{1000};
  static constexpr size_t kUsersMax = 16'384;    // remembered
  static constexpr size_t kQuestionsMax = 1024;  // asked and not answered yet

  UserGroups(EventLoop& loop, NameService& names);
  // Waits for the questions that threads are asking.
  ~UserGroups();
  UserGroups(const UserGroups&) = delete;
  UserGroups& operator=(const UserGroups&) = delete;

  // `done` is called once: at once if the answer is known, else from the loop, after kPatience at the latest.
  void find(uint32_t uid, Done done);
  // Everything is asked again, including what is being asked now.
  void forget();

  // The last failure, while no question has been answered since.
  const std::optional<Error>& failure() const { return failure_; }
  size_t remembered() const { return known_.size(); }

 private:
  static constexpr size_t kThreads = 4;  // one slow answer must not keep all others waiting

  struct Known {
    Answer groups;  // null: the first question failed
    SteadyTime answered;
    SteadyTime ask_from;
  };
  struct Question {
    std::vector<Done> waiting;
    EventLoop::TimerId patience = 0;
    bool late = false;
    bool stale = false;  // forget() came after it was asked
  };
  struct Queue {
    std::deque<uint32_t> users;
    bool stopping = false;
  };

  void ask(uint32_t uid);
  void work();
  void answered(uint32_t uid, Result<GroupList> groups);
  void out_of_patience(uint32_t uid);
  Answer remembered_answer(uint32_t uid);
  void note_failure(uint32_t uid, const Error& error);
  static void tell(std::vector<Done> waiting, const Answer& answer);

  EventLoop& loop_;
  NameService& names_;
  BoundedCache<uint32_t, Known> known_{kUsersMax};
  std::unordered_map<uint32_t, Question> questions_;
  std::optional<Error> failure_;
  Guarded<Queue> queue_;
  Condition wake_;
  std::vector<Thread> threads_;
  // Goes with this object: what a thread has posted must not meet a dead one.
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
