// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "server/mds/state/delegations.h"
#include "tests/unit/mds/ops/called_client.h"

// A client that holds a delegation, another that comes between, and what that one may do.
namespace pnfsrdma::mds::testing {

using nfs4::Status;
using nfs4::WhyNoDelegation;

inline constexpr uint32_t kWantsRead = kShareRead | nfs4::kShareAccessWantReadDelegation;
inline constexpr uint32_t kWantsWrite = kShareBoth | nfs4::kShareAccessWantWriteDelegation;

class DelegationCase : public ::testing::Test {
 protected:
  DelegationCase() { start(); }

  void start(bool same_boot = true, std::vector<Export> exports = {TestServer::default_export()}) {
    other_ = nullptr;
    holder_ = nullptr;
    server_ = nullptr;
    server_ = std::make_unique<TestServer>(host_, std::move(exports), same_boot);
    holder_ = std::make_unique<CalledClient>(*server_, "holder");
    other_ = std::make_unique<CalledClient>(*server_, "other");
  }
  // With the files "f" and "g" in the root, which nobody has open.
  void begin() {
    holder_->join();
    other_->join();
    for (const char* name : {"f", "g"}) {
      auto arguments = other_->open_arguments(name, kShareBoth | nfs4::kShareAccessWantNoDelegation);
      arguments.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0666)));
      close(*other_, other_->open(arguments).result.stateid);
    }
  }
  void close(TestClient& client, const nfs4::Stateid& stateid) {
    nfs4::CloseArguments arguments;
    arguments.open_stateid = stateid;
    EXPECT_EQ(client.status({handle(), arguments}), Status::kOk);
  }
  static nfs4::OpenResponse open(TestClient& client, const std::string& name, uint32_t access,
                                 uint32_t deny = 0) {
    return client.open(client.open_arguments(name, access, deny));
  }
  // Opens "f" to read it, and closes it again where there is a delegation.
  nfs4::Stateid delegation() { return delegation<nfs4::DelegationType::kRead>(kWantsRead); }
  // The same of one to write.
  nfs4::Stateid write_delegation() { return delegation<nfs4::DelegationType::kWrite>(kWantsWrite); }
  template <nfs4::DelegationType kType>
  nfs4::Stateid delegation(uint32_t access) {
    const auto opened = open(*holder_, "f", access);
    const auto* given = opened.result.delegation.get_if<kType>();
    EXPECT_NE(given, nullptr);
    file_ = holder_->last_handle;
    if (given == nullptr) return {};
    close(*holder_, opened.result.stateid);
    return given->stateid;
  }
  static std::optional<WhyNoDelegation> refusal(const nfs4::OpenResponse& opened) {
    EXPECT_TRUE(opened.ok());
    const auto* none = opened.result.delegation.get_if<nfs4::DelegationType::kNoneExtended>();
    return none == nullptr ? std::nullopt : std::optional(none->discriminant());
  }
  nfs4::ArgumentOperation handle() const {
    return nfs4::PutFileHandleArguments{file_.empty() ? other_->last_handle : file_};
  }
  Status give_back(const nfs4::Stateid& stateid) {
    return holder_->status({handle(), nfs4::DelegationReturnArguments{stateid}});
  }
  Status read(const nfs4::Stateid& stateid) {
    nfs4::ReadArguments arguments;
    arguments.stateid = stateid;
    arguments.count = 10;
    return holder_->status({handle(), arguments});
  }
  Status test(const nfs4::Stateid& stateid) {
    nfs4::TestStateidArguments arguments;
    arguments.stateids.push_back(stateid);
    return response_at<nfs4::TestStateidResponse>(holder_->call({arguments}), 0).result.statuses.at(0);
  }
  uint32_t flags() {
    const auto results = server_->call({holder_->next_sequence()});
    return response_at<nfs4::SequenceResponse>(results, 0).result.status_flags;
  }
  bool shown_as_revoked() { return (flags() & nfs4::kSequenceRecallableStateRevoked) != 0; }

  using Reply = std::shared_ptr<std::shared_ptr<const Bytes>>;
  Reply ask(TestClient& client, Operations operations) {
    operations.insert(operations.begin(), client.next_sequence());
    const Reply reply = server_->begin(operations);
    turns();
    return reply;
  }
  void turns() {
    for (int turn = 0; turn < 20; ++turn) host_.turn();
  }
  void pass(Milliseconds time) {
    host_.clock.advance(time);
    turns();
  }
  static std::optional<Status> status(const Reply& reply) {
    if (!*reply) return std::nullopt;
    return xdr::decode_from<nfs4::CompoundResults>(**reply)->status;
  }
  Operations write_open() {
    return {nfs4::PutRootFileHandleArguments{}, other_->open_arguments("f", kShareWrite)};
  }
  // Until the lease of the holder, who answers nothing but its recalls, is over.
  void let_it_be_revoked() {
    for (int second = 0; second < 31; ++second) {
      pass(Milliseconds(1000));
      flags();
    }
  }

  TestHost host_;
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<CalledClient> holder_;
  std::unique_ptr<CalledClient> other_;
  nfs4::FileHandle file_;
};

struct Act {
  const char* name;
  std::function<Operations(const TestClient&, const nfs4::FileHandle& file)> operations;
};
inline Operations set_attributes(const nfs4::FileHandle& file, nfs4::Attributes attributes) {
  nfs4::SetAttributesArguments arguments;
  arguments.attributes = std::move(attributes);
  return {nfs4::PutFileHandleArguments{file}, arguments};
}
inline Operations renaming(const char* from, const char* to) {
  return {nfs4::PutRootFileHandleArguments{}, nfs4::SaveFileHandleArguments{},
          nfs4::RenameArguments{.old_name = from, .new_name = to}};
}
// Of "f", whose handle is `file`, and "g".
inline Operations exchanging_both(const TestClient& who, const nfs4::FileHandle& file, bool f_first) {
  ObjectHandle handle = who.server.handles->decode(file)->handle;
  const InodePointer g = who.server.names->lookup(kRootInode, "g").value();
  handle.inode = g->id;
  handle.generation = g->generation;
  const Operations root{nfs4::PutRootFileHandleArguments{}};
  const NamedFile one{root, "f", file};
  const NamedFile other{root, "g", who.server.handles->encode(handle)};
  return f_first ? exchanging(one, other) : exchanging(other, one);
}
inline Operations opening(nfs4::OpenArguments arguments) {
  return {nfs4::PutRootFileHandleArguments{}, std::move(arguments)};
}
// That change "f".
inline const Act kChanges[] = {
    {"OpenToWrite",
     [](const TestClient& who, const auto&) { return opening(who.open_arguments("f", kShareWrite)); }},
    {"OpenThatDeniesReading",
     [](const TestClient& who, const auto&) {
       return opening(who.open_arguments("f", kShareRead, kShareRead));
     }},
    {"OpenThatTruncates",
     [](const TestClient& who, const auto&) {
       auto arguments = who.open_arguments("f", kShareRead);
       nfs4::Attributes attributes;
       attributes.size = 0;
       arguments.how = creating(create_how(nfs4::CreateMode::kUnchecked, attributes));
       return opening(arguments);
     }},
    {"SetSize",
     [](const TestClient&, const auto& file) {
       nfs4::Attributes attributes;
       attributes.size = 5;
       return set_attributes(file, attributes);
     }},
    {"SetMode",
     [](const TestClient&, const auto& file) { return set_attributes(file, mode_attribute(0600)); }},
    {"Remove",
     [](const TestClient&, const auto&) -> Operations {
       return {nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{"f"}};
     }},
    {"Rename", [](const TestClient&, const auto&) { return renaming("f", "h"); }},
    {"RenameOverIt", [](const TestClient&, const auto&) { return renaming("g", "f"); }},
    {"RenameOverNothing", [](const TestClient&, const auto&) { return renaming("f", "h/noreplace"); }},
    {"Exchange", [](const TestClient& who, const auto& file) { return exchanging_both(who, file, true); }},
    {"ExchangeTheOtherWayRound",
     [](const TestClient& who, const auto& file) { return exchanging_both(who, file, false); }},
    {"Link",
     [](const TestClient&, const auto& file) -> Operations {
       return {nfs4::PutFileHandleArguments{file}, nfs4::SaveFileHandleArguments{},
               nfs4::PutRootFileHandleArguments{}, nfs4::LinkArguments{"h"}};
     }},
};

}  // namespace pnfsrdma::mds::testing
