// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/resource/resource_command.h"
#include "cli/resource/view.h"
#include "shared/base/result.h"

// The verbs that are the same for every noun.
namespace pnfsrdma::cli {

// "list": everything at `path`, a line each; `none` when there is nothing.
inline void add_list(CLI::App* noun, Administration& admin, const char* description, const char* path,
                     std::span<const Field> fields, const char* none) {
  admin.does(noun->add_subcommand("list", description),
             [&admin, path, fields, none](ApiClient& client) -> Outcome<> {
               TRY_ASSIGN(const nlohmann::json all, client.list(path));
               show_list(admin.output(), all, fields, none);
               return {};
             });
}

// "show": the one that `find` (lookup.h) finds by what people call it, a line a field.
using Find = Outcome<nlohmann::json> (*)(ApiClient& client, const std::string& called);
inline void add_show(CLI::App* noun, Administration& admin, const char* what, const char* called, Find find,
                     std::span<const Field> fields) {
  CLI::App* const show = noun->add_subcommand("show", std::string("one ") + what);
  const auto shown = required_word(show, what, called);
  admin.does(show, [&admin, shown, find, fields](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const nlohmann::json one, find(client, *shown));
    show_one(admin.output(), one, fields);
    return {};
  });
}

}  // namespace pnfsrdma::cli
