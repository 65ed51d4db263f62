// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <vector>

#include "cli/output/json_member.h"
#include "cli/resource/lookup.h"
#include "cli/resource/verbs.h"

// snapshot: list, show, create, remove.
namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr std::array kSnapshotColumns = {
    Field{"ID", "/id", Field::kNumber},
    Field{"NAME", "/name", Field::kText, true},
    Field{"CREATED", "/created"},
    Field{"STATE", "/state", Field::kState},
};
constexpr std::array kSnapshotFields = {
    Field{"snapshot", "/id", Field::kNumber},
    Field{"name", "/name"},
    Field{"created", "/created"},
    Field{"state", "/state", Field::kState},
};

void add_create(CLI::App* noun, Administration& admin) {
  CLI::App* const create = noun->add_subcommand("create", "take a snapshot of all files of the server");
  const auto name =
      optional_word(create, "name", "what it is called; default: the time, as 2026-11-28T01.30.00Z");
  admin.does(create, [&admin, name](ApiClient& client) -> Outcome<> {
    json body = json::object();
    if (!name->empty()) body["name"] = *name;
    TRY_ASSIGN(const Answer taken, client.post("/snapshots", body));
    const std::string called = text_at(taken.body, "/name");
    admin.done(fmt::format("snapshot {} taken: .snapshots/{} of each mount shows it", called, called),
               taken.body);
    return {};
  });
}

// All are found before the first one goes.
void add_remove(CLI::App* noun, Administration& admin) {
  CLI::App* const remove =
      noun->add_subcommand("remove", "remove snapshots: what only they have is lost")->alias("delete");
  const auto called = std::make_shared<std::vector<std::string>>();
  remove->add_option("snapshot", *called, "names or numbers")->required();
  admin.does(remove, [&admin, called](ApiClient& client) -> Outcome<> {
    json all = json::array();
    std::string names;
    for (const std::string& one : *called) {
      TRY_ASSIGN(const json found, find_snapshot(client, one));
      names += (names.empty() ? "" : ", ") + text_at(found, "/name");
      all.push_back(found);
    }
    TRY(admin.sure("Files that only " + names + (all.size() == 1 ? " has" : " have") + " are lost.",
                   text_at(all.front(), "/name")));
    for (const json& one : all) TRY(client.remove(fmt::format("/snapshots/{}", number_at(one, "/id"))));
    admin.done("removed " + names + "; the memory is freed in the background", all);
    return {};
  });
}

}  // namespace

void add_snapshot_commands(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "snapshot", "Snapshots: all files as they were");
  add_list(noun, admin, "all snapshots", "/snapshots", kSnapshotColumns,
           "No snapshots: pnfsrdma snapshot create");
  add_show(noun, admin, "snapshot", "name or number", find_snapshot, kSnapshotFields);
  add_create(noun, admin);
  add_remove(noun, admin);
}

}  // namespace pnfsrdma::cli
