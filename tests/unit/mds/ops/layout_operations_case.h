// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "server/mds/admin/data_plane.h"
#include "server/mds/bricks/path_reports.h"
#include "server/mds/layout/layouts.h"
#include "server/mds/meta/space.h"
#include "server/mds/ops/layout_callbacks.h"
#include "shared/nfs4/pmem_layout.h"
#include "tests/unit/mds/layout/brick_plug.h"
#include "tests/unit/mds/layout/fake_brick.h"
#include "tests/unit/mds/ops/called_client.h"
#include "tests/unit/mds/ops/test_server.h"

// A client with an open file of a server that has a brick.
namespace pnfsrdma::mds::testing {

class LayoutOperations : public ::testing::Test {
 protected:
  LayoutOperations() {
    server.use(module.conflicts(), module.data());
    plug.up(kBrick);
    for (int i = 0; i < 60; ++i) host.turn();
    EXPECT_TRUE(module.ready());
    client.connect();
    file = open("f", kShareBoth);
  }

  static constexpr uint64_t kFileSize = 8192;

  struct File {
    nfs4::FileHandle handle;
    nfs4::Stateid stateid;
  };
  File open(const std::string& name, uint32_t access) { return open(client, name, access); }
  static File open(TestClient& who, const std::string& name, uint32_t access, uint32_t mode = 0666) {
    auto arguments = who.open_arguments(name, access, 0, "owner " + std::to_string(access));
    arguments.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(mode)));
    const auto opened = who.open(arguments);
    EXPECT_TRUE(opened.ok());
    return {who.last_handle, opened.result.stateid};
  }

  template <typename Response, typename Arguments>
  static Response on(TestClient& who, const nfs4::FileHandle& handle, const Arguments& arguments) {
    return response_at<Response>(who.call({nfs4::PutFileHandleArguments{handle}, arguments}), 1);
  }

  static nfs4::LayoutGetArguments wish(const nfs4::Stateid& stateid,
                                       nfs4::IoMode mode = nfs4::IoMode::kReadWrite) {
    return {.layout_type = nfs4::kLayoutTypePmem,
            .io_mode = mode,
            .offset = 0,
            .length = kFileSize,
            .min_length = kFileSize,
            .stateid = stateid,
            .max_count = 4096};
  }
  nfs4::LayoutGetResponse get(const nfs4::LayoutGetArguments& arguments) {
    return on<nfs4::LayoutGetResponse>(client, file.handle, arguments);
  }
  nfs4::Stateid layout(nfs4::IoMode mode = nfs4::IoMode::kReadWrite) {
    const auto answer = get(wish(file.stateid, mode));
    EXPECT_EQ(answer.status, nfs4::Status::kOk);
    return answer.result.stateid;
  }

  // That the brick is not reached.
  nfs4::LayoutErrorArguments complaint(const nfs4::Stateid& stateid) {
    nfs4::LayoutErrorArguments arguments{.offset = 0, .length = kFileSize, .stateid = stateid};
    arguments.errors.push_back({.device = module.bricks().all().front()->record().uuid,
                                .status = nfs4::Status::kNxIo,
                                .operation = static_cast<uint32_t>(nfs4::Operation::kRead)});
    return arguments;
  }
  nfs4::LayoutErrorResponse complain(const nfs4::LayoutErrorArguments& arguments) {
    return on<nfs4::LayoutErrorResponse>(client, file.handle, arguments);
  }

  static nfs4::LayoutCommitArguments news(const nfs4::Stateid& stateid) {
    nfs4::LayoutCommitArguments arguments{.length = kFileSize, .stateid = stateid, .last_write_offset = 99};
    arguments.update.layout_type = nfs4::kLayoutTypePmem;
    return arguments;
  }
  nfs4::LayoutCommitResponse commit(const nfs4::LayoutCommitArguments& arguments) {
    return on<nfs4::LayoutCommitResponse>(client, file.handle, arguments);
  }

  static nfs4::LayoutReturnArguments giving_back(nfs4::LayoutReturnFile what) {
    return {.layout_type = nfs4::kLayoutTypePmem,
            .what = nfs4::LayoutReturnWhat::make<nfs4::LayoutReturnType::kFile>(std::move(what))};
  }
  static nfs4::LayoutReturnArguments giving_back(const nfs4::Stateid& stateid,
                                                 uint64_t length = nfs4::kLengthToEnd) {
    return giving_back(nfs4::LayoutReturnFile{.length = length, .stateid = stateid});
  }
  template <nfs4::LayoutReturnType kType>
  static nfs4::LayoutReturnArguments giving_back_all() {
    return {.layout_type = nfs4::kLayoutTypePmem, .what = nfs4::LayoutReturnWhat::make<kType>(xdr::Void{})};
  }
  nfs4::LayoutReturnResponse give_back(const nfs4::LayoutReturnArguments& arguments) {
    return on<nfs4::LayoutReturnResponse>(client, file.handle, arguments);
  }
  nfs4::GetDeviceInfoResponse device(const nfs4::GetDeviceInfoArguments& arguments) {
    return response_at<nfs4::GetDeviceInfoResponse>(client.call({arguments}), 0);
  }

  static constexpr const char* kBrick = "unix:/brick";
  std::unique_ptr<BrickList> made_list() {
    plug.lend(kBrick, brick);
    auto made = BrickList::open(host.store, host.clock).value();
    EXPECT_TRUE(made->configure({kBrick}));
    return made;
  }

  TestHost host;
  TestServer server{host};
  FakeBrick brick{host.loop};
  FakeMemory memory{host.loop, brick};
  BrickPlug plug;
  std::unique_ptr<BrickList> list = made_list();
  LayoutCallbacks recaller{server.callbacks,        server.clients, server.opens,
                           server.delegation_table, *server.names,  *server.handles};
  DataPlane module{
      {host.loop, host.clock, host.random, *server.names, *list, plug.connector(), recaller, server.counters},
      {.owner = "test", .memory = &memory}};
  TestClient client{server};
  File file;
};

// Another client may hold a delegation of the file (RFC 8881, 10.4).
class DelegatedFile : public LayoutOperations {
 protected:
  DelegatedFile() {
    holder.join();
    nfs4::SetAttributesArguments size;
    size.stateid = file.stateid;
    size.attributes.size = kFileSize;
    EXPECT_EQ(client.status({nfs4::PutFileHandleArguments{file.handle}, size}), nfs4::Status::kOk);
  }
  void close() {
    nfs4::CloseArguments arguments;
    arguments.open_stateid = file.stateid;
    EXPECT_EQ(client.status({nfs4::PutFileHandleArguments{file.handle}, arguments}), nfs4::Status::kOk);
  }
  // What the holder gets when he opens the file to read it, and that open's stateid.
  std::optional<nfs4::Stateid> delegation() {
    const auto opened =
        holder.open(holder.open_arguments("f", kShareRead | nfs4::kShareAccessWantReadDelegation));
    EXPECT_TRUE(opened.ok());
    opened_by_holder = opened.result.stateid;
    const auto* given = opened.result.delegation.get_if<nfs4::DelegationType::kRead>();
    return given == nullptr ? std::nullopt : std::optional(given->stateid);
  }

  CalledClient holder{server, "holder"};
  nfs4::Stateid opened_by_holder;
};

}  // namespace pnfsrdma::mds::testing
