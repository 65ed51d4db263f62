// SPDX-License-Identifier: Apache-2.0
#include "server/console/accounts.h"

#include <algorithm>
#include <cerrno>

#include "server/console/etag.h"
#include "server/console/json.h"

namespace pnfsrdma::console {

namespace {

const std::string kUserPrefix = "user/";
const std::string kTokenPrefix = "token/";

Json record_of(const WallTime& time) {
  return time.seconds;
}
Json record_of(const std::optional<WallTime>& time) {
  return time ? record_of(*time) : Json();
}
std::optional<WallTime> time_of(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  return WallTime{.seconds = json.get<int64_t>()};
}

std::string record_of(const User& user) {
  return to_text({{"version", 1},
                  {"role", name_of(user.role)},
                  {"password", user.password_hash},
                  {"created", record_of(user.created)},
                  {"last_login", record_of(user.last_login)}});
}

std::string record_of(const Token& token) {
  return to_text({{"version", 1},
                  {"name", token.name},
                  {"user", token.user},
                  {"role", name_of(token.role)},
                  {"digest", token.digest},
                  {"created", record_of(token.created)},
                  {"expires", record_of(token.expires)}});
}

// nullopt: not written by this program, or by a newer one.
std::optional<Json> read_record(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("version", 0) != 1 || !json.contains("created")) return std::nullopt;
  if (!json.contains("role") || !json["role"].is_string() || !role_of(json["role"].get<std::string>()))
    return std::nullopt;
  return json;
}

// Who comes over the Unix socket is no user that is kept; no user may have such a name (user names have no
// colon).
bool is_of_socket(const std::string& user) {
  return user == kSocketRoot || user.starts_with(kSocketUid);
}

User user_of(const std::string& name, const Json& json) {
  return {.name = name,
          .role = *role_of(json["role"].get<std::string>()),
          .password_hash = json.value("password", ""),
          .created = time_of(json["created"]).value_or(WallTime{}),
          .last_login = time_of(json.value("last_login", Json()))};
}

Token token_of(const std::string& id, const Json& json) {
  return {.id = id,
          .name = json.value("name", ""),
          .user = json.value("user", ""),
          .role = *role_of(json["role"].get<std::string>()),
          .digest = json.value("digest", ""),
          .created = time_of(json["created"]).value_or(WallTime{}),
          .expires = time_of(json.value("expires", Json())),
          .last_used = {}};
}

}  // namespace

std::string etag_of(const User& user) {
  return etag_of_text(user.name + "\n" + std::string(name_of(user.role)) + "\n" + user.password_hash);
}

Result<> Accounts::load() {
  TRY_ASSIGN(const auto records, store_.load());
  auto state = state_.lock();
  for (const auto& [key, text] : records) {
    const auto json = read_record(text);
    if (!json) return fail(EUCLEAN, "the console's record \"" + key + "\" cannot be read");
    if (key.starts_with(kUserPrefix)) {
      const std::string name = key.substr(kUserPrefix.size());
      state->users[name] = user_of(name, *json);
    } else if (key.starts_with(kTokenPrefix)) {
      const std::string id = key.substr(kTokenPrefix.size());
      Token token = token_of(id, *json);
      state->by_digest[token.digest] = id;
      state->tokens[id] = std::move(token);
    }
  }
  return {};
}

bool Accounts::password_set() {
  auto state = state_.lock();
  return std::ranges::any_of(state->users,
                             [](const auto& entry) { return !entry.second.password_hash.empty(); });
}

std::vector<User> Accounts::users() {
  std::vector<User> users;
  auto state = state_.lock();
  for (const auto& [name, user] : state->users) users.push_back(user);
  return users;
}

std::optional<User> Accounts::user(const std::string& name) {
  auto state = state_.lock();
  const auto found = state->users.find(name);
  return found == state->users.end() ? std::nullopt : std::optional(found->second);
}

std::vector<Token> Accounts::tokens() {
  std::vector<Token> tokens;
  auto state = state_.lock();
  for (const auto& [id, token] : state->tokens) tokens.push_back(token);
  return tokens;
}

std::optional<Token> Accounts::token(const std::string& id) {
  auto state = state_.lock();
  const auto found = state->tokens.find(id);
  return found == state->tokens.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Token> Accounts::token_by_digest(const std::string& digest) {
  const WallTime now = clock_.wall_now();
  auto state = state_.lock();
  const auto id = state->by_digest.find(digest);
  if (id == state->by_digest.end()) return std::nullopt;
  Token& token = state->tokens.at(id->second);
  if (token.expires && *token.expires <= now) return std::nullopt;
  token.last_used = now;
  Token allowed = token;
  // Tokens made over the Unix socket belong to no user.
  if (const auto user = state->users.find(token.user); user != state->users.end())
    allowed.role = std::min(allowed.role, user->second.role);
  return allowed;
}

bool Accounts::is_last_admin(const std::string& name) {
  auto state = state_.lock();
  const auto is_admin = [](const User& user) {
    return user.role == Role::kAdmin && !user.password_hash.empty();
  };
  const auto found = state->users.find(name);
  if (found == state->users.end() || !is_admin(found->second)) return false;
  return std::ranges::count_if(state->users, [&](const auto& entry) { return is_admin(entry.second); }) == 1;
}

Answer<> Accounts::store(const RecordStore::Changes& changes) {
  const auto stored = loop_.ask<bool>([this, changes](std::function<void(Result<bool>)> done) {
    store_.change(changes, [done = std::move(done)](Result<> outcome) {
      outcome ? done(true) : done(std::unexpected(outcome.error()));
    });
  });
  if (!stored) return std::unexpected(Problem::from(stored.error()));
  return {};
}

Answer<> Accounts::keep(User user) {
  TRY(store({{kUserPrefix + user.name, record_of(user)}}));
  state_.lock()->users[user.name] = std::move(user);
  return {};
}

Answer<User> Accounts::put(const std::string& name, Role role, const std::optional<std::string>& hash,
                           const IfMatch& if_match, bool& made) {
  if (is_of_socket(name))
    return refuse("conflict", name + " is the user of the Unix socket.", "Take another name.");
  const std::lock_guard changing(changing_);
  const auto before = user(name);
  made = !before;
  if (before) {
    TRY(check_if_match(if_match, etag_of(*before), Precondition::kRequired));
    if (role != Role::kAdmin && is_last_admin(name))
      return refuse("conflict", name + " is the last admin with a password.", "Make another admin first.");
  } else if (if_match) {
    return refuse("changed-meanwhile", "There is no user " + name + " any more.");
  } else if (!hash) {
    return std::unexpected(Problem{.name = "invalid",
                                   .detail = "A new user needs a password.",
                                   .errors = {{"/password", "is missing"}}});
  }
  User user = before.value_or(User{.name = name, .created = clock_.wall_now()});
  user.role = role;
  if (hash) user.password_hash = *hash;
  TRY(keep(user));
  return user;
}

Answer<> Accounts::remove(const std::string& name, const IfMatch& if_match) {
  const std::lock_guard changing(changing_);
  const auto before = user(name);
  if (!before) return refuse("not-found", "There is no user " + name + ".");
  TRY(check_if_match(if_match, etag_of(*before), Precondition::kOptional));
  if (is_last_admin(name))
    return refuse("conflict", name + " is the last admin with a password.", "Make another admin first.");
  RecordStore::Changes changes{{kUserPrefix + name, std::nullopt}};
  std::vector<Token> theirs = tokens();
  std::erase_if(theirs, [&](const Token& token) { return token.user != name; });
  for (const Token& token : theirs) changes[kTokenPrefix + token.id] = std::nullopt;
  TRY(store(changes));
  auto state = state_.lock();
  state->users.erase(name);
  for (const Token& token : theirs) {
    state->by_digest.erase(token.digest);
    state->tokens.erase(token.id);
  }
  return {};
}

Answer<User> Accounts::set_first_password(const std::string& hash) {
  const std::lock_guard changing(changing_);
  if (password_set()) return refuse("setup-done", "A password has been set already.", "Log in.");
  User admin{.name = "admin", .role = Role::kAdmin, .password_hash = hash, .created = clock_.wall_now()};
  TRY(keep(admin));
  return admin;
}

Answer<> Accounts::set_password(const std::string& name, const std::string& old_hash,
                                const std::string& hash) {
  const std::lock_guard changing(changing_);
  auto present = user(name);
  if (!present) return refuse("not-found", "There is no user " + name + ".");
  if (present->password_hash != old_hash)
    return refuse("conflict", "The password was changed by somebody else meanwhile.");
  present->password_hash = hash;
  return keep(*present);
}

Answer<> Accounts::add(const Token& token) {
  const std::lock_guard changing(changing_);
  // Removed with all its tokens between this caller's being let in and now: this one would outlive them.
  if (!is_of_socket(token.user) && !user(token.user))
    return refuse("not-logged-in", "The user " + token.user + " was removed.");
  TRY(store({{kTokenPrefix + token.id, record_of(token)}}));
  auto state = state_.lock();
  state->tokens[token.id] = token;
  state->by_digest[token.digest] = token.id;
  return {};
}

Answer<> Accounts::remove_token(const std::string& id) {
  const std::lock_guard changing(changing_);
  const auto present = token(id);
  if (!present) return refuse("not-found", "There is no token " + id + ".");
  TRY(store({{kTokenPrefix + id, std::nullopt}}));
  auto state = state_.lock();
  state->by_digest.erase(present->digest);
  state->tokens.erase(id);
  return {};
}

void Accounts::note_login(const std::string& name) {
  const std::lock_guard changing(changing_);
  auto present = user(name);
  if (!present) return;
  present->last_login = clock_.wall_now();
  static_cast<void>(keep(*present));
}

}  // namespace pnfsrdma::console
