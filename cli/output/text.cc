// SPDX-License-Identifier: Apache-2.0
#include "cli/output/text.h"

#include <cstdint>
#include <cwchar>

namespace pnfsrdma::cli {
namespace {

constexpr std::string_view kEllipsis = "…";

struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
  bool valid = false;
};

// The first character of a text that is not empty.
Character first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  uint32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    code = code << 6 | (next & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kLeast[bytes] || code > 0x10ffff || surrogate) return {};
  return {code, bytes, true};
}

size_t width_of(uint32_t code) {
  if (code < 0x7f) return 1;
  const int width = ::wcwidth(static_cast<wchar_t>(code));
  return width < 0 ? 1 : static_cast<size_t>(width);  // the locale does not know it
}

// C0, DEL, C1; and what turns the direction of the text around it (bidirectional controls).
bool steers(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const Character character = first_of(text);
    if (character.valid && !steers(character.code)) {
      shown += text.substr(0, character.bytes);
    } else {
      shown += '?';
    }
    text.remove_prefix(character.bytes);
  }
  return shown;
}

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const Character character = first_of(text);
    columns += character.valid ? width_of(character.code) : 1;
    text.remove_prefix(character.bytes);
  }
  return columns;
}

std::string shortened(std::string_view text, size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  size_t used = 0;
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Character character = first_of(text.substr(bytes));
    const size_t width = character.valid ? width_of(character.code) : 1;
    if (used + width > columns - 1) break;
    used += width;
    bytes += character.bytes;
  }
  return std::string(text.substr(0, bytes)).append(kEllipsis);
}

}  // namespace pnfsrdma::cli
