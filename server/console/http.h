// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/base/clock.h"

// A request and its answer as plain values, so that what answers needs no socket.
namespace pnfsrdma::console {

// Who is at the other end of the connection.
struct Peer {
  bool local_socket = false;      // our Unix socket
  std::optional<uint32_t> uid;    // of the process there (SO_PEERCRED)
  std::string address = "local";  // numeric, without port
  bool loopback = false;          // this host: the Unix socket counts
};

struct HttpRequest {
  std::string method;                               // "GET"; HEAD comes as GET
  std::string path;                                 // decoded, without the query
  std::multimap<std::string, std::string> query;    // decoded
  std::multimap<std::string, std::string> headers;  // names in lower case
  std::string body;
  Peer peer;

  // The first one; empty when there is none.
  std::string_view header(std::string_view lower_case_name) const {
    const auto found = headers.find(std::string(lower_case_name));
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
  }
};

// Where a stream's bytes go. write(): false when the other end has gone; then the stream ends. Both may block
// for as long as the connection's write deadline.
struct HttpSink {
  std::function<bool(std::string_view bytes)> write;
  std::function<bool()> stopping;  // the server ends: finish soon
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // Instead of a body: runs in the connection's thread until it returns.
  std::function<void(HttpSink&)> stream;
  // Held until the answer, or the stream, is over.
  std::shared_ptr<void> keep;

  HttpResponse& with(std::string name, std::string value) {
    headers.emplace_back(std::move(name), std::move(value));
    return *this;
  }
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

}  // namespace pnfsrdma::console
