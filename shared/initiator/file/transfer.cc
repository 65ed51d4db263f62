// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "shared/base/log.h"
#include "shared/initiator/file/parts.h"

// The way of one I/O. In steady state, at queue depth 1, 4 KiB, layout held:
//   READ:  one doorbell (1 send), one wait (1 receive), the bytes land in the reply buffer: 0 copies, 0 MDS
//   calls; WRITE: the same, out of the request buffer;
// 0 allocations, 0 hand-overs to other threads, one network round trip.
namespace pnfsrdma::initiator {

namespace {

// A connection may die under an I/O this often before the MDS has to carry it.
constexpr int kAttemptsMax = 3;
// Committing our own growth makes room at once; that of others has to be waited for.
constexpr int kRoomTries = 3;

}  // namespace

Result<size_t> FileIo::Parts::move(Direction direction, uint64_t offset, BufferSlice slice, int attempt) {
  size_t done = 0;
  while (done < slice.size()) {
    const BufferSlice rest = slice.slice(done, slice.size() - done);
    TRY_ASSIGN(const std::optional<size_t> stepped, step(direction, offset + done, rest, attempt));
    if (!stepped) {
      TRY_ASSIGN(const size_t count, through_mds(direction, offset + done, rest));
      return done + count;
    }
    done += *stepped;
  }
  return done;
}

Result<std::optional<size_t>> FileIo::Parts::step(Direction direction, uint64_t offset, BufferSlice slice,
                                                  int attempt) {
  const bool for_write = direction == Direction::kWrite;
  Counter& fallbacks = services.statistics.fallbacks;
  if (!services.options.layouts) return std::nullopt;
  if (attempt >= kAttemptsMax) {
    fallbacks.add();
    return std::nullopt;
  }
  LayoutPin pin;
  std::optional<KeptWrites::Room> room;
  for (int tries = 1; !room; ++tries) {
    TRY_ASSIGN(const bool entered, enter(direction, offset, slice.size(), pin));
    if (!entered) return std::nullopt;
    // For what goes by RDMA, and no more; inside of the gate nobody waits.
    room = for_write ? room_for_copy(pin) : KeptWrites::Room();
    if (room) break;
    cache.leave(pin);
    if (tries < kRoomTries && make_room()) continue;
    fallbacks.add();
    return std::nullopt;
  }
  const uint32_t done = post_pieces(direction, pin, slice);
  room.reset();
  cache.leave(pin);
  const uint32_t all = (1u << pin.pieces().size()) - 1;
  if (done != all) TRY(check_devices(pin, done));
  if (done != all) TRY(finish_pieces(direction, pin, slice, done, attempt));
  if (pin.sequential) prefetch_behind(pin, direction);
  if (for_write && kept.any()) commit_growth_early();
  return static_cast<size_t>(pin.length);
}

Result<bool> FileIo::Parts::enter(Direction direction, uint64_t offset, uint64_t length, LayoutPin& pin) {
  const bool for_write = direction == Direction::kWrite;
  Counter& fallbacks = services.statistics.fallbacks;
  bool asked = false;
  for (int turn = 0; turn < kStateidTries;) {
    const auto entry = cache.enter(pin, offset, length, for_write, services.layout_epoch);
    if (growth_void()) {
      // First what was lost with its layouts: else a read finds zeros there.
      if (entry == LayoutCache::Entry::kEntered) cache.leave(pin);
      TRY(commit_now());
      ++turn;
      continue;
    }
    if (entry == LayoutCache::Entry::kEntered) return true;
    if (entry == LayoutCache::Entry::kMissing && !std::exchange(asked, true)) {
      if (!layout_wanted(direction, offset, length)) {
        if (cache.paused(services.now())) fallbacks.add();
        return false;
      }
      if (acquire(direction, offset, length)) continue;
    }
    break;
  }
  fallbacks.add();
  return false;
}

// The pieces that are not done may not be done through the MDS either where the memory is too weak.
Result<> FileIo::Parts::check_devices(const LayoutPin& pin, uint32_t done) const {
  for (size_t i = 0; i < pin.pieces().size(); ++i) {
    const Device* device = pin.pieces()[i].device;
    if ((done & (1u << i)) == 0 && device != nullptr && device->too_weak())
      return std::unexpected(device->weakness());
  }
  return {};
}

Result<> FileIo::Parts::finish_pieces(Direction direction, const LayoutPin& pin, BufferSlice slice,
                                      uint32_t done, int attempt) {
  // Exactly what was not acknowledged, each piece under what layout and connection there are by now.
  for (size_t i = 0; i < pin.pieces().size(); ++i) {
    if ((done & (1u << i)) != 0) continue;
    const LayoutSegment& piece = pin.pieces()[i];
    services.statistics.replays.add();
    const BufferSlice part = slice.slice(piece.offset - pin.offset, piece.length);
    // The hello of a new connection ends the old one: what still lies in the brick's socket lands no more.
    if (pin.unanswered) (void)connect_patiently(*piece.device);
    TRY_ASSIGN(const size_t moved, move(direction, piece.offset, part, attempt + 1));
    // The MDS sees the file end earlier than we did: what is behind it reads as zeros.
    if (moved < part.size()) std::memset(part.data() + moved, 0, part.size() - moved);
  }
  return {};
}

uint32_t FileIo::Parts::post_pieces(Direction direction, LayoutPin& pin, BufferSlice slice) {
  const auto pieces = pin.pieces();
  uint32_t done = 0;
  uint32_t pending = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].hole()) {
      std::memset(slice.data() + (pieces[i].offset - pin.offset), 0, pieces[i].length);
      services.statistics.hole_bytes.add(pieces[i].length);
      done |= 1u << i;
    } else {
      pending |= 1u << i;
    }
  }
  // Nearly always one device, so one turn.
  for (size_t i = 0; i < pieces.size(); ++i) {
    if ((pending & (1u << i)) == 0) continue;
    uint32_t wanted = 0;
    for (size_t j = i; j < pieces.size(); ++j) {
      if ((pending & (1u << j)) != 0 && pieces[j].device == pieces[i].device) wanted |= 1u << j;
    }
    done |= post_to_device(direction, pin, slice, *pieces[i].device, wanted);
    pending &= ~wanted;
  }
  return done;
}

uint32_t FileIo::Parts::post_to_device(Direction direction, LayoutPin& pin, BufferSlice slice, Device& device,
                                       uint32_t wanted) {
  const auto connected = device.connect();
  if (!connected) return 0;
  const std::shared_ptr<Connection>& connection = *connected;
  const bool for_write = direction == Direction::kWrite;
  std::array<WorkItem, kPiecesMax> items;
  std::array<size_t, kPiecesMax> piece_of;
  size_t count = 0;
  bool outdated = false;
  for (size_t i = 0; i < pin.pieces().size(); ++i) {
    if ((wanted & (1u << i)) == 0) continue;
    const LayoutSegment& piece = pin.pieces()[i];
    if (piece.incarnation != connection->incarnation) continue;
    const nfs4::Target& target = for_write ? piece.write : piece.read;
    rdma::RemoteSlice remote;
    const auto lookup = connection->resolve(piece.generation, target, piece.skip + piece.length, remote);
    if (lookup == Connection::Lookup::kDead) cache.drop_grant(target.grant);
    if (lookup == Connection::Lookup::kNewer) outdated = true;
    if (lookup != Connection::Lookup::kFound) continue;
    items[count] = WorkItem{.opcode = for_write ? rdma::Opcode::kWrite : rdma::Opcode::kRead,
                            .local = slice.local(connection->transport, piece.offset - pin.offset,
                                                 static_cast<uint32_t>(piece.length)),
                            .remote = remote.slice(piece.skip, piece.length)};
    piece_of[count++] = i;
  }
  WorkBatch batch{std::span(items).first(count)};
  connection->queue_pair.run(batch, services.io_deadline());

  uint32_t done = 0;
  for (size_t i = 0; i < count; ++i) {
    const LayoutSegment& piece = pin.pieces()[piece_of[i]];
    if (items[i].outcome == rdma::Outcome::kSuccess) {
      done |= 1u << piece_of[i];
      count_bytes(direction, piece.length);
      // Before the gate is left: a recall that drains must find it in the list.
      if (for_write) {
        note_written(piece, slice.slice(piece.offset - pin.offset, piece.length), pin,
                     connection->hello.verifier);
      }
    } else {
      outdated = true;
      if (for_write) {
        pin.unanswered = true;
        dirty.posted({&device, connection->hello.connection, pin.lineage, {piece.offset, piece.length}});
      }
      if (items[i].outcome == rdma::Outcome::kRemoteAccess) {
        cache.drop_grant(for_write ? piece.write.grant : piece.read.grant);
      }
    }
  }
  if (outdated) device.lost(connection);
  return done;
}

void FileIo::Parts::note_written(const LayoutSegment& piece, BufferSlice source, const LayoutPin& pin,
                                 const BrickVerifier& verifier) {
  const uint64_t known = std::clamp(pin.known_size, piece.offset, piece.end()) - piece.offset;
  const uint64_t commits = dirty.commits();
  // Kept before it is known: what a commit tells can be restored.
  const auto keep = [&] { kept.keep(piece.offset + known, source.bytes().subspan(known)); };
  if (known < piece.length) keep();
  if (known > 0) kept.forget(piece.offset, known);
  if (dirty.wrote(piece, pin.known_size, pin.lineage, verifier, services.clock.wall_now())) flush_beside();
  // A commit between has forgotten the copy, perhaps.
  if (known < piece.length && dirty.commits() != commits) keep();
}

void FileIo::Parts::count_bytes(Direction direction, uint64_t bytes) {
  Statistics& counters = services.statistics;
  (direction == Direction::kRead ? counters.rdma_read_bytes : counters.rdma_write_bytes).add(bytes);
  (direction == Direction::kRead ? counters.rdma_reads : counters.rdma_writes).add();
}

Result<size_t> FileIo::Parts::through_mds(Direction direction, uint64_t offset, BufferSlice slice) {
  // What was written here beyond the server's end of file is not there for the server yet.
  if (dirty.grew() && (direction == Direction::kWrite || offset + slice.size() > cache.known_size())) {
    TRY(commit_now());
  }
  if (direction == Direction::kRead) return read_through_mds(offset, slice);
  TRY(end_unknown({offset, slice.size()}, false));
  return write_through_mds(offset, slice);
}

Result<size_t> FileIo::Parts::read_through_mds(uint64_t offset, BufferSlice sink) {
  size_t done = 0;
  int tries = 0;
  while (done < sink.size()) {
    nfs4::Stateid stateid;
    bool open = false;
    const FileReference file = reference(false, &stateid, &open);
    if (!open) return fail(EBADF, "READ: not open for reading");
    const size_t count = std::min(sink.size() - done, services.mds.io_size_max());
    const auto answer = services.mds.read(file, stateid, offset + done, sink.bytes().subspan(done, count));
    if (!answer) {
      if (is_lost_state(answer.error().status) && ++tries < kStateidTries) continue;
      return fail(answer.error().to_errno(), "READ through the MDS");
    }
    const size_t read = answer->data.size();
    done += read;
    services.statistics.mds_reads.add();
    services.statistics.mds_read_bytes.add(read);
    if (answer->end_of_file || read == 0) break;
  }
  return done;
}

Result<size_t> FileIo::Parts::write_through_mds(uint64_t offset, BufferSlice source) {
  size_t done = 0;
  int tries = 0;
  while (done < source.size()) {
    nfs4::Stateid stateid;
    bool open = false;
    const FileReference file = reference(true, &stateid, &open);
    if (!open) return fail(EBADF, "WRITE: not open for writing");
    const size_t count = std::min(source.size() - done, services.mds.io_size_max());
    const uint64_t holdings = cache.holdings();
    const auto answer = services.mds.write(file, stateid, offset + done, source.bytes().subspan(done, count));
    if (!answer) {
      if (is_lost_state(answer.error().status) && ++tries < kStateidTries) continue;
      return fail(answer.error().to_errno(), "WRITE through the MDS");
    }
    if (answer->count == 0) return fail(EIO, "WRITE through the MDS: nothing written");
    cache.learn_size(offset + done + answer->count, holdings);
    dirty.wrote_through_mds(offset + done, *answer);
    ++written_by_mds;
    kept.forget(offset + done, answer->count);
    done += answer->count;
    services.statistics.mds_writes.add();
    services.statistics.mds_write_bytes.add(answer->count);
  }
  return done;
}

FileReference FileIo::Parts::reference(bool for_write, nfs4::Stateid* open_stateid, bool* open) {
  FileReference file{handle, {}};
  std::lock_guard lock(source_mutex);
  auto state = source != nullptr ? source->open_state(for_write) : std::nullopt;
  // Any open does to speak of the file (LAYOUTCOMMIT, LAYOUTRETURN, COMMIT).
  const bool exact = state.has_value();
  if (!state && source != nullptr) state = source->open_state(!for_write);
  if (state) last_credential = state->credential;
  file.credential = last_credential;
  if (open != nullptr) *open = exact;
  if (open_stateid != nullptr && state) *open_stateid = state->stateid;
  return file;
}

}  // namespace pnfsrdma::initiator
