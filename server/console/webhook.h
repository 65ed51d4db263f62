// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/console/alert_table.h"
#include "server/console/kept_file.h"
#include "server/console/webhook_post.h"
#include "shared/base/guarded.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

// Where and how alerts are sent.
struct WebhookTarget {
  std::string url;
  std::string secret;  // messages are signed with it; empty: they are not
  std::string ca_file;
  std::string least = "warning";  // severity: "critical" leaves the warnings out
};

// How it goes.
struct WebhookStatus {
  std::optional<WallTime> delivered;  // the last time
  std::optional<WallTime> failed;     // the last time
  std::string failure;                // and why
  uint64_t deliveries = 0;            // messages, since the start
  uint64_t failures = 0;              // attempts
  uint64_t dropped = 0;               // alerts that nobody was told of
  size_t waiting = 0;                 // alerts
};

// Sends alerts to somebody else's HTTP server, from a thread of its own: what waits is bounded, what fails is
// repeated a while, and whoever hands in an alert waits for nothing. The target is kept in a file of mode
// 0600, the secret with it. Thread-safe.
class Webhook {
 public:
  static constexpr size_t kWaitingMax = 256;
  static constexpr size_t kMessageMax = 64;  // alerts of one message

  // The pause behind each failed attempt; after the last one the message is given up.
  struct Patience {
    std::vector<Milliseconds> pauses;
  };
  static Patience usual_patience();

  Webhook(const Clock& clock, const std::string& directory, std::string server,
          Patience patience = usual_patience());
  // What waits is dropped.
  ~Webhook();
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  std::optional<WebhookTarget> target();
  // On the medium when it returns. None: no webhook, and nothing waits any more. EINVAL: its URL.
  Result<> set(std::optional<WebhookTarget> target);
  WebhookStatus status();

  void tell(const Alert& alert);
  // One message, now, in the caller's thread. ENOENT: there is no webhook.
  Result<WebhookPost::Outcome> test();
  // Ends attempts that take too long; to be called every few seconds.
  void end_overdue();

 private:
  struct State {
    std::optional<WebhookTarget> target;
    uint64_t version = 0;  // of the target
    std::deque<Alert> waiting;
    size_t attempts = 0;  // failed ones, of what waits in front
    std::set<std::shared_ptr<WebhookPost>> running;
    WebhookStatus status;
    bool stopping = false;
  };
  void load();
  void run();
  void deliver(const WebhookTarget& target, uint64_t version, const std::vector<Alert>& alerts);
  WebhookPost::Outcome post(const WebhookTarget& target, const std::vector<Alert>& alerts);

  const Clock& clock_;
  const KeptFile file_;
  const std::string server_;
  const Patience patience_;
  Mutex changing_;
  Guarded<State> state_;
  Condition woken_;
  Thread thread_;
};

}  // namespace pnfsrdma::console
