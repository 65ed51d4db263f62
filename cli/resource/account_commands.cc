// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <fstream>

#include "cli/output/json_member.h"
#include "cli/resource/lookup.h"
#include "cli/resource/verbs.h"

// Who may ask the API: user (list, create, edit, remove), token (list, create, remove), setup.
namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr std::array kUsers = {
    Field{"USER", "/name"},
    Field{"ROLE", "/role"},
    Field{"PASSWORD", "/has_password", Field::kFlag},
    Field{"CREATED", "/created"},
    Field{"LAST LOGIN", "/last_login"},
};
constexpr std::array kTokens = {
    Field{"TOKEN", "/id"},        Field{"NAME", "/name", Field::kText, true},
    Field{"USER", "/user"},       Field{"ROLE", "/role"},
    Field{"EXPIRES", "/expires"}, Field{"LAST USED", "/last_used"},
};

std::shared_ptr<std::string> add_role(CLI::App* command, bool required) {
  auto role =
      optional_word(command, "--role", "viewer (reads), operator (also revokes, expels, runs jobs) or admin");
  command->get_option("--role")->check(CLI::IsMember({"viewer", "operator", "admin"}))->required(required);
  return role;
}

void add_users(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "user", "Users of the console");
  add_list(noun, admin, "all users", "/users", kUsers, "No users: pnfsrdma setup");

  CLI::App* const create =
      noun->add_subcommand("create", "create a user; asks for the password, or reads it from a pipe");
  const auto name = required_word(create, "name", "small letters, digits, _ . -");
  const auto role = add_role(create, true);
  admin.does(create, [&admin, name, role](ApiClient& client) -> Outcome<> {
    if (const auto known = client.get("/users/" + encoded(*name))) {
      return refuse(ExitCode::kConflict, "there is a user " + *name + " already", {},
                    "pnfsrdma user edit " + *name);
    } else if (known.error().code != ExitCode::kNotFound) {
      return std::unexpected(known.error());
    }
    TRY_ASSIGN(const std::string password, new_password(admin.prompter, *name));
    TRY_ASSIGN(const Answer made,
               client.put("/users/" + encoded(*name), {{"role", *role}, {"password", password}}, ""));
    admin.done("user " + *name + " created", made.body);
    return {};
  });

  CLI::App* const edit = noun->add_subcommand("edit", "change the role, or with --password the password");
  const auto edited = required_word(edit, "name", "of the user");
  const auto new_role = add_role(edit, false);
  const auto with_password = std::make_shared<bool>(false);
  edit->add_flag("--password", *with_password, "asks for a new password; ends the user's sessions");
  admin.does(edit, [&admin, edited, new_role, with_password](ApiClient& client) -> Outcome<> {
    TRY(find_user(client, *edited));
    const std::string path = "/users/" + encoded(*edited);
    TRY_ASSIGN(const Answer now, client.get(path));
    json body = {{"role", new_role->empty() ? text_at(now.body, "/role") : *new_role}};
    if (*with_password) {
      TRY_ASSIGN(body["password"], new_password(admin.prompter, *edited));
    }
    TRY_ASSIGN(const Answer changed, client.put(path, body, now.etag));
    admin.done("user " + *edited + " changed", changed.body);
    return {};
  });

  CLI::App* const remove = noun->add_subcommand("remove", "remove a user with all sessions and tokens");
  const auto removed = required_word(remove, "name", "of the user");
  admin.does(remove, [&admin, removed](ApiClient& client) -> Outcome<> {
    TRY(find_user(client, *removed));
    const std::string path = "/users/" + encoded(*removed);
    TRY_ASSIGN(const Answer now, client.get(path));
    TRY(admin.sure("Its sessions end and its tokens are void.", *removed));
    TRY(client.remove(path, {}, now.etag));
    admin.done("user " + *removed + " removed", now.body);
    return {};
  });
}

void add_tokens(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "token", "Tokens: for programs that use the API");
  add_list(noun, admin, "your tokens; an admin sees all", "/tokens", kTokens, "No tokens.");

  CLI::App* const create = noun->add_subcommand(
      "create", "create a token and print its secret once: store it in a file of mode 600");
  const auto name = required_word(create, "name", "what the token is for");
  const auto role = add_role(create, true);
  const auto days = std::make_shared<uint32_t>(0);
  CLI::Option* const expires =
      create->add_option("--expires-days", *days, "days until it expires")->check(CLI::Range(1, 3650));
  admin.does(create, [&admin, name, role, days, expires](ApiClient& client) -> Outcome<> {
    json body = {{"name", *name}, {"role", *role}};
    if (expires->count() > 0) body["expires_days"] = *days;
    TRY_ASSIGN(const Answer made, client.post("/tokens", body));
    admin.done(text_at(made.body, "/secret"), made.body);
    return {};
  });

  CLI::App* const remove =
      noun->add_subcommand("remove", "remove a token; programs that use it are refused at once");
  const auto removed = required_word(remove, "token", "id or name");
  admin.does(remove, [&admin, removed](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json one, find_token_called(client, *removed));
    TRY(admin.sure("What uses the token " + text_at(one, "/name") + " is refused from now on.",
                   text_at(one, "/name")));
    TRY(client.remove("/tokens/" + encoded(text_at(one, "/id"))));
    admin.done("token " + text_at(one, "/name") + " removed", one);
    return {};
  });
}

// The first password: with the one-time token the server wrote into a file of its own.
void add_setup(CLI::App& app, Administration& admin) {
  CLI::App* const command =
      app.add_subcommand("setup", "Set the console's first password (user admin); on the server itself");
  admin.does(command, [&admin](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const Answer state, client.get("/setup"));
    if (!flag_at(state.body, "/needed")) {
      return refuse(ExitCode::kConflict, "the first password is set already", {},
                    "pnfsrdma user edit admin --password");
    }
    const std::string path = text_at(state.body, "/token_file");
    std::ifstream file(path);
    std::string token;
    if (!std::getline(file, token)) {
      return refuse(ExitCode::kNotPermitted, path + ": cannot be read",
                    "It proves that you are on the server.", "run this as root on the server");
    }
    TRY_ASSIGN(const std::string password, new_password(admin.prompter, "admin"));
    TRY_ASSIGN(const Answer made, client.post("/setup", {{"token", token}, {"password", password}}));
    admin.done("the password of admin is set", {{"user", text_at(made.body, "/user")}});
    return {};
  });
}

}  // namespace

void add_account_commands(CLI::App& app, Administration& admin) {
  add_users(app, admin);
  add_tokens(app, admin);
  add_setup(app, admin);
}

}  // namespace pnfsrdma::cli
