// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/console/backend.h"
#include "server/console/caller.h"
#include "server/console/http.h"

namespace pnfsrdma::console {

// "__Host-": browsers take it only by TLS from this very host, so nobody who speaks for another name or port
// without TLS can put a session of theirs in its place.
inline constexpr std::string_view kCookieName = "__Host-pnfsrdma_session";

// Who sent this: by its bearer token, its cookie, or as root on the Unix socket, in this order; an anonymous
// caller if it shows nothing. not-logged-in for a token or cookie that is not (any more) valid.
Answer<Caller> authenticate(Backend& backend, const HttpRequest& request);
// Whether a change that came with a cookie comes from our own page: csrf.
Answer<> check_csrf(const Caller& caller, const HttpRequest& request);
// The cookie's value, or empty.
std::string cookie_of(const HttpRequest& request);

}  // namespace pnfsrdma::console
