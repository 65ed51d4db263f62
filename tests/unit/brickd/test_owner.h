// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>

#include "shared/base/event_loop.h"
#include "shared/brick/blocks_protocol.h"
#include "shared/rpc/connection.h"
#include "shared/rpc/dial.h"
#include "shared/rpc_tls/endpoint.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::brick {

// The smallest owner of a partition: one connection, one call at a time.
class TestOwner {
 public:
  using Procedure = blocks::Procedure;

  static rpc_tls::SharedKey key(const std::string& partition, uint8_t secret) {
    rpc_tls::SharedKey made{.identity = partition};
    made.secret.fill(static_cast<std::byte>(secret));
    return made;
  }

  // What TLS came to is in `secured`.
  TestOwner(const std::string& address, const std::string& partition, uint8_t secret) {
    tls_ = *rpc_tls::Endpoint::open_key(rpc_tls::Role::kClient, key(partition, secret));
    connect(address);
    connection_->start_tls(*tls_, "", blocks::kProgram, blocks::kVersion, kLong,
                           [this](Result<> outcome) { secured = std::move(outcome); });
    run_until([this] { return secured.has_value(); });
  }
  // Without TLS.
  explicit TestOwner(const std::string& address) { connect(address); }
  ~TestOwner() { connection_->close(); }

  template <typename Answer, typename Arguments>
  Answer call(Procedure procedure, const Arguments& arguments) {
    const auto answer = bare_call(blocks::kProgram, blocks::kVersion, static_cast<uint32_t>(procedure),
                                  xdr::encode_to_bytes(arguments));
    EXPECT_TRUE(answer) << answer.error().to_string();
    auto decoded = xdr::decode_from<Answer>(answer.value_or(Bytes()));
    EXPECT_TRUE(decoded.has_value());
    return decoded ? *std::move(decoded) : Answer();
  }
  Result<Bytes> bare_call(uint32_t program, uint32_t version, uint32_t procedure, Bytes arguments) {
    std::optional<Result<Bytes>> answer;
    connection_->call(program, version, procedure, {}, std::move(arguments), kLong,
                      [&](Result<rpc::Reply> reply) {
                        if (reply) {
                          answer = Bytes(reply->results.begin(), reply->results.end());
                        } else {
                          answer = std::unexpected(reply.error());
                        }
                      });
    run_until([&] { return answer.has_value(); });
    return answer.value_or(fail(ETIME, "no answer"));
  }

  blocks::AttachResult attach(uint64_t again = 0) {
    auto result = call<blocks::AttachResult>(Procedure::kAttach, blocks::AttachArguments{again});
    while (result.status == blocks::Status::kTryLater)
      result = call<blocks::AttachResult>(Procedure::kAttach, blocks::AttachArguments{again});
    if (result.status == blocks::Status::kOk) attachment = result.attachment;
    return result;
  }
  blocks::AllocResult alloc(uint64_t count, uint64_t tag, uint64_t address = blocks::kAnyAddress) {
    for (;;) {
      const auto result = call<blocks::AllocResult>(Procedure::kAlloc,
                                                    blocks::AllocArguments{attachment, address, count, tag});
      if (result.status != blocks::Status::kTryLater) return result;
    }
  }
  blocks::MapResult map(uint64_t mapping, uint64_t address, uint64_t count, bool writable = true,
                        bool shared = false, blocks::How how = blocks::How::kBegin, uint64_t epoch = 0) {
    for (;;) {
      const blocks::MapArguments asked{attachment, mapping, address, count, writable, shared, how, epoch};
      auto result = call<blocks::MapResult>(Procedure::kMap, asked);
      if (result.status != blocks::Status::kTryLater) return result;
    }
  }
  blocks::Status free(uint64_t address, uint64_t count) {
    return call<blocks::StatusResult>(Procedure::kFree, blocks::BlocksArguments{attachment, address, count})
        .status;
  }
  blocks::Status unmap(uint64_t address, uint64_t count) {
    return call<blocks::StatusResult>(Procedure::kUnmap, blocks::BlocksArguments{attachment, address, count})
        .status;
  }
  blocks::Status release(uint64_t mapping) {
    return call<blocks::StatusResult>(Procedure::kRelease, blocks::MappingArguments{attachment, mapping})
        .status;
  }
  std::vector<blocks::AllocatedRun> list() {
    return call<blocks::ListResult>(Procedure::kList, blocks::ListArguments{attachment, 0, 1000}).runs;
  }

  bool is_open() const { return connection_->is_open(); }
  // Lets the other side come to words.
  void run_for(Milliseconds time) {
    for (const SteadyTime end = loop_.now() + time; loop_.now() < end;) loop_.run_once(Milliseconds(2));
  }

  std::optional<Result<>> secured;
  uint64_t attachment = 0;

 private:
  static constexpr Milliseconds kLong{20'000};

  void connect(const std::string& address) {
    auto socket = rpc::dial_and_wait(*rpc::SocketAddress::parse(address), kLong);
    EXPECT_TRUE(socket) << socket.error().to_string();
    connection_ = rpc::Connection::start(loop_, std::move(*socket), {}, nullptr);
  }
  template <typename Done>
  void run_until(Done done) {
    for (const SteadyTime end = loop_.now() + 2 * kLong; !done() && loop_.now() < end;)
      loop_.run_once(Milliseconds(2));
  }

  SystemClock clock_;
  EventLoop loop_{clock_};
  std::shared_ptr<rpc_tls::Endpoint> tls_;
  rpc::ConnectionPointer connection_;
};

}  // namespace pnfsrdma::brick
