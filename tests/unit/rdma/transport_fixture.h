// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "shared/base/guarded.h"
#include "shared/base/owned.h"
#include "shared/base/random.h"
#include "shared/rdma/iwarp/transport.h"
#include "shared/rdma/verbs/transport.h"
#include "tests/doubles/rdma_memory/transport.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::rdma::testing {

using namespace std::chrono_literals;

inline SteadyTime soon(Milliseconds in = Milliseconds(10000)) {
  return std::chrono::steady_clock::now() + in;
}

// Comparisons by memcmp(3): whole megabytes, also under the sanitizers.
inline bool same(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}
inline bool filled_with(ByteSpan bytes, std::byte value) {
  return bytes.empty() || (bytes[0] == value && same(bytes.first(bytes.size() - 1), bytes.subspan(1)));
}

// Counts flushes; fails or takes its time when told.
class RecordingFlusher final : public Flusher {
 public:
  Result<> flush(MutableByteSpan memory) override {
    std::this_thread::sleep_for(delay.load());
    if (failing) return pnfsrdma::fail(EIO, "the medium is broken");
    bytes += memory.size();
    ++calls;
    return {};
  }
  std::atomic<bool> failing = false;
  std::atomic<Milliseconds> delay{Milliseconds(0)};
  std::atomic<uint64_t> bytes = 0, calls = 0;
};

// The target of a connection: a queue pair and the thread that serves it, as a brick has.
class ServedConnection {
 public:
  ServedConnection(std::shared_ptr<ProtectionDomain> domain, std::unique_ptr<QueuePair> queue_pair)
      : domain(std::move(domain)), queue_pair(std::move(queue_pair)), thread_([this] { serve(); }) {}
  ~ServedConnection() {
    queue_pair->fail();
    thread_.join();
  }

  // The next completion the serving thread got; fails the test when none comes.
  Completion next_completion() {
    auto completions = completions_.lock();
    bool came = completions.wait_until(arrived_, soon(), [](const auto& list) { return !list.empty(); });
    if (!came) {
      ADD_FAILURE() << "no completion at the target";
      return {};
    }
    Completion first = completions->front();
    completions->erase(completions->begin());
    return first;
  }
  bool ended_before(SteadyTime deadline) {
    while (!ended_) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }

  const std::shared_ptr<ProtectionDomain> domain;
  const std::unique_ptr<QueuePair> queue_pair;

 private:
  void serve() {
    Completion batch[8];
    bool connected = true;
    while (connected) {
      queue_pair->wait(soon(1000ms));
      connected = queue_pair->connected();
      while (size_t count = queue_pair->poll(batch)) {
        auto completions = completions_.lock();
        completions->insert(completions->end(), batch, batch + count);
        arrived_.notify_all();
      }
    }
    ended_ = true;
  }

  Guarded<std::vector<Completion>> completions_;
  std::condition_variable arrived_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

// The initiator's side: its domain, some memory registered for local use, its connection.
struct Client {
  std::shared_ptr<ProtectionDomain> domain;
  Bytes memory;
  std::unique_ptr<Region> region;
  std::unique_ptr<QueuePair> queue_pair;
  Bytes reply;
  ServedConnection* served = nullptr;  // the other end

  LocalSlice slice(size_t offset, uint32_t count) const { return region->slice(offset, count); }
  // Waits for one completion.
  Completion next_completion(Milliseconds longest = Milliseconds(10000)) {
    Completion completion;
    SteadyTime deadline = soon(longest);
    for (;;) {
      if (queue_pair->poll({&completion, 1}) == 1) return completion;
      if (!queue_pair->wait(deadline)) {
        ADD_FAILURE() << "no completion at the initiator";
        return {};
      }
      if (!queue_pair->connected() && queue_pair->poll({&completion, 1}) == 0) {
        ADD_FAILURE() << "the connection ended without a completion";
        return {};
      } else if (!queue_pair->connected()) {
        return completion;
      }
    }
  }
  Outcome write(size_t offset, uint32_t count, RemoteSlice target) {
    LocalSlice source = slice(offset, count);
    EXPECT_TRUE(queue_pair->post_write(1, {&source, 1}, target));
    queue_pair->submit();
    return next_completion().outcome;
  }
  Outcome read(size_t offset, uint32_t count, RemoteSlice source) {
    EXPECT_TRUE(queue_pair->post_read(2, slice(offset, count), source));
    queue_pair->submit();
    return next_completion().outcome;
  }
};

// Memory a region with the right to flush can be made of: any for the software transports; persistent memory
// for a device that flushes by itself, which is the device DAX named by PNFSRDMA_TEST_DAX.
class FlushableMemory {
 public:
  FlushableMemory(size_t size, bool persistent) : size_(size) {
    if (!persistent) {
      heap_.resize(size);
      return;
    }
    const char* path = std::getenv("PNFSRDMA_TEST_DAX");
    const FileDescriptor file(path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC));
    void* at = ::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (at != MAP_FAILED) mapped_ = at;
  }
  ~FlushableMemory() {
    if (mapped_ != nullptr) ::munmap(mapped_, kMapped);
  }
  FlushableMemory(const FlushableMemory&) = delete;
  FlushableMemory& operator=(const FlushableMemory&) = delete;

  bool there() const { return mapped_ != nullptr || !heap_.empty(); }
  MutableByteSpan bytes() {
    return mapped_ != nullptr ? MutableByteSpan(static_cast<std::byte*>(mapped_), size_)
                              : MutableByteSpan(heap_);
  }

 private:
  static constexpr size_t kMapped = 2 << 20;  // device DAX maps in whole pages of its own size
  const size_t size_;
  Bytes heap_;
  void* mapped_ = nullptr;
};

enum class Kind { kMemory, kIwarp, kIwarpCrc, kVerbs };
inline std::string name_of(Kind kind) {
  switch (kind) {
    case Kind::kMemory:
      return "Memory";
    case Kind::kIwarp:
      return "Iwarp";
    case Kind::kIwarpCrc:
      return "IwarpWithCrc";
    case Kind::kVerbs:
      return "Verbs";
  }
  return "Unknown";
}
// What the test runner shows behind a test's name.
inline void PrintTo(Kind kind, std::ostream* out) {
  *out << name_of(kind);
}

// A transport of each kind with a listener that accepts everybody into a domain of their own. Verbs runs on
// the first RDMA device that has an address, and is skipped where there is none.
class TransportTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    network = std::make_shared<memory::Network>();
    if (GetParam() == Kind::kVerbs) {
      find_device();
      if (IsSkipped()) return;
    } else {
      transport = make_transport();
    }
    auto made = transport->listen(here("0"), [this](auto request) { on_request(std::move(request)); });
    ASSERT_TRUE(made) << made.error().to_string();
    listener = *std::move(made);
  }
  void TearDown() override {
    listener.reset();
    served.lock()->clear();
  }

  // "host:port" on this host, as this transport reaches it.
  std::string here(const std::string& port) const { return host + ":" + port; }
  bool software() const { return GetParam() != Kind::kVerbs; }

  void find_device() {
    auto transports = verbs::make_transports();
    if (!transports) GTEST_SKIP() << transports.error().to_string();
    for (const std::string& address : verbs::local_addresses()) {
      host = address.find(':') == std::string::npos ? address : "[" + address + "]";
      for (auto& candidate : *transports) {
        if (!candidate->listen(here("0"), [](auto request) { request.reset(); })) continue;
        transport = std::move(candidate);
        return;
      }
    }
    GTEST_SKIP() << "no RDMA device has an address";
  }

  std::unique_ptr<Transport> make_transport() {
    if (GetParam() == Kind::kMemory) return memory::make_transport(network, random);
    iwarp::Options options;
    options.crc = GetParam() == Kind::kIwarpCrc ? iwarp::CrcPolicy::kRequire : iwarp::CrcPolicy::kAuto;
    return iwarp::make_transport(options, random);
  }

  void on_request(std::unique_ptr<ConnectionRequest> request) {
    auto domain = transport->make_protection_domain();
    Bytes said(request->private_data().begin(), request->private_data().end());
    auto queue_pair = request->accept(domain, said, accept_limits);
    if (!queue_pair) return;
    auto connections = served.lock();
    connections->push_back(std::make_unique<ServedConnection>(domain, *std::move(queue_pair)));
    accepted.notify_all();
  }

  std::unique_ptr<Client> connect(size_t memory_size = 2 << 20,
                                  QueuePairLimits limits = {.native_flush = true, .atomic_write = true}) {
    auto client = std::make_unique<Client>();
    client->domain = transport->make_protection_domain();
    client->memory.resize(memory_size);
    client->region = *transport->register_region(client->domain, client->memory, Access::kLocalWrite);
    size_t before = served.lock()->size();
    auto connected = transport->connect(
        listener->address(), client->domain,
        {.private_data = {std::byte{7}, std::byte{8}}, .limits = limits, .deadline = soon()});
    if (!connected) {
      ADD_FAILURE() << connected.error().to_string();
      return nullptr;
    }
    client->queue_pair = std::move(connected->queue_pair);
    client->reply = std::move(connected->private_data);
    auto connections = served.lock();
    connections.wait_until(accepted, soon(), [&](auto& list) { return list.size() > before; });
    client->served = connections->at(before).get();
    return client;
  }

  // A connection with nothing registered, for threads of their own.
  std::unique_ptr<QueuePair> connect_quietly() {
    auto connected =
        transport->connect(listener->address(), transport->make_protection_domain(), {.deadline = soon()});
    return connected ? std::move(connected->queue_pair) : nullptr;
  }

  // Memory at the target, exposed to one client.
  std::unique_ptr<Region> expose(const Client& client, MutableByteSpan memory,
                                 Access access = Access::kRemoteRead | Access::kRemoteWrite,
                                 Flusher* flusher = nullptr) {
    auto region = transport->register_region(client.served->domain, memory, access, flusher);
    if (!region) {
      ADD_FAILURE() << region.error().to_string();
      return nullptr;
    }
    return *std::move(region);
  }

  static Bytes pattern(size_t size, uint64_t seed) {
    // A random kilobyte, then copies of it that each carry their number.
    Bytes bytes(size), block(1024);
    SeededRandom(seed).fill(block);
    for (size_t at = 0; at < size; at += block.size()) {
      store_big_endian(block.data(), static_cast<uint64_t>(at) ^ seed);
      std::memcpy(bytes.data() + at, block.data(), std::min(block.size(), size - at));
    }
    return bytes;
  }

  SystemRandom random;
  std::string host = "127.0.0.1";
  std::shared_ptr<memory::Network> network;
  std::unique_ptr<Transport> transport;
  QueuePairLimits accept_limits{.native_flush = true, .atomic_write = true};
  Guarded<std::vector<std::unique_ptr<ServedConnection>>> served;
  std::condition_variable accepted;
  std::unique_ptr<Listener> listener;
};

#define PNFSRDMA_EVERY_TRANSPORT(Suite)                                                                   \
  INSTANTIATE_TEST_SUITE_P(, Suite,                                                                       \
                           ::testing::Values(Kind::kMemory, Kind::kIwarp, Kind::kIwarpCrc, Kind::kVerbs), \
                           [](const auto& info) { return name_of(info.param); })

}  // namespace pnfsrdma::rdma::testing
