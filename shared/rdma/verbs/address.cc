// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

#include "shared/base/owned.h"

namespace pnfsrdma::rdma::verbs {
namespace {

using AddressList = Owned<addrinfo, freeaddrinfo>;

const sockaddr_in& four(const sockaddr* address) {
  return *reinterpret_cast<const sockaddr_in*>(address);
}
const sockaddr_in6& six(const sockaddr* address) {
  return *reinterpret_cast<const sockaddr_in6*>(address);
}

}  // namespace

Result<Address> Address::parse(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return fail(EINVAL, "\"" + text + "\" is no address: write \"host:port\"");
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), text.c_str() + colon + 1, &hints, &found);
  if (code != 0) return fail(EINVAL, text + ": " + ::gai_strerror(code));
  const AddressList owned(found);
  return from(found->ai_addr);
}

Result<Address> Address::from(const sockaddr* address) {
  const int family = address == nullptr ? AF_UNSPEC : address->sa_family;
  if (family != AF_INET && family != AF_INET6)
    return fail(EAFNOSUPPORT, "neither an IPv4 nor an IPv6 address");
  Address result;
  std::memcpy(&result.storage_, address, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  return result;
}

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (get()->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &four(get()).sin_addr, text, sizeof(text));
  } else {
    ::inet_ntop(AF_INET6, &six(get()).sin6_addr, text, sizeof(text));
  }
  return text;
}

uint16_t Address::port() const {
  return ntohs(get()->sa_family == AF_INET ? four(get()).sin_port : six(get()).sin6_port);
}

std::string Address::to_string() const {
  const std::string port_text = ":" + std::to_string(port());
  return get()->sa_family == AF_INET ? host() + port_text : "[" + host() + "]" + port_text;
}

bool Address::wildcard() const {
  if (get()->sa_family == AF_INET) return four(get()).sin_addr.s_addr == INADDR_ANY;
  return IN6_IS_ADDR_UNSPECIFIED(&six(get()).sin6_addr);
}

}  // namespace pnfsrdma::rdma::verbs
