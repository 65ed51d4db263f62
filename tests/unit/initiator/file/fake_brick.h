// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "shared/base/crc32c.h"
#include "shared/base/random.h"
#include "shared/brick/session_codec.h"
#include "shared/nfs4/pmem_layout.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::initiator {

// What happened, in order, over all parts of a test.
class EventLog {
 public:
  void add(std::string event) {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  std::vector<std::string> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> events_;
};

// A brick of one client and one file: its memory is the file, grants are ranges of it. Real transport, real
// messages. The connection is served by a thread of its own.
class FakeBrick : public rdma::Flusher {
 public:
  static constexpr size_t kBytes = size_t{8} << 20;

  FakeBrick(rdma::Transport& transport, const std::string& address, EventLog& events)
      : transport_(transport), events_(events), memory_(kBytes), domain_(transport.make_protection_domain()) {
    auto listener = transport_.listen(
        address, [this](std::unique_ptr<rdma::ConnectionRequest> request) { meet(*request); });
    CHECK(listener);
    listener_ = std::move(*listener);
  }
  ~FakeBrick() override {
    listener_.reset();
    stop();
    std::lock_guard lock(mutex_);
    grants_.clear();
  }

  std::string address() const { return listener_->address(); }
  std::byte* memory() { return memory_.data(); }

  // A grant under the present connection's handle.
  nfs4::Target grant(uint64_t offset, uint64_t length, bool writable) {
    std::lock_guard lock(mutex_);
    for (auto& [id, grant] : grants_) {
      if (grant.offset == offset && grant.length == length && grant.writable == writable)
        return target(id, grant);
    }
    const uint64_t id = next_grant_++;
    Grant& grant = grants_[id];
    grant = {offset, length, writable, nullptr};
    expose(grant);
    return target(id, grant);
  }
  // The handle is dead when this returns.
  void withdraw(uint64_t offset, uint64_t length) {
    std::lock_guard lock(mutex_);
    std::erase_if(grants_, [&](const auto& entry) {
      return entry.second.offset < offset + length && offset < entry.second.offset + entry.second.length;
    });
  }
  size_t grants() {
    std::lock_guard lock(mutex_);
    return grants_.size();
  }
  uint32_t connection() {
    std::lock_guard lock(mutex_);
    return connection_;
  }
  void cut_connection() {
    std::lock_guard lock(mutex_);
    if (queue_pair_) queue_pair_->fail();
  }
  size_t watches() {
    std::lock_guard lock(mutex_);
    return watches_.size();
  }
  // The next call for events is answered with this, for each watch.
  void tell_all(brick::EventKind kind, uint64_t left_out = 0) {
    std::lock_guard lock(mutex_);
    for (auto& [number, watch] : watches_) {
      watch.told += left_out;
      unsent_.push_back({.watch = number, .kind = kind, .sequence = ++watch.told});
    }
    if (kind == brick::EventKind::kEnd) watches_.clear();
  }
  void set_verifier(uint8_t value) {
    std::lock_guard lock(mutex_);
    verifier_.fill(std::byte{value});
  }
  // The next commit message fails; `value`: the verifier from then on.
  void fail_flush(uint8_t value) {
    set_verifier(value);
    fail_next_flush_ = true;
  }
  rdma::TransportCounters counters() {
    std::lock_guard lock(mutex_);
    return queue_pair_ ? queue_pair_->counters() : rdma::TransportCounters{};
  }

  // The serving thread stops serving, new connections are not answered, while the lock is held.
  std::unique_lock<std::mutex> hang() { return std::unique_lock(hang_mutex_); }

  // Knobs.
  std::atomic<bool> native_flush = false;
  std::atomic<uint8_t> ticket = 1;           // the only one let in: sixteen of it
  std::atomic<int> unanswered_persists = 0;  // so many of the next: the connection dies instead
  std::atomic<int> connections = 0;
  std::atomic<int> connections_max = INT_MAX;  // no more of them
  std::atomic<int> persists = 0;
  std::atomic<uint32_t> understands = brick::kUnderstandsChangeWord | brick::kUnderstandsVerify |
                                      brick::kUnderstandsEvents;  // 0: a brick of before
  std::atomic<uint64_t> record = 1;                               // another one: its session began anew
  std::atomic<int> unanswered_changes =
      0;  // so many of the next changes of words are made, and the connection dies
  std::atomic<int> unmade_changes = 0;  // the same, but not made
  std::atomic<int> unanswered_signals = 0;
  std::atomic<size_t> watches_max = SIZE_MAX;

  Result<> flush(MutableByteSpan) override {
    events_.add("flush");
    return {};
  }

 private:
  struct Grant {
    uint64_t offset = 0;
    uint64_t length = 0;
    bool writable = false;
    std::unique_ptr<rdma::Region> region;
  };

  void expose(Grant& grant) {
    auto access = rdma::Access::kRemoteRead;
    if (grant.writable) access = access | rdma::Access::kRemoteWrite | rdma::Access::kLocalWrite;
    if (native_flush) access = access | rdma::Access::kRemoteFlush;
    grant.region = nullptr;
    auto region = transport_.register_region(domain_, {memory_.data() + grant.offset, grant.length}, access,
                                             native_flush ? this : nullptr);
    CHECK(region);
    grant.region = std::move(*region);
  }
  static nfs4::Target target(uint64_t id, const Grant& grant) {
    return {id, grant.region->remote().key, grant.region->remote().address};
  }

  void meet(rdma::ConnectionRequest& request) {
    // Not held further: what follows joins the serving thread, which takes it too.
    {
      const std::lock_guard hung(hang_mutex_);
    }
    const auto data = brick::decode_connect(request.private_data());
    if (!data || connections >= connections_max || data->ticket[0] != std::byte{ticket.load()} ||
        data->ticket[15] != std::byte{ticket.load()}) {
      request.reject(brick::encode_reject(brick::RejectReason::kTicket));
      return;
    }
    stop();
    rdma::QueuePairLimits limits;
    limits.native_flush = native_flush;
    limits.send_depth = limits.receive_depth = 64;
    {
      // Before accept(): the client's hello may be there at once.
      std::lock_guard lock(mutex_);
      for (auto& [id, grant] : grants_) expose(grant);
      ++connection_;
    }
    accepted_record_ = record.load();
    const Bytes said = brick::encode_accept({.understands = understands, .record = accepted_record_});
    auto accepted = request.accept(domain_, understands == 0 ? ByteSpan() : ByteSpan(said), limits);
    if (!accepted) return;
    ++connections;
    std::lock_guard lock(mutex_);
    queue_pair_ = std::move(*accepted);
    post_receives();
    stopping_ = false;
    thread_ = std::thread([this] { serve(); });
  }

  void post_receives() {
    messages_.resize((2 * kMessages + 1) * brick::kSessionMessageMax);
    auto region = transport_.register_region(domain_, messages_, rdma::Access::kLocalWrite);
    CHECK(region);
    message_region_ = std::move(*region);
    for (size_t slot = 0; slot < kMessages; ++slot) post_receive(slot);
  }
  void post_receive(size_t slot) {
    (void)queue_pair_->post_receive(
        slot, message_region_->slice(slot * brick::kSessionMessageMax, brick::kSessionMessageMax));
  }

  void serve() {
    std::array<rdma::Completion, 16> completions;
    while (!stopping_) {
      {
        std::lock_guard hung(hang_mutex_);
      }
      const bool alive = queue_pair_->connected();
      queue_pair_->wait(std::chrono::steady_clock::now() + Milliseconds(20));
      const size_t count = queue_pair_->poll(completions);
      if (count == 0 && !alive) return;
      for (const auto& completion : std::span(completions).first(count)) {
        if (completion.outcome != rdma::Outcome::kSuccess) continue;
        if (completion.opcode == rdma::Opcode::kReceive) answer(completion);
      }
      answer_events();
    }
  }

  void answer_events() {
    std::lock_guard lock(mutex_);
    if (!events_call_ || unsent_.empty()) return;
    brick::EventsReply reply{.id = *std::exchange(events_call_, std::nullopt)};
    for (const brick::Event& event : std::exchange(unsent_, {})) reply.events.push_back(event);
    const size_t at = 2 * kMessages * brick::kSessionMessageMax;
    const size_t length = brick::encode_session_message(
        reply, MutableByteSpan(messages_).subspan(at, brick::kSessionMessageMax));
    const rdma::LocalSlice slice = message_region_->slice(at, static_cast<uint32_t>(length));
    (void)queue_pair_->post_send(2000, {&slice, 1});
    queue_pair_->submit();
  }

  void answer(const rdma::Completion& completion) {
    const auto slot = static_cast<size_t>(completion.work_id);
    const auto message = brick::decode_session_message(
        ByteSpan(messages_).subspan(slot * brick::kSessionMessageMax, completion.length));
    CHECK(message);
    brick::SessionMessage reply;
    {
      std::lock_guard lock(mutex_);
      if (std::holds_alternative<brick::HelloCall>(*message)) {
        brick::HelloReply hello{.verifier = verifier_, .connection = connection_};
        for (const auto& [id, grant] : grants_) {
          hello.grants.push_back({id, grant.region->remote().key, grant.region->remote().address});
        }
        reply = hello;
      } else if (const auto* change = std::get_if<brick::ChangeWordCall>(&*message)) {
        if (unmade_changes > 0) {
          --unmade_changes;
          queue_pair_->fail();
          return;
        }
        reply = change_word(*change);
        if (unanswered_changes > 0) {
          --unanswered_changes;
          queue_pair_->fail();
          return;
        }
      } else if (const auto* verification = std::get_if<brick::VerifyCall>(&*message)) {
        reply = verify(*verification);
      } else if (const auto* watched = std::get_if<brick::WatchCall>(&*message)) {
        reply = watch(*watched);
      } else if (const auto* signalled = std::get_if<brick::SignalCall>(&*message)) {
        reply = signal(*signalled);
        if (unanswered_signals > 0) {
          --unanswered_signals;
          queue_pair_->fail();
          return;
        }
      } else if (const auto* events_call = std::get_if<brick::EventsCall>(&*message)) {
        CHECK(!events_call_);
        events_call_ = events_call->id;
      } else {
        const auto& call = std::get<brick::PersistCall>(*message);
        reply = persist(call);
      }
    }
    post_receive(slot);
    if (std::holds_alternative<brick::EventsCall>(*message)) return;
    if (std::holds_alternative<brick::PersistReply>(reply) && unanswered_persists > 0) {
      --unanswered_persists;
      queue_pair_->fail();
      return;
    }
    const size_t at = (kMessages + slot) * brick::kSessionMessageMax;
    const size_t length = brick::encode_session_message(
        reply, MutableByteSpan(messages_).subspan(at, brick::kSessionMessageMax));
    const rdma::LocalSlice slice = message_region_->slice(at, static_cast<uint32_t>(length));
    (void)queue_pair_->post_send(1000 + slot, {&slice, 1});
    queue_pair_->submit();
  }

  brick::PersistReply persist(const brick::PersistCall& call) {
    ++persists;
    brick::PersistReply reply{.id = call.id, .verifier = verifier_};
    std::string event = "persist";
    for (const auto& range : call.ranges) {
      const auto found = grants_.find(range.grant);
      if (found == grants_.end()) {
        reply.status = brick::PersistStatus::kUnknownGrant;
      } else {
        event +=
            " " + std::to_string(found->second.offset + range.offset) + "+" + std::to_string(range.length);
      }
    }
    if (std::exchange(fail_next_flush_, false)) reply.status = brick::PersistStatus::kIo;
    events_.add(event);
    return reply;
  }

  brick::VerifyReply verify(const brick::VerifyCall& call) {
    brick::VerifyReply reply{.id = call.id, .verifier = verifier_};
    std::string event = "verify";
    for (const auto& range : call.ranges) {
      const auto found = grants_.find(range.grant);
      if (found == grants_.end()) {
        reply.status = brick::PersistStatus::kUnknownGrant;
        reply.checksums.clear();
        return reply;
      }
      const uint64_t offset = found->second.offset + range.offset;
      reply.checksums.push_back(crc32c({memory_.data() + offset, range.length}));
      event += " " + std::to_string(offset) + "+" + std::to_string(range.length);
    }
    events_.add(event);
    return reply;
  }

  brick::WatchReply watch(const brick::WatchCall& call) {
    const auto found = grants_.find(call.grant);
    if (call.length == 0) {
      watches_.erase(call.watch);
    } else if (found == grants_.end()) {
      return {call.id, brick::WatchStatus::kUnknownGrant};
    } else if (watches_.size() >= watches_max) {
      return {call.id, brick::WatchStatus::kLimit};
    } else {
      watches_[call.watch] = {found->second.offset + call.offset, call.length};
    }
    return {call.id, brick::WatchStatus::kOk};
  }

  brick::SignalReply signal(const brick::SignalCall& call) {
    brick::SignalReply reply{.id = call.id, .verifier = verifier_};
    if (call.verifier != verifier_) reply.status = brick::SignalStatus::kVerifier;
    if (std::exchange(fail_next_flush_, false)) reply.status = brick::SignalStatus::kVerifier;
    std::string event = "signal";
    for (const auto& range : call.ranges) {
      const auto found = grants_.find(range.grant);
      if (found == grants_.end() || !found->second.writable) {
        reply.status = brick::SignalStatus::kUnknownGrant;
      } else {
        event +=
            " " + std::to_string(found->second.offset + range.offset) + "+" + std::to_string(range.length);
      }
    }
    if (reply.status != brick::SignalStatus::kOk) return reply;
    for (const auto& range : call.ranges) {
      const uint64_t begin = grants_.at(range.grant).offset + range.offset, end = begin + range.length;
      for (auto& [number, watch] : watches_) {
        const uint64_t from = std::max(begin, watch.begin);
        const uint64_t to = std::min(end, watch.begin + watch.length);
        if (from >= to) continue;
        unsent_.push_back({.watch = number,
                           .sequence = ++watch.told,
                           .offset = from - watch.begin,
                           .length = to - from,
                           .value = call.value});
      }
    }
    events_.add(event);
    return reply;
  }

  brick::ChangeWordReply change_word(const brick::ChangeWordCall& call) {
    brick::ChangeWordReply reply{.id = call.id, .verifier = verifier_};
    auto& [sequence, before] = slots_[call.slot];
    const auto found = grants_.find(call.grant);
    if (call.record != accepted_record_ || call.sequence < sequence) {
      reply.status = brick::WordStatus::kForgotten;
    } else if (call.sequence == sequence) {
      reply.before = before;
      events_.add("word again");
    } else if (found == grants_.end() || !found->second.writable) {
      reply.status = brick::WordStatus::kUnknownGrant;
    } else {
      const uint64_t offset = found->second.offset + call.offset;
      uint64_t word = 0;
      std::memcpy(&word, memory_.data() + offset, sizeof word);
      sequence = call.sequence;
      reply.before = before = word;
      const bool swaps = call.change != brick::WordChange::kCompareAndSwap || word == call.expected;
      if (swaps) word = call.change == brick::WordChange::kFetchAndAdd ? word + call.operand : call.operand;
      std::memcpy(memory_.data() + offset, &word, sizeof word);
      events_.add("word " + std::to_string(offset) + (call.durable ? " durable" : ""));
    }
    if (std::exchange(fail_next_flush_, false)) reply.status = brick::WordStatus::kNotDurable;
    return reply;
  }

  void stop() {
    stopping_ = true;
    if (queue_pair_) queue_pair_->fail();
    if (thread_.joinable()) thread_.join();
    std::lock_guard lock(mutex_);
    queue_pair_.reset();
    message_region_.reset();
    watches_.clear();
    unsent_.clear();
    events_call_.reset();
  }

  static constexpr size_t kMessages = 16;

  rdma::Transport& transport_;
  EventLog& events_;
  std::vector<std::byte> memory_;
  std::shared_ptr<rdma::ProtectionDomain> domain_;
  std::unique_ptr<rdma::Listener> listener_;
  std::mutex hang_mutex_;
  std::mutex mutex_;
  std::map<uint64_t, Grant> grants_;
  uint64_t next_grant_ = 100;
  uint32_t connection_ = 0;
  xdr::FixedOpaque<8> verifier_{};
  bool fail_next_flush_ = false;
  std::atomic<uint64_t> accepted_record_ = 0;
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> slots_;  // sequence and what the word was
  struct Watched {
    uint64_t begin = 0, length = 0, told = 0;
  };
  std::map<uint64_t, Watched> watches_;
  std::vector<brick::Event> unsent_;
  std::optional<uint64_t> events_call_;
  Bytes messages_;
  std::unique_ptr<rdma::Region> message_region_;
  std::unique_ptr<rdma::QueuePair> queue_pair_;
  std::thread thread_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace pnfsrdma::initiator
