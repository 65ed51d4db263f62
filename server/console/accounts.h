// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/console/caller.h"
#include "server/console/control_loop.h"
#include "server/console/problem.h"
#include "server/console/record_store.h"
#include "shared/base/clock.h"
#include "shared/base/guarded.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

struct User {
  std::string name;
  Role role = Role::kViewer;
  std::string password_hash;  // empty: cannot log in
  WallTime created;
  std::optional<WallTime> last_login;
};
// A token's secret is nowhere: only its digest.
struct Token {
  std::string id;
  std::string name;
  std::string user;
  Role role = Role::kViewer;
  std::string digest;
  WallTime created;
  std::optional<WallTime> expires;
  std::optional<WallTime> last_used;  // in this run of the server
};

// Users and tokens: in memory, and in the server's store before a change is answered. Thread-safe.
class Accounts {
 public:
  Accounts(ControlLoop& loop, RecordStore& store, const Clock& clock)
      : loop_(loop), store_(store), clock_(clock) {}

  // Once, in the control loop's thread, before anybody asks. EUCLEAN: a record cannot be read.
  Result<> load();

  bool password_set();
  std::vector<User> users();
  std::optional<User> user(const std::string& name);
  std::vector<Token> tokens();
  std::optional<Token> token(const std::string& id);
  // A living one; notes that it was used. Its role is at most what its user may do now.
  std::optional<Token> token_by_digest(const std::string& digest);

  // What a change is tied to: nullopt when the caller has seen nothing, "*" for anything.
  using IfMatch = std::optional<std::string>;
  // Makes or changes; no `hash`: the password stays. `made` tells which. PreconditionRequired,
  // changed-meanwhile, conflict (the last admin with a password; a name of the socket's), invalid (a new user
  // without password), busy.
  Answer<User> put(const std::string& name, Role role, const std::optional<std::string>& hash,
                   const IfMatch& if_match, bool& made);
  // With its tokens. not-found, changed-meanwhile, conflict.
  Answer<> remove(const std::string& name, const IfMatch& if_match);
  // The first password, if there is none. setup-done.
  Answer<User> set_first_password(const std::string& hash);
  // Only where the password still is the one of `old_hash`: conflict. not-found.
  Answer<> set_password(const std::string& name, const std::string& old_hash, const std::string& hash);
  // not-logged-in: its user was removed meanwhile.
  Answer<> add(const Token& token);
  Answer<> remove_token(const std::string& id);
  void note_login(const std::string& name);

 private:
  struct State {
    std::map<std::string, User> users;
    std::map<std::string, Token> tokens;           // by id
    std::map<std::string, std::string> by_digest;  // to id
  };
  bool is_last_admin(const std::string& name);
  Answer<> store(const RecordStore::Changes& changes);
  Answer<> keep(User user);

  ControlLoop& loop_;
  RecordStore& store_;
  const Clock& clock_;
  Mutex changing_;  // one change at a time, from its checks to the store's answer
  Guarded<State> state_;
};

// Of what of a user can be changed.
std::string etag_of(const User& user);

}  // namespace pnfsrdma::console
