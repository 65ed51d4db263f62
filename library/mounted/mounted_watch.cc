// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/mounted_watch.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>

namespace pnfsrdma::library::mounted {

std::string_view why_no_events(int error, std::string_view what) {
  switch (error) {
    case EINVAL:
      return "the file ends before the end of the range, or it is empty";
    case ENOTSUP:
      return "mount or brick are of a version that tells no events, the file's data does not go by RDMA, "
             "or the mount has the option writeback";
    case EAGAIN:
      return "no memory of the file is granted just now, or its brick does not answer";
    case ENOSPC:
      return "the mount's programs, or this user's, watch too much, or the range lies in too many pieces";
    default:
      return what;
  }
}

Result<std::unique_ptr<MountedWatch>> MountedWatch::make(OpenFile& file, MountConnection& connection,
                                                         int descriptor, const pnfsrdma_range& range) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0)
    return std::unexpected(Error::from_errno("a pair of sockets"));
  FileDescriptor ours(pair[0]);
  const FileDescriptor theirs(pair[1]);
  const auto channel = connection.add_channel(theirs.get());
  if (!channel && channel.error().number() == EINVAL)
    return fail(ENOTSUP, std::string(why_no_events(ENOTSUP, "watch")));
  if (!channel) return std::unexpected(channel.error());
  ring::Watch watch{
      .channel = *channel, .secret = connection.secret(), .offset = range.offset, .length = range.length};
  if (::ioctl(descriptor, ring::kWatch, &watch) != 0) {
    const int error = errno == ENOTTY ? ENOTSUP : errno;
    return fail(error, std::string(why_no_events(error, "watch")));
  }
  return std::unique_ptr<MountedWatch>(new MountedWatch(file, std::move(ours), range));
}

Result<std::optional<pnfsrdma_event>> MountedWatch::take() {
  ring::Event event;
  ssize_t size = 0;
  do {
    size = ::recv(socket_.get(), &event, sizeof event, 0);
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno == EAGAIN) return std::nullopt;
  if (size != sizeof event) return fail(EIO, "the mount is gone");
  switch (static_cast<ring::EventKind>(event.kind)) {
    case ring::EventKind::kSignal:
      return pnfsrdma_event{PNFSRDMA_EVENT_SIGNAL, 0, event.offset, event.length, event.value};
    case ring::EventKind::kGapSlow:
      return pnfsrdma_event{PNFSRDMA_EVENT_GAP_SLOW, 0, range_.offset, range_.length, 0};
    case ring::EventKind::kGapLost:
      break;
  }
  return pnfsrdma_event{PNFSRDMA_EVENT_GAP_LOST, 0, range_.offset, range_.length, 0};
}

}  // namespace pnfsrdma::library::mounted
