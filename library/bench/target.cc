// SPDX-License-Identifier: Apache-2.0
#include "library/bench/target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace pnfsrdma::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kLengthMax = size_t{1} << 20;
constexpr unsigned kDepthMax = 64;
constexpr size_t kPage = 4096;

[[noreturn]] void give_up(std::string_view what, std::string_view why) {
  throw std::runtime_error(fmt::format("{}: {}", what, why));
}

int64_t nanoseconds_since(SteadyClock::time_point began) {
  return std::chrono::nanoseconds(SteadyClock::now() - began).count();
}

// Of one thread's, so that `next` and `done` need no lock.
class LibraryTarget final : public Target {
 public:
  LibraryTarget(pnfsrdma_client* client, std::string name, uint64_t size)
      : client_(client), name_(std::move(name)), path_(fmt::format(".pnfsrdma-bench.{}", ::getpid())) {
    check(pnfsrdma_open(client_, path_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600, &file_), "open");
    memory_ = static_cast<char*>(pnfsrdma_alloc(client_, kDepthMax * kLengthMax / 4));
    if (memory_ == nullptr) give_up("memory", pnfsrdma_last_error());
    for (uint64_t at = 0; at < size; at += kLengthMax)
      check(pnfsrdma_pwrite(file_, memory_, kLengthMax, static_cast<off_t>(at)), "write");
    check(pnfsrdma_fsync(file_), "fsync");
    check(pnfsrdma_queue_create(client_, kDepthMax, &queue_), "queue");
  }
  ~LibraryTarget() override {
    pnfsrdma_queue_destroy(queue_);
    (void)pnfsrdma_close(file_);
    (void)pnfsrdma_unlink(client_, path_.c_str());
    pnfsrdma_free(client_, memory_);
  }

  std::string name() const override { return name_; }

  void run(Action action, size_t length, unsigned depth, const std::function<int64_t()>& next,
           const std::function<void(int64_t)>& done) override {
    if (depth > 1) return run_queue(action, length, depth, next, done);
    for (int64_t at = next(); at >= 0; at = next()) {
      const auto began = SteadyClock::now();
      check(one(action, length, at), "transfer");
      done(nanoseconds_since(began));
    }
  }

 private:
  static void check(int64_t result, std::string_view what) {
    if (result < 0) give_up(what, pnfsrdma_last_error());
  }

  ssize_t one(Action action, size_t length, int64_t at) {
    switch (action) {
      case Action::kRead:
        return pnfsrdma_pread(file_, memory_, length, at);
      case Action::kWrite:
        return pnfsrdma_pwrite(file_, memory_, length, at);
      case Action::kChain:
        return chain(at);
      default:
        return pnfsrdma_pwrite_durable(file_, memory_, length, at);
    }
  }

  // Durable writes that are submitted together have one flush behind all of them.
  ssize_t chain(int64_t at) {
    pnfsrdma_operation operations[kChainRanges]{};
    for (size_t i = 0; i < kChainRanges; ++i) {
      operations[i].file = file_;
      operations[i].opcode = PNFSRDMA_WRITE;
      operations[i].flags = PNFSRDMA_DURABLE;
      operations[i].buffer = memory_ + i * kPage;
      operations[i].length = kChainBytes;
      operations[i].offset = static_cast<uint64_t>(at) + i * kPage;
    }
    check(pnfsrdma_submit(queue_, operations, kChainRanges), "submit");
    pnfsrdma_completion completions[kChainRanges];
    for (unsigned running = kChainRanges; running > 0;) {
      const int count = pnfsrdma_reap(queue_, completions, running, -1);
      if (count == -EINTR) continue;
      check(count, "reap");
      for (int i = 0; i < count; ++i) {
        const int64_t result = completions[i].result;
        if (result < 0) give_up("transfer", std::strerror(static_cast<int>(-result)));
      }
      running -= static_cast<unsigned>(count);
    }
    return 0;
  }

  void run_queue(Action action, size_t length, unsigned depth, const std::function<int64_t()>& next,
                 const std::function<void(int64_t)>& done) {
    std::vector<SteadyClock::time_point> began(depth);
    unsigned running = 0;
    // What has completed is submitted again with one doorbell.
    std::vector<pnfsrdma_operation> operations;
    const auto prepare = [&](uint64_t slot) {
      const int64_t at = next();
      if (at < 0) return;
      pnfsrdma_operation operation{};
      operation.file = file_;
      operation.opcode = action == Action::kRead ? PNFSRDMA_READ : PNFSRDMA_WRITE;
      operation.flags = action == Action::kDurableWrite ? PNFSRDMA_DURABLE : 0;
      operation.buffer = memory_ + slot * length;
      operation.length = length;
      operation.offset = static_cast<uint64_t>(at);
      operation.user_data = slot;
      operations.push_back(operation);
      began[slot] = SteadyClock::now();
    };
    const auto submit = [&] {
      if (operations.empty()) return;
      check(pnfsrdma_submit(queue_, operations.data(), static_cast<unsigned>(operations.size())), "submit");
      running += static_cast<unsigned>(operations.size());
      operations.clear();
    };
    for (unsigned slot = 0; slot < depth; ++slot) prepare(slot);
    submit();
    std::vector<pnfsrdma_completion> completions(depth);
    while (running > 0) {
      const int count = pnfsrdma_reap(queue_, completions.data(), depth, -1);
      if (count == -EINTR) continue;
      check(count, "reap");
      for (int i = 0; i < count; ++i) {
        const pnfsrdma_completion& completion = completions[static_cast<size_t>(i)];
        --running;
        if (completion.result < 0) give_up("transfer", std::strerror(static_cast<int>(-completion.result)));
        done(nanoseconds_since(began[completion.user_data]));
        prepare(completion.user_data);
      }
      submit();
    }
  }

  pnfsrdma_client* const client_;
  const std::string name_;
  const std::string path_;
  pnfsrdma_file* file_ = nullptr;
  pnfsrdma_queue* queue_ = nullptr;
  char* memory_ = nullptr;
};

// O_DIRECT; more than one in flight is as many threads, since direct I/O of FUSE is synchronous.
class MountTarget final : public Target {
 public:
  MountTarget(const std::string& folder, uint64_t size)
      : path_(fmt::format("{}/.pnfsrdma-bench.{}.mount", folder, ::getpid())),
        file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600)) {
    if (file_ < 0) give_up(path_, std::strerror(errno));
    const Aligned memory;
    for (uint64_t at = 0; at < size; at += kLengthMax)
      check(::pwrite(file_, memory.data(), kLengthMax, static_cast<off_t>(at)), "write");
    check(::fsync(file_), "fsync");
  }
  ~MountTarget() override {
    (void)::close(file_);
    (void)::unlink(path_.c_str());
  }

  std::string name() const override { return "mount"; }

  void run(Action action, size_t length, unsigned depth, const std::function<int64_t()>& next,
           const std::function<void(int64_t)>& done) override {
    std::mutex mutex;
    std::string failure;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < depth; ++i) {
      threads.emplace_back([&] {
        const Aligned memory;
        std::unique_lock lock(mutex);
        for (int64_t at = next(); at >= 0 && failure.empty(); at = next()) {
          lock.unlock();
          const auto began = SteadyClock::now();
          const bool well = one(action, memory.data(), length, at);
          const int number = errno;
          const int64_t taken = nanoseconds_since(began);
          lock.lock();
          if (!well) failure = std::strerror(number);
          done(taken);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (!failure.empty()) give_up(path_, failure);
  }

 private:
  class Aligned {
   public:
    Aligned() : memory_(std::aligned_alloc(4096, kLengthMax)) { std::memset(memory_, 0, kLengthMax); }
    ~Aligned() { std::free(memory_); }
    Aligned(const Aligned&) = delete;
    Aligned& operator=(const Aligned&) = delete;
    void* data() const { return memory_; }

   private:
    void* memory_;
  };

  static void check(int64_t result, std::string_view what) {
    if (result < 0) give_up(what, std::strerror(errno));
  }

  bool one(Action action, void* memory, size_t length, int64_t at) const {
    if (action == Action::kRead) return ::pread(file_, memory, length, at) >= 0;
    if (action == Action::kChain) return chain(static_cast<const char*>(memory), at);
    if (::pwrite(file_, memory, length, at) < 0) return false;
    return action == Action::kWrite || ::fdatasync(file_) == 0;
  }

  bool chain(const char* memory, int64_t at) const {
    for (size_t i = 0; i < kChainRanges; ++i) {
      if (::pwrite(file_, memory + i * kPage, kChainBytes, at + static_cast<int64_t>(i * kPage)) < 0)
        return false;
    }
    return ::fdatasync(file_) == 0;
  }

  const std::string path_;
  const int file_;
};

}  // namespace

std::unique_ptr<Target> make_library_target(pnfsrdma_client* client, std::string name, uint64_t size) {
  return std::make_unique<LibraryTarget>(client, std::move(name), size);
}

std::unique_ptr<Target> make_mount_target(const std::string& folder, uint64_t size) {
  return std::make_unique<MountTarget>(folder, size);
}

}  // namespace pnfsrdma::bench
