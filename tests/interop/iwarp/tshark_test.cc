// SPDX-License-Identifier: Apache-2.0
// What Wireshark makes of our wire: every CRC good, nothing malformed, every message type seen.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <sstream>

#include "shared/base/random.h"
#include "shared/rdma/iwarp/transport.h"
#include "tests/interop/iwarp/recording_proxy.h"

namespace pnfsrdma::rdma::iwarp::testing {
namespace {

SteadyTime soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(20);
}

std::string output_of(const std::string& command) {
  std::string output;
  std::array<char, 4096> buffer;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  while (size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    output.append(buffer.data(), count);
  ::pclose(pipe);
  return output;
}

class NullFlusher final : public Flusher {
 public:
  Result<> flush(MutableByteSpan) override { return {}; }
};

// A target that answers each message with one, and an initiator whose traffic passes the proxy.
class Conversation {
 public:
  Conversation(const std::string& file, uint8_t revision) {
    transport_ = make_transport({.crc = CrcPolicy::kRequire, .mpa_revision = revision}, random_);
    target_domain_ = transport_->make_protection_domain();
    domain_ = transport_->make_protection_domain();
    listener_ = *transport_->listen("127.0.0.1:0", [this](auto request) { accept(std::move(request)); });
    proxy_ = std::make_unique<RecordingProxy>(listener_->address(), file);
    auto connected = transport_->connect(
        proxy_->address(), domain_,
        {.private_data = Bytes(20, std::byte{0x41}), .limits = {.native_flush = true}, .deadline = soon()});
    EXPECT_TRUE(connected) << connected.error().to_string();
    queue_pair = std::move(connected->queue_pair);
    region = *transport_->register_region(domain_, memory, Access::kLocalWrite);
    exposed = *transport_->register_region(
        target_domain_, target_memory_,
        Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteFlush | Access::kLocalWrite, &flusher_);
    read_only = *transport_->register_region(target_domain_, target_memory_, Access::kRemoteRead);
    std::unique_lock lock(mutex_);
    accepted_.wait(lock, [this] { return target_ != nullptr; });
    EXPECT_TRUE(target_->post_receive(1, exposed->slice(0, 4096)));
    server_ = std::thread([this] { serve(); });
  }
  ~Conversation() { finish(); }
  void finish() {
    if (!server_.joinable()) return;
    queue_pair->fail();
    server_.join();
    target_->fail();
    proxy_->finish();
  }

  Outcome complete(Opcode opcode) {
    queue_pair->submit();
    for (;;) {
      Completion completion;
      while (queue_pair->poll({&completion, 1}) == 0) {
        if (!queue_pair->connected() || !queue_pair->wait(soon())) return Outcome::kConnectionLost;
      }
      if (completion.opcode == opcode) return completion.outcome;
    }
  }

  Bytes memory = Bytes(1 << 20, std::byte{0x5A});
  std::unique_ptr<QueuePair> queue_pair;
  std::unique_ptr<Region> region, exposed, read_only;

 private:
  void accept(std::unique_ptr<ConnectionRequest> request) {
    std::lock_guard lock(mutex_);
    target_ = *request->accept(target_domain_, as_bytes("welcome"), {.native_flush = true});
    accepted_.notify_all();
  }
  void serve() {
    Completion completion;
    while (target_->connected()) {
      target_->wait(soon());
      if (target_->poll({&completion, 1}) == 0 || completion.opcode != Opcode::kReceive) continue;
      LocalSlice answer = exposed->slice(4096, 100);
      if (completion.outcome == Outcome::kSuccess && target_->post_send(2, {&answer, 1})) target_->submit();
    }
  }

  SystemRandom random_;
  NullFlusher flusher_;
  Bytes target_memory_ = Bytes(1 << 20, std::byte{0xA5});
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<ProtectionDomain> target_domain_, domain_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<RecordingProxy> proxy_;
  std::mutex mutex_;
  std::condition_variable accepted_;
  std::unique_ptr<QueuePair> target_;
  std::thread server_;
};

class Tshark : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(MpaRevision, Tshark, ::testing::Values(1, 2));

TEST_P(Tshark, DecodesEveryMessageWithGoodChecksums) {
  if (output_of("tshark --version 2>/dev/null").empty()) GTEST_SKIP() << "tshark is not installed";
  const std::string file = "/tmp/rdma-interop-" + std::to_string(::getpid()) + ".pcap";
  Conversation conversation(file, static_cast<uint8_t>(GetParam()));
  auto& queue_pair = *conversation.queue_pair;
  RemoteSlice remote = conversation.exposed->remote();
  ASSERT_TRUE(queue_pair.post_receive(9, conversation.region->slice(0, 4096)));
  for (uint32_t size : {0u, 1u, 5u, 4096u, 70000u, 1u << 20}) {
    LocalSlice local = conversation.region->slice(0, size);
    ASSERT_TRUE(queue_pair.post_write(1, {&local, 1}, remote.slice(0, size)));
    EXPECT_EQ(conversation.complete(Opcode::kWrite), Outcome::kSuccess);
    ASSERT_TRUE(queue_pair.post_read(2, local, remote.slice(0, size)));
    EXPECT_EQ(conversation.complete(Opcode::kRead), Outcome::kSuccess);
  }
  ASSERT_TRUE(queue_pair.post_flush(3, remote, FlushLevel::kPersistent));
  EXPECT_EQ(conversation.complete(Opcode::kFlush), Outcome::kSuccess);
  LocalSlice message = conversation.region->slice(0, 1000);
  ASSERT_TRUE(queue_pair.post_send(4, {&message, 1}));
  EXPECT_EQ(conversation.complete(Opcode::kReceive), Outcome::kSuccess);
  // And one that is refused, for the Terminate.
  ASSERT_TRUE(queue_pair.post_write(5, {&message, 1}, conversation.read_only->remote()));
  EXPECT_EQ(conversation.complete(Opcode::kWrite), Outcome::kRemoteAccess);
  conversation.finish();

  const std::string tshark = "tshark -r " + file + " 2>/dev/null ";
  const std::string fields = output_of(
      tshark + "-Y iwarp_mpa -T fields -E aggregator=, -e iwarp_rdma.opcode -e iwarp_mpa.crc_check");
  std::map<int, int> seen;
  for (std::istringstream lines(fields); !lines.eof();) {
    std::string line;
    std::getline(lines, line);
    std::istringstream opcodes(line.substr(0, line.find('\t')));
    for (std::string opcode; std::getline(opcodes, opcode, ',');) ++seen[std::stoi(opcode, nullptr, 0)];
  }
  EXPECT_GE(seen[0x0], 6 + 17) << "Write";
  EXPECT_GE(seen[0x1], 6 + 6) << "Read Request, with the ones that prove WRITEs";
  EXPECT_GE(seen[0x2], 6 + 6 + 17) << "Read Response";
  EXPECT_EQ(seen[0x3], 2) << "Send";
  EXPECT_EQ(seen[0x7], 1) << "Terminate";
  // Wireshark 4.0 does not know the Flush draft: it shows the two opcodes by number.
  EXPECT_EQ(seen[0xC], 1) << "Flush Request";
  EXPECT_EQ(seen[0xD], 1) << "Flush Response";

  const std::string text = output_of(tshark + "-V");
  EXPECT_EQ(text.find("Malformed"), std::string::npos);
  EXPECT_EQ(output_of(tshark + "-Y '_ws.malformed || iwarp_mpa.bad_length'"), "");
  size_t good = 0, at = 0;
  while ((at = text.find("(Good CRC32)", at)) != std::string::npos) ++good, ++at;
  int frames = 0;
  for (auto [opcode, count] : seen) frames += count;
  EXPECT_EQ(good, static_cast<size_t>(frames));
  EXPECT_EQ(text.find("Bad CRC"), std::string::npos);
  if (!HasFailure()) ::unlink(file.c_str());
}

}  // namespace
}  // namespace pnfsrdma::rdma::iwarp::testing
