// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/words.h"

#include <cerrno>
#include <string>
#include <utility>

#include "shared/base/log.h"

namespace pnfsrdma::initiator {

namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
// A grant may be taken back, or a connection die, this often before the caller is told to come again.
constexpr int kTriesMax = 5;
// An answer is asked for again on so many connections, and within so many timeouts. (One connection that dies ends
// the calls of all threads on it: several such in a row say nothing of this call.)
constexpr int kRepetitionsMax = 64;
constexpr int kTimeoutsMax = 3;
// A gate that is closed for a recall, or a server that wants the layout back from somebody, is waited for so long.
constexpr Milliseconds kGrantPatience = std::chrono::seconds(2);

bool is_made(const WordIo& word, uint64_t before) {
  return word.change != brick::WordChange::kCompareAndSwap || before == word.expected;
}

// The program has to find out; whoever asked for it through a mount has only the errno.
std::unexpected<Error> unknown(const Device& device, const char* why) {
  log_warning("initiator", "word-unknown device={} error=\"{}\"", to_hex(device.id()), why);
  return fail(EIO, std::string(why) + ": whether the word was changed is not known");
}

}  // namespace

// A pin that leaves the gate with its scope.
class Words::Inside {
 public:
  explicit Inside(LayoutCache& cache) : cache_(cache) {}
  ~Inside() { leave(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  LayoutCache::Entry enter(uint64_t offset, uint64_t epoch) {
    leave();
    const auto entry = cache_.enter(pin, offset, kWord, true, epoch);
    entered_ = entry == LayoutCache::Entry::kEntered;
    return entry;
  }
  void leave() {
    if (std::exchange(entered_, false)) cache_.leave(pin);
  }

  LayoutPin pin;

 private:
  LayoutCache& cache_;
  bool entered_ = false;
};

Result<uint64_t> Words::change(uint64_t offset, const WordIo& word) {
  if (offset % kWord != 0) return fail(EINVAL, "the word is not aligned to eight bytes");
  TRY(settle());
  for (int tries = 0; tries < kTriesMax; ++tries) {
    TRY_ASSIGN(const std::optional<uint64_t> before, change_once(offset, word));
    if (before) return *before;
    TRY(file_.patience.still_wanted("a change of a word"));
  }
  return fail(EAGAIN, "the memory was taken back, or the brick does not answer; nothing was changed");
}

// A copy of what went through the MDS is written again when that has lost it: it would come over the word.
Result<> Words::settle() {
  if (file_.unstable_in_doubt()) TRY(flusher_.settle_doubt());
  if (!file_.dirty.keeps_copies()) return {};
  return file_.patience.as_mounted([this] { return flusher_.flush(false); });
}

Result<> Words::enter(uint64_t offset, Inside& inside) {
  if (!file_.fabric.options.layouts) return fail(ENOTSUP, "this file's data does not go by RDMA");
  const SteadyTime deadline = file_.fabric.now() + kGrantPatience;
  int granted = 0;
  for (bool committed = false;;) {
    if (offset > INT64_MAX - kWord || offset + kWord > file_.size())
      return fail(EINVAL, "the file ends before the end of the word");
    const auto entry = inside.enter(offset, file_.layouts.epoch);
    if (entry == LayoutCache::Entry::kEntered && !file_.growth_void()) {
      if (inside.pin.length == kWord && inside.pin.known_size >= offset + kWord) return {};
      inside.leave();
      if (committed) return fail(EAGAIN, "the file has just been cut, or its memory taken back");
      committed = true;
      TRY(committer_.commit_as_mounted());
      continue;
    }
    inside.leave();
    if (file_.growth_void()) {
      TRY(committer_.commit_as_mounted());
    } else if (entry == LayoutCache::Entry::kMissing && !file_.cache.paused(file_.fabric.now()) &&
               layouts_.acquire(Direction::kWrite, offset, kWord) && ++granted < kTriesMax) {
      continue;
    }
    if (!file_.patience.rest_of_brick(deadline)) break;
  }
  TRY(file_.patience.still_wanted("a change of a word"));
  return fail(EAGAIN, "the server grants no memory of the file just now");
}

Result<std::optional<uint64_t>> Words::change_once(uint64_t offset, const WordIo& word) {
  Inside inside(file_.cache);
  TRY(enter(offset, inside));
  const LayoutSegment& piece = inside.pin.pieces().front();
  const auto connected = piece.device->connect();
  if (!connected) {
    inside.leave();
    if (const auto later = file_.patience.connect(*piece.device); !later)
      return fail(later.error().number() == kBrickSilent ? EAGAIN : later.error().number(),
                  later.error().what());
    return std::nullopt;
  }
  const std::shared_ptr<Connection>& connection = *connected;
  if ((connection->said.understands & brick::kUnderstandsChangeWord) == 0)
    return fail(ENOTSUP, "the brick is of a version that changes no words");
  auto call = prepare(piece, *connection, word);
  if (!call) {
    file_.cache.drop_grant(piece.write.grant);
    return std::nullopt;
  }
  const auto slot = piece.device->replay_slots().take(file_.fabric.io_deadline());
  if (!slot) return fail(EAGAIN, "too many changes of words wait for this brick");
  call->slot = slot->slot();
  call->sequence = slot->sequence();
  const uint64_t noted = file_.dirty.noted();
  file_.fabric.statistics.rdma_round_trips.add();
  auto reply = connection->queue_pair.ask<brick::ChangeWordReply>(*call, file_.fabric.io_deadline());
  if (!reply) {
    // It may still arrive; and a recall need not wait until somebody knows. What may have been made it flushes and
    // commits, so that is noted inside of the gate: once more when it is known to be made, perhaps only then.
    note(inside.pin, *connection, std::nullopt);
    file_.dirty.posted({piece.device,
                        connection->hello.connection,
                        inside.pin.layout_incarnation,
                        inside.pin.layout,
                        {piece.offset, piece.length}});
    piece.device->lost(connection);
    inside.leave();
    reply = ask_again(*piece.device, *call);
    if (!reply) return unknown(*piece.device, "the connection to the brick was lost");
  }
  return conclude(inside, word, *connection, *reply, noted);
}

// None: the grant is not alive there.
std::optional<brick::ChangeWordCall> Words::prepare(const LayoutSegment& piece, Connection& connection,
                                                    const WordIo& word) const {
  rdma::RemoteSlice memory;
  if (piece.incarnation != connection.incarnation ||
      connection.resolve(piece.generation, piece.write, piece.skip + piece.length, memory) ==
          Connection::Lookup::kDead)
    return std::nullopt;
  return brick::ChangeWordCall{.record = connection.said.record,
                               .change = word.change,
                               .durable = word.durable,
                               .grant = piece.write.grant,
                               .offset = piece.skip,
                               .operand = word.operand,
                               .expected = word.expected};
}

// Before a newer connection is heard the older ones are dead: what is not in the record by then was not made.
std::optional<brick::ChangeWordReply> Words::ask_again(Device& device,
                                                       const brick::ChangeWordCall& call) const {
  const SteadyTime until = file_.fabric.now() + kTimeoutsMax * file_.fabric.options.io_timeout;
  for (int tries = 0; tries < kRepetitionsMax && file_.fabric.now() < until; ++tries) {
    const auto connection = file_.patience.connect(device);
    if (!connection || (*connection)->said.record != call.record) return std::nullopt;
    file_.fabric.statistics.replays.add();
    file_.fabric.statistics.rdma_round_trips.add();
    auto reply = (*connection)->queue_pair.ask<brick::ChangeWordReply>(call, file_.fabric.io_deadline());
    if (reply) return reply;
    device.lost(*connection);
  }
  return std::nullopt;
}

void Words::note(const LayoutPin& pin, const Connection& connection, std::optional<uint64_t> flushed_behind) {
  if (file_.dirty.wrote(pin.pieces().front(), pin.known_size, pin.layout_incarnation,
                        connection.hello.verifier, file_.fabric.clock.wall_now(), flushed_behind))
    flusher_.flush_beside();
}

Result<std::optional<uint64_t>> Words::conclude(const Inside& inside, const WordIo& word,
                                                const Connection& connection,
                                                const brick::ChangeWordReply& reply, uint64_t noted) {
  const LayoutSegment& piece = inside.pin.pieces().front();
  switch (reply.status) {
    case brick::WordStatus::kOk:
    case brick::WordStatus::kNotDurable:
      break;
    case brick::WordStatus::kUnknownGrant:
      file_.cache.drop_grant(piece.write.grant);
      return std::nullopt;
    case brick::WordStatus::kInvalid:
      return fail(EIO, "the brick says that the word is not inside of its grant");
    case brick::WordStatus::kForgotten:
      return unknown(*piece.device, "the brick has begun anew");
  }
  const bool flushed = word.durable && reply.status == brick::WordStatus::kOk;
  if (is_made(word, reply.before))
    note(inside.pin, connection,
         flushed && reply.verifier == connection.hello.verifier ? std::optional(noted) : std::nullopt);
  if (reply.status == brick::WordStatus::kNotDurable)
    return fail(EIO, "the word was changed, and the brick could not make that durable");
  return reply.before;
}

}  // namespace pnfsrdma::initiator
