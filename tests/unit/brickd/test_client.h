// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "shared/brick/protocol.h"
#include "shared/brick/session_codec.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::brick {

// The smallest client of a brick's data side: one connection, one request at a time.
class TestClient {
 public:
  static constexpr size_t kScratch = 1 << 20;
  static constexpr uint32_t kReceives = 16;

  // connect() as a client with this ticket; an Error says why not.
  static Result<std::unique_ptr<TestClient>> connect(rdma::Transport& transport, const std::string& address,
                                                     const xdr::FixedOpaque<16>& ticket,
                                                     uint32_t receives = kReceives) {
    std::unique_ptr<TestClient> client(new TestClient);
    const auto domain = transport.make_protection_domain();
    TRY_ASSIGN(client->region_,
               transport.register_region(domain, client->memory_, rdma::Access::kLocalWrite));
    rdma::ConnectOptions options{.private_data = encode_connect({kSessionVersion, ticket}),
                                 .deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10)};
    options.limits.native_flush = true;
    TRY_ASSIGN(auto connected, transport.connect(address, domain, options));
    client->queue_pair_ = std::move(connected.queue_pair);
    client->said_ = decode_accept(connected.private_data);
    for (uint32_t i = 0; i < receives; ++i) TRY(client->post_receive(i));
    return client;
  }

  // What the brick said when it accepted.
  const AcceptPrivateData& said() const { return said_; }
  Bytes& scratch() { return memory_; }
  rdma::LocalSlice slice(size_t offset, uint32_t length) const { return region_->slice(offset, length); }

  rdma::Outcome write(const Grant& grant, uint64_t offset, uint32_t length) {
    return write_raw({grant.address + offset, length, grant.handle});
  }
  rdma::Outcome write_raw(rdma::RemoteSlice target) {
    const rdma::LocalSlice source = region_->slice(0, static_cast<uint32_t>(target.length));
    if (!queue_pair_->post_write(100, std::span(&source, 1), target)) return rdma::Outcome::kFlushed;
    return finish(100);
  }
  rdma::Outcome read(const Grant& grant, uint64_t offset, uint32_t length) {
    const rdma::RemoteSlice source{grant.address + offset, length, grant.handle};
    if (!queue_pair_->post_read(101, region_->slice(0, length), source)) return rdma::Outcome::kFlushed;
    return finish(101);
  }
  rdma::Outcome flush(const Grant& grant, uint64_t offset, uint32_t length) {
    const rdma::RemoteSlice target{grant.address + offset, length, grant.handle};
    if (!queue_pair_->post_flush(102, target, rdma::FlushLevel::kPersistent)) return rdma::Outcome::kFlushed;
    return finish(102);
  }

  // A WRITE and the flush behind it under one doorbell: one round trip.
  rdma::Outcome write_and_flush(const Grant& grant, uint64_t offset, uint32_t length) {
    const rdma::LocalSlice source = region_->slice(0, length);
    const rdma::RemoteSlice target{grant.address + offset, length, grant.handle};
    if (!queue_pair_->post_write(100, std::span(&source, 1), target) ||
        !queue_pair_->post_flush(102, target, rdma::FlushLevel::kPersistent)) {
      return rdma::Outcome::kFlushed;
    }
    return finish(102);
  }
  // The same with the commit message.
  std::optional<PersistReply> write_and_persist(const Grant& grant, uint64_t offset, uint32_t length) {
    const rdma::LocalSlice source = region_->slice(0, length);
    if (!queue_pair_->post_write(100, std::span(&source, 1),
                                 {grant.address + offset, length, grant.handle})) {
      return std::nullopt;
    }
    return persist(PersistCall{1, {{grant.grant, offset, length}}});
  }

  bool send(const SessionMessage& message) {
    const size_t length = encode_session_message(message, MutableByteSpan(memory_).subspan(kSendAt));
    return send_bytes(length);
  }
  // The same message many times at once, without waiting for an answer.
  void flood(const SessionMessage& message, int times) {
    const size_t length = encode_session_message(message, send_buffer());
    const rdma::LocalSlice slice = region_->slice(kSendAt, static_cast<uint32_t>(length));
    for (int i = 0; i < times; ++i) static_cast<void>(queue_pair_->post_send(104, std::span(&slice, 1)));
    queue_pair_->submit();
  }
  // What stands at the send buffer already.
  bool send_bytes(size_t length) {
    const rdma::LocalSlice slice = region_->slice(kSendAt, static_cast<uint32_t>(length));
    return queue_pair_->post_send(103, std::span(&slice, 1)) && finish(103) == rdma::Outcome::kSuccess;
  }
  MutableByteSpan send_buffer() { return MutableByteSpan(memory_).subspan(kSendAt, kSessionMessageMax); }

  std::optional<SessionMessage> receive() {
    while (messages_.empty()) {
      if (!step()) return std::nullopt;
    }
    SessionMessage message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  // All parts of the hello's answer as one.
  std::optional<HelloReply> hello() {
    if (!send(HelloCall{})) return std::nullopt;
    HelloReply whole;
    std::vector<HelloGrant> grants;
    do {
      const auto message = receive();
      if (!message || !std::holds_alternative<HelloReply>(*message)) return std::nullopt;
      whole = std::get<HelloReply>(*message);
      grants.insert(grants.end(), whole.grants.begin(), whole.grants.end());
    } while (whole.more);
    whole.grants = std::move(grants);
    return whole;
  }
  std::optional<PersistReply> persist(PersistCall call) {
    if (!send(std::move(call))) return std::nullopt;
    const auto message = receive();
    return message ? std::optional(std::get<PersistReply>(*message)) : std::nullopt;
  }
  // The answer to any other message; none: the connection has ended.
  template <typename Reply, typename Call>
  std::optional<Reply> ask(Call call) {
    if (!send(std::move(call))) return std::nullopt;
    const auto message = receive();
    return message ? std::optional(std::get<Reply>(*message)) : std::nullopt;
  }

  // Does the connection end within some seconds?
  bool ends() {
    for (const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
         std::chrono::steady_clock::now() < limit;) {
      if (!step()) return true;
    }
    return false;
  }
  rdma::QueuePair& queue_pair() { return *queue_pair_; }

 private:
  static constexpr size_t kReceiveAt = kScratch;
  static constexpr size_t kSendAt = kScratch + kReceives * kSessionMessageMax;

  TestClient() : memory_(kSendAt + kSessionMessageMax) {}

  Result<> post_receive(uint32_t number) {
    return queue_pair_->post_receive(
        number, region_->slice(kReceiveAt + size_t{number} * kSessionMessageMax, kSessionMessageMax));
  }

  // Takes what completed. False when the connection has ended and everything is delivered.
  bool step() {
    const size_t count = queue_pair_->poll(completions_);
    for (size_t i = 0; i < count; ++i) take(completions_[i]);
    if (count > 0) return true;
    if (!queue_pair_->connected()) return false;
    queue_pair_->wait(std::chrono::steady_clock::now() + std::chrono::milliseconds(200));
    return true;
  }
  void take(const rdma::Completion& completion) {
    if (completion.opcode != rdma::Opcode::kReceive) {
      finished_.push_back(completion);
      return;
    }
    if (completion.outcome != rdma::Outcome::kSuccess) return;
    const auto number = static_cast<uint32_t>(completion.work_id);
    const ByteSpan bytes(memory_.data() + kReceiveAt + size_t{number} * kSessionMessageMax,
                         completion.length);
    if (auto message = decode_session_message(bytes)) messages_.push_back(std::move(*message));
    post_spare();
    spare_receive_ = number;
  }
  // The last message's buffer is posted while the next one is on its way.
  void post_spare() {
    if (const auto number = std::exchange(spare_receive_, std::nullopt)) {
      static_cast<void>(post_receive(*number));
    }
  }
  rdma::Outcome finish(uint64_t work_id) {
    queue_pair_->submit();
    post_spare();
    for (;;) {
      while (!finished_.empty()) {
        const rdma::Completion completion = finished_.front();
        finished_.pop_front();
        if (completion.work_id == work_id) return completion.outcome;
      }
      if (!step() && finished_.empty()) return rdma::Outcome::kConnectionLost;
    }
  }

  Bytes memory_;
  AcceptPrivateData said_;
  std::unique_ptr<rdma::Region> region_;
  std::unique_ptr<rdma::QueuePair> queue_pair_;
  std::array<rdma::Completion, 16> completions_;
  std::optional<uint32_t> spare_receive_;
  std::deque<rdma::Completion> finished_;
  std::deque<SessionMessage> messages_;
};

}  // namespace pnfsrdma::brick
