// SPDX-License-Identifier: Apache-2.0
#include "cli/api/api_client.h"

#include <fmt/format.h>
#include <httplib.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "cli/api/problem.h"
#include "cli/api/server_url.h"
#include "cli/api/token.h"
#include "shared/base/result.h"
#include "shared/rpc/dial.h"
#include "shared/rpc/socket_address.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr const char* kBase = "/api/v1";
constexpr auto kConnectPatience = std::chrono::seconds(10);
// A revocation waits for the handles to be dead, a removal of a brick for it to be empty of them.
constexpr auto kAnswerPatience = std::chrono::seconds(60);
constexpr size_t kPageItems = 1000;

// Plain HTTP over a Unix socket, which this library's client knows in its newer versions only.
class UnixClient final : public httplib::ClientImpl {
 public:
  explicit UnixClient(std::string path) : ClientImpl("localhost"), path_(std::move(path)) {}

 private:
  bool create_and_connect_socket(Socket& socket, httplib::Error& error) override {
    const auto address = rpc::SocketAddress::unix_path(path_);
    auto connected = address ? rpc::dial_and_wait(*address, kConnectPatience)
                             : Result<FileDescriptor>(std::unexpected(address.error()));
    if (!connected) {
      errno = connected.error().number();
      error = httplib::Error::Connection;
      return false;
    }
    socket.sock = connected->release();
    return true;
  }

  const std::string path_;
};

// Why the host of a URL has no address; empty when it has one.
std::string unresolved(const std::string& server) {
  const auto url = parse_server(server);
  if (!url) return {};
  const bool v6 = url->host.find(':') != std::string::npos;
  const auto address = rpc::SocketAddress::parse(v6 ? "[" + url->host + "]" : url->host);
  return address ? std::string() : address.error().what();
}

std::string path_and_query(const std::string& path, const Query& query) {
  std::string all = kBase + path;
  char separator = path.find('?') == std::string::npos ? '?' : '&';
  for (const auto& [name, value] : query) {
    if (value.empty()) continue;
    all += separator + encoded(name) + '=' + encoded(value);
    separator = '&';
  }
  return all;
}

}  // namespace

std::string encoded(std::string_view text) {
  std::string all;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    if (plain) {
      all += c;
    } else {
      all += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return all;
}

struct ApiClient::Request {
  std::string method;
  std::string target;
  const json* body = nullptr;
  std::string etag;
};

ApiClient::ApiClient(std::unique_ptr<httplib::ClientImpl> http, std::string where, std::string token)
    : http_(std::move(http)), where_(std::move(where)), token_(std::move(token)) {
  http_->set_connection_timeout(kConnectPatience);
  http_->set_read_timeout(kAnswerPatience);
  http_->set_write_timeout(kConnectPatience);
  http_->set_url_encode(false);
  http_->set_keep_alive(true);
}
ApiClient::ApiClient(ApiClient&&) noexcept = default;
ApiClient& ApiClient::operator=(ApiClient&&) noexcept = default;
ApiClient::~ApiClient() = default;

Outcome<ApiClient> ApiClient::make(const ApiOptions& options) {
  const std::string server = options.server.empty() ? environment("PNFSRDMA_SERVER") : options.server;
  TRY_ASSIGN(std::string token, find_token(options));
  if (server.empty())
    return ApiClient(std::make_unique<UnixClient>(options.socket), options.socket, std::move(token));
  TRY_ASSIGN(const ServerUrl url, parse_server(server));
  if (!url.tls) {
    return ApiClient(std::make_unique<httplib::ClientImpl>(url.host, url.port), server, std::move(token));
  }
  auto tls = std::make_unique<httplib::SSLClient>(url.host, url.port);
  const std::string ca = options.ca.empty() ? environment("PNFSRDMA_CA") : options.ca;
  if (!ca.empty() && ::access(ca.c_str(), R_OK) != 0) {
    return refuse(ExitCode::kNotFound, "--ca " + ca + ": cannot be read");
  }
  if (!ca.empty()) tls->set_ca_cert_path(ca);
  tls->enable_server_certificate_verification(!options.insecure);
  return ApiClient(std::move(tls), server, std::move(token));
}

Failure ApiClient::unreachable(int number) const {
  const auto error = static_cast<httplib::Error>(number);
  if (error == httplib::Error::SSLServerVerification || error == httplib::Error::SSLLoadingCerts) {
    return {ExitCode::kUnreachable, where_ + ": its certificate is not trusted",
            "Nothing was sent: it may be somebody else's.",
            "--ca FILE with the server's certificate.pem, which an administrator copies from it"};
  }
  if (error == httplib::Error::Read) {
    return {ExitCode::kUnreachable, where_ + ": no answer",
            "The server accepted the request and did not answer: it hangs, or is very busy.",
            "journalctl -u pnfsrdma-mdsd shows what it is doing"};
  }
  if (where_.starts_with('/')) {
    if (::access(where_.c_str(), F_OK) == 0 && ::access(where_.c_str(), W_OK) != 0) {
      return {ExitCode::kNotPermitted, where_ + ": this user may not use it",
              "The socket is for root; others use the network and a token.",
              "sudo pnfsrdma ..., or --server https://HOST:8443 --token-file FILE"};
    }
    return {ExitCode::kUnreachable, where_ + ": nobody answers there",
            "Is pnfsrdma-mdsd running, with a console?",
            "systemctl status pnfsrdma-mdsd; --socket PATH or --server https://HOST:8443 for another one"};
  }
  if (const std::string why = unresolved(where_); !why.empty()) {
    return {
        ExitCode::kUnreachable, why, {}, "check the spelling; getent hosts NAME shows what this host knows"};
  }
  return {ExitCode::kUnreachable, where_ + ": no answer there (" + httplib::to_string(error) + ")",
          "The console listens on loopback only until a password is set.",
          "check address and port; pnfsrdma doctor on the server shows who listens"};
}

Outcome<Answer> ApiClient::send(const Request& request) {
  httplib::Request http;
  http.method = request.method;
  http.path = request.target;
  http.set_header("Accept", "application/json, application/problem+json");
  if (!token_.empty()) http.set_header("Authorization", "Bearer " + token_);
  if (!request.etag.empty()) http.set_header("If-Match", request.etag);
  if (request.body != nullptr) {
    http.set_header("Content-Type", "application/json");
    http.body = request.body->dump(-1, ' ', false, json::error_handler_t::replace);
  }
  const httplib::Result answered = http_->send(http);
  if (!answered) return std::unexpected(unreachable(static_cast<int>(answered.error())));
  if (answered->status < 200 || answered->status > 299) {
    return std::unexpected(failure_of(answered->status, answered->body));
  }
  Answer answer{.body = nullptr, .etag = answered->get_header_value("ETag")};
  if (!answered->body.empty()) {
    answer.body = json::parse(answered->body, nullptr, false);
    if (!answer.body.is_object())
      return refuse(ExitCode::kFailed, where_ + ": the answer is not a JSON object");
  }
  return answer;
}

void ApiClient::wait_at_most(std::chrono::seconds patience) {
  http_->set_connection_timeout(std::min(patience, kConnectPatience));
  http_->set_read_timeout(patience);
}

Outcome<Answer> ApiClient::get(const std::string& path, const Query& query) {
  return send({.method = "GET", .target = path_and_query(path, query)});
}

Outcome<Answer> ApiClient::post(const std::string& path, const json& body) {
  return send({.method = "POST", .target = kBase + path, .body = body.is_null() ? nullptr : &body});
}

Outcome<Answer> ApiClient::put(const std::string& path, const json& body, const std::string& etag) {
  return send({.method = "PUT", .target = kBase + path, .body = &body, .etag = etag});
}

Outcome<Answer> ApiClient::patch(const std::string& path, const json& body, const std::string& etag) {
  return send({.method = "PATCH", .target = kBase + path, .body = &body, .etag = etag});
}

Outcome<Answer> ApiClient::remove(const std::string& path, const Query& query, const std::string& etag) {
  return send({.method = "DELETE", .target = path_and_query(path, query), .etag = etag});
}

Outcome<json> ApiClient::list(const std::string& path, Query query, size_t limit) {
  json all = json::array();
  std::string cursor;
  size_t before = 0;
  do {
    before = all.size();
    const size_t wanted = limit == 0 ? kPageItems : std::min(kPageItems, limit - all.size());
    Query page = query;
    page.emplace_back("limit", std::to_string(wanted));
    page.emplace_back("cursor", cursor);
    TRY_ASSIGN(const Answer answer, get(path, page));
    const auto items = answer.body.find("items");
    if (items == answer.body.end() || !items->is_array()) {
      return refuse(ExitCode::kFailed, where_ + ": the answer is not a list");
    }
    for (const json& item : *items) all.push_back(item);
    const auto next = answer.body.find("next_cursor");
    cursor = next != answer.body.end() && next->is_string() ? next->get<std::string>() : std::string();
    // Events have a next page always: of those that have not happened yet.
  } while (!cursor.empty() && all.size() > before && (limit == 0 || all.size() < limit));
  return all;
}

Outcome<> ApiClient::stream(const std::string& path, const Query& query, const std::string& last_id,
                            const std::function<bool(std::string_view)>& take) {
  httplib::Request http;
  http.method = "GET";
  http.path = path_and_query(path, query);
  http.set_header("Accept", "text/event-stream");
  if (!token_.empty()) http.set_header("Authorization", "Bearer " + token_);
  if (!last_id.empty()) http.set_header("Last-Event-ID", last_id);
  bool wanted = true;
  int status = 0;
  std::string refused;
  http.response_handler = [&status](const httplib::Response& head) {
    status = head.status;
    return true;
  };
  http.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
    if (status != 200) {
      refused.append(data, size);
      return true;
    }
    wanted = take(std::string_view(data, size));
    return wanted;
  };
  const httplib::Result answered = http_->send(http);
  if (status == 0) return std::unexpected(unreachable(static_cast<int>(answered.error())));
  if (status != 200) return std::unexpected(failure_of(status, refused));
  return {};
}

}  // namespace pnfsrdma::cli
