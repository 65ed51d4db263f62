// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/owned.h"
#include "shared/base/sync.h"
#include "shared/ring/channel.h"
#include "shared/ring/control.h"
#include "shared/ring/rings.h"

namespace pnfsrdma::library::mounted {

// The mount's side of one connection: a thread that answers requests; what is in the rings is the test's.
class FakeMount {
 public:
  static constexpr uint32_t kDepth = 8;

  explicit FakeMount(uint32_t depth = kDepth)
      : depth_(depth), name_(fmt::format("pnfsrdma-fake-mount.{}", ::getpid())) {
    auto listening = ring::listen_on(name_);
    CHECK(listening);
    listening_ = std::move(*listening);
    memory_ = FileDescriptor(::memfd_create("rings", MFD_CLOEXEC));
    CHECK(::ftruncate(memory_.get(), static_cast<off_t>(ring::rings_size(depth_))) == 0);
    void* const mapped =
        ::mmap(nullptr, ring::rings_size(depth_), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
    CHECK(mapped != MAP_FAILED);
    bytes_ = {static_cast<std::byte*>(mapped), ring::rings_size(depth_)};
    doorbell_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    event_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
    rings.emplace(bytes_, depth_);
  }
  ~FakeMount() {
    die();
    (void)::munmap(bytes_.data(), bytes_.size());
  }

  const std::string& name() const { return name_; }
  // Until die(). `refusal`: what every request is answered with.
  void serve(std::string refusal = "") {
    thread_ = Thread([this, refusal = std::move(refusal)] { answer(refusal); });
  }
  // Hangs up.
  void die() {
    if (!thread_.joinable()) return;
    ending_ = true;
    thread_.join();
    listening_.reset();
  }

  void complete(const ring::Completion& completion) {
    rings->complete(completion);
    const uint64_t one = 1;
    if (rings->publish()) CHECK(::write(event_.get(), &one, sizeof one) == sizeof one);
  }
  // For whoever sleeps until it is rung.
  int doorbell() const { return doorbell_.get(); }
  // Rung since this was asked last.
  bool rung() {
    uint64_t count = 0;
    return ::read(doorbell_.get(), &count, sizeof count) > 0;
  }
  std::atomic<int> newest_memory = -1;  // its descriptor
  std::map<uint32_t, FileDescriptor>& memories() { return memories_; }

  std::optional<ring::MountRings> rings;
  std::atomic<bool> babbles = false;  // answers with what is no answer
  void cut_rings() { CHECK(::ftruncate(memory_.get(), 100) == 0); }

 private:
  void answer(const std::string& refusal) {
    FileDescriptor program;
    while (!ending_) {
      pollfd readable{program ? program.get() : listening_.get(), POLLIN, 0};
      if (::poll(&readable, 1, 5) <= 0) continue;
      if (!program) {
        program = FileDescriptor(::accept(listening_.get(), nullptr, nullptr));
        continue;
      }
      ring::Request request;
      auto message = ring::receive_message(program.get(), std::as_writable_bytes(std::span(&request, 1)));
      if (!message || message->size != sizeof request) return;
      ring::Answer answer;
      std::vector<int> descriptors;
      if (!refusal.empty()) {
        answer.error = ENFILE;
        refusal.copy(answer.text.data(), answer.text.size() - 1);
      } else {
        take(request, *message, answer, descriptors);
      }
      const ByteSpan bytes = std::as_bytes(std::span(&answer, 1));
      (void)ring::send_message(program.get(), babbles ? bytes.first(3) : bytes, descriptors);
    }
  }

  void take(const ring::Request& request, ring::Message& message, ring::Answer& answer,
            std::vector<int>& descriptors) {
    switch (static_cast<ring::RequestKind>(request.kind)) {
      case ring::RequestKind::kHello:
        answer.number = depth_;
        answer.secret.fill(7);
        descriptors = {memory_.get(), doorbell_.get(), event_.get()};
        break;
      case ring::RequestKind::kAddMemory:
        answer.number = ++last_memory_;
        memories_[answer.number] = std::move(message.descriptors.at(0));
        newest_memory = memories_[answer.number].get();
        break;
      case ring::RequestKind::kRemoveMemory:
        memories_.erase(static_cast<uint32_t>(request.value));
        break;
      case ring::RequestKind::kAddChannel:
        break;
    }
  }

  const uint32_t depth_;
  const std::string name_;
  FileDescriptor listening_, memory_, doorbell_, event_;
  MutableByteSpan bytes_;
  uint32_t last_memory_ = 40;
  std::map<uint32_t, FileDescriptor> memories_;  // the thread's while a request is under way
  std::atomic<bool> ending_ = false;
  Thread thread_;
};

}  // namespace pnfsrdma::library::mounted
