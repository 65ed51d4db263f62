// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cli/output/json_member.h"
#include "cli/resource/lookup.h"
#include "cli/resource/verbs.h"

// export: list, show, create, edit, remove.
namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr std::array kExportColumns = {
    Field{"ID", "/id", Field::kNumber},
    Field{"PATH", "/path", Field::kText, true},
    Field{"READ-ONLY", "/read_only", Field::kFlag},
    Field{"ROOT SQUASH", "/root_squash", Field::kFlag},
    Field{"ALL SQUASH", "/all_squash", Field::kFlag},
    Field{"INSECURE", "/insecure", Field::kFlag},
    Field{"MANAGE GIDS", "/manage_gids", Field::kFlag},
    Field{"CLIENTS", "/clients", Field::kList, true},
    Field{"FROM", "/source"},
};
constexpr std::array kExportFields = {
    Field{"export", "/id", Field::kNumber},
    Field{"path", "/path"},
    Field{"directory exists", "/directory_exists", Field::kFlag},
    Field{"read-only", "/read_only", Field::kFlag},
    Field{"root squash", "/root_squash", Field::kFlag},
    Field{"all squash", "/all_squash", Field::kFlag},
    Field{"anonymous user", "/anonuid", Field::kNumber},
    Field{"anonymous group", "/anongid", Field::kNumber},
    Field{"insecure", "/insecure", Field::kFlag},
    Field{"manage gids", "/manage_gids", Field::kFlag},
    Field{"clients", "/clients", Field::kList},
    Field{"from", "/source"},
};

// What the command line says of an export; what it leaves out stays as it is.
class Rules {
 public:
  explicit Rules(CLI::App* command) {
    flag(command, "--read-only,!--read-write", "read_only", "clients may only read");
    flag(command, "--root-squash,!--no-root-squash", "root_squash",
         "map root on clients to the anonymous user");
    flag(command, "--all-squash,!--no-all-squash", "all_squash", "map all users to the anonymous user");
    flag(command, "--insecure,!--secure", "insecure",
         "accept calls from ports above 1023, which any user of a client can make");
    flag(command, "--manage-gids,!--no-manage-gids", "manage_gids",
         "look up the groups of users on the server; otherwise the call names them, 16 at most");
    number(command, "--anonuid", "anonuid", "number of the anonymous user");
    number(command, "--anongid", "anongid", "number of the anonymous group");
    clients_ = command
                   ->add_option("--clients", networks_,
                                "networks that may mount it, e.g. 192.0.2.0/24,2001:db8::/32")
                   ->delimiter(',')
                   ->allow_extra_args(false);
  }

  bool any() const {
    const auto given = [](const auto& each) { return each.option->count() > 0; };
    return std::ranges::any_of(flags_, given) || std::ranges::any_of(numbers_, given) ||
           clients_->count() > 0;
  }
  void apply_to(json& body) const {
    for (const Flag& each : flags_) {
      if (each.option->count() > 0) body[each.key] = *each.value;
    }
    for (const Number& each : numbers_) {
      if (each.option->count() > 0) body[each.key] = *each.value;
    }
    if (clients_->count() > 0) body["clients"] = networks_;
  }

 private:
  struct Flag {
    const char* key;
    std::shared_ptr<bool> value;
    CLI::Option* option;
  };
  struct Number {
    const char* key;
    std::shared_ptr<uint32_t> value;
    CLI::Option* option;
  };
  void flag(CLI::App* command, const char* names, const char* key, const char* description) {
    auto value = std::make_shared<bool>(false);
    CLI::Option* const option = command->add_flag(names, *value, description);
    flags_.push_back({key, std::move(value), option});
  }
  void number(CLI::App* command, const char* name, const char* key, const char* description) {
    auto value = std::make_shared<uint32_t>(0);
    CLI::Option* const option = command->add_option(name, *value, description);
    numbers_.push_back({key, std::move(value), option});
  }

  std::vector<Flag> flags_;
  std::vector<Number> numbers_;
  std::vector<std::string> networks_;
  CLI::Option* clients_ = nullptr;
};

// The members a PUT takes, as they are.
json editable(const json& from) {
  json body = json::object();
  for (const char* key : {"path", "read_only", "root_squash", "all_squash", "anonuid", "anongid", "insecure",
                          "manage_gids", "clients"}) {
    if (from.contains(key)) body[key] = from[key];
  }
  return body;
}

std::string path_of(const json& one) {
  return fmt::format("/exports/{}", number_at(one, "/id"));
}

void add_edit(CLI::App* noun, Administration& admin) {
  CLI::App* const edit = noun->add_subcommand("edit", "change an export; options not given stay as they are");
  const auto called = required_word(edit, "export", "number or path");
  const auto rules = std::make_shared<Rules>(edit);
  edit->parse_complete_callback([rules] {
    if (!rules->any())
      throw CLI::ValidationError("export edit",
                                 "nothing to change: give at least one of --read-only, --read-write, "
                                 "--[no-]root-squash, --[no-]all-squash, --insecure, --secure, "
                                 "--[no-]manage-gids, --anonuid, --anongid, --clients");
  });
  admin.does(edit, [&admin, called, rules](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json found, find_export(client, *called));
    TRY_ASSIGN(const Answer now, client.get(path_of(found)));
    json body = editable(now.body);
    rules->apply_to(body);
    TRY_ASSIGN(const Answer changed, client.put(path_of(found), body, now.etag));
    admin.done("export " + text_at(changed.body, "/path") + " changed", changed.body);
    return {};
  });
}

// Inside another export it costs clients that are mounted now: said before it is made, and asked where some of
// them lose the path.
Outcome<> accept_effect(Administration& admin, ApiClient& client, const json& body) {
  Query query{{"path", text_at(body, "/path")}};
  std::string networks;
  for (const json& network : body.value("clients", json::array()))
    networks += (networks.empty() ? "" : ",") + network.get<std::string>();
  if (!networks.empty()) query.emplace_back("clients", networks);
  const auto effect = client.get("/exports/effect", query);
  if (!effect) return {};  // an older server, or one that will refuse the export itself
  const std::string text = effect->body.value("text", "");
  if (!effect->body.value("losing", json::array()).empty()) return admin.sure(text, text_at(body, "/path"));
  if (!text.empty() && !admin.output().json) admin.output().line(text);
  return {};
}

}  // namespace

void add_export_commands(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "export", "Exports: which directories clients may mount");
  add_list(noun, admin, "all exports", "/exports", kExportColumns,
           "No exports: pnfsrdma export create /PATH");
  add_show(noun, admin, "export", "number or path", find_export, kExportFields);

  CLI::App* const create = noun->add_subcommand("create", "export a directory, which need not exist yet");
  const auto path = required_word(create, "path", "from the root of the server");
  const auto rules = std::make_shared<Rules>(create);
  admin.does(create, [&admin, path, rules](ApiClient& client) -> Outcome<> {
    json body = {{"path", *path}};
    rules->apply_to(body);
    TRY(accept_effect(admin, client, body));
    TRY_ASSIGN(const Answer made, client.post("/exports", body));
    admin.done(fmt::format("export {} is number {}", *path, number_at(made.body, "/id")), made.body);
    return {};
  });

  add_edit(noun, admin);

  CLI::App* const remove = noun->add_subcommand("remove", "remove an export; its files stay");
  const auto removed = required_word(remove, "export", "number or path");
  admin.does(remove, [&admin, removed](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json one, find_export(client, *removed));
    const std::string name = text_at(one, "/path");
    TRY(admin.sure("Mounts of " + name + " stop working; its files stay.", name));
    TRY(client.remove(path_of(one)));
    admin.done("export " + name + " removed", one);
    return {};
  });
}

}  // namespace pnfsrdma::cli
