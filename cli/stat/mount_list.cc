// SPDX-License-Identifier: Apache-2.0
#include "cli/stat/mount_list.h"

#include <algorithm>

namespace pnfsrdma::cli {
namespace {

constexpr std::string_view kType = "fuse.pnfsrdma";

std::string_view take_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// Space, tab, line break and backslash come as three octal digits.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) { return text[i + at] >= '0' && text[i + at] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && digit(1) && digit(2) && digit(3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace

std::vector<Mounted> mounts_in(std::string_view mountinfo) {
  std::vector<Mounted> found;
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    std::string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    // 36 35 98:0 /root /mount/point options [optional fields] - type source super-options
    constexpr int kWordsBefore = 4;
    for (int i = 0; i < kWordsBefore; ++i) (void)take_word(line);
    const std::string_view path = take_word(line);
    while (!line.empty() && take_word(line) != "-") {
    }
    if (take_word(line) != kType) continue;
    found.push_back({unescaped(take_word(line)), unescaped(path)});
  }
  return found;
}

const Mounted* mount_of(const std::vector<Mounted>& mounts, std::string_view path) {
  const Mounted* best = nullptr;
  for (const Mounted& mounted : mounts) {
    const std::string_view root = mounted.path;
    const bool inside =
        path.starts_with(root) && (path.size() == root.size() || root == "/" || path[root.size()] == '/');
    // The later of two on one place lies on top.
    if (inside && (best == nullptr || root.size() >= best->path.size())) best = &mounted;
  }
  return best;
}

}  // namespace pnfsrdma::cli
