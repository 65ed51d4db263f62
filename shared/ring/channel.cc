// SPDX-License-Identifier: Apache-2.0
#include "shared/ring/channel.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace pnfsrdma::ring {
namespace {

constexpr int kBacklog = 64;

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;
};

Result<Address> address_of(std::string_view name) {
  Address address;
  address.name.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof address.name.sun_path) return fail(EINVAL, "a socket's name");
  // Abstract: a null byte, then the name.
  std::memcpy(address.name.sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Result<FileDescriptor> make_socket() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return std::unexpected(Error::from_errno("socket"));
  return socket;
}

}  // namespace

Result<FileDescriptor> listen_on(std::string_view name) {
  TRY_ASSIGN(const Address address, address_of(name));
  TRY_ASSIGN(FileDescriptor socket, make_socket());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0 ||
      ::listen(socket.get(), kBacklog) != 0)
    return std::unexpected(Error::from_errno("listening on @" + std::string(name)));
  return socket;
}

Result<FileDescriptor> connect_to(std::string_view name) {
  TRY_ASSIGN(const Address address, address_of(name));
  TRY_ASSIGN(FileDescriptor socket, make_socket());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0)
    return std::unexpected(Error::from_errno("connecting to @" + std::string(name)));
  return socket;
}

Result<> send_message(int socket, ByteSpan message, std::span<const int> descriptors) {
  if (descriptors.size() > kDescriptorsMax) return fail(EINVAL, "too many descriptors");
  iovec data{const_cast<std::byte*>(message.data()), message.size()};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(kDescriptorsMax * sizeof(int))]{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  if (::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    return std::unexpected(Error::from_errno("sendmsg"));
  return {};
}

Result<Message> receive_message(int socket, MutableByteSpan sink) {
  iovec data{sink.data(), sink.size()};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(kDescriptorsMax * sizeof(int))]{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t size = 0;
  do {
    size = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return std::unexpected(Error::from_errno("recvmsg"));
  Message message{.size = static_cast<size_t>(size), .descriptors = {}};
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= each->cmsg_len; at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, reinterpret_cast<const std::byte*>(each) + at, sizeof descriptor);
      message.descriptors.emplace_back(descriptor);
    }
  }
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return fail(EMSGSIZE, "a message that is too long");
  return message;
}

}  // namespace pnfsrdma::ring
