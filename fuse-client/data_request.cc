// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/data_request.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <unistd.h>

#include <cstring>

#include "shared/ring/control.h"

namespace pnfsrdma::fuse_client {
namespace {

struct WordIoctl {
  fuse_ioctl_in ioctl;
  ring::ChangeWord word;
};

struct WatchIoctl {
  fuse_ioctl_in ioctl;
  ring::Watch watch;
};

struct SignalIoctl {
  fuse_ioctl_in ioctl;
  ring::Signal signal;
};

// Zeros where the message is too short; libfuse refuses it then.
template <typename T>
T read_at(ByteSpan message, size_t offset) {
  T value{};
  if (message.size() >= offset + sizeof value) std::memcpy(&value, message.data() + offset, sizeof value);
  return value;
}

fuse_in_header header_of(ByteSpan message) {
  return read_at<fuse_in_header>(message, 0);
}

template <typename T>
T arguments_of(ByteSpan message) {
  return read_at<T>(message, sizeof(fuse_in_header));
}

}  // namespace

std::optional<DataRequest> data_request(ByteSpan message) {
  const fuse_in_header header = header_of(message);
  DataRequest request{.node = header.nodeid, .range = {}};
  switch (header.opcode) {
    case FUSE_READ: {
      const auto read = arguments_of<fuse_read_in>(message);
      request.range = initiator::FileRange{read.offset, read.size};
      return request;
    }
    case FUSE_WRITE: {
      const auto write = arguments_of<fuse_write_in>(message);
      request.range = initiator::FileRange{write.offset, write.size};
      return request;
    }
    case FUSE_IOCTL:
      switch (arguments_of<fuse_ioctl_in>(message).cmd) {
        case ring::kAppend:
        case ring::kVerify:
          return request;
        case ring::kChangeWord:
          request.range =
              initiator::FileRange{arguments_of<WordIoctl>(message).word.offset, sizeof(uint64_t)};
          return request;
        case ring::kWatch: {
          const auto watch = arguments_of<WatchIoctl>(message).watch;
          request.range = initiator::FileRange{watch.offset, watch.length};
          return request;
        }
        case ring::kSignal: {
          const auto signal = arguments_of<SignalIoctl>(message).signal;
          request.range = initiator::FileRange{signal.offset, signal.length};
          return request;
        }
        default:
          return std::nullopt;
      }
    case FUSE_SETATTR:
    case FUSE_FLUSH:
    case FUSE_FSYNC:
    case FUSE_RELEASE:
      return request;
    case FUSE_SETLK:
    case FUSE_SETLKW:
      // What was written is told to the server before a lock is given up.
      if (arguments_of<fuse_lk_in>(message).lk.type == F_UNLCK) return request;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

pid_t caller_of(ByteSpan message) {
  return static_cast<pid_t>(header_of(message).pid);
}

void refuse(int fuse_descriptor, ByteSpan message, int error) {
  const fuse_out_header answer{.len = sizeof answer, .error = -error, .unique = header_of(message).unique};
  // Gone with its caller, at worst.
  (void)!::write(fuse_descriptor, &answer, sizeof answer);
}

}  // namespace pnfsrdma::fuse_client
