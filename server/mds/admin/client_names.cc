// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/client_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "server/mds/ops/network.h"
#include "server/mds/state/session.h"

namespace pnfsrdma::mds {

namespace {

constexpr size_t kHostBytesMax = 64;
constexpr size_t kShortDigits = 6;
constexpr std::string_view kOurs = "pnfsrdma-";
constexpr size_t kOurDigits = 32;
constexpr std::string_view kLinux = "Linux NFSv4.";

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= kHostBytesMax && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
  });
}

// The host and the digits of our own client's owner; empty: it is another's.
std::pair<std::string_view, std::string_view> parts_of_ours(std::string_view owner) {
  if (!owner.starts_with(kOurs) || owner.size() < kOurs.size() + kOurDigits + 2) return {};
  const std::string_view digits = owner.substr(owner.size() - kOurDigits);
  const std::string_view host = owner.substr(kOurs.size(), owner.size() - kOurs.size() - kOurDigits - 1);
  if (!is_hex(digits) || owner[owner.size() - kOurDigits - 1] != '-' || !is_host(host)) return {};
  return {host, digits};
}

// "Linux NFSv4.2 HOST" or "Linux NFSv4.2 UNIQUIFIER/HOST"; empty: it is another's.
std::string_view linux_host(std::string_view owner) {
  if (!owner.starts_with(kLinux)) return {};
  std::string_view host = owner.substr(std::min(owner.size(), kLinux.size() + 2));
  if (const size_t slash = host.rfind('/'); slash != std::string_view::npos) host.remove_prefix(slash + 1);
  return is_host(host) ? host : std::string_view();
}

// FNV-1a.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

}  // namespace

std::string printable(ByteSpan bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    const auto c = static_cast<unsigned char>(byte);
    text += c >= 0x20 && c < 0x7F && c != '\\' ? std::string(1, static_cast<char>(c))
                                               : fmt::format("\\x{:02x}", c);
  }
  return text;
}

std::string host_of_client(const Client& client) {
  const std::string_view owner = as_text(client.owner);
  if (const auto [host, digits] = parts_of_ours(owner); !host.empty()) return std::string(host);
  if (const std::string_view host = linux_host(owner); !host.empty()) return std::string(host);
  for (const Session* session : client.sessions) {
    const std::vector<std::string> peers = session->peers();
    if (!peers.empty()) return std::string(host_of(peers.front()));
  }
  return "client";
}

std::string client_name(const Client& client) {
  const std::string_view owner = as_text(client.owner);
  const auto [host, digits] = parts_of_ours(owner);
  const std::string short_id = host.empty() ? fmt::format("{:016x}", hash_of(owner)) : std::string(digits);
  return host_of_client(client) + "-" + short_id.substr(0, kShortDigits);
}

}  // namespace pnfsrdma::mds
