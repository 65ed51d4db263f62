// SPDX-License-Identifier: Apache-2.0
// A whole iWARP queue pair fed with arbitrary bytes: with work outstanding, receives posted and memory
// exposed.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "shared/base/check.h"
#include "shared/base/crc32c.h"
#include "shared/base/log.h"
#include "shared/base/random.h"
#include "shared/rdma/iwarp/queue_pair.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::rdma::iwarp {
namespace {

constexpr size_t kGuard = 4096;
constexpr size_t kExposed = 3 * 65536;

// The input is what the peer sends; what we send is counted and forgotten.
class InputStream final : public Stream {
 public:
  InputStream(Bytes input, size_t step) : input_(std::move(input)), step_(step) {}
  ssize_t receive(std::span<const iovec> into) override {
    size_t done = 0;
    for (const iovec& piece : into) {
      size_t count = std::min({piece.iov_len, input_.size() - at_, step_ - done});
      if (count > 0) std::memcpy(piece.iov_base, input_.data() + at_, count);
      at_ += count;
      done += count;
    }
    return static_cast<ssize_t>(done);
  }
  ssize_t receive_blocking(MutableByteSpan into, SteadyTime) override {
    iovec piece{into.data(), into.size()};
    return receive({&piece, 1});
  }
  ssize_t send(std::span<const iovec> from) override {
    size_t done = 0;
    for (const iovec& piece : from) done += piece.iov_len;
    return static_cast<ssize_t>(done);
  }
  bool wait_ready(bool, bool, SteadyTime) override { return true; }
  void wake() override {}
  void finish_sending() override {}
  void shut_down() override { at_ = input_.size(); }
  int fd() const override { return -1; }
  void watch_writable(bool) override {}
  std::string peer() const override { return "fuzzer"; }

 private:
  const Bytes input_;
  const size_t step_;
  size_t at_ = 0;
};

class NullFlusher final : public Flusher {
 public:
  Result<> flush(MutableByteSpan memory) override {
    CHECK(memory.size() <= kExposed);
    return {};
  }
};

// Memory at the same address in every run, so that the corpus can name it, with guards that must not change.
std::byte* fixed_memory() {
  static void* const memory =
      ::mmap(reinterpret_cast<void*>(uintptr_t{0x200000000000}), kExposed + 2 * kGuard,
             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  CHECK(memory != MAP_FAILED);
  return static_cast<std::byte*>(memory);
}

// Gives every frame of the input the CRC it needs to get past the first check.
Bytes seal(ByteSpan input) {
  Bytes sealed;
  while (input.size() >= kLengthSize) {
    size_t ulpdu = std::min<size_t>(load_big_endian<uint16_t>(input.data()), input.size() - kLengthSize);
    Bytes frame(input.begin(), input.begin() + static_cast<ptrdiff_t>(kLengthSize + ulpdu));
    store_big_endian(frame.data(), static_cast<uint16_t>(ulpdu));
    frame.resize(frame.size() + padding_of(ulpdu));
    uint32_t crc = crc32c(frame);
    for (size_t i = 0; i < kCrcSize; ++i) frame.push_back(static_cast<std::byte>(crc >> (8 * i)));
    sealed.insert(sealed.end(), frame.begin(), frame.end());
    input = input.subspan(kLengthSize + ulpdu);
  }
  return sealed;
}

void run(ByteSpan input) {
  auto flags = std::to_integer<uint8_t>(input[0]);
  input = input.subspan(1);
  const bool crc = (flags & 1) != 0;
  const size_t step = (flags & 4) != 0 ? 7 : (flags & 8) != 0 ? 1000 : SIZE_MAX;
  std::byte* const memory = fixed_memory();
  std::fill_n(memory, kExposed + 2 * kGuard, std::byte{0x33});

  SeededRandom random(1);
  NullFlusher flusher;
  auto domain = std::make_shared<SoftwareDomain>();
  auto region = *make_software_region(
      domain, {memory + kGuard, kExposed},
      Access::kLocalWrite | Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteFlush, &flusher,
      random);
  auto read_only =
      *make_software_region(domain, {memory + kGuard, 4096}, Access::kRemoteRead, nullptr, random);
  Agreement agreement{
      .crc = crc,
      .first_to_speak = (flags & 2) != 0,
      .inbound_depth = 4,
      .limits = {
          .send_depth = 8, .receive_depth = 4, .read_depth = 4, .native_flush = true, .atomic_write = true}};
  Bytes bytes = crc ? seal(input) : Bytes(input.begin(), input.end());
  IwarpQueuePair queue_pair(std::make_unique<InputStream>(std::move(bytes), step), domain, agreement);
  size_t posted = 0;
  for (uint32_t i = 0; i < 3; ++i)
    posted += queue_pair.post_receive(i, region->slice(1024 * i, 1024)).has_value();
  LocalSlice local = region->slice(8192, 20000);
  posted += queue_pair.post_read(10, local, {1, 20000, 1}).has_value();
  posted += queue_pair.post_write(11, {&local, 1}, {1, 20000, 1}).has_value();
  posted += queue_pair.post_flush(12, {1, 100, 1}, FlushLevel::kPersistent).has_value();
  posted += queue_pair.post_send(13, {&local, 1}).has_value();
  posted += queue_pair.post_atomic_write(14, 1, {8, kAtomicWriteSize, 1}).has_value();
  queue_pair.submit();

  size_t completed = 0;
  Completion completions[4];
  for (int i = 0; i < 100000 && queue_pair.connected(); ++i) {
    queue_pair.wait(SteadyTime::max());
    completed += queue_pair.poll(completions);
  }
  CHECK(!queue_pair.connected());
  while (size_t count = queue_pair.poll(completions)) completed += count;
  // Every work request completes exactly once, and not a byte outside the regions changes.
  CHECK(completed == posted);
  auto untouched = [](std::byte byte) { return byte == std::byte{0x33}; };
  CHECK(std::all_of(memory, memory + kGuard, untouched));
  CHECK(std::all_of(memory + kGuard + kExposed, memory + kExposed + 2 * kGuard, untouched));
}

}  // namespace
}  // namespace pnfsrdma::rdma::iwarp

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = (pnfsrdma::set_log_level(pnfsrdma::LogLevel::kOff), true);
  static_cast<void>(quiet);
  if (size > 0) pnfsrdma::rdma::iwarp::run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
