// SPDX-License-Identifier: Apache-2.0
#include "server/console/webhook_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace pnfsrdma::console {

namespace {

constexpr int kPortMax = 65535;

std::unexpected<Error> no_url(const std::string& why) {
  return fail(EINVAL, "the URL " + why);
}

// 0: none.
int port_of(std::string_view text) {
  int port = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return whole && port > 0 && port <= kPortMax ? port : 0;
}

bool is_host(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
  });
}

}  // namespace

std::string WebhookUrl::origin() const {
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", tls ? "https" : "http", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

Result<WebhookUrl> parse_webhook_url(const std::string& text) {
  WebhookUrl url;
  std::string_view rest = text;
  if (!std::ranges::all_of(rest, [](unsigned char c) { return c > ' ' && c < 0x7f; }))
    return no_url("may have visible ASCII characters only");
  if (rest.starts_with("https://")) {
    url.tls = true;
  } else if (!rest.starts_with("http://")) {
    return no_url("must begin with https:// or http://");
  }
  rest.remove_prefix(rest.find("//") + 2);
  if (rest.find('#') != std::string_view::npos) return no_url("must have no fragment (#)");
  const size_t end = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, end);
  const std::string_view target = rest.substr(end);
  if (!target.empty()) url.target = (target.front() == '?' ? "/" : "") + std::string(target);
  if (authority.find('@') != std::string_view::npos)
    return no_url("must have no user and password: they would be shown");
  url.port = url.tls ? 443 : 80;
  const bool bracket = authority.starts_with('[');
  const size_t host_end = bracket ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (host_end == std::string_view::npos) return no_url("lacks a ]");
  url.host = authority.substr(bracket ? 1 : 0, host_end - (bracket ? 1 : 0));
  const std::string_view behind = authority.substr(host_end + (bracket ? 1 : 0));
  if (!behind.empty()) {
    url.port = behind.front() == ':' ? port_of(behind.substr(1)) : 0;
    if (url.port == 0) return no_url("has no port from 1 to 65535 behind its colon");
  }
  if (!is_host(url.host) || (!bracket && url.host.find(':') != std::string::npos))
    return no_url("names no host");
  return url;
}

}  // namespace pnfsrdma::console
