// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "server/console/webhook_url.h"
#include "shared/base/clock.h"

namespace pnfsrdma::console {

// One POST of JSON: follows no redirect, verifies the certificate, reads no more of the answer than its
// status needs. stop() may come from another thread.
class WebhookPost {
 public:
  // For each step: the connection, sending, waiting for the answer.
  static constexpr std::chrono::seconds kStep{5};
  // For all of it together, by whoever watches (overdue()).
  static constexpr std::chrono::seconds kWhole{15};

  struct Request {
    WebhookUrl url;
    std::string ca_file;    // PEM; empty: what this host trusts
    std::string signature;  // empty: none
    std::string body;
  };
  explicit WebhookPost(Request request);
  ~WebhookPost();

  struct Outcome {
    int status = 0;      // of HTTP; 0: no answer
    std::string detail;  // for people
    bool delivered() const { return status >= 200 && status < 300; }
  };
  Outcome send();
  bool overdue() const;
  void stop();

 private:
  struct Machinery;
  std::unique_ptr<Machinery> machinery_;
};

}  // namespace pnfsrdma::console
