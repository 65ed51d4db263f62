// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/beliefs.h"

#include <algorithm>

namespace pnfsrdma::fuse_client {
namespace {

bool later(const WallTime& time, const timespec& than) {
  return time.seconds != than.tv_sec ? time.seconds > than.tv_sec : time.nanoseconds > than.tv_nsec;
}

}  // namespace

Question Beliefs::ask(const Inode* inode) const {
  Question question{.asked_at = clock_.now(), .name_changes = name_changes_, .data = nullptr};
  question.delegation_era = delegations_.era();
  if (inode == nullptr) return question;
  // Before the data path: one that comes meanwhile is younger.
  question.data_paths = inode->data_paths();
  question.data_changes = inode->data_changes_count();
  question.data = inode->data();
  if (question.data) question.data_version = question.data->local_version();
  return question;
}

Milliseconds Beliefs::learn(Inode& inode, const Question& question, const client::FileAttributes& attributes,
                            bool of_own_change) const {
  judge_pages(inode, question, attributes, of_own_change);
  if (question.data) {
    question.data->server_size(static_cast<uint64_t>(attributes.status.st_size), question.data_version,
                               question.asked_at);
  }
  return inode.learn(attributes, question.asked_at, timeouts_,
                     Inode::Versions{question.data_version, question.name_changes});
}

void Beliefs::learn_with_write(Inode& inode, const nfs4::Attributes& attributes, SteadyTime asked_at,
                               bool changed) const {
  const auto data = inode.data();
  const auto file = client::to_file_attributes(attributes);
  if (!data || !file) return;
  inode.judge_pages({file->change, asked_at, clock_.now(), changed}, file->status.st_mtim);
  inode.learn_with_write(*file, asked_at, timeouts_, data->local_version() + 1);
}

void Beliefs::judge_pages(Inode& inode, const Question& question, const client::FileAttributes& attributes,
                          bool of_own_change) const {
  inode.judge_pages({attributes.change, question.asked_at, clock_.now(), of_own_change},
                    attributes.status.st_mtim);
}

// The kernel asks again after each of its own writes. What those changed we know ourselves until it is
// committed; what the server did then, only the server knows.
std::optional<Inode::Believed> Beliefs::believed(const Inode& inode, SteadyTime now) const {
  std::optional<uint64_t> data_version;
  if (const auto data = inode.data()) {
    data_version = data->local_version();
    if (data->local_attributes().modified) data_version.reset();
  }
  return inode.believed(now, data_version, lost_link_, session_.lease_end());
}

client::FileAttributes Beliefs::with_local_view(const Inode& inode, client::FileAttributes attributes) {
  const std::shared_ptr<initiator::FileIo> data = inode.data();
  if (!data) return attributes;
  const initiator::LocalAttributes local = data->local_attributes();
  struct stat& status = attributes.status;
  if (!local.modified) return attributes;
  status.st_size = std::max(status.st_size, static_cast<off_t>(local.size));
  const timespec modified{.tv_sec = local.modified->seconds, .tv_nsec = local.modified->nanoseconds};
  if (later(*local.modified, status.st_mtim)) status.st_mtim = modified;
  if (later(*local.modified, status.st_ctim)) status.st_ctim = modified;
  return attributes;
}

void Beliefs::link_lost(uint64_t number) {
  uint64_t now = lost_link_;
  while (now < number && !lost_link_.compare_exchange_weak(now, number)) {
  }
}

}  // namespace pnfsrdma::fuse_client
