// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pnfsrdma::cli {

enum class Style { kPlain, kBold, kFaint, kGood, kWarning, kBad };

// What is at the other end of an output stream: a value.
struct Terminal {
  bool interactive = false;  // a human looks at it
  bool colours = false;
  size_t columns = 0;  // 0: no limit

  // Of a file descriptor. Colours only on a terminal, not with NO_COLOR set (no-color.org) or TERM=dumb; the
  // width from the terminal, or COLUMNS.
  static Terminal of(int fd);

  std::string styled(std::string_view text, Style style) const;
};

}  // namespace pnfsrdma::cli
