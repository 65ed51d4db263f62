// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pnfsrdma::cli {

// The known word that somebody may have meant who typed another one: it begins so, or at most a third of its
// letters are missing, too many, others or in the wrong order. None when two are equally near.
std::optional<std::string> nearest_word(std::string_view typed, const std::vector<std::string>& known);

}  // namespace pnfsrdma::cli
