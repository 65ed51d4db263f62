// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/copy_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "server/mds/log/copy_client.h"
#include "server/mds/log/copy_connection.h"
#include "server/mds/meta/rocksdb_store.h"
#include "shared/base/x509.h"

namespace pnfsrdma::mds {
namespace {

namespace fs = std::filesystem;

// Who signs the certificates of one cluster.
class Authority {
 public:
  explicit Authority(fs::path folder) : folder_(std::move(folder)), key_(x509::make_key().value()) {
    fs::create_directories(folder_);
    certificate_ = x509::begin(key_.get(), "authority").value();
    X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
    EXPECT_TRUE(x509::add_extension(certificate_, certificate_, NID_basic_constraints, "critical,CA:TRUE"));
    write("ca.pem", x509::sign(certificate_, key_.get()).value());
    const x509::Key key = x509::make_key().value();
    const x509::Certificate made = x509::begin(key.get(), "member").value();
    X509_set_issuer_name(made.get(), X509_get_subject_name(certificate_.get()));
    EXPECT_TRUE(x509::add_extension(made, certificate_, NID_subject_alt_name, "IP:127.0.0.1"));
    write("member.pem", x509::sign(made, key_.get()).value());
    write("member.key", x509::text_of(key.get()).value());
  }
  std::string file(const std::string& name) const { return folder_ / name; }

 private:
  void write(const std::string& name, const std::string& text) { std::ofstream(file(name)) << text; }
  const fs::path folder_;
  x509::Key key_;
  x509::Certificate certificate_;
};

class Copies : public ::testing::Test {
 protected:
  Copies() {
    store_ = open("leader");
    put(*store_, "x", "1");
    checkpoint(1);
    put(*store_, "x", "2");
    checkpoint(2);
    put(*open("laggard"), "x", "old");
    start(ours_);
  }
  ~Copies() override {
    server_.reset();
    store_.reset();
    fs::remove_all(folder_);
  }
  std::string path(const std::string& name) const { return folder_ / name; }
  std::unique_ptr<KeyValueStore> open(const std::string& name) {
    return RocksdbStore::open(loop_, {.path = path(name)}, [](const Error&) { FAIL(); }).value();
  }
  static void put(KeyValueStore& store, std::string_view key, std::string_view value) {
    Batch batch;
    batch.put(key, value);
    ASSERT_TRUE(store.commit(batch, CommitKind::kNamespace));
    ASSERT_TRUE(store.sync());
  }
  void checkpoint(SnapshotNumber number) {
    std::optional<Result<>> made;
    store_->checkpoint(number, [&](Result<> outcome) { made = std::move(outcome); });
    while (!made) loop_.run_once(Milliseconds(5));
    ASSERT_TRUE(*made);
  }
  void start(const Authority& authority) {
    server_.reset();
    auto started = CopyServer::start(loop_, *store_,
                                     {.listen = "127.0.0.1:0",
                                      .authority = authority.file("ca.pem"),
                                      .certificate = authority.file("member.pem"),
                                      .key = authority.file("member.key"),
                                      .directory = path("leader.given")});
    ASSERT_TRUE(started) << started.error().to_string();
    server_ = std::move(*started);
  }
  CopySource source(const Authority& authority) const {
    return {"https://127.0.0.1:" + std::to_string(server_->port()), authority.file("ca.pem"),
            authority.file("member.pem"), authority.file("member.key")};
  }
  // While the loop turns.
  Result<> take(const Authority& authority, OldStore old = OldStore::kKept,
                const std::string& name = "laggard") {
    std::atomic<bool> ended = false;
    const std::atomic<bool> stopping = false;
    Result<> taken;
    Thread thread([&] {
      taken = begin_with_copy(source(authority), path(name), old, stopping);
      ended = true;
    });
    while (!ended) loop_.run_once(Milliseconds(5));
    thread.join();
    return taken;
  }
  // To the server, from that address of this host.
  FileDescriptor connect_from(const char* address) {
    FileDescriptor connected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in end{};
    end.sin_family = AF_INET;
    inet_pton(AF_INET, address, &end.sin_addr);
    EXPECT_EQ(bind(connected.get(), reinterpret_cast<sockaddr*>(&end), sizeof end), 0);
    inet_pton(AF_INET, "127.0.0.1", &end.sin_addr);
    end.sin_port = htons(static_cast<uint16_t>(server_->port()));
    EXPECT_EQ(connect(connected.get(), reinterpret_cast<sockaddr*>(&end), sizeof end), 0);
    return connected;
  }
  std::vector<FileDescriptor> silent_ones(const char* address, size_t count) {
    std::vector<FileDescriptor> all;
    for (size_t i = 0; i < count; ++i) all.push_back(connect_from(address));
    return all;
  }
  // The server has no more to say there.
  static bool is_closed(const FileDescriptor& socket) {
    char byte = 0;
    const ssize_t got = recv(socket.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }
  Milliseconds time_of_end() {
    const SteadyTime begun = steady_now();
    server_.reset();
    return std::chrono::duration_cast<Milliseconds>(steady_now() - begun);
  }
  template <typename Condition>
  void turn_until(Condition condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) loop_.run_once(Milliseconds(5));
    ASSERT_TRUE(condition());
  }
  std::string value(const std::string& name) {
    const auto store = open(name);
    return store->get("x").value().value_or("-");
  }

  const fs::path folder_ = fs::temp_directory_path() / ("copies." + std::to_string(getpid()));
  const Authority ours_{folder_ / "ours"};
  const Authority others_{folder_ / "others"};
  SystemClock clock_;
  EventLoop loop_{clock_};
  std::unique_ptr<KeyValueStore> store_;
  std::unique_ptr<CopyServer> server_;
};

TEST_F(Copies, TakeThePlaceOfAStore) {
  put(*store_, "x", "3");
  const Result<> taken = take(ours_);
  ASSERT_TRUE(taken) << taken.error().to_string();
  EXPECT_EQ(value("laggard"), "3");
  EXPECT_EQ(value("laggard.replaced"), "old");
  EXPECT_TRUE(fs::exists(path("laggard/snapshots/1/CURRENT")));
  EXPECT_TRUE(fs::exists(path("laggard/snapshots/2/CURRENT")));
  EXPECT_FALSE(fs::exists(path("laggard.copy")));
  // The one that gives it goes on, and has nothing of it left; the next one is of now.
  put(*store_, "x", "4");
  while (fs::exists(path("leader.given"))) loop_.run_once(Milliseconds(5));
  ASSERT_TRUE(take(ours_));
  EXPECT_EQ(value("laggard"), "4");
}

// It may have what nobody else has.
TEST_F(Copies, WhatTheyReplaceIsNeverRemoved) {
  ASSERT_TRUE(take(ours_));
  put(*store_, "x", "3");
  ASSERT_TRUE(take(ours_));
  EXPECT_EQ(value("laggard.replaced"), "old");
  EXPECT_EQ(value("laggard.replaced-2"), "2");
  fs::create_directories(path("leader/snapshots/9/directory"));
  EXPECT_FALSE(take(ours_));
  EXPECT_EQ(value("laggard.replaced"), "old");
  EXPECT_FALSE(fs::exists(path("laggard.replaced-3")));
}

// As on a file system that knows no RENAME_EXCHANGE: here the store is not there at all.
TEST_F(Copies, WhatCannotTakeItsPlaceIsRemoved) {
  for (const OldStore old : {OldStore::kKept, OldStore::kRemoved}) {
    const Result<> refused = take(ours_, old, "nothing");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().number(), ENOENT);
    for (const char* name : {"nothing", "nothing.copy", "nothing.replaced"})
      EXPECT_FALSE(fs::exists(path(name))) << name;
    while (fs::exists(path("leader.given"))) loop_.run_once(Milliseconds(5));
  }
}

TEST_F(Copies, AnEmptyStoreIsNotKept) {
  ASSERT_TRUE(take(ours_, OldStore::kRemoved));
  EXPECT_EQ(value("laggard"), "2");
  EXPECT_FALSE(fs::exists(path("laggard.replaced")));
  EXPECT_FALSE(fs::exists(path("laggard.copy")));
}

TEST_F(Copies, AreForMembersOnly) {
  EXPECT_FALSE(take(others_));  // who does not trust the server
  start(others_);
  EXPECT_FALSE(take(ours_));
  // Whom the server does not trust.
  start(ours_);
  fs::copy_file(ours_.file("ca.pem"), others_.file("ca.pem"), fs::copy_options::overwrite_existing);
  EXPECT_FALSE(take(others_));
  EXPECT_EQ(value("laggard"), "old");
  EXPECT_FALSE(fs::exists(path("laggard.copy")));
}

TEST_F(Copies, WhatCannotBeMadeChangesNothing) {
  fs::create_directories(path("leader/snapshots/9/directory"));  // which cannot be linked
  const Result<> refused = take(ours_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what().find("500"), std::string::npos) << refused.error().what();
  EXPECT_EQ(value("laggard"), "old");
  fs::remove_all(path("leader/snapshots/9"));
  ASSERT_TRUE(take(ours_));  // it is not taken for busy
}

// The copy is never put together: the loop does not turn.
TEST_F(Copies, AnEndOfTheDaemonEndsWaitingForTheAnswer) {
  std::atomic<bool> stopping = false;
  Result<> taken;
  Thread thread([&, from = source(ours_)] {
    taken = begin_with_copy(from, path("laggard"), OldStore::kKept, stopping);
  });
  sleep_for(Milliseconds(500));
  const SteadyTime told = steady_now();
  stopping = true;
  thread.join();
  EXPECT_LT(steady_now() - told, Milliseconds(1500));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().number(), ECANCELED);
  EXPECT_EQ(value("laggard"), "old");
  EXPECT_FALSE(fs::exists(path("laggard.copy")));
  EXPECT_FALSE(fs::exists(path("laggard.replaced")));
}

// The same, of the server's daemon.
TEST_F(Copies, TheEndOfTheServerDoesNotWaitForTheLoop) {
  const std::atomic<bool> stopping = false;
  Result<> taken;
  Thread thread([&, from = source(ours_)] {
    taken = begin_with_copy(from, path("laggard"), OldStore::kKept, stopping);
  });
  sleep_for(Milliseconds(500));
  EXPECT_LT(time_of_end(), Milliseconds(1500));
  thread.join();
  ASSERT_FALSE(taken);
  EXPECT_EQ(value("laggard"), "old");
}

TEST_F(Copies, TheEndOfTheServerBreaksOffATransfer) {
  {
    std::ofstream large(path("leader/snapshots/1/large.sst"));
    for (int i = 0; i < 32; ++i) large << std::string(1 << 20, 'x');
  }
  std::atomic<bool> begun = false;
  std::atomic<bool> goes_on = false;
  Thread thread([&, from = source(ours_)] {
    httplib::Client client(from.url, from.certificate, from.key);
    client.set_ca_cert_path(from.authority);
    static_cast<void>(client.Get(CopyServer::kPath, [&](const char*, size_t) {
      begun = true;
      while (!goes_on) sleep_for(Milliseconds(5));
      return false;
    }));
  });
  turn_until([&] { return begun.load(); });
  sleep_for(Milliseconds(300));  // what fits between the two is full
  EXPECT_LT(time_of_end(), Milliseconds(1500));
  EXPECT_FALSE(fs::exists(path("leader.given")));
  goes_on = true;
  thread.join();
}

TEST_F(Copies, TheEndOfTheServerDoesNotWaitForWhoIsSilent) {
  const auto silent = silent_ones("127.0.0.1", 40);
  sleep_for(Milliseconds(200));
  EXPECT_LT(time_of_end(), Milliseconds(1500));
}

TEST_F(Copies, WhoIsSilentHoldsFewConnectionsAndNotForLong) {
  std::vector<FileDescriptor> silent;
  for (const char* address : {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6"})
    std::ranges::move(silent_ones(address, 20), std::back_inserter(silent));
  const auto open = [&] {
    return silent.size() - static_cast<size_t>(std::ranges::count_if(silent, is_closed));
  };
  sleep_for(Milliseconds(500));
  EXPECT_LE(open(), CopyServer::kConnectionsMax);
  EXPECT_GT(open(), 0u);
  sleep_for(CopyConnection::kRequestPatience);
  EXPECT_EQ(open(), 0u);
}

TEST_F(Copies, WhoIsSilentDoesNotKeepOthersFromThem) {
  const auto silent = silent_ones("127.0.0.2", 100);
  const SteadyTime begun = steady_now();
  const Result<> taken = take(ours_);
  EXPECT_TRUE(taken) << taken.error().to_string();
  EXPECT_LT(steady_now() - begun, CopyConnection::kRequestPatience);
}

// A byte now and then is no progress.
TEST_F(Copies, WhoIsSlowIsSentAway) {
  const FileDescriptor slow = connect_from("127.0.0.2");
  constexpr std::array<unsigned char, 5> kHandshake{22, 3, 1, 2,
                                                    0};  // RFC 8446, 5.1: 512 bytes of handshake follow
  ASSERT_EQ(send(slow.get(), kHandshake.data(), kHandshake.size(), MSG_NOSIGNAL), 5);
  const SteadyTime begun = steady_now();
  while (!is_closed(slow) && steady_now() - begun < Milliseconds(6000)) {
    send(slow.get(), "\1", 1, MSG_NOSIGNAL);
    sleep_for(Milliseconds(100));
  }
  EXPECT_LT(steady_now() - begun, CopyConnection::kRequestPatience + Milliseconds(1500));
}

TEST_F(Copies, AWrongAddressOrFileIsSaid) {
  const auto wrong = [&](const std::string& listen, const std::string& key) {
    return CopyServer::start(loop_, *store_,
                             {.listen = listen,
                              .authority = ours_.file("ca.pem"),
                              .certificate = ours_.file("member.pem"),
                              .key = key,
                              .directory = path("given")})
        .error()
        .number();
  };
  EXPECT_EQ(wrong("127.0.0.1", ours_.file("member.key")), EINVAL);
  EXPECT_EQ(wrong("127.0.0.1:0", others_.file("member.key")), EINVAL);
  EXPECT_EQ(wrong("127.0.0.1:" + std::to_string(server_->port()), ours_.file("member.key")), EADDRINUSE);
}

}  // namespace
}  // namespace pnfsrdma::mds
