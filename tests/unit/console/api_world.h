// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "server/console/api.h"
#include "server/console/json.h"
#include "tests/unit/console/fake_administration.h"

namespace pnfsrdma::console::testing {

// A folder of its own, gone with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/pnfsrdma-console-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The API without sockets: requests are values. The control loop runs in a thread of its own, as in the
// daemon.
class ApiWorld {
 public:
  static constexpr PasswordCost kCheap{.operations = 1, .memory_bytes = 8192};

  explicit ApiWorld(PasswordCost cost = kCheap) : passwords(cost) {
    EXPECT_TRUE(accounts.load());
    EXPECT_TRUE(setup.create());
    sample();
    sample();
    alerts.evaluate();
    thread_ = std::thread([this] { events_loop.run(); });
  }
  ~ApiWorld() {
    loop.stop();
    events.stop();
    events_loop.stop();
    thread_.join();
  }

  // As the daemon does once a second. Before the loop runs, or in it.
  void sample() {
    Numbers now = administration.numbers();
    now.time = clock.wall_now();
    throughput.add(now);
    administration.activity([&](const auto& activity) { history.add(now, (*activity)()); });
  }

  HttpRequest request(const std::string& method, const std::string& path, const Json& body = Json()) {
    HttpRequest made{.method = method, .path = path, .body = body.is_null() ? "" : to_text(body)};
    made.peer = {.local_socket = true, .uid = 0, .address = "local", .loopback = true};
    const size_t question = path.find('?');
    if (question == std::string::npos) return made;
    made.path = path.substr(0, question);
    std::string query = path.substr(question + 1);
    for (size_t at = 0; at < query.size();) {
      const size_t end = std::min(query.find('&', at), query.size());
      const std::string one = query.substr(at, end - at);
      const size_t equals = std::min(one.find('='), one.size());
      made.query.emplace(one.substr(0, equals), one.substr(std::min(equals + 1, one.size())));
      at = end + 1;
    }
    return made;
  }
  static HttpRequest from(HttpRequest request, const std::string& address, bool loopback = false) {
    request.peer = {.local_socket = false, .uid = {}, .address = address, .loopback = loopback};
    return request;
  }
  static HttpRequest with(HttpRequest request, const std::string& name, const std::string& value) {
    request.headers.emplace(name, value);
    return request;
  }
  HttpResponse send(const HttpRequest& request) { return api.handle(request); }
  HttpResponse send(const std::string& method, const std::string& path, const Json& body = Json()) {
    return send(request(method, path, body));
  }
  static Json json_of(const HttpResponse& response) { return Json::parse(response.body, nullptr, false); }
  static std::string header_of(const HttpResponse& response, const std::string& name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return "";
  }

  TemporaryFolder folder;
  SystemClock clock;
  SystemRandom random;
  EventLoop events_loop{clock};
  FakeAdministration administration;
  FakeRecords records;
  ControlLoop loop{events_loop};
  Snapshot<Numbers> numbers{loop, [this] { return administration.numbers(); }};
  Snapshot<Holdings> holdings{
      loop, Snapshot<Holdings>::Take([this](auto done) { administration.holdings(std::move(done)); })};
  BlockMaps blocks{loop, administration};
  ApiDocument document;
  Accounts accounts{loop, records, clock};
  LoginSessions sessions{clock, random};
  PasswordHasher passwords;
  LoginLimit attempts{clock};
  SetupToken setup{folder / "setup-token", random};
  std::unique_ptr<AuditLog> audit = *AuditLog::open(folder.path());
  EventLog events{clock};
  Throughput throughput;
  History history;
  UnixNames names{clock};
  Webhook webhook{clock, folder.path(), "server1"};
  // One fires: alert 1.
  double certificate_seconds_left = 3600;
  AlertKeeper alerts{{.clock = clock,
                      .directory = folder.path(),
                      .server = "server1",
                      .numbers = [this]() -> Result<std::shared_ptr<const Numbers>> {
                        return std::make_shared<const Numbers>(Numbers{});
                      },
                      .certificate_seconds_left = [this] { return std::optional(certificate_seconds_left); },
                      .tell = [this](const Alert& alert) { webhook.tell(alert); }}};
  StaticFiles files;
  int passwords_set = 0;
  Backend backend{.loop = loop,
                  .administration = administration,
                  .numbers = numbers,
                  .holdings = holdings,
                  .blocks = blocks,
                  .document = document,
                  .accounts = accounts,
                  .sessions = sessions,
                  .passwords = passwords,
                  .attempts = attempts,
                  .setup = setup,
                  .audit = *audit,
                  .events = events,
                  .throughput = throughput,
                  .history = history,
                  .alerts = alerts,
                  .webhook = webhook,
                  .names = names,
                  .clock = clock,
                  .random = random,
                  .version = "0.1.0",
                  .run = "r",
                  .configuration_file = "/etc/mds.json",
                  .password_set = [this] { ++passwords_set; },
                  .check_certificate = [] { return HealthCheck{"certificate", HealthStatus::kOk, "", ""}; },
                  .certificate_seconds_left = [this] { return std::optional(certificate_seconds_left); }};
  Api api{backend, files};

 private:
  std::thread thread_;
};

}  // namespace pnfsrdma::console::testing
