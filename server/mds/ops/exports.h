// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/base/result.h"

namespace pnfsrdma::mds {

// "10.0.0.0/8", "2001:db8::/32", "192.168.1.7", "*".
class Network {
 public:
  static Result<Network> parse(const std::string& text);
  // `address` as in a sockaddr: 4 or 16 bytes; IPv4 inside IPv6 counts as IPv4.
  bool contains(std::span<const std::byte> address) const;

 private:
  std::vector<std::byte> prefix_;
  uint8_t bits_ = 0;
  bool everybody_ = false;
};

enum class Squash { kNone, kRoot, kAll };  // no_root_squash, root_squash, all_squash

// One line of exports(5).
struct Export {
  uint16_t id = 0;
  std::string path = "/";
  bool read_only = false;
  Squash squash = Squash::kRoot;
  uint32_t anonuid = 65534;
  uint32_t anongid = 65534;
  std::vector<Network> clients;  // none: everybody
};

}  // namespace pnfsrdma::mds
