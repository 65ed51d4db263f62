// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/api/api_options.h"
#include "cli/output/failure.h"

namespace httplib {
class ClientImpl;
}

namespace pnfsrdma::cli {

// What the server answered when it did what was asked.
struct Answer {
  nlohmann::json body;  // null: none
  std::string etag;
};

// Names of a query or parts of a path, not encoded.
using Query = std::vector<std::pair<std::string, std::string>>;

// "a b/c" -> "a%20b%2Fc"
std::string encoded(std::string_view text);

// The REST API (server/console/openapi.json) over the Unix socket or HTTPS. Made by a command; one request at
// a time. Every problem the server reports becomes a Failure with its title, detail and fix.
class ApiClient {
 public:
  // kUsage: the options make no sense; kNotPermitted or kNotFound: the token's file. Nothing is sent yet.
  static Outcome<ApiClient> make(const ApiOptions& options);
  ApiClient(ApiClient&&) noexcept;
  ApiClient& operator=(ApiClient&&) noexcept;
  ~ApiClient();

  // An answer that takes longer is none, from here on.
  void wait_at_most(std::chrono::seconds patience);

  // `path` is below /api/v1, its parts encoded: "/bricks/" + encoded(id).
  Outcome<Answer> get(const std::string& path, const Query& query = {});
  Outcome<Answer> post(const std::string& path, const nlohmann::json& body = {});
  // `etag`: only if nobody has changed it since; empty: no condition.
  Outcome<Answer> put(const std::string& path, const nlohmann::json& body, const std::string& etag);
  Outcome<Answer> patch(const std::string& path, const nlohmann::json& body, const std::string& etag);
  Outcome<Answer> remove(const std::string& path, const Query& query = {}, const std::string& etag = {});

  // All pages of a list, at most `limit` items (0: all).
  Outcome<nlohmann::json> list(const std::string& path, Query query = {}, size_t limit = 0);

  // A stream of server-sent events: the text as it comes, until `take` answers false or the connection ends.
  Outcome<> stream(const std::string& path, const Query& query, const std::string& last_id,
                   const std::function<bool(std::string_view)>& take);

 private:
  struct Request;
  ApiClient(std::unique_ptr<httplib::ClientImpl> http, std::string where, std::string token);
  Outcome<Answer> send(const Request& request);
  Failure unreachable(int error) const;

  std::unique_ptr<httplib::ClientImpl> http_;
  std::string where_;  // for messages: the socket or the URL
  std::string token_;
};

}  // namespace pnfsrdma::cli
