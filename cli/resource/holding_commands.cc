// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "cli/output/json_member.h"
#include "cli/resource/lookup.h"
#include "cli/resource/verbs.h"

// Who holds what: layout (list, show, revoke), client (list, show, expel), file (show).
namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr std::array kLayouts = {
    Field{"LAYOUT", "/id", Field::kText, true},    Field{"CLIENT", "/client_name", Field::kText, true},
    Field{"FILE", "/path", Field::kText, true},    Field{"MODE", "/iomode"},
    Field{"REACHABLE", "/bytes", Field::kBytes},   Field{"GRANTS", "/grants", Field::kNumber},
    Field{"AGE", "/age_seconds", Field::kSeconds}, Field{"BY", "/transport"},
    Field{"STATE", "/state", Field::kState},
};
constexpr std::array kGrants = {
    Field{"GRANT", "/id"},
    Field{"OFFSET", "/offset", Field::kNumber},
    Field{"LENGTH", "/length", Field::kBytes},
    Field{"WRITABLE", "/writable", Field::kFlag},
    Field{"BRICK", "/brick", Field::kText, true},
    Field{"ADDRESS", "/logical", Field::kNumber},
    Field{"CONNECTION", "/connection", Field::kNumber},
};
constexpr std::array kClients = {
    Field{"CLIENT", "/id"},
    Field{"NAME", "/name", Field::kText, true},
    Field{"MOUNTED AT", "/mount_point", Field::kText, true},
    Field{"LEASE", "/lease_seconds_left", Field::kSeconds},
    Field{"OPENS", "/opens", Field::kNumber},
    Field{"LOCKS", "/locks", Field::kNumber},
    Field{"LAYOUTS", "/layouts", Field::kNumber},
    Field{"REACHABLE", "/bytes", Field::kBytes},
    Field{"WRITABLE", "/writable_bytes", Field::kBytes},
};
constexpr std::array kClient = {
    Field{"client", "/id"},
    Field{"name", "/name"},
    Field{"mounted at", "/mount_point"},
    Field{"owner", "/owner"},
    Field{"user", "/uid", Field::kNumber},
    Field{"lease left", "/lease_seconds_left", Field::kSeconds},
    Field{"opens", "/opens", Field::kNumber},
    Field{"locks", "/locks", Field::kNumber},
    Field{"delegations", "/delegations", Field::kNumber},
    Field{"layouts", "/layouts", Field::kNumber},
    Field{"grants", "/grants", Field::kNumber},
    Field{"reachable", "/bytes", Field::kBytes},
    Field{"writable", "/writable_bytes", Field::kBytes},
    Field{"revoked and not freed", "/revoked_states", Field::kNumber},
    Field{"reports to have read", "/reported/read_bytes", Field::kBytes},
    Field{"reports to have written", "/reported/write_bytes", Field::kBytes},
};
constexpr std::array kSessions = {
    Field{"SESSION", "/id", Field::kText, true},
    Field{"FROM", "/peers", Field::kList, true},
    Field{"BY", "/transport"},
    Field{"SLOTS", "/slots", Field::kNumber},
    Field{"CALLBACKS", "/callbacks", Field::kState},
};
constexpr std::array kConnections = {
    Field{"BRICK", "/brick", Field::kText, true},
    Field{"FROM", "/peer", Field::kText, true},
    Field{"BY", "/transport"},
    Field{"GRANTS", "/grants", Field::kNumber},
};
constexpr std::array kFile = {
    Field{"path", "/path"},
    Field{"inode", "/inode", Field::kNumber},
    Field{"type", "/type"},
    Field{"size", "/size", Field::kBytes},
    Field{"takes", "/space_used", Field::kBytes},
    Field{"mode", "/mode"},
    Field{"user", "/uid", Field::kNumber},
    Field{"group", "/gid", Field::kNumber},
    Field{"links", "/links", Field::kNumber},
    Field{"modified", "/modified"},
    Field{"open by", "/open_by", Field::kList},
};
constexpr std::array kExtents = {
    Field{"OFFSET", "/offset", Field::kNumber},
    Field{"LENGTH", "/length", Field::kBytes},
    Field{"BRICK", "/brick", Field::kText, true},
    Field{"ADDRESS", "/logical", Field::kNumber},
};

// Which layouts a command means.
struct Choice {
  std::shared_ptr<std::string> client, path, inode, brick;

  // The API's filters; a client and a path by what people call them.
  Outcome<Query> query(ApiClient& client_of_api) const {
    Query all;
    if (!client->empty()) {
      TRY_ASSIGN(const json found, find_client(client_of_api, *client));
      all.emplace_back("client", text_at(found, "/id"));
    }
    if (!path->empty()) {
      TRY_ASSIGN(const Answer file, client_of_api.get("/files", {{"path", *path}}));
      all.emplace_back("inode", std::to_string(number_at(file.body, "/inode")));
    }
    if (!inode->empty()) all.emplace_back("inode", *inode);
    if (brick && !brick->empty()) {
      TRY_ASSIGN(const json found, find_brick(client_of_api, *brick));
      all.emplace_back("brick", text_at(found, "/id"));
    }
    return all;
  }
};

Choice add_choice(CLI::App* command, bool with_brick) {
  Choice choice;
  choice.client = optional_word(command, "--client", "of this client: id, the beginning of it, or name");
  choice.path = optional_word(command, "--path", "of this file, from the root of the server");
  choice.inode = optional_word(command, "--inode", "of the file of this number");
  command->get_option("--inode")->excludes("--path");
  if (with_brick) choice.brick = optional_word(command, "--brick", "with memory of this brick");
  return choice;
}

void add_revoke(CLI::App* noun, Administration& admin) {
  CLI::App* const revoke = noun->add_subcommand(
      "revoke", "revoke layouts by force: the memory is out of reach when the command returns");
  const auto id = optional_word(revoke, "layout", "one layout: CLIENT-INODE, or the beginning of CLIENT");
  const Choice choice = add_choice(revoke, false);
  admin.does(revoke, [&admin, id, choice](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const Query query, choice.query(client));
    if (id->empty() == query.empty()) {
      return refuse(ExitCode::kUsage, "which layouts?", {},
                    "pnfsrdma layout revoke LAYOUT, or --client, --path or both");
    }
    std::string one;
    if (!id->empty()) {
      TRY_ASSIGN(one, find_layout(client, *id));
    }
    const std::string what = one.empty() ? *(choice.client->empty() ? choice.path : choice.client) : one;
    const std::string name = what.empty() ? *choice.inode : what;
    TRY(admin.sure("Unflushed writes under these layouts are lost (" + name + ").", name));
    TRY_ASSIGN(const Answer answer,
               one.empty() ? client.remove("/layouts", query) : client.remove("/layouts/" + encoded(one)));
    admin.done(fmt::format("revoked: {} layouts, {} grants", number_at(answer.body, "/layouts"),
                           number_at(answer.body, "/grants")),
               answer.body);
    return {};
  });
}

void add_layouts(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "layout", "Layouts: which client can reach which memory now");
  CLI::App* const list = noun->add_subcommand("list", "all layouts, or those of a client, file or brick");
  const Choice choice = add_choice(list, true);
  admin.does(list, [&admin, choice](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const Query query, choice.query(client));
    TRY_ASSIGN(const json all, client.list("/layouts", query));
    show_list(admin.output(), all, kLayouts, "No layouts are held.");
    return {};
  });

  CLI::App* const show = noun->add_subcommand("show", "one layout with its grants");
  const auto id = required_word(show, "layout", "CLIENT-INODE, or the beginning of CLIENT");
  admin.does(show, [&admin, id](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const std::string found, find_layout(client, *id));
    const std::string path = "/layouts/" + encoded(found);
    TRY_ASSIGN(const Answer answer, client.get(path));
    TRY_ASSIGN(const json grants, client.list(path));
    if (admin.output().json) {
      admin.output().value({{"layout", answer.body.value("layout", json())}, {"grants", grants}});
      return {};
    }
    show_list(admin.output(), json::array({answer.body.value("layout", json())}), kLayouts, "");
    show_part(admin.output(), "Grants", grants, kGrants);
    return {};
  });
  add_revoke(noun, admin);
}

void add_clients(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "client", "Clients: which hosts have mounted, and what they hold");
  add_list(noun, admin, "all clients", "/clients", kClients, "No clients.");
  CLI::App* const show = noun->add_subcommand("show", "one client, its sessions and connections");
  const auto shown = required_word(show, "client", "id, the beginning of it, or name");
  admin.does(show, [&admin, shown](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json one, find_client(client, *shown));
    show_one(admin.output(), one, kClient);
    show_part(admin.output(), "Sessions", one.value("sessions", json::array()), kSessions);
    show_part(admin.output(), "Connections to bricks", one.value("bricks", json::array()), kConnections);
    return {};
  });
  CLI::App* const expel = noun->add_subcommand(
      "expel", "end the sessions, opens and memory access of a client; it may come back");
  const auto expelled = required_word(expel, "client", "id, the beginning of it, or name");
  admin.does(expel, [&admin, expelled](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json one, find_client(client, *expelled));
    const std::string name = text_at(one, "/name");
    TRY(admin.sure("Its open files are closed, and what it has not flushed is lost.", name));
    TRY(client.remove("/clients/" + text_at(one, "/id")));
    admin.done("client " + name + " expelled", one);
    return {};
  });
}

void add_files(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "file", "Files: where their data is");
  CLI::App* const show =
      noun->add_subcommand("show", "one file: extents, who has it open, who holds layouts");
  const auto path = required_word(show, "path", "from the root of the server, whatever is exported");
  admin.does(show, [&admin, path](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const Answer answer, client.get("/files", {{"path", *path}}));
    show_one(admin.output(), answer.body, kFile);
    show_part(admin.output(), "Extents", answer.body.value("extents", json::array()), kExtents);
    show_part(admin.output(), "Layouts", answer.body.value("layouts", json::array()), kLayouts);
    return {};
  });
}

}  // namespace

void add_holding_commands(CLI::App& app, Administration& admin) {
  add_layouts(app, admin);
  add_clients(app, admin);
  add_files(app, admin);
}

}  // namespace pnfsrdma::cli
