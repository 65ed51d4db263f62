// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "library/preload/mount_ring.h"

// How a process becomes a program of a mount, without memory of the heap's: it may be in the middle of malloc(3).
namespace pnfsrdma::preload {
namespace {

// A mount that does not answer for so long lets us out.
constexpr timeval kPatience{5, 0};
constexpr uint64_t kDepth = MountRing::kPlaces;

void close(int descriptor) {
  if (descriptor >= 0) (void)kernel(SYS_close, descriptor);
}

// Out of the way of programs that count on the lowest numbers, or close those that they know.
int moved_up(int descriptor) {
  rlimit limit{};
  const bool known = kernel(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit) == 0;
  const uint64_t end = known ? std::min<uint64_t>(limit.rlim_cur, 1024) : 1024;
  for (const uint64_t from : {end - std::min<uint64_t>(end, 24), end / 2}) {
    const long moved = kernel(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, from);
    if (moved < 0) continue;
    close(descriptor);
    return static_cast<int>(moved);
  }
  return descriptor;
}

struct Answered {
  ring::Answer answer;
  std::array<int, ring::kHelloDescriptors> descriptors{-1, -1, -1};
};

bool send(int socket, ring::Request request, int descriptor) {
  iovec data{&request, sizeof request};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))]{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  return kernel(SYS_sendmsg, socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof request;
}

// False: it refuses, or is no mount of ours. The descriptors are the caller's in either case.
bool ask(int socket, const ring::Request& request, int descriptor, Answered& answered) {
  if (!send(socket, request, descriptor)) return false;
  iovec data{&answered.answer, sizeof answered.answer};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(ring::kHelloDescriptors * sizeof(int))]{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const long size = kernel(SYS_recvmsg, socket, &header, MSG_CMSG_CLOEXEC);
  if (size < 0) return false;
  size_t next = 0;
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= each->cmsg_len; at += sizeof(int)) {
      int received = -1;
      std::memcpy(&received, reinterpret_cast<const std::byte*>(each) + at, sizeof received);
      next < answered.descriptors.size() ? void(answered.descriptors[next++] = received) : close(received);
    }
  }
  return size == sizeof answered.answer && answered.answer.error == 0 &&
         (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
}

// Not in children: what they did to it would be done to the parent's.
std::byte* mapped(int memory, size_t size) {
  const long address = kernel(SYS_mmap, nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0L);
  if (address < 0 && address > -4096) return nullptr;
  (void)kernel(SYS_madvise, address, size, MADV_DONTFORK);
  return reinterpret_cast<std::byte*>(address);
}

int connected_to(const ring::Find& found) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = ::strnlen(found.socket.data(), found.socket.size());
  std::memcpy(address.sun_path + 1, found.socket.data(), length);  // abstract
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  const auto socket = static_cast<int>(kernel(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (socket < 0) return -1;
  (void)kernel(SYS_setsockopt, socket, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  (void)kernel(SYS_setsockopt, socket, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  if (kernel(SYS_connect, socket, &address, size) == 0) return moved_up(socket);
  close(socket);
  return -1;
}

}  // namespace

static_assert(sizeof(ring::Find{}.socket) < sizeof(sockaddr_un{}.sun_path));

bool MountRing::connect(const ring::Find& found) {
  const SignalsHeld signals;
  if (say_hello(found) && share_memory()) return true;
  abandon();
  return false;
}

bool MountRing::say_hello(const ring::Find& found) {
  socket_ = connected_to(found);
  struct stat status{};
  if (socket_ < 0 || kernel(SYS_fstat, socket_, &status) < 0) return false;
  socket_inode_ = status.st_ino;
  Answered hello;
  const ring::Request request{
      .kind = static_cast<uint32_t>(ring::RequestKind::kHello), .value = kDepth, .token = found.token};
  const bool welcome = ask(socket_, request, -1, hello);
  const auto [memory, doorbell, event] = hello.descriptors;
  const uint32_t depth = hello.answer.number;
  const size_t size = ring::rings_size(depth);
  std::byte* const rings = welcome && event >= 0 && depth == kDepth ? mapped(memory, size) : nullptr;
  close(memory);
  doorbell_ = doorbell < 0 ? -1 : moved_up(doorbell);
  event_ = event < 0 ? -1 : moved_up(event);
  if (kernel(SYS_fstat, doorbell_, &status) < 0) return false;
  event_device_ = status.st_dev;
  event_inode_ = status.st_ino;
  // It is read to see whether it was rung.
  if (rings == nullptr || kernel(SYS_fcntl, event_, F_SETFL, O_NONBLOCK) < 0) return false;
  new (rings_room_) ring::ProgramRings({rings, size}, depth);
  secret_ = hello.answer.secret;
  return true;
}

bool MountRing::share_memory() {
  constexpr size_t kSize = kPlaces * kPlaceSize;
  const auto file =
      static_cast<int>(kernel(SYS_memfd_create, "pnfsrdma-preload", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file < 0) return false;
  Answered added;
  // The mount would not survive if it shrank.
  const bool shared =
      kernel(SYS_ftruncate, file, kSize) == 0 &&
      kernel(SYS_fcntl, file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 &&
      (memory_ = mapped(file, kSize)) != nullptr &&
      ask(socket_, {.kind = static_cast<uint32_t>(ring::RequestKind::kAddMemory)}, file, added);
  memory_number_ = added.answer.number;
  for (const int surplus : added.descriptors) close(surplus);
  close(file);
  return shared;
}

void MountRing::abandon() {
  for (int* const each : {&socket_, &doorbell_, &event_}) {
    close(*each);
    *each = -1;
  }
  memory_ = nullptr;
  used_ = 0;
  rings_owed_ = 0;
  submitting_ = reaping_ = gone_ = false;
  for (Place& place : places_) place.word = kIdle;
}

}  // namespace pnfsrdma::preload
