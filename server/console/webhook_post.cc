// SPDX-License-Identifier: Apache-2.0
#include "server/console/webhook_post.h"

#include <fmt/format.h>
#include <httplib.h>
#include <unistd.h>

#include "shared/base/sync.h"

namespace pnfsrdma::console {

namespace {

std::string words_of(httplib::Error error, const WebhookUrl& url) {
  switch (error) {
    case httplib::Error::Connection:
      return "cannot connect to " + url.origin() + ": check the name, the port and the firewall";
    case httplib::Error::SSLConnection:
      return url.origin() + " does not speak TLS correctly";
    case httplib::Error::SSLServerVerification:
      return "the certificate of " + url.origin() +
             " is not trusted, or is for another host: give the CA that signed it (ca_file)";
    case httplib::Error::SSLLoadingCerts:
      return "ca_file holds no certificate";
    case httplib::Error::Write:
      return url.origin() + " did not take the message";
    default:
      return url.origin() + " did not answer in time";
  }
}

}  // namespace

struct WebhookPost::Machinery {
  Request request;
  SteadyTime begun = steady_now();
  std::unique_ptr<httplib::ClientImpl> client;
};

WebhookPost::WebhookPost(Request request) : machinery_(std::make_unique<Machinery>()) {
  machinery_->request = std::move(request);
  const Request& what = machinery_->request;
  if (what.url.tls) {
    auto tls = std::make_unique<httplib::SSLClient>(what.url.host, what.url.port);
    if (!what.ca_file.empty()) tls->set_ca_cert_path(what.ca_file);
    tls->enable_server_certificate_verification(true);
    machinery_->client = std::move(tls);
  } else {
    machinery_->client = std::make_unique<httplib::ClientImpl>(what.url.host, what.url.port);
  }
  machinery_->client->set_connection_timeout(kStep);
  machinery_->client->set_read_timeout(kStep);
  machinery_->client->set_write_timeout(kStep);
  machinery_->client->set_follow_location(false);
  machinery_->client->set_url_encode(false);
  machinery_->client->set_keep_alive(false);
}
WebhookPost::~WebhookPost() = default;

WebhookPost::Outcome WebhookPost::send() {
  const Request& what = machinery_->request;
  if (!what.ca_file.empty() && ::access(what.ca_file.c_str(), R_OK) != 0)
    return {.status = 0, .detail = "ca_file " + what.ca_file + " cannot be read"};
  httplib::Request http;
  http.method = "POST";
  http.path = what.url.target;
  http.set_header("Content-Type", "application/json");
  http.set_header("User-Agent", "pnfsrdma");
  if (!what.signature.empty()) http.set_header("X-Pnfsrdma-Signature", what.signature);
  http.body = what.body;
  // What it says is of no interest: the status is its answer.
  constexpr uint64_t kAnswerMax = 64 << 10;
  uint64_t taken = 0;
  http.content_receiver = [&taken, this](const char*, size_t size, uint64_t, uint64_t) {
    taken += size;
    return taken <= kAnswerMax && !overdue();
  };
  int status = 0;
  http.response_handler = [&status](const httplib::Response& response) {
    status = response.status;
    return true;
  };
  const httplib::Result answered = machinery_->client->send(http);
  if (answered) status = answered->status;
  if (status == 0) return {.status = 0, .detail = words_of(answered.error(), what.url)};
  const bool redirect = status >= 300 && status < 400;
  return {.status = status,
          .detail = fmt::format("{} answered {}{}", what.url.origin(), status,
                                redirect ? ": redirects are not followed" : "")};
}

bool WebhookPost::overdue() const {
  return steady_now() - machinery_->begun > kWhole;
}

void WebhookPost::stop() {
  machinery_->client->stop();
}

}  // namespace pnfsrdma::console
