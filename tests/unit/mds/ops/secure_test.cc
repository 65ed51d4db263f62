// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/mds/ops/test_server.h"

// exports(5), "secure": whom an export serves by the port his call comes from.
namespace pnfsrdma::mds::secure_test {
namespace {

using nfs4::Status;

const nfs4::ArgumentOperation kRoot = nfs4::PutRootFileHandleArguments{};
const nfs4::ArgumentOperation kHandle = nfs4::GetFileHandleArguments{};
const nfs4::ArgumentOperation kUp = nfs4::LookupParentArguments{};
constexpr const char* kReserved = "192.0.2.1:1023";
constexpr const char* kAnybodys = "192.0.2.1:1024";

nfs4::ArgumentOperation look(const std::string& name) {
  return nfs4::LookupArguments{name};
}
nfs4::CreateArguments new_directory(const std::string& name) {
  nfs4::CreateArguments arguments;
  arguments.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  arguments.name = name;
  arguments.attributes = mode_attribute(0700);
  return arguments;
}
Export export_to(const std::string& path, bool insecure) {
  Export made;
  made.path = path;
  made.squash = Squash::kNone;
  made.insecure = insecure;
  return made;
}

struct Secure : ::testing::Test {
  void serve(std::vector<Export> exports) {
    server = std::make_unique<TestServer>(host, std::move(exports));
    client = std::make_unique<TestClient>(*server, "client " + std::to_string(++clients));
    client->connect();
  }
  Status from(const std::string& peer, const Operations& operations, bool rdma = false) {
    server->peer = peer;
    server->rdma = rdma;
    return client->status(operations);
  }
  nfs4::FileHandle handle(Operations operations) {
    operations.push_back(kHandle);
    server->peer = kReserved;
    const auto results = client->call(operations);
    EXPECT_EQ(results.status, Status::kOk);
    return std::get<nfs4::GetFileHandleResponse>(results.operations.back()).result.object;
  }
  // The mode READDIR of the root shows of `name`.
  uint32_t listed_mode(const std::string& peer, const std::string& name) {
    server->peer = peer;
    nfs4::ReadDirectoryArguments read;
    read.max_count = 4096;
    read.requested = nfs4::Bitmap::of(nfs4::Attribute::kMode);
    const auto listed = client->call({kRoot, read});
    EXPECT_EQ(listed.status, Status::kOk);
    for (const auto& entry : std::get<nfs4::ReadDirectoryResponse>(listed.operations.back()).result.entries)
      if (entry.name == name) return entry.attributes.mode.value_or(0);
    return 0;
  }

  TestHost host;
  int clients = 0;
  std::unique_ptr<TestServer> server;
  std::unique_ptr<TestClient> client;
};

TEST_F(Secure, IsTheDefaultAndServesReservedPorts) {
  serve({TestServer::default_export()});
  const auto root = handle({kRoot});
  EXPECT_EQ(from(kReserved, {kRoot, new_directory("d")}), Status::kOk);
  EXPECT_EQ(from(kAnybodys, {kRoot}), Status::kPerm);
  EXPECT_EQ(from(kAnybodys, {nfs4::PutFileHandleArguments{root}, nfs4::GetFileHandleArguments{}}),
            Status::kPerm);
  EXPECT_EQ(from("127.0.0.1:40000", {kRoot}), Status::kPerm) << "this host is no exception";
  EXPECT_EQ(from("[::1]:40000", {kRoot}), Status::kPerm);
  EXPECT_EQ(from("[::1]:1", {kRoot}), Status::kOk);
  ASSERT_EQ(server->counters.port_refusals.size(), 1U);
  EXPECT_EQ(server->counters.port_refusals[1].calls, 4U);
  EXPECT_EQ(server->counters.port_refusals[1].host, "::1");
}

TEST_F(Secure, InsecureServesEveryPort) {
  serve({export_to("/", true)});
  EXPECT_EQ(from(kAnybodys, {kRoot, new_directory("d"), kHandle}), Status::kOk);
  EXPECT_TRUE(server->counters.port_refusals.empty());
}

// As knfsd does: the ports of RDMA connections say nothing about who made them.
TEST_F(Secure, RdmaIsExempt) {
  serve({export_to("/", false)});
  EXPECT_EQ(from(kAnybodys, {kRoot, new_directory("d")}, true), Status::kOk);
}

TEST_F(Secure, TheStateOfASessionIsKeptFromEveryPort) {
  serve({export_to("/", false)});
  EXPECT_EQ(from(kAnybodys, {}), Status::kOk) << "SEQUENCE alone";
}

// Whoever may bind no reserved port may claim uid 0 all the same, and guess how the kernel's client calls itself.
TEST_F(Secure, AClientOfAReservedPortIsNotReplacedFromAnyOther) {
  serve({export_to("/", false)});
  server->peer = kReserved;
  TestClient kernel(*server, "Linux NFSv4.2 host");
  kernel.connect();
  server->peer = kAnybodys;
  TestClient somebody(*server, "Linux NFSv4.2 host", 2);
  EXPECT_EQ(somebody.exchange_id().status, Status::kClidInuse);
  EXPECT_EQ(TestClient(*server, "Linux NFSv4.2 host").exchange_id(nfs4::kExchangeUpdateConfirmed).status,
            Status::kPerm);
  server->rdma = true;
  EXPECT_TRUE(TestClient(*server, "Linux NFSv4.2 host").exchange_id().ok())
      << "the ports of RDMA say nothing";
  server->rdma = false;
  server->peer = kReserved;
  EXPECT_EQ(kernel.status({kRoot}), Status::kOk);
  client.reset();
  server.reset();
  server = std::make_unique<TestServer>(host, std::vector{export_to("/", false)});
  server->peer = kAnybodys;
  EXPECT_EQ(TestClient(*server, "Linux NFSv4.2 host").exchange_id(nfs4::kExchangeUpdateConfirmed).status,
            Status::kPerm)
      << "it is on record";
}

TEST_F(Secure, AClientOfAnybodysPortMayComeFromAReservedOne) {
  serve({export_to("/", true)});
  server->peer = kAnybodys;
  TestClient mount(*server, "mount");
  mount.connect();
  server->peer = kReserved;
  EXPECT_TRUE(TestClient(*server, "mount").exchange_id().ok());
}

// Whatever way leads from an export into another, the other one decides.
TEST_F(Secure, NoWayLeadsFromAnInsecureExportIntoASecureOne) {
  serve({export_to("/", true), export_to("/inner", false)});
  ASSERT_EQ(from(kReserved, {kRoot, new_directory("inner")}), Status::kOk);
  EXPECT_EQ(from(kAnybodys, {kRoot, look("inner"), kHandle}), Status::kPerm);
  EXPECT_EQ(from(kAnybodys, {kRoot, look("inner"), look("x")}), Status::kPerm);
  EXPECT_EQ(from(kAnybodys, {kRoot, look("inner"), new_directory("x")}), Status::kPerm);
  EXPECT_EQ(listed_mode(kReserved, "inner"), 0700U);
  EXPECT_EQ(listed_mode(kAnybodys, "inner"), 0555U) << "nothing of the secure one is shown";
}

TEST_F(Secure, ANewDirectoryThatBecomesASecureExportIsNotEntered) {
  serve({export_to("/", true), export_to("/inner", false)});
  EXPECT_EQ(from(kAnybodys, {kRoot, new_directory("inner"), kHandle}), Status::kPerm);
}

TEST_F(Secure, NoWayLeadsUpIntoASecureOne) {
  serve({export_to("/", false), export_to("/inner", true)});
  ASSERT_EQ(from(kReserved, {kRoot, new_directory("inner")}), Status::kOk);
  const auto inner = handle({kRoot, look("inner")});
  EXPECT_EQ(from(kAnybodys, {nfs4::PutFileHandleArguments{inner}, kHandle}), Status::kOk);
  EXPECT_EQ(from(kAnybodys, {nfs4::PutFileHandleArguments{inner}, kUp, kHandle}), Status::kPerm);
}

TEST_F(Secure, ThePseudoRootIsForEverybody) {
  serve({export_to("/a", true), export_to("/b", false)});
  for (const char* name : {"a", "b"}) server->names->create(kRootInode, name, {.type = FileType::kDirectory});
  EXPECT_EQ(from(kAnybodys, {kRoot, look("a"), kHandle}), Status::kOk);
  EXPECT_EQ(from(kAnybodys, {kRoot, look("b"), kHandle}), Status::kPerm);
}

}  // namespace
}  // namespace pnfsrdma::mds::secure_test
