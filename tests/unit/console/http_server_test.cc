// SPDX-License-Identifier: Apache-2.0
#include "server/console/http_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <future>

#include "server/console/certificate.h"
#include "server/console/http_limits.h"
#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console {
namespace {

using testing::TemporaryFolder;

// A client that sends just what it is told to.
class RawClient {
 public:
  explicit RawClient(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  RawClient& send(const std::string& text) {
    EXPECT_EQ(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    return *this;
  }
  // Until `end` is in it, or the other end closes.
  std::string read(const std::string& end) {
    std::string text;
    char buffer[4096];
    while (text.find(end) == std::string::npos) {
      const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
      if (got <= 0) break;
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }
  void close() { socket_.reset(); }

 private:
  FileDescriptor socket_;
};

struct Server : ::testing::Test {
  TemporaryFolder folder;
  std::string path = folder / "socket";
  std::atomic<int> handled = 0;
  HttpHandler handler = [this](const HttpRequest& request) {
    ++handled;
    if (request.path == "/stream") {
      HttpResponse response{.content_type = "text/event-stream"};
      response.stream = [](HttpSink& sink) {
        sink.write("hello\n");
        while (!sink.stopping()) std::this_thread::sleep_for(Milliseconds(5));
      };
      return response;
    }
    return HttpResponse{.body = request.method + " " + request.path + " " + request.body +
                                " uid=" + std::to_string(request.peer.uid.value_or(0xFFFF))};
  };
  std::unique_ptr<HttpServer> server =
      std::make_unique<HttpServer>(std::move(*ListeningSocket::unix_path(path)), nullptr, handler);
};

TEST_F(Server, AnswersRequestsOneAfterTheOtherAndKnowsWhoIsThere) {
  RawClient client(path);
  EXPECT_NE(client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n").read("uid=").find("GET /a "),
            std::string::npos);
  const std::string posted =
      client.send("POST /b HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
          .read("uid=");
  EXPECT_NE(posted.find("POST /b {} uid=" + std::to_string(getuid())), std::string::npos) << posted;
  EXPECT_EQ(handled, 2);
}

TEST_F(Server, APostWithoutALengthHasNoBody) {
  RawClient client(path);
  EXPECT_NE(client.send("POST /b HTTP/1.1\r\n\r\n").read("uid=").find("POST /b  uid="), std::string::npos);
  EXPECT_NE(client.send("GET /a HTTP/1.1\r\n\r\n").read("uid=").find("GET /a"), std::string::npos);
}

TEST_F(Server, WhoWaitsToBeToldToGoOnIsTold) {
  RawClient client(path);
  const std::string head =
      "POST /b HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: "
      "100-continue\r\n\r\n";
  EXPECT_TRUE(client.send(head).read("\r\n\r\n").starts_with("HTTP/1.1 100 "));
  EXPECT_NE(client.send("{}").read("uid=").find("POST /b {} "), std::string::npos);
}

// Each range of a thousand would be a copy of the answer in memory.
TEST_F(Server, RangesAreNotLookedAt) {
  std::string ranges = "bytes=0-";
  while (ranges.size() < 8000) ranges += ",0-";
  RawClient client(path);
  const std::string answer = client.send("GET /whole HTTP/1.1\r\nRange: " + ranges + "\r\n\r\n").read("uid=");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  EXPECT_NE(answer.find("Content-Length: 1"), std::string::npos) << answer;
}

TEST_F(Server, TheSocketIsForItsOwnerAlone) {
  struct stat status{};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(ListeningSocket::unix_path(path).error().number(), EADDRINUSE);
  server.reset();
  EXPECT_NE(stat(path.c_str(), &status), 0);
}

TEST_F(Server, RefusesWhatItDoesNotUnderstandAndGoesOn) {
  for (const auto& [sent, status] : std::vector<std::pair<std::string, std::string>>{
           {"NONSENSE\r\n\r\n", " 400 "},
           {"POST /b HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nab", " 415 "},
           {"POST /b HTTP/1.1\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: "
            "2\r\n\r\nab",
            " 415 "},
           {"GET /b HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\nab", " 400 "},
           {"GET /" + std::string(2000, 'a') + " HTTP/1.1\r\n\r\n", " 413 "},
           {"POST /b HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n",
            " 413 "}}) {
    const std::string said = RawClient(path).send(sent).read("}");
    EXPECT_NE(said.substr(0, 20).find(status), std::string::npos) << sent.substr(0, 60) << "\n" << said;
    EXPECT_NE(said.find("application/problem+json"), std::string::npos) << said;
  }
  EXPECT_EQ(handled, 0);
}

TEST_F(Server, ABodyThatWasNotReadIsNotTheNextRequest) {
  const std::string hidden = "GET /hidden HTTP/1.1\r\n\r\n";
  RawClient client(path);
  client.send("GET /a HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: " +
              std::to_string(hidden.size()) + "\r\n\r\n" + hidden);
  EXPECT_EQ(client.read("uid=").find("/hidden"), std::string::npos);
  EXPECT_EQ(handled, 0);
}

TEST_F(Server, WhoIsRefusedBeforeTheBodyStillHearsIt) {
  const std::string body(400'000, '[');
  const std::string said = RawClient(path)
                               .send("POST /b HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: " +
                                     std::to_string(body.size()) + "\r\n\r\n" + body)
                               .read("}");
  EXPECT_NE(said.find(" 413 "), std::string::npos) << said;
}

TEST_F(Server, TooManyConnectionsOfOnePeerAreTurnedAwayAndOthersComeLater) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (size_t i = 0; i < kConnectionsPerPeerMax; ++i) {
    clients.push_back(std::make_unique<RawClient>(path));
    ASSERT_NE(clients.back()->send("GET /a HTTP/1.1\r\n\r\n").read("uid=").size(), 0u);
  }
  EXPECT_EQ(RawClient(path).read("never"), "");
  clients.clear();
  std::string said;
  for (int i = 0; i < 200 && said.empty(); ++i) {
    std::this_thread::sleep_for(Milliseconds(20));
    said = RawClient(path).send("GET /a HTTP/1.1\r\n\r\n").read("uid=");
  }
  EXPECT_NE(said.find("GET /a"), std::string::npos);
}

TEST_F(Server, EndsThoughAStreamIsOpenAndAPeerSaysNothing) {
  RawClient silent(path);
  RawClient half(path);
  half.send("GET /a HT");
  RawClient reader(path);
  EXPECT_NE(reader.send("GET /stream HTTP/1.1\r\n\r\n").read("hello").find("hello"), std::string::npos);
  auto ended = std::async(std::launch::async, [this] { server.reset(); });
  EXPECT_EQ(ended.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST_F(Server, AStreamWhoseReaderGoesEnds) {
  std::atomic<int> ended = 0;
  const HttpHandler endless = [&](const HttpRequest&) {
    HttpResponse response{.content_type = "text/event-stream"};
    response.stream = [&](HttpSink& sink) {
      while (sink.write(std::string(1000, 'x'))) std::this_thread::sleep_for(Milliseconds(1));
      ++ended;
    };
    response.keep = std::shared_ptr<void>(nullptr, [&](void*) { ++ended; });
    return response;
  };
  const HttpServer other(std::move(*ListeningSocket::unix_path(folder / "other")), nullptr, endless);
  RawClient reader(folder / "other");
  reader.send("GET /stream HTTP/1.1\r\n\r\n").read("xxx");
  reader.close();
  for (int i = 0; i < 2000 && ended < 2; ++i) std::this_thread::sleep_for(Milliseconds(5));
  EXPECT_EQ(ended, 2);
}

TEST(Certificate, IsMadeOnceForThisHostAndItsKeyIsSecret) {
  TemporaryFolder folder;
  const CertificateFiles files{folder / "certificate.pem", folder / "key.pem"};
  ASSERT_TRUE(make_certificate_if_missing(files));
  struct stat status{};
  ASSERT_EQ(stat(files.key.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const auto context = load_tls_context(files);
  ASSERT_TRUE(context) << context.error().to_string();
  EXPECT_GT(*days_left(*context), 3600);
  const std::string fingerprint = *fingerprint_of(*context);
  EXPECT_EQ(fingerprint.size(), 32u * 3 - 1);
  ASSERT_TRUE(make_certificate_if_missing(files));
  EXPECT_EQ(*fingerprint_of(*load_tls_context(files)), fingerprint);
  const auto wrong = load_tls_context({files.key, files.key});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().to_string().find(files.key), std::string::npos);
}

TEST(Certificate, ServesHttps) {
  TemporaryFolder folder;
  const CertificateFiles files{folder / "certificate.pem", folder / "key.pem"};
  ASSERT_TRUE(make_certificate_if_missing(files));
  const auto context = load_tls_context(files);
  auto socket = ListeningSocket::tcp("127.0.0.1:0");
  ASSERT_TRUE(socket) << socket.error().to_string();
  const std::string address = socket->address;
  const HttpServer server(std::move(*socket), context->get(), [](const HttpRequest& request) {
    return HttpResponse{.body = request.peer.address + (request.peer.loopback ? " loopback" : "")};
  });
  httplib::SSLClient client("127.0.0.1", std::stoi(address.substr(address.rfind(':') + 1)));
  client.enable_server_certificate_verification(false);
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.Get("/x");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "127.0.0.1 loopback");
  }
}

TEST(ListeningSocket, KnowsLoopbackAndRefusesNames) {
  EXPECT_TRUE(is_loopback("127.0.0.1:1"));
  EXPECT_TRUE(is_loopback("[::1]:1"));
  for (const char* other : {"0.0.0.0:1", "[::]:1", "192.0.2.1:1", "localhost:1", "x", ""})
    EXPECT_FALSE(is_loopback(other)) << other;
  EXPECT_EQ(ListeningSocket::tcp("localhost:1").error().number(), EINVAL);
}

}  // namespace
}  // namespace pnfsrdma::console
