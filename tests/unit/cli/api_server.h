// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <httplib.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/api/api_client.h"

namespace pnfsrdma::cli {

// A server on loopback that answers as a test says and remembers what it was asked.
class ApiServer {
 public:
  struct Asked {
    std::string method, target, if_match, authorization;
  };

  ApiServer() {
    http.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response&) {
      const std::lock_guard lock(mutex_);
      asked_.push_back({request.method, request.target, request.get_header_value("If-Match"),
                        request.get_header_value("Authorization")});
      return httplib::Server::HandlerResponse::Unhandled;
    });
    port = http.bind_to_any_port("127.0.0.1");
  }
  ~ApiServer() {
    http.stop();
    if (thread_.joinable()) thread_.join();
  }
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // After the handlers are set.
  void start() {
    thread_ = std::thread([this] { http.listen_after_bind(); });
    while (!http.is_running()) std::this_thread::yield();
  }
  void answer(const std::string& path, const std::string& body, int status = 200,
              const std::string& etag = {}) {
    http.Get("/api/v1" + path, [=](const httplib::Request&, httplib::Response& response) {
      response.status = status;
      if (!etag.empty()) response.set_header("ETag", etag);
      response.set_content(body, "application/json");
    });
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port); }
  std::vector<Asked> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  ApiClient client() {
    auto made = ApiClient::make({.server = url()});
    EXPECT_TRUE(made);
    return *std::move(made);
  }

  httplib::Server http;
  int port = 0;

 private:
  std::mutex mutex_;
  std::vector<Asked> asked_;
  std::thread thread_;
};

}  // namespace pnfsrdma::cli
