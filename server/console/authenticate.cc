// SPDX-License-Identifier: Apache-2.0
#include "server/console/authenticate.h"

#include <unistd.h>

#include "server/console/secret.h"

namespace pnfsrdma::console {

namespace {

constexpr std::string_view kBearer = "Bearer ";

Answer<Caller> by_token(Backend& backend, std::string_view authorization) {
  if (!authorization.starts_with(kBearer))
    return refuse("not-logged-in", "Only bearer tokens are accepted.", "Send Authorization: Bearer TOKEN.");
  const auto token = backend.accounts.token_by_digest(digest_of(authorization.substr(kBearer.size())));
  if (!token)
    return refuse("not-logged-in", "The token is not valid: never created, removed or expired.",
                  "Create a new one: POST /api/v1/tokens.");
  return Caller{.user = token->user, .role = token->role, .method = "token", .expires = token->expires};
}

Answer<Caller> by_cookie(Backend& backend, const std::string& cookie) {
  const auto session = backend.sessions.find(cookie);
  if (!session) return refuse("not-logged-in", "The session is over.", "Log in again: POST /api/v1/session.");
  const auto user = backend.accounts.user(session->second.user);
  if (!user) return refuse("not-logged-in", "The user was removed.");
  return Caller{.user = user->name,
                .role = user->role,
                .method = "password",
                .session = session->first,
                .csrf_token = session->second.csrf_token,
                .expires = session->second.expires};
}

}  // namespace

std::string cookie_of(const HttpRequest& request) {
  const std::string wanted = std::string(kCookieName) + "=";
  std::string_view cookies = request.header("cookie");
  while (!cookies.empty()) {
    const size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view one = cookies.substr(0, end);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.starts_with(wanted)) return std::string(one.substr(wanted.size()));
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
  }
  return {};
}

Answer<Caller> authenticate(Backend& backend, const HttpRequest& request) {
  if (const std::string_view header = request.header("authorization"); !header.empty())
    return by_token(backend, header);
  if (const std::string cookie = cookie_of(request); !cookie.empty()) return by_cookie(backend, cookie);
  const Peer& peer = request.peer;
  if (peer.local_socket && peer.uid && (*peer.uid == 0 || *peer.uid == geteuid()))
    return Caller{.user = *peer.uid == 0 ? std::string(kSocketRoot)
                                         : std::string(kSocketUid) + std::to_string(*peer.uid),
                  .role = Role::kAdmin,
                  .method = "socket"};
  return Caller{};
}

Answer<> check_csrf(const Caller& caller, const HttpRequest& request) {
  if (caller.method != "password" || request.method == "GET") return {};
  if (same_secret(request.header("x-csrf-token"), caller.csrf_token)) return {};
  return refuse("csrf", "A change with a cookie needs the session's CSRF token.",
                "Send csrf_token of GET /api/v1/session as X-CSRF-Token.");
}

}  // namespace pnfsrdma::console
