// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/console/page.h"
#include "server/console/resources.h"
#include "server/console/secret.h"
#include "server/console/time_text.h"

namespace pnfsrdma::console {

namespace {

Json time_or_null(const std::optional<WallTime>& time) {
  return time ? Json(rfc3339(*time)) : Json();
}

Json to_json(const User& user) {
  return {{"name", user.name},
          {"role", name_of(user.role)},
          {"has_password", !user.password_hash.empty()},
          {"created", rfc3339(user.created)},
          {"last_login", time_or_null(user.last_login)}};
}

Json to_json(const Token& token) {
  return {{"id", token.id},
          {"name", token.name},
          {"user", token.user},
          {"role", name_of(token.role)},
          {"created", rfc3339(token.created)},
          {"expires", time_or_null(token.expires)},
          {"last_used", time_or_null(token.last_used)}};
}

bool may_see(const Caller& caller, const Token& token) {
  return caller.role == Role::kAdmin || token.user == caller.user;
}

}  // namespace

Response list_users(Backend& backend, Call& call) {
  return ok(make_page(
      backend.accounts.users(), call.cursor(), call.limit(), [](const User& user) { return user.name; },
      [](const User& user) { return to_json(user); }));
}

Response get_user(Backend& backend, Call& call) {
  const auto user = backend.accounts.user(call.text("name"));
  if (!user) return refuse("not-found", "There is no user " + call.text("name") + ".");
  return ok(to_json(*user)).with("ETag", etag_of(*user));
}

Response put_user(Backend& backend, Call& call) {
  const std::string name = call.text("name");
  const auto before = backend.accounts.user(name);
  if (before) call.before = to_json(*before);
  const Json& body = call.arguments.body;
  std::optional<std::string> hash;
  if (body.contains("password")) {
    hash = backend.passwords.hash(body["password"]);
    if (!hash)
      return std::unexpected(Problem{.name = "too-many-requests",
                                     .detail = "Too many passwords are being hashed.",
                                     .retry_after_seconds = 3});
  }
  bool made = false;
  TRY_ASSIGN(const User user, backend.accounts.put(name, *role_of(body["role"].get<std::string>()), hash,
                                                   call.if_match(), made));
  if (hash) {
    backend.sessions.close_all_of(name, call.caller.session);
    backend.setup.destroy();
    backend.password_set();
  }
  return ok(to_json(user), made ? 201 : 200).with("ETag", etag_of(user));
}

Response delete_user(Backend& backend, Call& call) {
  const std::string name = call.text("name");
  if (const auto before = backend.accounts.user(name)) call.before = to_json(*before);
  TRY(backend.accounts.remove(name, call.if_match()));
  backend.sessions.close_all_of(name);
  return no_content();
}

Response list_tokens(Backend& backend, Call& call) {
  auto tokens = backend.accounts.tokens();
  std::erase_if(tokens, [&](const Token& token) { return !may_see(call.caller, token); });
  return ok(make_page(
      tokens, call.cursor(), call.limit(), [](const Token& token) { return token.id; },
      [](const Token& token) { return to_json(token); }));
}

Response post_token(Backend& backend, Call& call) {
  const Json& body = call.arguments.body;
  const Role role = *role_of(body["role"].get<std::string>());
  if (role > call.caller.role)
    return refuse("not-permitted",
                  "A token can do no more than its creator: " + std::string(name_of(call.caller.role)) + ".");
  constexpr size_t kTokensMax = 1000;
  if (backend.accounts.tokens().size() >= kTokensMax)
    return refuse("conflict", "There are 1000 tokens already.", "Remove those nobody uses.");
  const std::string secret = "pnfsrdma_" + new_secret(backend.random);
  Token token{.id = new_name(backend.random),
              .name = body["name"],
              .user = call.caller.user,
              .role = role,
              .digest = digest_of(secret),
              .created = backend.clock.wall_now(),
              .expires = {},
              .last_used = {}};
  if (body.contains("expires_days")) {
    token.expires = token.created;
    token.expires->seconds += body["expires_days"].get<int64_t>() * 24 * 3600;
  }
  // What ends must not make what does not.
  if (call.caller.method == "token" && call.caller.expires)
    token.expires = token.expires ? std::min(*token.expires, *call.caller.expires) : call.caller.expires;
  TRY(backend.accounts.add(token));
  return ok({{"token", to_json(token)}, {"secret", secret}}, 201);
}

Response delete_token(Backend& backend, Call& call) {
  const auto token = backend.accounts.token(call.text("id"));
  // Whose it is not learns not even that it is there.
  if (!token || !may_see(call.caller, *token))
    return refuse("not-found", "There is no token " + call.text("id") + " of yours.");
  call.before = to_json(*token);
  TRY(backend.accounts.remove_token(token->id));
  return no_content();
}

}  // namespace pnfsrdma::console
