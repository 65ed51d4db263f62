// SPDX-License-Identifier: Apache-2.0
#include "server/console/webhook.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>

#include "server/console/certificate.h"
#include "server/console/webhook_message.h"
#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console::testing {
namespace {

const Webhook::Patience kShort{{Milliseconds(1), Milliseconds(1), Milliseconds(1)}};

// Somebody else's server: remembers what it is sent, and answers with the statuses given, then 200.
class Receiver {
 public:
  explicit Receiver(std::unique_ptr<httplib::Server> made = std::make_unique<httplib::Server>())
      : server_(std::move(made)) {
    server_->Post("/in", [this](const httplib::Request& request, httplib::Response& response) {
      const std::lock_guard lock(mutex_);
      bodies_.push_back(request.body);
      signatures_.push_back(request.get_header_value("X-Pnfsrdma-Signature"));
      response.status = statuses_.empty() ? 200 : statuses_.front();
      if (!statuses_.empty()) statuses_.erase(statuses_.begin());
      if (response.status == 302) response.set_header("Location", "/elsewhere");
    });
    server_->Post("/elsewhere", [this](const httplib::Request&, httplib::Response&) { elsewhere = true; });
    port = server_->bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) yield_thread();
  }
  ~Receiver() {
    server_->stop();
    thread_.join();
  }
  void answer(std::vector<int> statuses) {
    const std::lock_guard lock(mutex_);
    statuses_ = std::move(statuses);
  }
  std::vector<std::string> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  std::vector<std::string> signatures() {
    const std::lock_guard lock(mutex_);
    return signatures_;
  }
  std::string url(const std::string& scheme = "http") const {
    return scheme + "://127.0.0.1:" + std::to_string(port) + "/in";
  }

  int port = 0;
  std::atomic<bool> elsewhere = false;

 private:
  std::unique_ptr<httplib::Server> server_;
  std::mutex mutex_;
  std::vector<std::string> bodies_, signatures_;
  std::vector<int> statuses_;
  std::thread thread_;
};

template <typename Ready>
bool eventually(Ready ready) {
  const auto until = steady_now() + std::chrono::seconds(30);
  while (!ready() && steady_now() < until) yield_thread();
  return ready();
}

Alert firing(uint64_t id, const char* severity = "critical") {
  return {.id = id,
          .rule = "PnfsrdmaBrickAway",
          .severity = severity,
          .subject_kind = "brick",
          .subject = "b1",
          .summary = "The brick rack1 is unreachable",
          .description = "d",
          .state = AlertState::kFiring,
          .since = {.seconds = 1},
          .fired = WallTime{.seconds = 61},
          .resolved = {},
          .acknowledged = {}};
}

struct World {
  explicit World(Webhook::Patience patience = kShort) : webhook(clock, folder.path(), "server1", patience) {}
  TemporaryFolder folder;
  SystemClock clock;
  Webhook webhook;
};

TEST(WebhookMessage, IsWhatReceiversOfAlertmanagerRead) {
  const Json message = webhook_message({firing(1)}, "server1");
  EXPECT_EQ(message["version"], "4");
  EXPECT_EQ(message["status"], "firing");
  const Json& alert = message["alerts"][0];
  EXPECT_EQ(alert["labels"]["alertname"], "PnfsrdmaBrickAway");
  EXPECT_EQ(alert["labels"]["severity"], "critical");
  EXPECT_EQ(alert["labels"]["brick"], "b1");
  EXPECT_EQ(alert["labels"]["instance"], "server1");
  EXPECT_EQ(alert["annotations"]["summary"], "The brick rack1 is unreachable");
  EXPECT_EQ(alert["startsAt"], "1970-01-01T00:01:01.000Z");
  EXPECT_EQ(alert["endsAt"], "0001-01-01T00:00:00Z");
  Alert over = firing(1);
  over.state = AlertState::kResolved;
  over.resolved = WallTime{.seconds = 90};
  const Json resolved = webhook_message({over}, "server1");
  EXPECT_EQ(resolved["status"], "resolved");
  EXPECT_EQ(resolved["alerts"][0]["endsAt"], "1970-01-01T00:01:30.000Z");
  EXPECT_EQ(resolved["alerts"][0]["fingerprint"], alert["fingerprint"]);
}

TEST(WebhookMessage, IsSignedAsRfc4231Says) {
  // Its test case 2.
  EXPECT_EQ(signature_of("what do ya want for nothing?", "Jefe"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(WebhookUrl, IsTakenApart) {
  EXPECT_EQ(parse_webhook_url("https://alerts.example/in?a=b")->target, "/in?a=b");
  EXPECT_EQ(parse_webhook_url("https://alerts.example")->port, 443);
  EXPECT_EQ(parse_webhook_url("http://alerts.example?x")->target, "/?x");
  EXPECT_EQ(parse_webhook_url("http://[2001:db8::1]:8080/in")->host, "2001:db8::1");
  EXPECT_EQ(parse_webhook_url("http://[2001:db8::1]:8080/in")->origin(), "http://[2001:db8::1]:8080");
  EXPECT_EQ(parse_webhook_url("https://alerts.example/secret")->origin(), "https://alerts.example:443");
  for (const char* wrong : {"", "alerts.example", "ftp://a", "https://", "https://a:0/", "https://a:70000",
                            "https://a:x", "https://u:p@a/", "https://a/#f", "https://a b/",
                            "https://a/\r\nX: y", "https://[::1", "https://::1/"})
    EXPECT_FALSE(parse_webhook_url(wrong)) << wrong;
}

TEST(Webhook, SendsSignedMessages) {
  Receiver receiver;
  World world;
  ASSERT_TRUE(world.webhook.set(WebhookTarget{.url = receiver.url(), .secret = "a secret of ours"}));
  world.webhook.tell(firing(1));
  ASSERT_TRUE(eventually([&] { return world.webhook.status().deliveries == 1; }));
  ASSERT_EQ(receiver.bodies().size(), 1u);
  EXPECT_EQ(Json::parse(receiver.bodies()[0])["alerts"][0]["labels"]["alertname"], "PnfsrdmaBrickAway");
  EXPECT_EQ(receiver.signatures()[0], signature_of(receiver.bodies()[0], "a secret of ours"));
  EXPECT_EQ(world.webhook.status().waiting, 0u);
}

TEST(Webhook, TriesAgainUntilItIsTakenAndThenGivesUp) {
  Receiver receiver;
  World world;
  ASSERT_TRUE(world.webhook.set(WebhookTarget{.url = receiver.url()}));
  receiver.answer({500, 503});
  world.webhook.tell(firing(1));
  ASSERT_TRUE(eventually([&] { return world.webhook.status().deliveries == 1; }));
  EXPECT_EQ(receiver.bodies().size(), 3u);
  EXPECT_EQ(receiver.bodies()[0], receiver.bodies()[2]);
  EXPECT_EQ(world.webhook.status().failures, 2u);
  EXPECT_NE(world.webhook.status().failure.find("answered 503"), std::string::npos);
  // The first attempt and one behind each pause.
  receiver.answer({500, 500, 500, 500});
  world.webhook.tell(firing(2));
  ASSERT_TRUE(eventually([&] { return world.webhook.status().dropped == 1; }));
  EXPECT_EQ(world.webhook.status().failures, 6u);
  EXPECT_EQ(world.webhook.status().waiting, 0u);
}

TEST(Webhook, WhatWaitsIsBounded) {
  World world(Webhook::Patience{{std::chrono::hours(1)}});
  ASSERT_TRUE(world.webhook.set(WebhookTarget{.url = "http://127.0.0.1:1/in"}));
  for (size_t i = 0; i < Webhook::kWaitingMax + 10; ++i) world.webhook.tell(firing(i));
  EXPECT_EQ(world.webhook.status().waiting, Webhook::kWaitingMax);
  EXPECT_EQ(world.webhook.status().dropped, 10u);
  // Another target does not wait for the pause of the old one.
  Receiver receiver;
  ASSERT_TRUE(world.webhook.set(WebhookTarget{.url = receiver.url()}));
  ASSERT_TRUE(eventually([&] { return world.webhook.status().waiting == 0; }));
  EXPECT_EQ(world.webhook.status().deliveries, Webhook::kWaitingMax / Webhook::kMessageMax);
}

TEST(Webhook, WarningsAreLeftOutOnRequest) {
  Receiver receiver;
  World world;
  ASSERT_TRUE(world.webhook.set(
      WebhookTarget{.url = receiver.url(), .secret = {}, .ca_file = {}, .least = "critical"}));
  world.webhook.tell(firing(1, "warning"));
  world.webhook.tell(firing(2, "critical"));
  ASSERT_TRUE(eventually([&] { return world.webhook.status().deliveries == 1; }));
  ASSERT_EQ(receiver.bodies().size(), 1u);
  EXPECT_EQ(Json::parse(receiver.bodies()[0])["alerts"].size(), 1u);
}

TEST(Webhook, FollowsNoRedirect) {
  Receiver receiver;
  World world;
  ASSERT_TRUE(world.webhook.set(WebhookTarget{.url = receiver.url()}));
  receiver.answer({302});
  const auto outcome = world.webhook.test();
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->delivered());
  EXPECT_NE(outcome->detail.find("not followed"), std::string::npos);
  EXPECT_FALSE(receiver.elsewhere);
}

TEST(Webhook, SendsToNobodyWhoseCertificateIsNotTrusted) {
  World world;
  const CertificateFiles files{world.folder / "certificate.pem", world.folder / "key.pem"};
  ASSERT_TRUE(make_certificate_if_missing(files));
  Receiver receiver(std::make_unique<httplib::SSLServer>(files.certificate.c_str(), files.key.c_str()));
  ASSERT_TRUE(world.webhook.set(WebhookTarget{.url = receiver.url("https")}));
  auto outcome = world.webhook.test();
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->delivered());
  EXPECT_NE(outcome->detail.find("not trusted"), std::string::npos) << outcome->detail;
  EXPECT_TRUE(receiver.bodies().empty());
  ASSERT_TRUE(world.webhook.set(
      WebhookTarget{.url = receiver.url("https"), .secret = {}, .ca_file = files.certificate}));
  outcome = world.webhook.test();
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->delivered()) << outcome->detail;
  EXPECT_EQ(Json::parse(receiver.bodies().at(0))["alerts"][0]["labels"]["alertname"], "PnfsrdmaTest");
}

TEST(Webhook, IsKeptWhereNobodyElseReads) {
  World world;
  EXPECT_EQ(world.webhook.test().error().number(), ENOENT);
  EXPECT_EQ(world.webhook.set(WebhookTarget{.url = "gopher://a"}).error().number(), EINVAL);
  ASSERT_TRUE(world.webhook.set(WebhookTarget{.url = "http://127.0.0.1:1/in", .secret = "a secret of ours"}));
  struct stat found{};
  ASSERT_EQ(stat((world.folder / "webhook.json").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  {
    Webhook again(world.clock, world.folder.path(), "server1", kShort);
    ASSERT_TRUE(again.target().has_value());
    EXPECT_EQ(again.target()->secret, "a secret of ours");
    ASSERT_TRUE(again.set(std::nullopt));
  }
  EXPECT_FALSE(std::filesystem::exists(world.folder / "webhook.json"));
  Webhook gone(world.clock, world.folder.path(), "server1", kShort);
  EXPECT_FALSE(gone.target().has_value());
}

TEST(Webhook, NobodyWaitsForAReceiverThatSaysNothing) {
  // Takes connections and never answers.
  const FileDescriptor silent(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(silent.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(silent.get(), 4), 0);
  ASSERT_EQ(getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  auto world = std::make_unique<World>();
  ASSERT_TRUE(world->webhook.set(
      WebhookTarget{.url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/"}));
  world->webhook.tell(firing(1));
  const FileDescriptor taken(accept(silent.get(), nullptr, nullptr));
  const auto begin = steady_now();
  world->webhook.tell(firing(2));
  world.reset();  // ends the attempt that runs
  EXPECT_LT(steady_now() - begin, WebhookPost::kStep);
}

}  // namespace
}  // namespace pnfsrdma::console::testing
