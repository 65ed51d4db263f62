// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "shared/base/check.h"
#include "shared/base/random.h"
#include "shared/rdma/iwarp/transport.h"
#include "shared/rdma/verbs/transport.h"
#include "tests/bench/percentiles.h"
#include "tests/bench/transport/measurement.h"
#include "tests/bench/transport/memory.h"

namespace pnfsrdma::bench {
namespace {

using namespace rdma;

SteadyTime far() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(60);
}

// An initiator in the calling thread and a target with its thread, connected over loopback.
class Rig {
 public:
  // `echo_size`: the target answers every WRITE of that size with another (verbs only, where WRITEs land
  // without anybody's help).
  Rig(const Settings& settings, bool crc, TransportBench::Operation operation, size_t echo_size = 0)
      : settings_(settings), operation_(operation), echo_size_(echo_size) {
    // A connection made by a thread that is pinned would not spin.
    ::sched_getaffinity(0, sizeof(affinity_), &affinity_);
    const std::string address = settings.verbs ? open_device() : open_iwarp(crc);
    target_domain_ = transport_->make_protection_domain();
    domain_ = transport_->make_protection_domain();
    const bool read = operation == TransportBench::Operation::kRead;
    target_region_ = *transport_->register_region(target_domain_, read ? Memory::source() : destination(),
                                                  Access::kRemoteRead | Access::kRemoteWrite);
    region_ = *transport_->register_region(domain_, read ? destination() : Memory::source(),
                                           Access::kLocalWrite | Access::kRemoteWrite);
    if (echo_size_ > 0) {  // nothing of an earlier run may look as if it had just landed
      region_->memory()[echo_size_ - 1] = target_region_->memory()[echo_size_ - 1] = std::byte{0};
    }
    // The target's thread is made before the initiator pins itself: it must not inherit that. It has to look
    // after its end at once, or the peer is not answered.
    auto listener = *transport_->listen(address, [this](auto request) {
      std::lock_guard lock(mutex_);
      target_ = *request->accept(target_domain_, {}, {});
      server_ = std::thread([this] { serve(); });
      accepted_.notify_all();
    });
    auto connected = transport_->connect(listener->address(), domain_, {.deadline = far()});
    CHECK(connected.has_value());
    queue_pair_ = std::move(connected->queue_pair);
    std::unique_lock lock(mutex_);
    accepted_.wait(lock, [this] { return target_ != nullptr; });
    pin_to(settings.initiator_cpu);
  }
  ~Rig() {
    stop_ = true;
    queue_pair_->fail();
    server_.join();
    ::sched_setaffinity(0, sizeof(affinity_), &affinity_);
  }

  void post(uint64_t number, size_t size) {
    // Both walk through their memory at their own turn.
    size_t local_places = region_->memory().size() / size,
           remote_places = target_region_->memory().size() / size;
    LocalSlice local = region_->slice(number % local_places * size, static_cast<uint32_t>(size));
    RemoteSlice remote = target_region_->remote().slice(number % remote_places * size, size);
    CHECK((operation_ == TransportBench::Operation::kRead
               ? queue_pair_->post_read(number, local, remote)
               : queue_pair_->post_write(number, {&local, 1}, remote))
              .has_value());
  }
  size_t complete(TransportBench::Waiting waiting = TransportBench::Waiting::kAdaptive) {
    Completion completions[32];
    size_t count = queue_pair_->poll(completions);
    while (count == 0) {
      CHECK((waiting == TransportBench::Waiting::kPolling || queue_pair_->wait(far())) &&
            queue_pair_->connected());
      count = queue_pair_->poll(completions);
    }
    for (size_t i = 0; i < count; ++i) CHECK(completions[i].outcome == Outcome::kSuccess);
    return count;
  }
  QueuePair& queue_pair() { return *queue_pair_; }

  // One round of ping-pong: a WRITE whose last byte is `mark`, and the wait for the echo of it.
  void ping(size_t size, std::byte mark) {
    send_mark(*queue_pair_, *region_, target_region_->remote(), size, mark);
    while (!has_landed(*region_, size, mark)) {
    }
  }

 private:
  // What is sent stands in the second half of a region, what comes in the first.
  static void send_mark(QueuePair& queue_pair, const Region& from, const RemoteSlice& to, size_t size,
                        std::byte mark) {
    const LocalSlice source = from.slice(from.memory().size() / 2, static_cast<uint32_t>(size));
    source.address[size - 1] = mark;
    Completion completions[8];
    while (!queue_pair.post_write(0, {&source, 1}, to.slice(0, size))) queue_pair.poll(completions);
    queue_pair.submit();
    queue_pair.poll(completions);
  }
  static bool has_landed(const Region& region, size_t size, std::byte mark) {
    return std::atomic_ref(region.memory()[size - 1]).load(std::memory_order_acquire) == mark;
  }
  void echo() {
    for (auto mark = std::byte{1}; !stop_; mark = static_cast<std::byte>(std::to_integer<int>(mark) + 1)) {
      while (!has_landed(*target_region_, echo_size_, mark)) {
        if (stop_) return;
      }
      send_mark(*target_, *target_region_, region_->remote(), echo_size_, mark);
    }
  }

  Bytes& destination() const { return settings_.verbs ? Memory::small_destination() : Memory::destination(); }
  std::string open_iwarp(bool crc) {
    iwarp::Options options;
    options.crc = crc ? iwarp::CrcPolicy::kRequire : iwarp::CrcPolicy::kDecline;
    options.socket_buffer_bytes = settings_.socket_buffer_bytes;
    transport_ = iwarp::make_transport(options, random_);
    return "127.0.0.1:0";
  }
  std::string open_device() {
    auto devices = verbs::make_transports();
    CHECK(devices.has_value());
    transport_ = std::move(devices->front());
    const std::string host = verbs::local_addresses().at(0);
    return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":0";
  }

  void serve() {
    pin_to(settings_.target_cpu);
    Completion none[1];
    if (echo_size_ > 0) {
      target_->poll(none);  // answers the connection request
      echo();
    }
    while (target_->connected()) {
      target_->wait(far());
      target_->poll(none);
    }
  }

  const Settings settings_;
  const TransportBench::Operation operation_;
  const size_t echo_size_;
  cpu_set_t affinity_;
  std::atomic<bool> stop_ = false;
  SystemRandom random_;
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<ProtectionDomain> target_domain_, domain_;
  std::unique_ptr<Region> target_region_, region_;
  std::mutex mutex_;
  std::condition_variable accepted_;
  std::unique_ptr<QueuePair> target_, queue_pair_;
  std::thread server_;
};

}  // namespace

double TransportBench::bandwidth(const Settings& settings, bool crc, Operation operation, size_t size) {
  Rig rig(settings, crc, operation);
  uint64_t posted = 0, completed = 0;
  auto depth = static_cast<uint64_t>(settings.depth);
  double start = seconds_now(), now = start;
  while (now - start < settings.seconds) {
    while (posted - completed < depth) rig.post(posted++, size);
    rig.queue_pair().submit();
    completed += rig.complete();
    now = seconds_now();
  }
  double result = static_cast<double>(completed * size) / (now - start) / 1e9;
  while (completed < posted) completed += rig.complete();
  return result;
}

double TransportBench::latency(const Settings& settings, bool crc, Operation operation, size_t size,
                               Waiting waiting) {
  Rig rig(settings, crc, operation);
  Percentiles seconds;
  for (double start = seconds_now(), end = start + settings.seconds; start < end;) {
    rig.post(0, size);
    rig.queue_pair().submit();
    CHECK(rig.complete(waiting) == 1);
    const double now = seconds_now();
    seconds.add(now - start);
    start = now;
  }
  return seconds.at(50) * 1e6;
}

double TransportBench::ping_pong(const Settings& settings, size_t size) {
  Rig rig(settings, false, Operation::kWrite, size);
  Percentiles seconds;
  for (double start = seconds_now(), end = start + settings.seconds; start < end;) {
    rig.ping(size, static_cast<std::byte>(seconds.count() + 1));
    const double now = seconds_now();
    seconds.add(now - start);
    start = now;
  }
  return seconds.at(50) * 1e6 / 2;
}

}  // namespace pnfsrdma::bench
