// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/exports.h"

#include <gtest/gtest.h>

#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

const nfs4::ArgumentOperation kPutRoot = nfs4::PutRootFileHandleArguments{};

Export export_of(const std::string& path, Squash squash = Squash::kNone) {
  Export made;
  made.path = path;
  made.squash = squash;
  return made;
}

nfs4::CreateArguments directory(const std::string& name, uint32_t mode = 0755) {
  nfs4::CreateArguments arguments;
  arguments.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  arguments.name = name;
  arguments.attributes = mode_attribute(mode);
  return arguments;
}

TEST(Network, ContainsByPrefix) {
  const auto ten = Network::parse("10.0.0.0/8");
  ASSERT_TRUE(ten.has_value());
  EXPECT_TRUE(ten->contains("10.1.2.3"));
  EXPECT_TRUE(ten->contains("::ffff:10.1.2.3"));
  EXPECT_FALSE(ten->contains("11.0.0.1"));
  EXPECT_FALSE(ten->contains("unix"));
  EXPECT_TRUE(Network::parse("192.168.1.7")->contains("192.168.1.7"));
  EXPECT_FALSE(Network::parse("192.168.1.7")->contains("192.168.1.8"));
  EXPECT_TRUE(Network::parse("2001:db8::/32")->contains("2001:db8:1::5"));
  EXPECT_TRUE(Network::parse("*")->contains("unix"));
  EXPECT_TRUE(Network::parse("0.0.0.0/0")->contains("1.2.3.4"));
}

TEST(Network, RefusesWhatIsNone) {
  for (const char* wrong : {"", "host", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/8 "}) {
    EXPECT_FALSE(Network::parse(wrong).has_value()) << wrong;
  }
}

TEST(Network, HostOfAPeer) {
  EXPECT_EQ(host_of("192.0.2.7:1023"), "192.0.2.7");
  EXPECT_EQ(host_of("[::1]:1023"), "::1");
  EXPECT_EQ(port_of("192.0.2.7:1023"), 1023);
  EXPECT_EQ(port_of("[::1]:65535"), 65535);
  EXPECT_EQ(port_of("unix"), 0);
}

TEST(Export, SquashesAsItSays) {
  const Credentials root{.uid = 0, .gid = 0, .groups = {0, 4}};
  const Credentials user{.uid = 5, .gid = 0, .groups = {0, 4}};
  EXPECT_EQ(export_of("/", Squash::kRoot).squashed(root).uid, 65534U);
  EXPECT_EQ(export_of("/", Squash::kNone).squashed(root).uid, 0U);
  EXPECT_EQ(export_of("/", Squash::kAll).squashed(user).uid, 65534U);
  const Credentials squashed = export_of("/", Squash::kRoot).squashed(user);
  EXPECT_EQ(squashed.uid, 5U);
  EXPECT_EQ(squashed.gid, 65534U);
  EXPECT_EQ(squashed.groups, (std::vector<uint32_t>{65534, 4}));
}

TEST(Export, NormalPaths) {
  EXPECT_TRUE(is_normal_path("/"));
  EXPECT_TRUE(is_normal_path("/a/b"));
  for (const char* wrong : {"", "a", "/a/", "//a", "/a//b", "/a/./b", "/..", "/a/.."}) {
    EXPECT_FALSE(is_normal_path(wrong)) << wrong;
  }
}

TEST(Exports, ClientOutsideTheListGetsNoRoot) {
  TestHost host;
  TestServer server(host, {export_of("/")});
  TestClient client(server);
  client.connect();
  Export closed = export_of("/");
  closed.id = 1;
  closed.clients.push_back(*Network::parse("10.0.0.0/8"));
  server.exports.change(closed);
  EXPECT_EQ(client.status({kPutRoot}), Status::kAccess);
}

// How one COMPOUND is refused; nothing: it is answered.
std::optional<CompoundRefusal> refusal(TestServer& server, const Operations& operations) {
  nfs4::CompoundArguments arguments;
  arguments.header = {.tag = "", .minor_version = 2};
  arguments.operations = operations;
  CompoundCall call;
  call.record = xdr::encode_to_bytes(arguments);
  call.arguments = call.record;
  call.flavor = 1;
  call.peer = "127.0.0.1:900";
  std::optional<CompoundRefusal> refused;
  server.compounds.start(std::move(call), [&](const CompoundReply& reply) {
    if (!reply) refused = reply.error();
  });
  return refused;
}

TEST(Exports, AHostThatNoExportAdmitsMakesNoClient) {
  TestHost host;
  TestServer server(host, {export_of("/")});
  TestClient client(server);
  client.connect();
  nfs4::ExchangeIdArguments exchange;
  exchange.owner = client.owner;
  nfs4::CreateSessionArguments create = client.session_arguments(client.create_sequence + 1);
  Export closed = export_of("/");
  closed.id = 1;
  closed.clients.push_back(*Network::parse("10.0.0.0/8"));
  server.exports.change(closed);
  const size_t clients = server.clients.size();
  const CompoundRefusal denied(rpc::AuthStatus::kTooWeak);
  EXPECT_EQ(refusal(server, {exchange}), denied);
  EXPECT_EQ(refusal(server, {create}), denied);
  EXPECT_EQ(server.clients.size(), clients);
  EXPECT_EQ(server.sessions.size(), 1u);
  EXPECT_EQ(server.compounds.running(), 0u);
  // What it has is ended in order, and behind a SEQUENCE, which is done, it hears what the RFC lets it hear.
  EXPECT_EQ(client.status({exchange}), Status::kPerm);
  EXPECT_EQ(client.status({create}), Status::kStaleClientId);
  EXPECT_EQ(refusal(server, {nfs4::DestroySessionArguments{client.session}}), std::nullopt);
  EXPECT_EQ(server.sessions.size(), 0u);
}

TEST(Exports, RootIsSquashed) {
  TestHost host;
  TestServer server(host, {export_of("/", Squash::kRoot)});
  TestClient client(server);
  client.connect();
  // The root directory is root's, mode 0755.
  EXPECT_EQ(client.status({kPutRoot, directory("d")}), Status::kAccess);
}

TEST(Exports, ReadOnlyRefusesEveryChange) {
  TestHost host;
  Export one = export_of("/");
  one.read_only = true;
  TestServer server(host, {one});
  TestClient client(server);
  client.connect();
  EXPECT_EQ(client.status({kPutRoot, directory("d")}), Status::kRoFs);
  nfs4::SetAttributesArguments set;
  set.attributes = mode_attribute(0777);
  EXPECT_EQ(client.status({kPutRoot, set}), Status::kRoFs);
  const auto results = client.call({kPutRoot, nfs4::AccessArguments{0x3f}});
  const auto& access = response_at<nfs4::AccessResponse>(results, 1).result;
  EXPECT_EQ(access.access & (nfs4::kAccessModify | nfs4::kAccessExtend), 0U);
  EXPECT_NE(access.access & nfs4::kAccessRead, 0U);
}

TEST(Exports, LookupCrossesIntoTheExportBelow) {
  TestHost host;
  Export inner = export_of("/inner");
  inner.read_only = true;
  TestServer server(host, {export_of("/"), inner});
  TestClient client(server);
  client.connect();
  ASSERT_EQ(client.status({kPutRoot, directory("inner")}), Status::kOk);
  ASSERT_EQ(client.status({kPutRoot, directory("plain")}), Status::kOk);
  EXPECT_EQ(client.status({kPutRoot, nfs4::LookupArguments{"plain"}, directory("x")}), Status::kOk);
  EXPECT_EQ(client.status({kPutRoot, nfs4::LookupArguments{"inner"}, directory("x")}), Status::kRoFs);
  EXPECT_EQ(client.status(
                {kPutRoot, nfs4::LookupArguments{"inner"}, nfs4::LookupParentArguments{}, directory("y")}),
            Status::kOk);
  EXPECT_EQ(client.status({kPutRoot, nfs4::RemoveArguments{"inner"}}), Status::kFileOpen);
}

TEST(Exports, PseudoRootShowsOnlyTheWayToExports) {
  TestHost host;
  {
    TestServer whole(host);
    TestClient client(whole);
    client.connect();
    ASSERT_EQ(client.status({kPutRoot, directory("a"), directory("b")}), Status::kOk);
    ASSERT_EQ(client.status({kPutRoot, directory("hidden")}), Status::kOk);
  }
  TestServer server(host, {export_of("/a/b")});
  TestClient client(server, "second");
  client.connect();
  EXPECT_EQ(client.status({kPutRoot, nfs4::LookupArguments{"hidden"}}), Status::kNoEnt);
  EXPECT_EQ(client.status({kPutRoot, nfs4::LookupArguments{"a"}, directory("x")}), Status::kRoFs);
  EXPECT_EQ(client.status({kPutRoot, nfs4::LookupArguments{"a"}, nfs4::LookupArguments{"b"}, directory("x")}),
            Status::kOk);
  nfs4::ReadDirectoryArguments read;
  read.max_count = 2048;
  const auto results = client.call({kPutRoot, read});
  EXPECT_EQ(response_at<nfs4::ReadDirectoryResponse>(results, 1).result.entries.size(), 1U);
}

TEST(Permissions, GroupsOfAuthSysCount) {
  TestHost host;
  TestServer server(host);
  TestClient root(server);
  root.connect();
  ASSERT_EQ(root.status({kPutRoot, directory("d", 0770)}), Status::kOk);
  nfs4::SetAttributesArguments set;
  set.attributes.owner_group = "500";
  ASSERT_EQ(root.status({kPutRoot, nfs4::LookupArguments{"d"}, set}), Status::kOk);
  TestClient user(server, "user");
  user.who = {.uid = 1000, .gid = 1000, .groups = {}};
  user.connect();
  EXPECT_EQ(user.status({kPutRoot, nfs4::LookupArguments{"d"}, nfs4::LookupArguments{"x"}}), Status::kAccess);
  user.who.groups = {500};
  EXPECT_EQ(user.status({kPutRoot, nfs4::LookupArguments{"d"}, directory("x")}), Status::kOk);
  EXPECT_EQ(user.status({kPutRoot, directory("x")}), Status::kAccess);
}

// CVE-2018-13405: who may write in a setgid directory of a group that is not his does not make a program of
// that group there.
TEST(Permissions, ANewFileInAForeignGroupsSetgidDirectoryIsNotSetgid) {
  TestHost host;
  TestServer server(host);
  TestClient root(server);
  root.connect();
  ASSERT_EQ(root.status({kPutRoot, directory("d", 02777)}), Status::kOk);
  nfs4::SetAttributesArguments set;
  set.attributes.owner_group = "500";
  set.attributes.mode = 02777;
  ASSERT_EQ(root.status({kPutRoot, nfs4::LookupArguments{"d"}, set}), Status::kOk);
  const auto made = [&](const std::string& name, const Credentials& who, bool by_open) {
    TestClient user(server, "user " + name);
    user.who = who;
    user.connect();
    if (by_open) {
      auto make = user.open_arguments(name, kShareBoth);
      make.how = creating(create_how(nfs4::CreateMode::kGuarded, mode_attribute(02755)));
      EXPECT_EQ(user.status({kPutRoot, nfs4::LookupArguments{"d"}, make}), Status::kOk);
    } else {
      nfs4::CreateArguments fifo = directory(name, 02755);
      fifo.type = nfs4::CreateType::make<nfs4::FileType::kFifo>();
      EXPECT_EQ(user.status({kPutRoot, nfs4::LookupArguments{"d"}, fifo}), Status::kOk);
    }
    const auto parent = server.names->lookup(kRootInode, "d");
    const auto inode = server.names->lookup((*parent)->id, name);
    EXPECT_EQ((*inode)->gid, 500U);
    return (*inode)->mode;
  };
  const Credentials stranger{.uid = 1000, .gid = 1000, .groups = {}};
  const Credentials member{.uid = 1000, .gid = 1000, .groups = {500}};
  EXPECT_EQ(made("a", stranger, true), 0755U);
  EXPECT_EQ(made("b", stranger, false), 0755U);
  EXPECT_EQ(made("c", member, true), 02755U);
  EXPECT_EQ(made("e", Credentials{.uid = 0, .gid = 0, .groups = {}}, true), 02755U);
}

TEST(Permissions, OpenChecksTheModeButNotForItsMaker) {
  TestHost host;
  TestServer server(host);
  TestClient root(server);
  root.connect();
  ASSERT_EQ(root.status({kPutRoot, directory("d", 0777)}), Status::kOk);
  TestClient user(server, "user");
  user.who = {.uid = 1000, .gid = 1000, .groups = {}};
  user.connect();
  auto make = user.open_arguments("f", kShareBoth);
  make.how = creating(create_how(nfs4::CreateMode::kGuarded, mode_attribute(0400)));
  EXPECT_EQ(user.status({kPutRoot, nfs4::LookupArguments{"d"}, make}), Status::kOk);
  EXPECT_EQ(user.status({kPutRoot, nfs4::LookupArguments{"d"}, user.open_arguments("f", kShareRead)}),
            Status::kOk);
  EXPECT_EQ(user.status({kPutRoot, nfs4::LookupArguments{"d"}, user.open_arguments("f", kShareWrite)}),
            Status::kAccess);
  user.who.uid = 1001;
  EXPECT_EQ(user.status({kPutRoot, nfs4::LookupArguments{"d"}, user.open_arguments("f", kShareRead)}),
            Status::kAccess);
}

}  // namespace
}  // namespace pnfsrdma::mds
