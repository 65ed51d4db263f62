// SPDX-License-Identifier: Apache-2.0
#include "shared/client/option.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace pnfsrdma::client {

Option split_option(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Result<uint32_t> number(const Option& option, uint32_t least, uint32_t most) {
  const std::string_view text = option.value.value_or("");
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    return fail(EINVAL, fmt::format("mount option {}={}: a number from {} to {} is needed", option.name, text,
                                    least, most));
  }
  return value;
}

Result<> one_of(const Option& option, std::initializer_list<std::string_view> allowed, std::string_view why) {
  const std::string_view value = option.value.value_or("");
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return {};
  return fail(EINVAL, fmt::format("mount option {}={}: {}", option.name, value, why));
}

}  // namespace pnfsrdma::client
