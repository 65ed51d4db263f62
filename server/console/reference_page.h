// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/console/api_document.h"

namespace pnfsrdma::console {

// The document for people: one page without scripts.
std::string reference_page(const ApiDocument& document);
// What a problem's type means; empty for an unknown name.
std::string problem_page(const ApiDocument& document, const std::string& name);

}  // namespace pnfsrdma::console
