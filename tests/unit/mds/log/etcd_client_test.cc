// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/etcd_client.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "shared/base/guarded.h"
#include "shared/base/owned.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {
namespace {

// What listens where etcd should, and answers as it is told to.
class FakeEtcd {
 public:
  FakeEtcd() {
    server_.Post("/v3/.*", [this](const httplib::Request& request, httplib::Response& response) {
      auto now = now_.lock();
      now->asked = request.path;
      response.status = now->status;
      response.set_content(now->body, "application/json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = Thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) sleep_for(Milliseconds(1));
  }
  ~FakeEtcd() {
    server_.stop();
    thread_.join();
  }
  void answer(int status, std::string body) {
    auto now = now_.lock();
    now->status = status;
    now->body = std::move(body);
  }
  EtcdOptions options() const { return {.endpoints = {"http://127.0.0.1:" + std::to_string(port_)}}; }
  std::string asked() { return now_.lock()->asked; }

 private:
  httplib::Server server_;
  int port_ = 0;
  struct Now {
    int status = 200;
    std::string body = "{}";
    std::string asked;
  };
  Guarded<Now> now_;
  Thread thread_;
};

TEST(Etcd, KnowsWhatIsRefusedForGood) {
  struct Case {
    int status;
    const char* error;
    int number;
  };
  FakeEtcd etcd;
  EtcdClient client(etcd.options());
  for (const Case& one : {
           Case{400, "etcdserver: request is too large", EPROTO},
           Case{429, "grpc: received message larger than max (2097200 vs. 2097152)", EPROTO},
           Case{429, "etcdserver: mvcc: database space exceeded", ENOSPC},
           Case{429, "etcdserver: too many requests", EIO},
           Case{503, "etcdserver: no leader", EIO},
       }) {
    for (const char* name : {"error", "message"}) {  // of etcd 3.4, of 3.6
      etcd.answer(one.status, nlohmann::json({{name, one.error}}).dump());
      const auto refused =
          client.commit({.if_all = {}, .puts = {{"/k", "v"}}, .erases = {}, .otherwise_read = {}});
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().number(), one.number) << one.error;
      EXPECT_NE(refused.error().what().find(one.error), std::string::npos);
    }
  }
}

TEST(Etcd, ErasesAndForgets) {
  FakeEtcd etcd;
  EtcdClient client(etcd.options());
  etcd.answer(200, R"({"header": {"revision": "42"}, "deleted": "3"})");
  EXPECT_EQ(client.erase("/a", "/b").value(), 42);
  EXPECT_EQ(etcd.asked(), "/v3/kv/deleterange");
  EXPECT_TRUE(client.forget(42));
  EXPECT_EQ(etcd.asked(), "/v3/kv/compaction");
  etcd.answer(400, R"({"error": "etcdserver: mvcc: required revision has been compacted"})");
  EXPECT_TRUE(client.forget(41));
}

TEST(Etcd, SaysWhoItsMembersAre) {
  FakeEtcd etcd;
  EtcdClient client(etcd.options());
  etcd.answer(
      200,
      R"({"members": [{"ID": "10276657743932975437", "name": "a", "clientURLs": ["http://x:1", "http://y:1"]},
                                   {"ID": "1"}]})");
  const auto members = client.members().value();
  EXPECT_EQ(etcd.asked(), "/v3/cluster/member/list");
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].id, "8e9e05c52164694d");
  EXPECT_EQ(members[0].name, "a");
  EXPECT_EQ(members[0].addresses, (std::vector<std::string>{"http://x:1", "http://y:1"}));
  EXPECT_EQ(members[1].id, "0000000000000001");
  EXPECT_TRUE(members[1].name.empty() && members[1].addresses.empty());
  etcd.answer(200, "{}");
  EXPECT_EQ(client.members().error().number(), EPROTO);
}

TEST(Etcd, SaysHowAMemberIs) {
  FakeEtcd etcd;
  EtcdClient client(etcd.options());
  etcd.answer(200,
              R"({"header": {"member_id": "7"}, "version": "3.4.23", "dbSize": "20480", "leader": "7"})");
  const auto leads = client.state().value();
  EXPECT_EQ(etcd.asked(), "/v3/maintenance/status");
  EXPECT_EQ(leads.version, "3.4.23");
  EXPECT_EQ(leads.database_bytes, 20480u);
  EXPECT_TRUE(leads.leads);
  etcd.answer(200, R"({"header": {"member_id": "7"}, "leader": "8"})");
  EXPECT_FALSE(client.state().value().leads);
  etcd.answer(200, R"({"header": {}})");  // there is none
  EXPECT_FALSE(client.state().value().leads);
}

class EtcdFiles : public ::testing::Test {
 protected:
  EtcdFiles() : folder_(std::filesystem::temp_directory_path() / ("etcd-files-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
  }
  ~EtcdFiles() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
    return folder_ / name;
  }
  // A certificate that its own key has signed.
  EtcdOptions certificate(const std::string& name) const {
    EtcdOptions made{.certificate = folder_ / name, .key = folder_ / (name + ".key")};
    const Owned<EVP_PKEY, EVP_PKEY_free> key(EVP_EC_gen("P-256"));
    const Owned<X509, X509_free> certificate(X509_new());
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    EXPECT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
    const Owned<FILE, fclose> certificate_file(fopen(made.certificate.c_str(), "w"));
    const Owned<FILE, fclose> key_file(fopen(made.key.c_str(), "w"));
    EXPECT_EQ(PEM_write_X509(certificate_file.get(), certificate.get()), 1);
    EXPECT_EQ(PEM_write_PrivateKey(key_file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr), 1);
    return made;
  }
  // The one key of the configuration that is wrong.
  static void refused(const EtcdOptions& options, const std::string& key) {
    const auto checked = check_files_of(options);
    ASSERT_FALSE(checked) << key;
    EXPECT_EQ(checked.error().number(), EINVAL);
    EXPECT_NE(checked.error().what().find("metadata_log." + key + " "), std::string::npos)
        << checked.error().what();
  }
  const std::filesystem::path folder_;
};

TEST_F(EtcdFiles, AreLookedAtBeforeAnybodyIsAsked) {
  const EtcdOptions sound = certificate("one");
  EXPECT_TRUE(check_files_of({}));
  EXPECT_TRUE(check_files_of(sound));
  EXPECT_TRUE(check_files_of({.authority = sound.certificate}));
  refused({.authority = folder_ / "missing"}, "ca_file");
  refused({.authority = sound.key}, "ca_file");
  refused({.certificate = folder_ / "missing", .key = sound.key}, "certificate");
  refused({.certificate = file("garbage", "garbage"), .key = sound.key}, "certificate");
  refused({.certificate = sound.certificate, .key = folder_ / "missing"}, "key");
  refused({.certificate = sound.certificate, .key = certificate("other").key}, "key");
}

}  // namespace
}  // namespace pnfsrdma::mds
