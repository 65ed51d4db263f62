// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <set>

#include "server/console/authenticate.h"
#include "server/console/http_limits.h"
#include "server/console/http_server.h"
#include "server/console/secret.h"
#include "tests/unit/console/api_cases.h"

// Each status that the document gives an operation is provoked: what is written down and never happens is as
// wrong as what happens and is not written down.
namespace pnfsrdma::console::testing {
namespace {

struct Seen {
  std::set<std::pair<std::string, int>> all;
  void operator()(std::string_view id, int status) { all.emplace(id, status); }
};

// The first request of the table for this operation: one that finds what it is about.
const Case& example_of(const std::vector<Case>& all, std::string_view id) {
  return *std::ranges::find(all, id, &Case::id);
}

HttpRequest request_of(ApiWorld& world, const Case& one) {
  HttpRequest request = world.request(one.method, "/api/v1" + one.path, one.body);
  if (!one.if_match.empty()) request.headers.emplace("if-match", one.if_match);
  return request;
}

std::string bearer(ApiWorld& world, Role role) {
  const auto made = world.send("POST", "/api/v1/tokens", {{"name", "t"}, {"role", name_of(role)}});
  return "Bearer " + ApiWorld::json_of(made)["secret"].get<std::string>();
}

// A session with a cookie and no CSRF token.
HttpRequest without_csrf(ApiWorld& world, HttpRequest request) {
  world.send("PUT", "/api/v1/users/admin", {{"role", "admin"}, {"password", "long enough"}});
  const auto opened = world.sessions.open("admin");
  return ApiWorld::with(std::move(request), "cookie", std::string(kCookieName) + "=" + opened.cookie);
}

void see_refusals(Seen& see) {
  ApiWorld world;
  const std::string viewer = bearer(world, Role::kViewer);
  const auto all = cases();
  for (const Route& route : routes()) {
    const HttpRequest request = ApiWorld::from(request_of(world, example_of(all, route.id)), "192.0.2.7");
    see(route.id, world.send(ApiWorld::with(request, "authorization", "Bearer nonsense")).status);
    see(route.id, world.send(ApiWorld::with(request, "authorization", viewer)).status);
    see(route.id, world.send(without_csrf(world, request)).status);
    HttpRequest odd = request_of(world, example_of(all, route.id));
    odd.query.emplace("nonsense", "1");
    see(route.id, world.send(odd).status);
  }
}

// No file grows: the audit log cannot be written.
class FullMedium {
 public:
  FullMedium() : ignored_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit nothing{0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &nothing);
  }
  ~FullMedium() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, ignored_);
  }

 private:
  void (*const ignored_)(int);
  rlimit before_{};
};

// Where the loop does not run, and where the audit log cannot be written.
void see_busy(Seen& see) {
  const auto all = cases();
  ApiWorld stopped;
  stopped.loop.stop();
  ApiWorld full;
  for (const Route& route : routes()) {
    if (route.id == "streamEvents") continue;  // never ends
    see(route.id, stopped.send(request_of(stopped, example_of(all, route.id))).status);
    if (route.method == "GET") continue;
    const FullMedium medium;
    for (const Case& one : all) {
      if (one.id == route.id && one.status < 300) see(route.id, full.send(request_of(full, one)).status);
    }
  }
}

int status_of(const std::string& socket_path, const std::string& text) {
  const FileDescriptor client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  EXPECT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  char answer[13] = {};
  EXPECT_EQ(recv(client.get(), answer, 12, MSG_WAITALL), 12);
  return std::atoi(answer + 9);
}

// What is refused before the API sees it.
void see_wire(Seen& see) {
  ApiWorld world;
  const std::string path = world.folder / "socket";
  const HttpHandler handler = [&](const HttpRequest& request) { return world.send(request); };
  const HttpServer server(std::move(*ListeningSocket::unix_path(path)), nullptr, handler);
  const auto all = cases();
  for (const Route& route : routes()) {
    const Case& one = example_of(all, route.id);
    const std::string line = one.method + " /api/v1" + one.path + " HTTP/1.1\r\n";
    const std::string json = "Content-Type: application/json\r\n";
    see(route.id, status_of(path, line + json + "Content-Length: 99999999\r\n\r\n"));
    see(route.id, status_of(path, line + "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}"));
    see(route.id, status_of(path, line + json + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}"));
  }
}

// Done, and not in the audit log: those whose success needs more than a request.
void see_unaudited(Seen& see) {
  ApiWorld world;
  std::string token;
  std::ifstream(world.setup.path()) >> token;
  const auto made =
      ApiWorld::json_of(world.send("POST", "/api/v1/tokens", {{"name", "t"}, {"role", "viewer"}}));
  const std::string id = made["token"]["id"];
  world.send("PUT", "/api/v1/webhook", kReceiver);
  const FullMedium medium;
  see("postWebhookTest", world.send("POST", "/api/v1/webhook/test").status);
  see("deleteToken", world.send("DELETE", "/api/v1/tokens/" + id).status);
  see("postSetup",
      world.send("POST", "/api/v1/setup", {{"token", token}, {"password", "long enough"}}).status);
  see("postSession",
      world.send("POST", "/api/v1/session", {{"user", "admin"}, {"password", "long enough"}}).status);
  const auto opened = world.sessions.open("admin");
  HttpRequest change = world.request("PUT", "/api/v1/session/password",
                                     {{"old_password", "long enough"}, {"new_password", "longer than it"}});
  change = ApiWorld::with(change, "cookie", std::string(kCookieName) + "=" + opened.cookie);
  see("putPassword", world.send(ApiWorld::with(change, "x-csrf-token", opened.session.csrf_token)).status);
}

// What needs a state of its own.
void see_the_rest(Seen& see) {
  ApiWorld world;
  std::string token;
  std::ifstream(world.setup.path()) >> token;
  const Json setup{{"token", token}, {"password", "long enough"}};
  see("postSetup", world.send("POST", "/api/v1/setup", setup).status);
  const auto made =
      ApiWorld::json_of(world.send("POST", "/api/v1/tokens", {{"name", "t"}, {"role", "viewer"}}));
  const std::string id = made["token"]["id"];
  see("deleteToken", world.send("DELETE", "/api/v1/tokens/" + id).status);
  see_unaudited(see);
  const auto opened = world.sessions.open("admin");
  HttpRequest change = world.request("PUT", "/api/v1/session/password",
                                     {{"old_password", "long enough"}, {"new_password", "longer than it"}});
  change = ApiWorld::with(change, "cookie", std::string(kCookieName) + "=" + opened.cookie);
  change = ApiWorld::with(change, "x-csrf-token", opened.session.csrf_token);
  see("putPassword", world.send(change).status);
  // Its alert is over.
  world.certificate_seconds_left = 1e9;
  world.alerts.evaluate();
  see("postAcknowledgement", world.send("POST", "/api/v1" + kAcknowledgement, Json::object()).status);
  see("deleteAcknowledgement", world.send("DELETE", "/api/v1" + kAcknowledgement).status);
  world.administration.brick_in_use = false;
  see("postBrickFormat",
      world.send("POST", "/api/v1" + kBrickPath + "/format", {{"confirm", kBrickId}}).status);
  see("deleteBrick", world.send("DELETE", "/api/v1" + kBrickPath).status);
  for (int i = 0; i < 1000; ++i) {
    const std::string name = new_name(world.random);
    ASSERT_TRUE(world.accounts.add({.id = name, .name = "t", .user = "admin", .digest = name}));
  }
  see("postToken", world.send("POST", "/api/v1/tokens", {{"name", "t"}, {"role", "viewer"}}).status);
  for (int i = 0; i < 12; ++i) {
    see("postSession", world.send("POST", "/api/v1/session", {{"user", "admin"}, {"password", "x"}}).status);
    see("putPassword", world.send(change).status);
  }
  std::vector<HttpResponse> streams;
  for (size_t i = 0; i <= kStreamsMax; ++i) {
    streams.push_back(world.send("GET", "/api/v1/events/stream"));
    see("streamEvents", streams.back().status);
  }
  ApiWorld wrong;
  for (int i = 0; i < 12; ++i)
    see("postSetup",
        wrong.send("POST", "/api/v1/setup", {{"token", "x"}, {"password", "long enough"}}).status);
}

// Two others hash passwords, and nobody waits for them.
void see_too_many_hashing(Seen& see) {
  ApiWorld world({.operations = 40, .memory_bytes = 1 << 20, .patience = Milliseconds(0)});
  std::atomic<bool> enough = false;
  const auto hash = [&] {
    while (!enough) world.passwords.hash("another one");
  };
  std::thread one(hash);
  std::thread other(hash);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int status = 0;
  while (status != 429 && std::chrono::steady_clock::now() < until) {
    status = world.send("PUT", "/api/v1/users/eve", {{"role", "viewer"}, {"password", "long enough"}}).status;
    see("putUser", status);
  }
  enough = true;
  one.join();
  other.join();
}

TEST(ApiStatus, EachThatIsWrittenDownIsSeenAndEachThatIsSeenIsWrittenDown) {
  Seen seen;
  ApiWorld world;
  for (const Case& one : cases()) {
    seen(one.id, world.send(request_of(world, one)).status);
    // What a caller has already, it is not sent again.
    if (one.method == "GET" && one.status == 200)
      seen(one.id, world.send(ApiWorld::with(request_of(world, one), "if-none-match", "*")).status);
  }
  see_refusals(seen);
  see_busy(seen);
  see_wire(seen);
  see_the_rest(seen);
  see_too_many_hashing(seen);
  const ApiDocument document;
  std::set<std::pair<std::string, int>> written;
  for (const auto& operation : document.operations()) {
    for (const int status : operation.statuses) written.emplace(operation.id, status);
  }
  for (const auto& [id, status] : written)
    EXPECT_TRUE(seen.all.contains({id, status})) << id << " is never answered with " << status;
  for (const auto& [id, status] : seen.all)
    EXPECT_TRUE(written.contains({id, status})) << id << " is answered with " << status;
}

}  // namespace
}  // namespace pnfsrdma::console::testing
