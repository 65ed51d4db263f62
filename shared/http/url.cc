// SPDX-License-Identifier: Apache-2.0
#include "shared/http/url.h"

#include <charconv>

namespace pnfsrdma::http {
namespace {

constexpr std::string_view kHttps = "https://";
constexpr std::string_view kHttp = "http://";
constexpr uint16_t kHttpsPort = 443;
constexpr uint16_t kHttpPort = 80;

}  // namespace

std::optional<Url> parse_url(std::string_view text) {
  Url url;
  url.tls = text.starts_with(kHttps);
  if (!url.tls && !text.starts_with(kHttp)) return std::nullopt;
  text.remove_prefix(url.tls ? kHttps.size() : kHttp.size());
  const bool in_brackets = text.starts_with('[');
  const size_t end = in_brackets ? text.find(']') : text.find(':');
  if (in_brackets && end == std::string_view::npos) return std::nullopt;
  url.host = in_brackets ? text.substr(1, end - 1) : text.substr(0, end);
  if (url.host.empty() || url.host.find_first_of("/?#@[] ") != std::string::npos) return std::nullopt;
  text.remove_prefix(in_brackets ? end + 1 : url.host.size());
  url.port = url.tls ? kHttpsPort : kHttpPort;
  if (text.empty()) return url;
  if (!text.starts_with(':')) return std::nullopt;
  text.remove_prefix(1);
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), url.port);
  if (error != std::errc() || stop != text.data() + text.size() || url.port == 0) return std::nullopt;
  return url;
}

}  // namespace pnfsrdma::http
