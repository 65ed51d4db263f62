// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>

namespace pnfsrdma::rpc {
namespace {

struct HostAndPort {
  std::string host;
  std::string port;
};

// "[::1]:2049" -> "::1", "2049"; "::1" (more than one colon, no brackets) is all host.
std::optional<HostAndPort> split(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view after = text.substr(close + 1);
    if (!after.empty() && !after.starts_with(':')) return std::nullopt;
    return HostAndPort{std::string(text.substr(1, close - 1)),
                       std::string(after.empty() ? after : after.substr(1))};
  }
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos) {
    return HostAndPort{std::string(text), ""};
  }
  return HostAndPort{std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

bool is_port(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value <= 65535;
}

}  // namespace

Result<SocketAddress> SocketAddress::parse(std::string_view text, uint16_t default_port) {
  if (text.starts_with("unix:")) return unix_path(text.substr(5));
  if (text.starts_with('/')) return unix_path(text);
  std::optional<HostAndPort> parts = split(text);
  if (!parts) return fail(EINVAL, "address " + std::string(text));
  if (parts->port.empty()) parts->port = std::to_string(default_port);
  if (!is_port(parts->port)) return fail(EINVAL, "port in address " + std::string(text));

  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (parts->host.empty() ? AI_PASSIVE : 0);
  hints.ai_family = parts->host.empty() ? AF_INET : AF_UNSPEC;
  addrinfo* found = nullptr;
  const int outcome =
      getaddrinfo(parts->host.empty() ? nullptr : parts->host.c_str(), parts->port.c_str(), &hints, &found);
  if (outcome != 0) {
    return fail(outcome == EAI_AGAIN ? EAGAIN : ENXIO,
                "the name " + parts->host + " cannot be resolved (" + gai_strerror(outcome) + ")");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  SocketAddress address;
  std::memcpy(&address.storage_, found->ai_addr, found->ai_addrlen);
  address.size_ = found->ai_addrlen;
  return address;
}

std::string SocketAddress::host_in(std::string_view text) {
  if (text.starts_with("unix:") || text.starts_with('/')) return {};
  const std::optional<HostAndPort> parts = split(text);
  return parts ? parts->host : std::string();
}

Result<SocketAddress> SocketAddress::unix_path(std::string_view path) {
  SocketAddress address;
  auto* to = reinterpret_cast<sockaddr_un*>(&address.storage_);
  if (path.empty() || path.size() >= sizeof to->sun_path) {
    return fail(ENAMETOOLONG, "Unix socket path " + std::string(path));
  }
  to->sun_family = AF_UNIX;
  std::memcpy(to->sun_path, path.data(), path.size());
  address.size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return address;
}

Result<SocketAddress> SocketAddress::local_of(int fd) {
  SocketAddress address;
  address.size_ = sizeof address.storage_;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage_), &address.size_) != 0) {
    return std::unexpected(Error::from_errno("getsockname"));
  }
  return address;
}

Result<SocketAddress> SocketAddress::peer_of(int fd) {
  SocketAddress address;
  address.size_ = sizeof address.storage_;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage_), &address.size_) != 0) {
    return std::unexpected(Error::from_errno("getpeername"));
  }
  return address;
}

uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  return 0;
}

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr, text, sizeof text);
  } else if (family() == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr, text, sizeof text);
  } else if (is_unix() && size_ > offsetof(sockaddr_un, sun_path)) {
    const char* path = reinterpret_cast<const sockaddr_un*>(&storage_)->sun_path;
    return std::string(path, strnlen(path, size_ - offsetof(sockaddr_un, sun_path)));
  }
  return text;
}

std::string SocketAddress::to_string() const {
  if (is_unix()) return "unix:" + host();
  if (family() == AF_INET6) return "[" + host() + "]:" + std::to_string(port());
  return host() + ":" + std::to_string(port());
}

}  // namespace pnfsrdma::rpc
