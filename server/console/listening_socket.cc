// SPDX-License-Identifier: Apache-2.0
#include "server/console/listening_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace pnfsrdma::console {

namespace {

constexpr int kBacklog = 64;
// Whoever has gone between poll and accept must not hold the listener.
constexpr int kListening = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

using AddressList = Owned<addrinfo, freeaddrinfo>;

Result<AddressList> numeric_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return fail(EINVAL, "\"" + text + "\" is not host:port");
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const addrinfo hints{.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  const int outcome = getaddrinfo(host.empty() || host == "*" ? nullptr : host.c_str(),
                                  text.substr(colon + 1).c_str(), &hints, &found);
  if (outcome != 0)
    return fail(EINVAL, "\"" + text + "\" is not a numeric host:port: " + gai_strerror(outcome));
  return AddressList(found);
}

bool leads_here(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
  }
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

std::string name_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = {};
  char port[NI_MAXSERV] = {};
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
              NI_NUMERICHOST | NI_NUMERICSERV);
  return address.ss_family == AF_INET6 ? "[" + std::string(host) + "]:" + port
                                       : std::string(host) + ":" + port;
}

// Nobody answers behind a socket file whose process has ended.
bool somebody_listens(const sockaddr_un& address) {
  const FileDescriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

bool is_loopback(const std::string& address) {
  const auto found = numeric_address(address);
  return found && leads_here(*(*found)->ai_addr);
}

Result<ListeningSocket> ListeningSocket::tcp(const std::string& address) {
  TRY_ASSIGN(const AddressList found, numeric_address(address));
  ListeningSocket made;
  made.loopback = leads_here(*found->ai_addr);
  made.socket = FileDescriptor(::socket(found->ai_family, kListening, 0));
  const int yes = 1;
  setsockopt(made.socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (!made.socket || bind(made.socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(made.socket.get(), kBacklog) != 0) {
    return std::unexpected(Error::from_errno("listening on " + address));
  }
  made.address = name_of(made.socket.get());
  return made;
}

Result<ListeningSocket> ListeningSocket::unix_path(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(ENAMETOOLONG, "\"" + path + "\" is not a path for a Unix socket (at most 107 bytes)");
  std::memcpy(address.sun_path, path.data(), path.size());
  if (somebody_listens(address)) return fail(EADDRINUSE, "listening on " + path);
  ::unlink(path.c_str());
  ListeningSocket made;
  made.local = true;
  made.loopback = true;
  made.address = path;
  made.socket = FileDescriptor(::socket(AF_UNIX, kListening, 0));
  // The mode of the socket before it is bound is that of the file, with no moment in between.
  if (!made.socket || fchmod(made.socket.get(), 0600) != 0 ||
      bind(made.socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path.c_str(), 0600) != 0 || listen(made.socket.get(), kBacklog) != 0) {
    return std::unexpected(Error::from_errno("listening on " + path));
  }
  return made;
}

}  // namespace pnfsrdma::console
