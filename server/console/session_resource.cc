// SPDX-License-Identifier: Apache-2.0
#include "server/console/audit_words.h"
#include "server/console/authenticate.h"
#include "server/console/resources.h"
#include "server/console/time_text.h"
#include "shared/base/log.h"

namespace pnfsrdma::console {

namespace {

Json session_json(const Caller& caller) {
  return {{"user", caller.user},
          {"role", name_of(caller.role)},
          {"method", caller.method},
          {"csrf_token", caller.csrf_token.empty() ? Json() : Json(caller.csrf_token)},
          {"expires", caller.expires ? Json(rfc3339(*caller.expires)) : Json()}};
}

std::string cookie_header(const std::string& value, const std::string& more) {
  return std::string(kCookieName) + "=" + value + "; Path=/; HttpOnly; Secure; SameSite=Strict" + more;
}

HttpResponse logged_in(Backend& backend, Call& call, const User& user) {
  const auto opened = backend.sessions.open(user.name);
  call.caller = {.user = user.name,
                 .role = user.role,
                 .method = "password",
                 .session = opened.key,
                 .csrf_token = opened.session.csrf_token,
                 .expires = opened.session.expires};
  HttpResponse response = ok(session_json(call.caller), 201);
  return response.with("Set-Cookie", cookie_header(opened.cookie, ""));
}

std::unexpected<Problem> too_many(const std::string& detail, int seconds) {
  return std::unexpected(
      Problem{.name = "too-many-requests", .detail = detail, .retry_after_seconds = seconds});
}

// The user whose password it is, as it was when that was looked at; counted against its name and the
// caller's network.
Answer<User> check_password(Backend& backend, const Call& call, const std::string& name,
                            const std::string& password) {
  const std::string by_address = "address " + network_of(call.request.peer.address);
  const std::string by_user = "user " + name;
  // Whoever guesses a user's password elsewhere does not lock the user out where nobody has failed.
  int wait = backend.attempts.wait_seconds(by_address);
  if (backend.attempts.has_failed(by_address)) wait = std::max(wait, backend.attempts.wait_seconds(by_user));
  if (wait > 0) return too_many("Too many wrong passwords.", wait);
  const auto user = backend.accounts.user(name);
  switch (backend.passwords.verify(user ? user->password_hash : "", password)) {
    case PasswordHasher::Verdict::kRight:
      backend.attempts.succeeded(by_user);
      return *user;
    case PasswordHasher::Verdict::kBusy:
      return too_many("Too many are logging in at once.", 3);
    case PasswordHasher::Verdict::kWrong:
      break;
  }
  backend.attempts.failed(by_address);
  backend.attempts.failed(by_user);
  log_warning("console", "login-failed user=\"{}\" origin={}", plain_text(name), call.request.peer.address);
  return refuse("wrong-credentials", "User or password is wrong.");
}

}  // namespace

Response get_setup(Backend& backend, Call& call) {
  const bool needed = !backend.accounts.password_set();
  const bool told = needed && call.request.peer.loopback;
  return ok({{"needed", needed}, {"token_file", told ? Json(backend.setup.path()) : Json()}});
}

Response post_setup(Backend& backend, Call& call) {
  if (backend.accounts.password_set())
    return refuse("setup-done", "A password has been set already.", "Log in: POST /api/v1/session.");
  if (!call.request.peer.loopback)
    return refuse("not-permitted", "The first password is set from the server itself.");
  const std::string key = "setup " + call.request.peer.address;
  if (const int wait = backend.attempts.wait_seconds(key); wait > 0)
    return too_many("Too many wrong tokens.", wait);
  if (!backend.setup.matches(call.arguments.body["token"])) {
    backend.attempts.failed(key);
    return refuse(
        "not-permitted", "The one-time token is wrong.",
        "Copy the whole line of the file as it is now, on the server, as root: cat " + backend.setup.path());
  }
  const auto hash = backend.passwords.hash(call.arguments.body["password"]);
  if (!hash) return too_many("Too many passwords are being hashed.", 3);
  TRY_ASSIGN(const User admin, backend.accounts.set_first_password(*hash));
  backend.setup.destroy();
  backend.password_set();
  backend.accounts.note_login(admin.name);
  return logged_in(backend, call, admin);
}

Response post_session(Backend& backend, Call& call) {
  const std::string name = call.arguments.body["user"];
  TRY_ASSIGN(const User user, check_password(backend, call, name, call.arguments.body["password"]));
  HttpResponse response = logged_in(backend, call, user);
  // A password that was changed while this one was looked at ended the sessions there were: this one, too.
  const auto now = backend.accounts.user(name);
  if (!now || now->password_hash != user.password_hash) {
    backend.sessions.close(call.caller.session);
    call.caller = {};
    return refuse("wrong-credentials", "User or password is wrong.");
  }
  backend.accounts.note_login(name);
  return response;
}

Response get_session(Backend&, Call& call) {
  return ok(session_json(call.caller));
}

Response delete_session(Backend& backend, Call& call) {
  if (!call.caller.session.empty()) backend.sessions.close(call.caller.session);
  return no_content().with("Set-Cookie", cookie_header("", "; Max-Age=0"));
}

Response put_password(Backend& backend, Call& call) {
  const std::string name = call.caller.user;
  if (call.caller.method != "password")
    return refuse("conflict", "Only a user who has logged in with a password can change it here.",
                  "An admin changes it by PUT /api/v1/users/NAME.");
  const auto user = check_password(backend, call, name, call.arguments.body["old_password"]);
  if (!user && user.error().name == "wrong-credentials")
    return refuse("conflict", "The old password is wrong.");
  TRY(user);
  const auto hash = backend.passwords.hash(call.arguments.body["new_password"]);
  if (!hash) return too_many("Too many passwords are being hashed.", 3);
  TRY(backend.accounts.set_password(name, user->password_hash, *hash));
  backend.sessions.close_all_of(name, call.caller.session);
  return no_content();
}

}  // namespace pnfsrdma::console
