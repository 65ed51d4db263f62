// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/user_groups.h"

#include <grp.h>
#include <linux/limits.h>
#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "shared/base/log.h"

namespace pnfsrdma::mds {

Result<GroupList> HostNameService::groups_of(uint32_t uid) {
  passwd entry{};
  passwd* user = nullptr;
  std::vector<char> text(1024);
  int failed = 0;
  while ((failed = getpwuid_r(uid, &entry, text.data(), text.size(), &user)) == ERANGE)
    text.resize(text.size() * 2);
  // Both mean "no such user", says getpwuid(3).
  if (failed == ENOENT || failed == ESRCH) return GroupList{};
  if (failed != 0) return fail(failed, "getpwuid_r of user " + std::to_string(uid));
  if (user == nullptr) return GroupList{};
  GroupList groups(64);
  int count = static_cast<int>(groups.size());
  while (getgrouplist(user->pw_name, user->pw_gid, groups.data(), &count) < 0) {
    // It says how many there are; no process can be in more than NGROUPS_MAX.
    if (groups.size() >= NGROUPS_MAX) return fail(E2BIG, "getgrouplist of user " + std::to_string(uid));
    groups.resize(std::clamp<size_t>(static_cast<size_t>(count), groups.size() + 1, NGROUPS_MAX));
    count = static_cast<int>(groups.size());
  }
  groups.resize(static_cast<size_t>(count));
  return groups;
}

UserGroups::UserGroups(EventLoop& loop, NameService& names) : loop_(loop), names_(names) {}

UserGroups::~UserGroups() {
  queue_.lock()->stopping = true;
  wake_.notify_all();
  for (Thread& thread : threads_) thread.join();
  for (const auto& [uid, question] : questions_) loop_.cancel(question.patience);
}

void UserGroups::find(uint32_t uid, Done done) {
  const SteadyTime now = loop_.now();
  if (const Known* known = known_.find(uid); known != nullptr && now < known->ask_from)
    return done(remembered_answer(uid));
  auto asked = questions_.find(uid);
  if (asked == questions_.end()) {
    if (questions_.size() >= kQuestionsMax) return done(remembered_answer(uid));
    asked = questions_.try_emplace(uid).first;
    asked->second.patience = loop_.after(kPatience, [this, uid] { out_of_patience(uid); });
    ask(uid);
  } else if (asked->second.late) {
    return done(remembered_answer(uid));
  }
  asked->second.waiting.push_back(std::move(done));
}

void UserGroups::forget() {
  known_.clear();
  for (auto& [uid, question] : questions_) question.stale = true;
}

void UserGroups::ask(uint32_t uid) {
  queue_.lock()->users.push_back(uid);
  if (threads_.size() < kThreads) threads_.emplace_back([this] { work(); });
  wake_.notify_one();
}

void UserGroups::work() {
  for (;;) {
    uint32_t uid = 0;
    {
      auto queue = queue_.lock();
      queue.wait(wake_, [](const Queue& now) { return now.stopping || !now.users.empty(); });
      if (queue->stopping) return;
      uid = queue->users.front();
      queue->users.pop_front();
    }
    loop_.post(lifetime_.guard(
        [this, uid, groups = names_.groups_of(uid)]() mutable { answered(uid, std::move(groups)); }));
  }
}

void UserGroups::answered(uint32_t uid, Result<GroupList> groups) {
  const auto asked = questions_.find(uid);
  if (std::exchange(asked->second.stale, false)) return ask(uid);
  loop_.cancel(asked->second.patience);
  std::vector<Done> waiting = std::move(asked->second.waiting);
  questions_.erase(asked);
  if (groups) {
    if (failure_) log_info("mds", "name-service-answers user={}", uid);
    failure_.reset();
    const SteadyTime now = loop_.now();
    known_.put(uid, {std::make_shared<const GroupList>(std::move(*groups)), now, now + kLifetime});
  } else {
    note_failure(uid, groups.error());
  }
  tell(std::move(waiting), remembered_answer(uid));
}

// The thread goes on asking, and what it hears counts.
void UserGroups::out_of_patience(uint32_t uid) {
  Question& question = questions_.at(uid);
  question.late = true;
  note_failure(uid, Error(ETIMEDOUT, "the groups of user " + std::to_string(uid)));
  tell(std::exchange(question.waiting, {}), remembered_answer(uid));
}

UserGroups::Answer UserGroups::remembered_answer(uint32_t uid) {
  const Known* known = known_.find(uid);
  if (known == nullptr || loop_.now() >= known->answered + kLifetime + kOldAnswers) return nullptr;
  return known->groups;
}

void UserGroups::note_failure(uint32_t uid, const Error& error) {
  if (!failure_)
    log_warning("mds",
                "name-service-failed error=\"{}\" what=\"users whose groups are unknown wait; earlier "
                "answers are used for up to an hour more (logged once)\"",
                error.to_string());
  failure_ = error;
  const Known* before = known_.find(uid);
  Known after = before != nullptr ? *before : Known{};
  after.ask_from = loop_.now() + kRetry;
  known_.put(uid, std::move(after));
}

// Each may ask again, or end this object's owner.
void UserGroups::tell(std::vector<Done> waiting, const Answer& answer) {
  for (Done& done : waiting) done(answer);
}

}  // namespace pnfsrdma::mds
