// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>

#include "shared/base/check.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::rpc_rdma {

// Regions by key; every local slice must lie in one that lives.
class ScriptedMemory {
 public:
  uint32_t add(MutableByteSpan memory, rdma::Access access) {
    regions_[++last_] = {memory, access};
    return last_;
  }
  void remove(uint32_t key) { regions_.erase(key); }
  void check(const rdma::LocalSlice& slice, rdma::Access wanted) const {
    const auto found = regions_.find(slice.key);
    CHECK(found != regions_.end());
    const auto& [memory, access] = found->second;
    CHECK(rdma::allows(access, wanted));
    CHECK(slice.address >= memory.data() && slice.length <= memory.size());
    CHECK(static_cast<size_t>(slice.address - memory.data()) <= memory.size() - slice.length);
  }
  bool remotely_reachable() const {
    for (const auto& [key, entry] : regions_) {
      if (rdma::allows(entry.second, rdma::Access::kRemoteRead)) return true;
      if (rdma::allows(entry.second, rdma::Access::kRemoteWrite)) return true;
    }
    return false;
  }

 private:
  uint32_t last_ = 0;
  std::map<uint32_t, std::pair<MutableByteSpan, rdma::Access>> regions_;
};

class ScriptedRegion final : public rdma::Region {
 public:
  ScriptedRegion(ScriptedMemory& all, MutableByteSpan memory, rdma::Access access)
      : all_(all), memory_(memory), key_(all.add(memory, access)) {}
  ~ScriptedRegion() override { all_.remove(key_); }
  MutableByteSpan memory() const override { return memory_; }
  uint32_t local_key() const override { return key_; }
  rdma::RemoteSlice remote() const override {
    return {reinterpret_cast<uintptr_t>(memory_.data()), memory_.size(), key_};
  }

 private:
  ScriptedMemory& all_;
  MutableByteSpan memory_;
  uint32_t key_;
};

// The peer's messages come from deliver(); READs bring zeros; everything of ours succeeds at once.
class ScriptedQueuePair final : public rdma::QueuePair {
 public:
  explicit ScriptedQueuePair(ScriptedMemory& memory) : memory_(memory) {}

  // False: no receive is posted, or the message is too long for it.
  bool deliver(ByteSpan message) {
    if (receives_.empty() || message.size() > receives_.front().second.length) return false;
    const auto [id, buffer] = receives_.front();
    receives_.pop_front();
    if (!message.empty()) std::memcpy(buffer.address, message.data(), message.size());
    done_.push_back(
        {id, rdma::Opcode::kReceive, rdma::Outcome::kSuccess, static_cast<uint32_t>(message.size())});
    return true;
  }

  Result<> post_write(uint64_t id, std::span<const rdma::LocalSlice> source,
                      rdma::RemoteSlice target) override {
    uint64_t length = 0;
    for (const rdma::LocalSlice& slice : source) {
      memory_.check(slice, rdma::Access::kLocalRead);
      length += slice.length;
    }
    CHECK(length == target.length);
    return finish(id, rdma::Opcode::kWrite);
  }
  Result<> post_read(uint64_t id, rdma::LocalSlice sink, rdma::RemoteSlice source) override {
    memory_.check(sink, rdma::Access::kLocalWrite);
    CHECK(sink.length == source.length);
    std::memset(sink.address, 0, sink.length);
    return finish(id, rdma::Opcode::kRead);
  }
  Result<> post_send(uint64_t id, std::span<const rdma::LocalSlice> message) override {
    for (const rdma::LocalSlice& slice : message) memory_.check(slice, rdma::Access::kLocalRead);
    return finish(id, rdma::Opcode::kSend);
  }
  Result<> post_receive(uint64_t id, rdma::LocalSlice buffer) override {
    memory_.check(buffer, rdma::Access::kLocalWrite);
    receives_.emplace_back(id, buffer);
    return {};
  }
  Result<> post_flush(uint64_t, rdma::RemoteSlice, rdma::FlushLevel) override {
    return pnfsrdma::fail(EOPNOTSUPP, "flush");
  }
  Result<> post_atomic_write(uint64_t, uint64_t, rdma::RemoteSlice) override {
    return pnfsrdma::fail(EOPNOTSUPP, "atomic write");
  }
  void submit() override {}
  size_t poll(std::span<rdma::Completion> completions) override {
    size_t count = 0;
    while (count < completions.size() && !done_.empty()) {
      completions[count++] = done_.front();
      done_.pop_front();
    }
    return count;
  }
  bool wait(SteadyTime) override { return true; }
  int fd() const override { return -1; }
  bool connected() const override { return true; }
  void fail() override {}
  const rdma::QueuePairLimits& limits() const override { return limits_; }
  rdma::TransportCounters counters() const override { return {}; }
  std::string peer() const override { return "fuzzer"; }

 private:
  Result<> finish(uint64_t id, rdma::Opcode opcode) {
    if (done_.size() >= limits_.send_depth) return pnfsrdma::fail(ENOBUFS, "the send queue is full");
    done_.push_back({id, opcode, rdma::Outcome::kSuccess, 0});
    return {};
  }

  ScriptedMemory& memory_;
  rdma::QueuePairLimits limits_{.send_depth = 512, .receive_depth = 512};
  std::deque<std::pair<uint64_t, rdma::LocalSlice>> receives_;
  std::deque<rdma::Completion> done_;
};

class ScriptedTransport final : public rdma::Transport {
 public:
  explicit ScriptedTransport(ScriptedMemory& memory) : memory_(memory) {}
  std::string name() const override { return "scripted"; }
  std::shared_ptr<rdma::ProtectionDomain> make_protection_domain() override {
    return std::make_shared<rdma::ProtectionDomain>();
  }
  Result<std::unique_ptr<rdma::Region>> register_region(std::shared_ptr<rdma::ProtectionDomain>,
                                                        MutableByteSpan memory, rdma::Access access,
                                                        rdma::Flusher*) override {
    return std::make_unique<ScriptedRegion>(memory_, memory, access);
  }
  Result<rdma::Connected> connect(const std::string&, std::shared_ptr<rdma::ProtectionDomain>,
                                  const rdma::ConnectOptions&) override {
    return pnfsrdma::fail(ENOTSUP, "connect");
  }
  Result<std::unique_ptr<rdma::Listener>> listen(
      const std::string&, std::function<void(std::unique_ptr<rdma::ConnectionRequest>)>) override {
    return pnfsrdma::fail(ENOTSUP, "listen");
  }

 private:
  ScriptedMemory& memory_;
};

}  // namespace pnfsrdma::rpc_rdma
