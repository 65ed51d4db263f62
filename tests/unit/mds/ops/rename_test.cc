// SPDX-License-Identifier: Apache-2.0
// What a RENAME may ask for beyond the RFC (docs/protocol.md).
#include <gtest/gtest.h>

#include "tests/unit/mds/ops/called_client.h"

namespace pnfsrdma::mds::rename_test {
namespace {

using nfs4::Status;

const nfs4::ArgumentOperation kTop = nfs4::PutRootFileHandleArguments{};

class RenameWords : public ::testing::Test {
 protected:
  RenameWords() {
    client_.join();
    other_.join();
  }

  Status make_directory(const std::string& name, uint32_t mode = 0777) {
    nfs4::CreateArguments arguments;
    arguments.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
    arguments.name = name;
    arguments.attributes = mode_attribute(mode);
    return client_.status({kTop, arguments});
  }
  // A file that nobody has open.
  void make(const std::string& name) {
    auto arguments = client_.open_arguments(name, kShareBoth);
    arguments.how = creating(create_how(nfs4::CreateMode::kGuarded, mode_attribute(0666)));
    nfs4::CloseArguments close;
    close.open_stateid = client_.open(arguments).result.stateid;
    EXPECT_EQ(client_.status({nfs4::PutFileHandleArguments{client_.last_handle}, close}), Status::kOk);
  }
  static Operations at(const std::string& directory) { return {kTop, nfs4::LookupArguments{directory}}; }
  static Operations renaming(const std::string& from, const std::string& to) {
    return {kTop, nfs4::SaveFileHandleArguments{}, nfs4::RenameArguments{from, to}};
  }
  nfs4::FileHandle handle(Operations where) {
    where.push_back(nfs4::GetFileHandleArguments{});
    const auto results = client_.call(where);
    return response_at<nfs4::GetFileHandleResponse>(results, where.size() - 1).result.object;
  }
  NamedFile named(const std::string& name) { return {{kTop}, name, handle(at(name))}; }
  InodeId id(const std::string& name) {
    const auto found = server_.names->lookup(kRootInode, name);
    return found ? (*found)->id : kNoInode;
  }
  // The other client holds a delegation of the file: whoever renames it waits until that is returned.
  void delegate(const std::string& name) {
    const auto opened =
        other_.open(other_.open_arguments(name, kShareRead | nfs4::kShareAccessWantReadDelegation));
    const auto* given = opened.result.delegation.get_if<nfs4::DelegationType::kRead>();
    ASSERT_NE(given, nullptr);
    delegated_ = other_.last_handle;
    held_ = given->stateid;
    nfs4::CloseArguments close;
    close.open_stateid = opened.result.stateid;
    EXPECT_EQ(other_.status({nfs4::PutFileHandleArguments{delegated_}, close}), Status::kOk);
  }
  void give_back() {
    EXPECT_EQ(
        other_.status({nfs4::PutFileHandleArguments{delegated_}, nfs4::DelegationReturnArguments{held_}}),
        Status::kOk);
    turns();
  }
  using Reply = std::shared_ptr<std::shared_ptr<const Bytes>>;
  Reply begin(Operations operations) {
    operations.insert(operations.begin(), client_.next_sequence());
    const Reply reply = server_.begin(operations);
    turns();
    EXPECT_FALSE(*reply) << "it waits";
    return reply;
  }
  static Status status(const Reply& reply) {
    return xdr::decode_from<nfs4::CompoundResults>(**reply)->status;
  }
  void turns() {
    for (int turn = 0; turn < 20; ++turn) host_.turn();
  }

  TestHost host_;
  TestServer server_{host_};
  CalledClient client_{server_, "client"};
  CalledClient other_{server_, "other"};
  nfs4::FileHandle delegated_;
  nfs4::Stateid held_;
};

TEST_F(RenameWords, TheServerSaysThatItKnowsThem) {
  const auto exchanged = client_.exchange_id();
  ASSERT_TRUE(exchanged.result.implementation);
  EXPECT_TRUE(exchanged.result.implementation->name.ends_with(" rename=noreplace+exchange"))
      << exchanged.result.implementation->name;
}

TEST_F(RenameWords, NoReplaceMovesWhereNothingIs) {
  make("a");
  make("b");
  const InodeId a = id("a"), b = id("b");
  EXPECT_EQ(client_.status(renaming("a", "b/noreplace")), Status::kExist);
  EXPECT_EQ(client_.status(renaming("a", "a/noreplace")), Status::kExist);
  EXPECT_EQ(client_.status(renaming("none", "b/noreplace")), Status::kNoEnt);
  EXPECT_EQ(client_.status(renaming("a", "c/noreplace")), Status::kOk);
  EXPECT_EQ(id("c"), a);
  EXPECT_EQ(id("b"), b);
  EXPECT_EQ(id("a"), kNoInode);
}

TEST_F(RenameWords, NoReplaceRefusesAnotherNameOfTheSameFile) {
  make("a");
  ASSERT_EQ(client_.status({kTop, nfs4::LookupArguments{"a"}, nfs4::SaveFileHandleArguments{}, kTop,
                            nfs4::LinkArguments{"b"}}),
            Status::kOk);
  EXPECT_EQ(client_.status(renaming("a", "b/noreplace")), Status::kExist);
}

// It looks again in the turn in which it renames.
TEST_F(RenameWords, NoReplaceReplacesNothingThatCameWhileItWaited) {
  make("a");
  delegate("a");
  const Reply reply = begin(renaming("a", "b/noreplace"));
  ASSERT_EQ(other_.status({kTop,
                           [] {
                             nfs4::CreateArguments fifo;
                             fifo.type = nfs4::CreateType::of(nfs4::FileType::kFifo);
                             fifo.name = "b";
                             return fifo;
                           }()}),
            Status::kOk);
  const InodeId b = id("b");
  give_back();
  EXPECT_EQ(status(reply), Status::kExist);
  EXPECT_EQ(id("b"), b);
  EXPECT_NE(id("a"), kNoInode);
}

TEST_F(RenameWords, ExchangeSwapsAndTellsBothDirectories) {
  make("a");
  ASSERT_EQ(make_directory("d"), Status::kOk);
  ASSERT_EQ(make_directory("e"), Status::kOk);
  const InodeId a = id("a"), d = id("d");
  const InodePointer root = server_.names->get(kRootInode).value();
  const auto results = client_.call(exchanging(named("a"), named("d")));
  ASSERT_EQ(results.status, Status::kOk);
  EXPECT_EQ(id("a"), d);
  EXPECT_EQ(id("d"), a);
  const auto& renamed = std::get<nfs4::RenameResponse>(results.operations.back()).result;
  EXPECT_TRUE(renamed.source.atomic && renamed.target.atomic);
  EXPECT_EQ(renamed.source.before, root->change);
  EXPECT_EQ(renamed.target.after, server_.names->get(kRootInode).value()->change);
}

TEST_F(RenameWords, ExchangeSwapsAcrossDirectories) {
  make("a");
  ASSERT_EQ(make_directory("d"), Status::kOk);
  ASSERT_EQ(make_directory("e"), Status::kOk);
  const InodeId a = id("a"), d = id("d"), e = id("e");
  const NamedFile e_in_root{{kTop}, "e", handle(at("e"))};
  ASSERT_EQ(client_.status({kTop, nfs4::SaveFileHandleArguments{}, nfs4::LookupArguments{"d"},
                            nfs4::RenameArguments{"a", "a"}}),
            Status::kOk);
  const NamedFile a_in_d{at("d"), "a",
                         handle({kTop, nfs4::LookupArguments{"d"}, nfs4::LookupArguments{"a"}})};
  ASSERT_EQ(client_.status(exchanging(a_in_d, e_in_root)), Status::kOk);
  EXPECT_EQ(id("e"), a);
  EXPECT_EQ(server_.names->lookup(d, "a").value()->id, e);
  EXPECT_EQ(server_.names->lookup_parent(e).value()->id, d);
}

TEST_F(RenameWords, ExchangeIsOfTheFilesThatWereVerified) {
  make("a");
  make("b");
  make("c");
  const InodeId a = id("a");
  EXPECT_EQ(client_.status(renaming("a", "b/exchange")), Status::kInval) << "none";
  nfs4::VerifyArguments verify;
  verify.attributes.file_handle = named("a").file;
  EXPECT_EQ(client_.status({kTop, nfs4::LookupArguments{"a"}, verify, kTop, nfs4::SaveFileHandleArguments{},
                            nfs4::RenameArguments{"a", "b/exchange"}}),
            Status::kInval)
      << "one";
  Operations others = exchanging(named("a"), named("c"));
  others.back() = nfs4::RenameArguments{"a", "b/exchange"};
  EXPECT_EQ(client_.status(others), Status::kNotSame);
  EXPECT_EQ(client_.status(exchanging(named("a"), {{kTop}, "b", named("c").file})), Status::kNotSame);
  EXPECT_EQ(id("a"), a);
}

// What a client sends again in another session, because it has got no answer.
TEST_F(RenameWords, ExchangeIsDoneOnce) {
  make("a");
  make("b");
  const InodeId a = id("a");
  const Operations sent = exchanging(named("a"), named("b"));
  EXPECT_EQ(client_.status(sent), Status::kOk);
  EXPECT_EQ(client_.status(sent), Status::kNotSame);
  EXPECT_EQ(id("b"), a);
}

// Behind its VERIFYs, which another client's exchange has made untrue.
TEST_F(RenameWords, ExchangeLooksAgainWhenItHasWaited) {
  make("a");
  make("b");
  make("c");
  const InodeId a = id("a"), b = id("b"), c = id("c");
  const NamedFile to_b = named("b"), to_c = named("c");
  delegate("a");
  const Reply reply = begin(exchanging(named("a"), to_b));
  ASSERT_EQ(other_.status(exchanging(to_b, to_c)), Status::kOk);
  give_back();
  EXPECT_EQ(status(reply), Status::kNotSame);
  EXPECT_EQ(id("a"), a);
  EXPECT_EQ(id("b"), c);
  EXPECT_EQ(id("c"), b);
}

TEST_F(RenameWords, ExchangeNeedsTheRightsOnBothSides) {
  ASSERT_EQ(make_directory("open"), Status::kOk);
  ASSERT_EQ(make_directory("closed", 0755), Status::kOk);
  ASSERT_EQ(make_directory("sticky", 01777), Status::kOk);
  make("a");
  for (const char* directory : {"open", "closed", "sticky"}) {
    make("f");
    ASSERT_EQ(client_.status({kTop, nfs4::SaveFileHandleArguments{}, nfs4::LookupArguments{directory},
                              nfs4::RenameArguments{"f", "f"}}),
              Status::kOk);
  }
  const auto in = [&](const std::string& directory) {
    return NamedFile{at(directory), "f",
                     handle({kTop, nfs4::LookupArguments{directory}, nfs4::LookupArguments{"f"}})};
  };
  const NamedFile open = in("open"), closed = in("closed"), sticky = in("sticky");
  client_.who = {.uid = 12, .gid = 12, .groups = {}};
  EXPECT_EQ(client_.status(exchanging(open, closed)), Status::kAccess);
  EXPECT_EQ(client_.status(exchanging(closed, open)), Status::kAccess);
  EXPECT_EQ(client_.status(exchanging(open, sticky)), Status::kPerm);
  EXPECT_EQ(client_.status(exchanging(sticky, open)), Status::kPerm);
}

TEST_F(RenameWords, NothingNearThemIsOne) {
  make("a");
  make("b");
  const InodeId a = id("a");
  for (const char* name : {"b/", "b/exchang", "b/exchange/", "b/exchange/noreplace", "b//exchange",
                           "b/EXCHANGE", "c/noreplace ", "b/replace", "c/x"}) {
    EXPECT_EQ(client_.status(renaming("a", name)), Status::kBadChar) << name;
  }
  EXPECT_EQ(client_.status(renaming("a", "/exchange")), Status::kInval);
  EXPECT_EQ(client_.status(renaming("a/exchange", "b/exchange")), Status::kBadChar);
  EXPECT_EQ(client_.status(renaming("a/noreplace", "c")), Status::kBadChar);
  EXPECT_EQ(client_.status(renaming("a", std::string(256, 'n') + "/noreplace")), Status::kNameTooLong);
  EXPECT_EQ(client_.status(renaming("a", "../noreplace")), Status::kBadName);
  EXPECT_EQ(id("a"), a);
  EXPECT_EQ(client_.status(renaming("a", std::string(255, 'n') + "/noreplace")), Status::kOk);
}

TEST_F(RenameWords, ExchangeNeedsBothNames) {
  make("a");
  const NamedFile a = named("a");
  EXPECT_EQ(client_.status(exchanging(a, {{kTop}, "none", a.file})), Status::kNoEnt);
  EXPECT_EQ(client_.status(renaming("a", "none/exchange")), Status::kNoEnt);
}

}  // namespace
}  // namespace pnfsrdma::mds::rename_test
