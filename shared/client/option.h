// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "shared/base/result.h"

namespace pnfsrdma::client {

// One of `-o`'s options, as written: "hard", "timeo=600". A view.
struct Option {
  std::string_view name;
  std::optional<std::string_view> value;
};

Option split_option(std::string_view text);

// Its value as a number. EINVAL says from where to where it may be.
Result<uint32_t> number(const Option& option, uint32_t least, uint32_t most);

// EINVAL, with `why`, if its value is none of these.
Result<> one_of(const Option& option, std::initializer_list<std::string_view> allowed, std::string_view why);

}  // namespace pnfsrdma::client
