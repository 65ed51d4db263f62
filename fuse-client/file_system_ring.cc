// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "fuse-client/file_size_limit.h"
#include "fuse-client/file_system.h"
#include "fuse-client/ring/ring_server.h"
#include "shared/ring/control.h"

// ioctl(2): how a program comes to a ring (shared/ring), and what of a file's data a descriptor is needed for.
namespace pnfsrdma::fuse_client {
namespace {

constexpr uint64_t kAppendMax = uint64_t{1} << 20;

using ring::argument_of;

std::optional<initiator::WordIo> word_of(const ring::ChangeWord& argument) {
  initiator::WordIo word{.operand = argument.operand,
                         .expected = argument.expected,
                         .durable = (argument.flags & ring::kDurable) != 0};
  if ((argument.flags & ~ring::kDurable) != 0 || argument.unused != 0) return std::nullopt;
  switch (static_cast<ring::WordChange>(argument.change)) {
    case ring::WordChange::kStore:
      word.change = brick::WordChange::kStore;
      return word;
    case ring::WordChange::kCompareAndSwap:
      word.change = brick::WordChange::kCompareAndSwap;
      return word;
    case ring::WordChange::kFetchAndAdd:
      word.change = brick::WordChange::kFetchAndAdd;
      return word;
  }
  return std::nullopt;
}

// A worker is busy with it as long as it takes, and holes ask nobody: so there is a bound.
std::optional<std::vector<initiator::FileRange>> ranges_of(const ring::Verify& argument) {
  if (argument.count > ring::kVerifyRangesMax) return std::nullopt;
  std::vector<initiator::FileRange> ranges;
  uint64_t left = ring::kVerifyBytesMax;
  for (const auto& [offset, length] : std::span(argument.ranges).first(argument.count)) {
    if (length > left) return std::nullopt;
    left -= length;
    ranges.push_back({offset, length});
  }
  return ranges;
}

template <typename Argument>
void reply(fuse_req_t request, const Result<Argument>& answer) {
  if (answer) {
    fuse_reply_ioctl(request, 0, &*answer, sizeof *answer);
  } else {
    fuse_reply_err(request, to_number(answer.error()));
  }
}

}  // namespace

void FileSystem::ioctl(fuse_req_t request, fuse_ino_t node, unsigned command, ByteSpan in, bool on_directory,
                       fuse_file_info* info) {
  switch (command) {
    case ring::kFind:
      return reply(request, parts_.rings.find());
    case ring::kAttach:
      if (on_directory) break;
      return attach(request, in, info);
    case ring::kAppend:
      if (on_directory) break;
      return append_from_memory(request, node, in, info);
    case ring::kChangeWord:
      if (on_directory) break;
      return change_word(request, node, in, info);
    case ring::kVerify:
      if (on_directory) break;
      return verify(request, in, info);
    case ring::kWatch:
      if (on_directory) break;
      return watch(request, in, info);
    case ring::kSignal:
      if (on_directory) break;
      return signal(request, in, info);
    case ring::kOfferClone:
      if (on_directory) break;
      return offer_clone(request, in, info);
    case ring::kClone:
      if (on_directory) break;
      return clone(request, node, in, info);
    default:
      break;
  }
  fuse_reply_err(request, ENOTTY);
}

void FileSystem::attach(fuse_req_t request, ByteSpan in, fuse_file_info* info) {
  auto argument = argument_of<ring::Attach>(in);
  if (!argument) {
    fuse_reply_err(request, EINVAL);
    return;
  }
  OpenFile& file = open_file(info);
  const auto number = parts_.rings.attach(argument->secret, {.open_file = &file,
                                                             .inode = file.inode,
                                                             .data = file.data,
                                                             .readable = file.readable,
                                                             .writable = file.writable && !file.append,
                                                             .durable = (file.flags & O_DSYNC) != 0});
  if (!number) {
    fuse_reply_err(request, to_number(number.error()));
    return;
  }
  std::atomic_ref(file.attached) = true;  // others may do the same
  argument->file = *number;
  reply(request, Result<ring::Attach>(*argument));
}

// As write(2) of a file that is open with O_APPEND; and tells where.
void FileSystem::append_from_memory(fuse_req_t request, fuse_ino_t node, ByteSpan in, fuse_file_info* info) {
  auto argument = argument_of<ring::Append>(in);
  OpenFile& file = open_file(info);
  const auto refuse = [&](int error) { fuse_reply_err(request, error); };
  if (!argument || argument->length == 0 || argument->length > kAppendMax ||
      (argument->flags & ~ring::kDurable) != 0)
    return refuse(EINVAL);
  if (!file.writable) return refuse(EBADF);
  if (file.inode->locks().any_lost()) return refuse(EIO);
  // The kernel does not see that the file grows.
  if (file.data->size() + argument->length > file_size_limit(fuse_req_ctx(request)->pid))
    return refuse(EFBIG);
  const auto part =
      parts_.rings.memory(argument->secret, argument->memory, argument->memory_offset, argument->length);
  if (!part) return refuse(to_number(part.error()));
  file.inode->data_changes();
  if (const int error = clear_privileges(request, node); error != 0) return refuse(error);
  initiator::ErrorCursor losses = file.data->losses_from_now();
  const bool durable = (argument->flags & ring::kDurable) != 0 || (file.flags & O_DSYNC) != 0;
  const auto stability = durable ? initiator::Stability::kDataSync : initiator::Stability::kUnstable;
  const auto at = append(request, file, part->slice, stability);
  if (!at) return refuse(at.error());
  if (durable) {
    if (const Result<> synced = file.data->fdatasync(losses); !synced)
      return reply_lost(request, file, synced.error());
  }
  argument->offset = *at;
  // Neither of the new end nor of what its last page holds has the kernel heard.
  parts_.invalidator.pages(node,
                           [request, answer = *argument] { reply(request, Result<ring::Append>(answer)); });
}

// As a write, but that its brick does it, and nobody else can. With `writeback` the newest bytes may be the kernel's.
void FileSystem::change_word(fuse_req_t request, fuse_ino_t node, ByteSpan in, fuse_file_info* info) {
  auto argument = argument_of<ring::ChangeWord>(in);
  const auto wanted = argument ? word_of(*argument) : std::nullopt;
  OpenFile& file = open_file(info);
  const auto refuse = [&](int error) { fuse_reply_err(request, error); };
  if (!wanted) return refuse(EINVAL);
  const bool reads = wanted->change != brick::WordChange::kStore;
  if (!file.writable || (reads && !file.readable) || file.append) return refuse(EBADF);
  if (parts_.options.writeback) return refuse(ENOTSUP);
  if (file.inode->locks().any_lost()) return refuse(EIO);
  // Another client may have made it longer.
  if (argument->offset > file.data->size() || file.data->size() - argument->offset < sizeof(uint64_t)) {
    if (const int error = ask_end(request, file); error != 0) return refuse(error);
  }
  file.inode->data_changes();
  // The brick takes no bits.
  if (const int error = take_privileges(request, node); error != 0) return refuse(error);
  const auto before = file.data->change_word(argument->offset, *wanted);
  argument->before = before.value_or(0);
  // Whether it was changed may not be known: the kernel reads it anew in any case.
  parts_.invalidator.pages(
      node, [request, answer = *argument, error = before ? 0 : to_number(before.error())] {
        reply(request, error == 0 ? Result<ring::ChangeWord>(answer) : fail(error, "change of a word"));
      });
}

// What the kernel has not written back is not there for it (`writeback`, shared mappings).
void FileSystem::verify(fuse_req_t request, ByteSpan in, fuse_file_info* info) {
  auto argument = argument_of<ring::Verify>(in);
  OpenFile& file = open_file(info);
  const auto refuse = [&](int error) { fuse_reply_err(request, error); };
  const auto ranges = argument ? ranges_of(*argument) : std::nullopt;
  if (!ranges) return refuse(EINVAL);
  if (!file.readable) return refuse(EBADF);
  if (parts_.options.writeback) return refuse(ENOTSUP);
  initiator::ErrorCursor losses = file.data->losses_from_now();
  const auto sums = file.data->flush_and_verify(*ranges, losses);
  if (!sums) return refuse(to_number(sums.error()));
  argument->medium = sums->medium ? 1 : 0;
  std::ranges::copy(sums->checksums, argument->checksums.begin());
  reply(request, Result<ring::Verify>(*argument));
}

// What is told goes to the program by the channel, which ends with the descriptor.
void FileSystem::watch(fuse_req_t request, ByteSpan in, fuse_file_info* info) {
  const auto argument = argument_of<ring::Watch>(in);
  OpenFile& file = open_file(info);
  const auto refuse = [&](int error) { fuse_reply_err(request, error); };
  if (!argument) return refuse(EINVAL);
  // Whatever comes of it: it is for this one.
  auto channel = parts_.rings.take_channel(argument->secret, argument->channel);
  if (!channel) return refuse(to_number(channel.error()));
  if (argument->length > INT64_MAX || argument->offset > INT64_MAX - argument->length) return refuse(EINVAL);
  if (!file.readable) return refuse(EBADF);
  if (parts_.options.writeback) return refuse(ENOTSUP);
  const uid_t user = fuse_req_ctx(request)->uid;
  if (const auto room = parts_.rings.events().check_room(user); !room) return refuse(to_number(room.error()));
  if (const int error = know_end(request, file, argument->offset + argument->length); error != 0)
    return refuse(error);
  auto watch = file.data->watch({argument->offset, argument->length});
  if (!watch) return refuse(to_number(watch.error()));
  std::atomic_ref(file.watched) = true;  // others watch by the same descriptor
  if (const auto begun = parts_.rings.events().begin(file, user, std::move(*watch), std::move(*channel));
      !begun)
    return refuse(to_number(begun.error()));
  reply(request, Result<ring::Watch>(*argument));
}

// As fdatasync(2) of the range, of which those who watch it hear.
void FileSystem::signal(fuse_req_t request, ByteSpan in, fuse_file_info* info) {
  const auto argument = argument_of<ring::Signal>(in);
  OpenFile& file = open_file(info);
  const auto refuse = [&](int error) { fuse_reply_err(request, error); };
  if (!argument || argument->unused != 0 || argument->length > INT64_MAX ||
      argument->offset > INT64_MAX - argument->length)
    return refuse(EINVAL);
  if (!file.writable) return refuse(EBADF);
  if (parts_.options.writeback) return refuse(ENOTSUP);
  if (file.inode->locks().any_lost()) return refuse(EIO);
  if (const int error = know_end(request, file, argument->offset + argument->length); error != 0)
    return refuse(error);
  const Result<> told = file.data->signal({argument->offset, argument->length}, argument->value, file.cursor);
  if (!told) return refuse(to_number(told.error()));
  reply(request, Result<ring::Signal>(*argument));
}

// Another client may have made the file longer than is known here. 0 or an errno.
int FileSystem::know_end(fuse_req_t request, OpenFile& file, uint64_t end) {
  return end <= file.data->size() ? 0 : ask_end(request, file);
}

}  // namespace pnfsrdma::fuse_client
