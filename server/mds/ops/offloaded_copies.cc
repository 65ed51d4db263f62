// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/offloaded_copies.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {
// How soon a copy goes on that had to wait, for a brick or a recalled layout.
constexpr Milliseconds kDelayedCopy{100};
// How soon a client that has not heard is told again.
constexpr Milliseconds kTellAgain{1000};
}  // namespace

struct OffloadedCopies::Copy {
  Wanted wanted;
  uint64_t durable = 0;    // bytes from the front
  uint64_t processed = 0;  // those, and what the FileCopy under way has done
  nfs4::Verifier verifier{};
  std::optional<Status> ended;
  bool cancelled = false;
  std::vector<std::function<void(Status)>> cancelling;

  bool stopped() const { return cancelled || wanted.client->gone; }
};

OffloadedCopies::OffloadedCopies(EventLoop& loop, FileCopy& copies, Counters& counters, Milliseconds lease)
    : loop_(loop), copies_(copies), counters_(counters), lease_(lease) {}

bool OffloadedCopies::has_room(const Client& client) {
  std::erase_if(all_, [](const auto& entry) { return entry.second->ended && entry.second->stopped(); });
  if (all_.size() >= kMax) return false;
  const auto is_his = [&](const auto& entry) { return entry.second->wanted.client->id == client.id; };
  return std::ranges::count_if(all_, is_his) < static_cast<ptrdiff_t>(kOfClientMax);
}

nfs4::Stateid OffloadedCopies::start(Wanted wanted) {
  auto copy = std::make_shared<Copy>();
  copy->wanted = std::move(wanted);
  all_[copy->wanted.other] = copy;
  go_on(copy);
  return {kSeqid, copy->wanted.other};
}

// RFC 7862, 4.8: a seqid of 0 means nothing here.
OffloadedCopies::CopyPointer OffloadedCopies::find(ClientId client, const nfs4::Stateid& stateid) const {
  const auto found = all_.find(stateid.other);
  if (found == all_.end() || stateid.seqid != kSeqid) return nullptr;
  const CopyPointer& copy = found->second;
  return copy->wanted.client->id == client && !copy->stopped() ? copy : nullptr;
}

Status OffloadedCopies::test(ClientId client, const nfs4::Stateid& stateid) const {
  return find(client, stateid) ? Status::kOk : Status::kBadStateid;
}

Outcome<nfs4::OffloadStatusResult> OffloadedCopies::progress(ClientId client,
                                                             const nfs4::Stateid& stateid) const {
  const CopyPointer copy = find(client, stateid);
  if (!copy) return std::unexpected(Status::kBadStateid);
  return nfs4::OffloadStatusResult{.count = copy->processed, .complete = copy->ended};
}

void OffloadedCopies::cancel(ClientId client, const nfs4::Stateid& stateid,
                             std::function<void(Status)> done) {
  const CopyPointer copy = find(client, stateid);
  if (!copy) return done(Status::kBadStateid);
  if (copy->ended) return done(Status::kCompleteAlready);
  copy->cancelled = true;
  copy->cancelling.push_back(std::move(done));
}

void OffloadedCopies::go_on(const CopyPointer& copy) {
  loop_.at_own_turn(lifetime_.guard([this, copy] {
    const EventLoop::Step step(loop_, "offloaded-copy", copy->wanted.client->id);
    copy_some(copy);
  }));
}

void OffloadedCopies::copy_some(const CopyPointer& copy) {
  if (copy->stopped()) return forget(copy);
  if (const Status allowed = copy->wanted.may_write(); allowed != Status::kOk) return fail(copy, allowed);
  FileCopy::What next = copy->wanted.what;
  next.source_offset += copy->durable;
  next.target_offset += copy->durable;
  next.count -= copy->durable;
  next.goes_on = [copy](uint64_t done) {
    copy->processed = copy->durable + done;
    return !copy->stopped();
  };
  copies_.copy(next, lifetime_.guard([this, copy](const std::expected<FileCopy::Copied, Status>& answer) {
    copied_some(copy, answer);
  }));
}

void OffloadedCopies::copied_some(const CopyPointer& copy,
                                  const std::expected<FileCopy::Copied, Status>& answer) {
  if (answer) {
    copy->durable += answer->count;
    copy->verifier = answer->verifier;
    count(*copy, answer->count);
  }
  copy->processed = copy->durable;
  if (copy->stopped()) return forget(copy);
  if (!answer && answer.error() == Status::kDelay) {
    loop_.after(kDelayedCopy, lifetime_.guard([this, copy] { go_on(copy); }));
    return;
  }
  if (!answer) return fail(copy, answer.error());
  // All, or the source has become shorter.
  if (answer->count == 0 || copy->durable == copy->wanted.what.count) return end(copy, Status::kOk);
  go_on(copy);
}

void OffloadedCopies::count(const Copy& copy, uint64_t bytes) {
  counters_.bytes_read += bytes;
  counters_.bytes_written += bytes;
  const Activity activity{.read_bytes = bytes, .write_bytes = bytes};
  copy.wanted.client->activity += activity;
  counters_.by_export[copy.wanted.target.export_id] += activity;
  counters_.busy_files.add(copy.wanted.target.inode, activity);
}

// As with a synchronous one: what failed behind the first bytes is the next request's to hear.
void OffloadedCopies::fail(const CopyPointer& copy, Status status) {
  end(copy, copy->durable == 0 ? status : Status::kOk);
}

void OffloadedCopies::end(const CopyPointer& copy, Status status) {
  copy->ended = status;
  copy->wanted.hold.reset();
  loop_.after(lease_, lifetime_.guard([this, copy] { forget(copy); }));
  tell(copy);
}

// Until it is forgotten.
void OffloadedCopies::tell(const CopyPointer& copy) {
  const auto known = all_.find(copy->wanted.other);
  if (known == all_.end()) return;
  if (copy->stopped()) return forget(copy);
  nfs4::CallbackOffloadArguments arguments{
      .file_handle = copy->wanted.named, .stateid = {kSeqid, copy->wanted.other}, .outcome = {}};
  using Told = decltype(arguments.outcome);
  arguments.outcome = Told::of(*copy->ended);
  if (auto* done = arguments.outcome.get_if<Status::kOk>()) {
    done->count = copy->durable;
    done->committed = nfs4::StableHow::kFileSync;
    done->verifier = copy->verifier;
  }
  copy->wanted.tell(arguments, lifetime_.guard([this, copy](bool heard) {
    if (heard) return forget(copy);
    loop_.after(kTellAgain, lifetime_.guard([this, copy] { tell(copy); }));
  }));
}

void OffloadedCopies::forget(const CopyPointer& copy) {
  copy->wanted.hold.reset();
  all_.erase(copy->wanted.other);
  for (const auto& done : std::exchange(copy->cancelling, {})) done(Status::kOk);
}

}  // namespace pnfsrdma::mds
