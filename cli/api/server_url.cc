// SPDX-License-Identifier: Apache-2.0
#include "cli/api/server_url.h"

#include <charconv>

namespace pnfsrdma::cli {
namespace {

constexpr std::string_view kHttps = "https://";
constexpr std::string_view kHttp = "http://";

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

Outcome<ServerUrl> parse_server(std::string_view text) {
  const std::string shown(text);
  const auto wrong = [&](const char* why) {
    return refuse(ExitCode::kUsage, "--server " + shown + ": " + why, {}, "write https://HOST:PORT");
  };
  ServerUrl url;
  if (text.starts_with(kHttps)) {
    text.remove_prefix(kHttps.size());
  } else if (text.starts_with(kHttp)) {
    url.tls = false;
    text.remove_prefix(kHttp.size());
  } else if (text.find("://") != std::string_view::npos) {
    return wrong("neither https nor http");
  }
  while (text.ends_with('/')) text.remove_suffix(1);
  if (text.find_first_of("/?#@ ") != std::string_view::npos) return wrong("more than host and port");
  size_t end = text.find(':');
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == std::string_view::npos) return wrong("no ']' behind the address");
    url.host = text.substr(1, end - 1);
    ++end;
  } else {
    url.host = text.substr(0, end);
  }
  if (url.host.empty()) return wrong("no host");
  if (end < text.size()) {
    const std::string_view port = text.substr(end + 1);
    const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
    const bool whole = text[end] == ':' && error == std::errc() && stop == port.data() + port.size();
    if (!whole || url.port < 1 || url.port > 65535) return wrong("no port from 1 to 65535 behind the host");
  }
  if (!url.tls && !is_loopback(url.host)) return wrong("http is for loopback only");
  return url;
}

}  // namespace pnfsrdma::cli
