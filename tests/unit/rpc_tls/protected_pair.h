// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "shared/base/event_loop.h"
#include "shared/rpc/connection.h"
#include "shared/rpc/record.h"
#include "shared/rpc_tls/endpoint.h"
#include "shared/xdr/codec.h"
#include "tests/doubles/test_authority.h"

namespace pnfsrdma::rpc_tls {

inline constexpr Milliseconds kLong{10'000};
inline constexpr uint32_t kProgram = 77;

// Carries bytes between two sockets, and does to them what a network may do.
class Wire {
 public:
  Wire(EventLoop& loop, FileDescriptor left, FileDescriptor right)
      : loop_(loop), ends_{std::move(left), std::move(right)} {
    for (int end : {0, 1})
      loop_.watch(ends_[end].get(), EPOLLIN, [this, end](uint32_t events) { handle(end, events); });
  }
  ~Wire() { cut(); }
  void cut() {
    for (FileDescriptor& end : ends_) {
      if (!end) continue;
      loop_.unwatch(end.get());
      end.reset();
    }
  }

  size_t piece = 65536;  // at most so much at once
  // Of the bytes from left (0) or right (1), before they go on; false: they do not.
  std::function<bool(int from, Bytes& bytes)> look;
  std::string seen[2];

 private:
  // What comes from one end goes to the other, as much as that one takes; until then nothing more is read.
  void handle(int end, uint32_t events) {
    if (events & EPOLLOUT) pass_on(end);
    if (ends_[end] && (events & ~uint32_t{EPOLLOUT}) && waiting_[1 - end].empty()) carry(end);
    update();
  }
  void carry(int from) {
    Bytes bytes(piece);
    const ssize_t got = recv(ends_[from].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0) return;
    if (got == 0) return cut();
    bytes.resize(static_cast<size_t>(got));
    seen[from] += as_text(bytes);
    if (look && !look(from, bytes)) return;
    waiting_[1 - from] = std::move(bytes);
    pass_on(1 - from);
  }
  void pass_on(int to) {
    if (!ends_[to]) return;
    Bytes& bytes = waiting_[to];
    const ssize_t put = send(ends_[to].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno != EAGAIN) return cut();
    if (put > 0) bytes.erase(bytes.begin(), bytes.begin() + put);
  }
  void update() {
    for (int end : {0, 1}) {
      if (!ends_[end]) continue;
      const bool reads = waiting_[1 - end].empty();
      loop_.change(ends_[end].get(),
                   (reads ? uint32_t{EPOLLIN} : 0u) | (waiting_[end].empty() ? 0u : uint32_t{EPOLLOUT}));
    }
  }

  Bytes waiting_[2];  // for that end
  EventLoop& loop_;
  FileDescriptor ends_[2];
};

// A client and a server in one loop, and an authority that has signed for both.
class ProtectedPair : public testing::Test {
 protected:
  ProtectedPair() {
    authority_.issue("server", {.names = "IP:192.0.2.1,DNS:brick.example", .usage = "serverAuth"});
    authority_.issue("client", {.names = "IP:192.0.2.2"});
    server_tls_ = open(Role::kServer, "server");
    client_tls_ = open(Role::kClient, "client");
  }
  ~ProtectedPair() override {
    for (const auto& connection : {client_, server_}) {
      if (connection) connection->close();
    }
    wire_.reset();
    std::filesystem::remove_all(folder_);
  }

  static std::filesystem::path make_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "rpc-tls.XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }
  Files files_of(const std::string& name, const TestAuthority& by, const TestAuthority& trusted) const {
    return {.certificate = by.file(name + ".pem"),
            .key = by.file(name + ".key"),
            .ca_file = trusted.file("ca.pem")};
  }
  Files files_of(const std::string& name) const { return files_of(name, authority_, authority_); }
  std::shared_ptr<Endpoint> open(Role role, const std::string& name,
                                 std::vector<std::string> peers = {}) const {
    auto opened = Endpoint::open(role, files_of(name), std::move(peers));
    EXPECT_TRUE(opened) << opened.error().to_string();
    return *opened;
  }

  static std::pair<FileDescriptor, FileDescriptor> sockets() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    return {FileDescriptor(fds[0]), FileDescriptor(fds[1])};
  }
  rpc::ConnectionPointer serve(FileDescriptor socket) {
    rpc::ConnectionOptions options = server_options_;
    options.tls = server_tls_;
    server_end_.reset();
    server_ = rpc::Connection::start(
        loop_, std::move(socket), options,
        [this](const rpc::ConnectionPointer&, rpc::IncomingCall call, rpc::Responder responder) {
          ++calls_;
          if (on_call_) return on_call_(std::move(call), std::move(responder));
          responder.reply(Bytes(call.arguments.begin(), call.arguments.end()));
        },
        [this](const rpc::ConnectionPointer&, const Error& why) { server_end_ = why; });
    server_->on_secured([this](const rpc::ConnectionPointer& connection) {
      ++secured_;
      client_seen_ = *connection->tls_peer();
    });
    return server_;
  }
  // A record with the header of a call.
  static Bytes call_record(rpc::CallHeader header) {
    Bytes body;
    xdr::Encoder encoder(body);
    xdr::encode(encoder, header);
    std::byte mark[rpc::kMarkSize];
    rpc::write_record_mark(mark, body.size());
    body.insert(body.begin(), std::begin(mark), std::end(mark));
    return body;
  }
  static Bytes probe(uint32_t xid = 1, uint32_t procedure = 0) {
    return call_record({xid, kProgram, 1, procedure, {rpc::AuthFlavor::kTls, {}}, {}});
  }
  static void put(int fd, ByteSpan bytes) {
    ASSERT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // A server alone, and the other end of its socket.
  FileDescriptor alone() {
    auto [ours, server] = sockets();
    serve(std::move(server));
    return std::move(ours);
  }
  // Both ends, and a wire between them.
  void join() {
    auto [client, left] = sockets();
    auto [right, server] = sockets();
    wire_ = std::make_unique<Wire>(loop_, std::move(left), std::move(right));
    serve(std::move(server));
    client_ = rpc::Connection::start(
        loop_, std::move(client), {}, nullptr,
        [this](const rpc::ConnectionPointer&, const Error& why) { client_end_ = why; });
  }
  void begin(const std::string& name = "192.0.2.1", Milliseconds patience = kLong) {
    client_->start_tls(*client_tls_, name, kProgram, 1, patience,
                       [this](Result<> started) { started_ = std::move(started); });
    EXPECT_FALSE(started_.has_value()) << "from inside the call";
  }
  // What start_tls() came to.
  Result<> secure(const std::string& name = "192.0.2.1") {
    join();
    begin(name);
    EXPECT_TRUE(run_until([this] { return started_.has_value(); }));
    return started_.value_or(fail(ETIME, "start_tls() never answered"));
  }
  template <typename Done>
  bool run_until(Done done) {
    for (const SteadyTime end = loop_.now() + 2 * kLong; loop_.now() < end;) {
      if (done()) return true;
      loop_.run_once(Milliseconds(2));
    }
    return done();
  }
  Result<Bytes> call(Bytes arguments, Milliseconds timeout = kLong) {
    std::optional<Result<Bytes>> answer;
    client_->call(kProgram, 1, 3, {}, std::move(arguments), timeout, [&](Result<rpc::Reply> reply) {
      if (reply) {
        answer = Bytes(reply->results.begin(), reply->results.end());
      } else {
        answer = std::unexpected(reply.error());
      }
    });
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    return answer.value_or(fail(ETIME, "no answer"));
  }
  static Bytes pattern(size_t size, unsigned seed = 1) {
    Bytes bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251 + seed);
    return bytes;
  }

  const std::filesystem::path folder_ = make_folder();
  TestAuthority authority_{folder_ / "ours"};
  SystemClock clock_;
  EventLoop loop_{clock_};
  std::shared_ptr<Endpoint> server_tls_;
  std::shared_ptr<Endpoint> client_tls_;
  rpc::ConnectionOptions server_options_{.tls_required = true};
  std::function<void(rpc::IncomingCall, rpc::Responder)> on_call_;
  std::unique_ptr<Wire> wire_;
  rpc::ConnectionPointer client_;
  rpc::ConnectionPointer server_;
  std::optional<Result<>> started_;
  std::optional<Error> client_end_;
  std::optional<Error> server_end_;
  rpc::TlsPeer client_seen_;
  int secured_ = 0;
  int calls_ = 0;
};

}  // namespace pnfsrdma::rpc_tls
