// SPDX-License-Identifier: Apache-2.0
#include "library/blocks/block_mapping.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "library/blocks/owner.h"

namespace pnfsrdma::library::blocks {
namespace {

constexpr Milliseconds kMappingPatience{30'000};
constexpr Milliseconds kTryPause{20};
constexpr uint64_t kWordSize = sizeof(uint64_t);
// A FLUSH names its length in 32 bits.
constexpr uint64_t kNativeFlushMax = uint64_t{2} << 30;

brick::WordChange on_the_wire(WordChange::Kind kind) {
  switch (kind) {
    case WordChange::Kind::kStore:
      return brick::WordChange::kStore;
    case WordChange::Kind::kCompareAndSwap:
      return brick::WordChange::kCompareAndSwap;
    case WordChange::Kind::kFetchAndAdd:
      break;
  }
  return brick::WordChange::kFetchAndAdd;
}

std::unexpected<Error> word_unknown(const char* why) {
  return fail(EIO, std::string(why) + ": whether the word was changed is not known");
}

}  // namespace

// --- what the owner knows ---

void BlockMapping::exposed(Exposure exposure) {
  {
    auto state = state_.lock();
    state->exposure = std::make_shared<const Exposure>(std::move(exposure));
  }
  changed_.notify_all();
}

void BlockMapping::wait_for_exposure() {
  state_.lock()->exposure = nullptr;
}

void BlockMapping::ended(Error why) {
  {
    auto state = state_.lock();
    state->exposure = nullptr;
    if (!state->ended) state->ended = std::move(why);
  }
  changed_.notify_all();
}

bool BlockMapping::is_mapped() {
  auto state = state_.lock();
  return state->exposure != nullptr && !state->ended;
}

Result<BlockMapping::ExposurePointer> BlockMapping::exposure(SteadyTime deadline) {
  auto state = state_.lock();
  (void)state.wait_until(changed_, deadline,
                         [](const State& now) { return now.exposure != nullptr || now.ended; });
  if (state->ended) return std::unexpected(*state->ended);
  if (!state->exposure) return fail(ETIMEDOUT, "the brick does not answer");
  return state->exposure;
}

// --- tries ---

Result<> BlockMapping::check(uint64_t offset, uint64_t length, bool writes) const {
  if (writes && !blocks_.writable) return fail(EBADF, "the mapping is not for writing");
  if (offset > size() || length > size() - offset) return fail(EINVAL, "the mapping ends before that");
  return {};
}

Result<> BlockMapping::until_done(const Try& attempt) {
  const SteadyTime deadline = steady_now() + kMappingPatience;
  for (;;) {
    TRY_ASSIGN(const ExposurePointer now, exposure(deadline));
    initiator::Device& device = now->attachment->device;
    auto connected = device.connect();
    if (connected) {
      TRY_ASSIGN(const Outcome outcome, attempt(now, *connected));
      if (outcome == Outcome::kDone) return {};
      if (outcome == Outcome::kLost) device.lost(*connected);
      if (outcome == Outcome::kNoHandle) TRY(expose_again(now, deadline));
    } else if (device.too_weak()) {
      return std::unexpected(device.weakness());
    }
    if (steady_now() >= deadline)
      return connected ? Result<>(fail(ETIMEDOUT, "the brick takes no data"))
                       : Result<>(fail(ETIMEDOUT, connected.error().to_string()));
    sleep_for(kTryPause);
  }
}

Result<> BlockMapping::expose_again(const ExposurePointer& old, SteadyTime deadline) {
  auto again = owner_.expose_again(*this, *old->attachment, deadline);
  if (!again) {
    if (again.error().number() != ESTALE) return std::unexpected(again.error());
    ended(again.error());
    return std::unexpected(again.error());
  }
  // Another attachment's is not to be replaced by this one.
  auto state = state_.lock();
  if (*again && state->exposure == old)
    state->exposure = std::make_shared<const Exposure>(std::move(**again));
  return {};
}

Result<BlockMapping::Outcome> BlockMapping::find(const Exposure& exposure,
                                                 const initiator::Connection& connection, uint64_t offset,
                                                 uint64_t length, Pieces& pieces) const {
  const uint64_t from = blocks_.address + offset;
  const uint64_t to = from + length;
  uint64_t found = 0;
  for (const brick::Grant& grant : exposure.grants) {
    const uint64_t begin = std::max(from, grant.logical);
    const uint64_t end = std::min(to, grant.logical + grant.length);
    if (begin >= end) continue;
    Piece piece{.grant = grant, .skip = begin - grant.logical, .length = end - begin, .memory = {}};
    switch (connection.resolve(exposure.connection, {grant.grant, grant.handle, grant.address}, grant.length,
                               piece.memory)) {
      case initiator::Connection::Lookup::kFound:
        break;
      case initiator::Connection::Lookup::kDead:
        return Outcome::kNoHandle;
      case initiator::Connection::Lookup::kNewer:
        return Outcome::kLost;
    }
    pieces.push_back(piece);
    found += piece.length;
  }
  if (found != length) return fail(EPROTO, "the brick has exposed a part of the mapping only");
  return Outcome::kDone;
}

// --- bytes ---

Result<> BlockMapping::read(MutableByteSpan to, uint64_t offset) {
  TRY(check(offset, to.size(), false));
  TRY_ASSIGN(const auto buffer, owner_.buffers().take());
  while (!to.empty()) {
    const size_t count = std::min(to.size(), initiator::kBufferPayload);
    const auto slice = buffer->slice(0, count);
    TRY(until_done([&](const ExposurePointer& now, const ConnectionPointer& connection) -> Result<Outcome> {
      Pieces pieces;
      TRY_ASSIGN(const Outcome found, find(*now, *connection, offset, count, pieces));
      if (found != Outcome::kDone) return found;
      return move(*connection, pieces, rdma::Opcode::kRead, slice, false);
    }));
    std::memcpy(to.data(), slice.data(), count);
    to = to.subspan(count);
    offset += count;
  }
  return {};
}

Result<> BlockMapping::write(ByteSpan from, uint64_t offset, bool durable) {
  TRY(check(offset, from.size(), true));
  TRY_ASSIGN(const auto buffer, owner_.buffers().take());
  while (!from.empty()) {
    const size_t count = std::min(from.size(), initiator::kBufferPayload);
    const auto slice = buffer->slice(0, count);
    std::memcpy(slice.data(), from.data(), count);
    TRY(until_done([&](const ExposurePointer& now, const ConnectionPointer& connection) -> Result<Outcome> {
      Pieces pieces;
      TRY_ASSIGN(const Outcome found, find(*now, *connection, offset, count, pieces));
      if (found != Outcome::kDone) return found;
      TRY_ASSIGN(const Outcome moved, move(*connection, pieces, rdma::Opcode::kWrite, slice, durable));
      if (moved != Outcome::kDone) return moved;
      if (durable) {
        unflushed_.wrote_durably(offset, count);
      } else {
        unflushed_.wrote(offset, count, connection->hello.verifier);
      }
      return moved;
    }));
    from = from.subspan(count);
    offset += count;
  }
  return {};
}

// One doorbell and one round trip: the pieces, and behind them what flushes them.
Result<BlockMapping::Outcome> BlockMapping::move(initiator::Connection& connection, const Pieces& pieces,
                                                 rdma::Opcode opcode, initiator::BufferSlice slice,
                                                 bool flushes) const {
  std::vector<initiator::WorkItem> items;
  size_t done = 0;
  for (const Piece& piece : pieces) {
    const auto length = static_cast<uint32_t>(piece.length);
    items.push_back({.opcode = opcode,
                     .local = slice.local(connection.transport, done, length),
                     .remote = piece.memory.slice(piece.skip, piece.length)});
    done += length;
  }
  const bool natively = flushes && connection.flush == initiator::FlushMethod::kNative;
  if (natively) {
    for (size_t i = 0; i < pieces.size(); ++i)
      items.push_back({.opcode = rdma::Opcode::kFlush, .remote = items[i].remote});
  }
  const bool by_message = flushes && !natively;
  if (by_message) {
    TRY(check_message(connection));
    items.emplace_back();
  }
  const SteadyTime deadline = owner_.io_deadline();
  initiator::WorkBatch batch(items);
  if (by_message) {
    connection.queue_pair.start(batch, persist_call(pieces), deadline);
  } else {
    connection.queue_pair.start(batch, deadline);
  }
  connection.queue_pair.finish(batch, deadline);
  for (const initiator::WorkItem& item : items) {
    if (item.outcome != rdma::Outcome::kRemoteAccess) continue;
    connection.queue_pair.fail();
    return Outcome::kNoHandle;
  }
  if (!batch.succeeded()) return Outcome::kLost;
  return by_message ? take_persist(batch.reply(), connection) : Outcome::kDone;
}

Result<> BlockMapping::flush(uint64_t offset, uint64_t length) {
  TRY(check(offset, length, true));
  if (length == 0) return {};
  const Unflushed::Taken taken = unflushed_.take(offset, length);
  Unflushed::Verifier verifier{};
  const Result<> flushed =
      until_done([&](const ExposurePointer& now, const ConnectionPointer& connection) -> Result<Outcome> {
        Pieces pieces;
        TRY_ASSIGN(const Outcome found, find(*now, *connection, offset, length, pieces));
        if (found != Outcome::kDone) return found;
        verifier = connection->hello.verifier;
        return flush_all(*connection, pieces);
      });
  if (!flushed) {
    unflushed_.put_back(taken);
    return flushed;
  }
  return Unflushed::settle(taken, verifier);
}

// As many at a time as the send queue, or a message, takes.
Result<BlockMapping::Outcome> BlockMapping::flush_all(initiator::Connection& connection,
                                                      const Pieces& pieces) const {
  const bool native = connection.flush == initiator::FlushMethod::kNative;
  Pieces parts;
  for (Piece piece : pieces) {
    for (; native && piece.length > kNativeFlushMax;
         piece.skip += kNativeFlushMax, piece.length -= kNativeFlushMax) {
      parts.push_back(piece);
      parts.back().length = kNativeFlushMax;
    }
    parts.push_back(piece);
  }
  const size_t most = native ? connection.queue_pair.items_max() : brick::kPersistRangesPerMessage;
  for (std::span<const Piece> left = parts; !left.empty();) {
    const auto now = left.first(std::min(most, left.size()));
    TRY_ASSIGN(const Outcome outcome, flush(connection, now));
    if (outcome != Outcome::kDone) return outcome;
    left = left.subspan(now.size());
  }
  return Outcome::kDone;
}

Result<BlockMapping::Outcome> BlockMapping::flush(initiator::Connection& connection,
                                                  std::span<const Piece> pieces) const {
  const SteadyTime deadline = owner_.io_deadline();
  if (connection.flush == initiator::FlushMethod::kNative) {
    std::vector<initiator::WorkItem> items;
    for (const Piece& piece : pieces)
      items.push_back(
          {.opcode = rdma::Opcode::kFlush, .remote = piece.memory.slice(piece.skip, piece.length)});
    initiator::WorkBatch batch(items);
    connection.queue_pair.run(batch, deadline);
    return batch.succeeded() ? Outcome::kDone : Outcome::kLost;
  }
  TRY(check_message(connection));
  return take_persist(connection.queue_pair.persist(persist_call(pieces), deadline), connection);
}

Result<> BlockMapping::check_message(const initiator::Connection& connection) {
  if (connection.takes_commit_message) return {};
  return fail(ENOTSUP, "the brick offers no way to flush by the data connection");
}

brick::PersistCall BlockMapping::persist_call(std::span<const Piece> pieces) {
  brick::PersistCall call;
  for (const Piece& piece : pieces) call.ranges.push_back({piece.grant.grant, piece.skip, piece.length});
  return call;
}

Result<BlockMapping::Outcome> BlockMapping::take_persist(const std::optional<brick::PersistReply>& reply,
                                                         const initiator::Connection& connection) {
  if (!reply) return Outcome::kLost;
  switch (reply->status) {
    case brick::PersistStatus::kOk:
      return reply->verifier == connection.hello.verifier ? Outcome::kDone : Outcome::kLost;
    case brick::PersistStatus::kUnknownGrant:
      return Outcome::kNoHandle;
    case brick::PersistStatus::kBounds:
    case brick::PersistStatus::kIo:
      break;
  }
  return fail(EIO, "the brick could not make the data durable");
}

// --- words ---

// A change whose answer was lost is asked for again under its number, which the brick then makes once all the same.
Result<uint64_t> BlockMapping::change_word(const WordChange& change) {
  TRY(check(change.offset, kWordSize, true));
  if (change.offset % kWordSize != 0) return fail(EINVAL, "the word is not aligned to eight bytes");
  std::shared_ptr<Attachment> sent_under;
  std::optional<initiator::ReplaySlots::Held> slot;
  std::optional<brick::ChangeWordCall> sent;
  uint64_t before = 0;
  const auto attempt = [&](const ExposurePointer& now,
                           const ConnectionPointer& connection) -> Result<Outcome> {
    if (sent && (now->attachment != sent_under || connection->said.record != sent->record))
      return word_unknown("the brick has started again");
    if (!sent) {
      if ((connection->said.understands & brick::kUnderstandsChangeWord) == 0)
        return fail(ENOTSUP, "the brick is of a version that changes no words");
      Pieces pieces;
      TRY_ASSIGN(const Outcome found, find(*now, *connection, change.offset, kWordSize, pieces));
      if (found != Outcome::kDone) return found;
      sent_under = now->attachment;
      if (auto taken = sent_under->device.replay_slots().take(owner_.io_deadline())) {
        slot.emplace(std::move(*taken));
      } else {
        return fail(EAGAIN, "too many changes of words wait for this brick");
      }
      sent = brick::ChangeWordCall{.record = connection->said.record,
                                   .slot = slot->slot(),
                                   .sequence = slot->sequence(),
                                   .change = on_the_wire(change.kind),
                                   .durable = change.durable,
                                   .grant = pieces.front().grant.grant,
                                   .offset = pieces.front().skip,
                                   .operand = change.operand,
                                   .expected = change.expected};
    }
    const auto reply = connection->queue_pair.ask<brick::ChangeWordReply>(*sent, owner_.io_deadline());
    if (!reply) return Outcome::kLost;
    switch (reply->status) {
      case brick::WordStatus::kOk:
        before = reply->before;
        if (!change.durable) unflushed_.wrote(change.offset, kWordSize, reply->verifier);
        return Outcome::kDone;
      case brick::WordStatus::kUnknownGrant:
        sent.reset();
        slot.reset();
        return Outcome::kNoHandle;
      case brick::WordStatus::kNotDurable:
        return fail(EIO, "the word was changed, and the brick could not make that durable");
      case brick::WordStatus::kInvalid:
        return fail(EIO, "the brick says that the word is not inside of its grant");
      case brick::WordStatus::kForgotten:
        break;
    }
    return word_unknown("the brick has started again");
  };
  const Result<> done = until_done(attempt);
  if (done) return before;
  if (sent && done.error().number() != EIO) return word_unknown(done.error().to_string().c_str());
  return std::unexpected(done.error());
}

}  // namespace pnfsrdma::library::blocks
