// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/job_table.h"

#include <algorithm>
#include <cerrno>

#include "server/console/inventory_names.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {

Result<console::Job> JobTable::start(console::JobKind kind, const std::string& subject,
                                     const std::string& user, const Begin& begin) {
  for (const auto& [id, entry] : jobs_) {
    if (entry.job.state == console::JobState::kRunning && entry.job.subject == subject)
      return fail(EBUSY,
                  "job " + std::to_string(id) + " (" + to_string(entry.job.kind) + ") works on it already");
  }
  const uint64_t id = next_++;
  jobs_[id].job = {.id = id,
                   .kind = kind,
                   .subject = subject,
                   .state = console::JobState::kRunning,
                   .message = "begun",
                   .user = user,
                   .started = clock_.wall_now(),
                   .finished = {},
                   .cancellable = true};
  log_info("mds", "job-started job={} kind={} subject={} user={}", id, to_string(kind), subject, user);
  auto cancel =
      begin({.on_progress = lifetime_.guard(
                 [this, id](double share, const std::string& message) { progress(id, share, message); }),
             .on_end = lifetime_.guard([this, id](Result<std::string> outcome) { end(id, outcome); })});
  jobs_[id].cancel = std::move(cancel);
  const console::Job started = jobs_[id].job;
  // The oldest that has ended makes room.
  if (jobs_.size() > kKept) {
    const auto ended = std::ranges::find_if(
        jobs_, [](const auto& entry) { return entry.second.job.state != console::JobState::kRunning; });
    if (ended != jobs_.end()) jobs_.erase(ended);
  }
  return started;
}

void JobTable::progress(uint64_t id, double share, const std::string& message) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second.job.state != console::JobState::kRunning) return;
  found->second.job.progress = std::clamp(share, 0.0, 1.0);
  found->second.job.message = message;
}

void JobTable::end(uint64_t id, const Result<std::string>& outcome) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second.job.state != console::JobState::kRunning) return;
  console::Job& job = found->second.job;
  job.state = outcome                                 ? console::JobState::kDone
              : outcome.error().number() == ECANCELED ? console::JobState::kCancelled
                                                      : console::JobState::kFailed;
  if (outcome) job.progress = 1;
  job.message = outcome ? *outcome : outcome.error().what();
  job.finished = clock_.wall_now();
  job.cancellable = false;
  log_info("mds", "job-ended job={} kind={} subject={} state={} message=\"{}\"", id, to_string(job.kind),
           job.subject, to_string(job.state), job.message);
}

Result<console::Job> JobTable::cancel(uint64_t id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return fail(ENOENT, "there is no job " + std::to_string(id) + " of this run");
  if (found->second.job.state == console::JobState::kRunning &&
      !std::exchange(found->second.cancelled, true)) {
    const auto cancel = found->second.cancel;
    cancel();
  }
  return jobs_.at(id).job;
}

std::vector<console::Job> JobTable::all() const {
  std::vector<console::Job> all;
  for (const auto& [id, entry] : jobs_) all.push_back(entry.job);
  return all;
}

}  // namespace pnfsrdma::mds
