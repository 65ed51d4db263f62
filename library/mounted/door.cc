// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/door.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "shared/ring/channel.h"
#include "shared/ring/rings.h"

namespace pnfsrdma::library::mounted {
namespace {

// A mount that does not answer for so long is taken for dead: it has to register memory meanwhile.
constexpr timeval kPatience{60, 0};

struct Answered {
  ring::Answer answer;
  std::vector<FileDescriptor> descriptors;
};

Result<Answered> exchange(int socket, const ring::Request& request, std::span<const int> descriptors) {
  TRY(ring::send_message(socket, std::as_bytes(std::span(&request, 1)), descriptors));
  Answered answered;
  TRY_ASSIGN(ring::Message message,
             ring::receive_message(socket, std::as_writable_bytes(std::span(&answered.answer, 1))));
  if (message.size == 0) return fail(EIO, "the mount is gone");
  if (message.size != sizeof answered.answer) return fail(EPROTO, "the mount's answer");
  answered.descriptors = std::move(message.descriptors);
  return answered;
}

Result<Answered> ask(int socket, const ring::Request& request, std::span<const int> descriptors = {}) {
  auto answered = exchange(socket, request, descriptors);
  if (!answered) {
    // Its next answer would be to another request: for this process the mount is gone.
    (void)::shutdown(socket, SHUT_RDWR);
    return answered;
  }
  if (const int error = answered->answer.error; error != 0) {
    const auto& text = answered->answer.text;
    return fail(error, fmt::format("the mount: {}",
                                   std::string_view(text.data(), ::strnlen(text.data(), text.size()))));
  }
  return answered;
}

}  // namespace

Result<ring::Find> find_mount(int directory, std::string_view path) {
  ring::Find found;
  if (::ioctl(directory, ring::kFind, &found) == 0) {
    if (found.version != ring::kVersion)
      return fail(ENOTSUP,
                  fmt::format("{}: its mount is of another version of pnfsrdma-fuse; mount it anew", path));
    found.socket.back() = found.transport.back() = found.durability.back() = '\0';
    return found;
  }
  switch (errno) {
    case ENOTSUP:
      return fail(ENOTSUP, fmt::format("{}: its mount lets no programs in", path));
    case ENOTTY:
    case ENOSYS:
    case EINVAL:
      return fail(ENOTSUP, fmt::format("{} is not on a mount of pnfsrdma-fuse", path));
    default:
      return std::unexpected(Error::from_errno(std::string(path)));
  }
}

Result<std::unique_ptr<Door>> Door::open(std::string_view name, const ring::Secret& token) {
  auto connected = ring::connect_to(name);
  if (!connected && connected.error().number() == ECONNREFUSED)
    return fail(ECONNREFUSED, "the mount's process is gone, or in another network namespace");
  TRY_ASSIGN(FileDescriptor socket, std::move(connected));
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  TRY_ASSIGN(Answered hello, ask(socket.get(), {.kind = static_cast<uint32_t>(ring::RequestKind::kHello),
                                                .value = ring::kDepthMax,
                                                .token = token}));
  const uint32_t depth = hello.answer.number;
  if (hello.descriptors.size() != ring::kHelloDescriptors || !std::has_single_bit(depth) ||
      depth > ring::kDepthMax)
    return fail(EPROTO, "the mount's answer");
  // It is read to see whether it was rung.
  if (::fcntl(hello.descriptors[2].get(), F_SETFL, O_NONBLOCK) != 0)
    return std::unexpected(Error::from_errno("fcntl"));
  TRY_ASSIGN(Mapping rings, Mapping::make(hello.descriptors[0].get(), ring::rings_size(depth)));
  return std::unique_ptr<Door>(new Door(std::move(socket), std::move(hello.descriptors[1]),
                                        std::move(hello.descriptors[2]), std::move(rings), depth,
                                        hello.answer.secret));
}

Door::Door(FileDescriptor socket, FileDescriptor doorbell, FileDescriptor event, Mapping rings,
           uint32_t depth, const ring::Secret& secret)
    : socket_(std::move(socket)),
      doorbell_(std::move(doorbell)),
      event_(std::move(event)),
      rings_(std::move(rings)),
      depth_(depth),
      secret_(secret) {}

Result<uint32_t> Door::add_memory(int memory) {
  const std::lock_guard lock(asking_);
  TRY_ASSIGN(const Answered added,
             ask(socket(), {.kind = static_cast<uint32_t>(ring::RequestKind::kAddMemory)}, {&memory, 1}));
  return added.answer.number;
}

Result<uint32_t> Door::add_channel(int channel) {
  const std::lock_guard lock(asking_);
  TRY_ASSIGN(const Answered added,
             ask(socket(), {.kind = static_cast<uint32_t>(ring::RequestKind::kAddChannel)}, {&channel, 1}));
  return added.answer.number;
}

void Door::remove_memory(uint32_t number) {
  const std::lock_guard lock(asking_);
  (void)ask(socket(), {.kind = static_cast<uint32_t>(ring::RequestKind::kRemoveMemory), .value = number});
}

bool Door::is_closed() const {
  pollfd state{socket(), POLLRDHUP, 0};
  return ::poll(&state, 1, 0) > 0;
}

}  // namespace pnfsrdma::library::mounted
