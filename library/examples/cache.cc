// SPDX-License-Identifier: Apache-2.0
// A key-value cache that hosts share, in C++: what one of them sets, the others have in their own memory a moment
// later.
//
//   cache SOURCE PATH set KEY VALUE    sets it, durably, and tells all who follow
//   cache SOURCE PATH get KEY          prints its value, from the remote memory
//   cache SOURCE PATH follow COUNT     keeps a copy of all values; prints the next COUNT that change, as they do
//
// The file is a table of slots; a key has one place, and whoever is set there later puts it out. A slot has room for
// two entries, each with a number that grows and a checksum of all of it: the newer one counts, and the next is
// written over the older one. So a crash in the middle of that, which the checksum shows, leaves what was set before.
// Who sets takes the slot's lock, writes, signals, and gives the lock back: if it crashes on the way, the next one who
// sets there finds the lock taken, takes it over after a while, and signals then.
#include <fcntl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <pnfsrdma.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kSlots = 1024, kSlot = 512, kTextMax = 232;
constexpr auto kCrashed = std::chrono::seconds(2);

struct Entry {
  std::uint64_t number;  // what the lock was when it was set; 0: it never was
  std::uint32_t checksum;
  std::uint16_t key_length, value_length;
  char text[kTextMax];  // the key, then the value

  std::string key() const { return {text, key_length}; }
  std::string value() const { return {text + key_length, value_length}; }
  std::uint32_t sum() const {
    Entry without = *this;
    without.checksum = 0;
    return pnfsrdma::crc32c(&without, sizeof without);
  }
  bool is_whole() const {
    return number > 0 && std::size_t{key_length} + value_length <= kTextMax && checksum == sum();
  }
};

// As it lies in the file: the lock, which bricks change, is the first word; an odd one is taken.
struct Slot {
  std::uint64_t lock, unused;
  Entry entries[2];

  // Which one counts; the other one may be written over.
  std::size_t newer() const {
    if (!entries[0].is_whole() || !entries[1].is_whole()) return entries[0].is_whole() ? 0 : 1;
    return entries[0].number > entries[1].number ? 0 : 1;
  }
};
static_assert(sizeof(Slot) == kSlot);

class Cache {
 public:
  Cache(const std::string& source, const std::string& path, int flags)
      : client_(source), file_(client_, path, flags, 0644), memory_(client_, kSlots * kSlot) {
    if (file_.stat().st_size == 0 && (flags & O_CREAT) != 0) {
      std::memset(memory_.data(), 0, memory_.size());
      file_.write_durable(memory_.data(), memory_.size(), 0);
    }
  }

  void set(const std::string& key, const std::string& value) {
    if (key.size() + value.size() > kTextMax) throw std::length_error("key and value are too long");
    const std::size_t slot = slot_of(key);
    const std::uint64_t lock = take_lock(slot);
    const std::size_t older = 1 - read(slot, 1)->newer();
    Entry& entry = *reinterpret_cast<Entry*>(memory_.data());
    std::memset(&entry, 0, sizeof entry);
    entry.number = lock;
    entry.key_length = static_cast<std::uint16_t>(key.size());
    entry.value_length = static_cast<std::uint16_t>(value.size());
    std::memcpy(entry.text, key.data(), key.size());
    std::memcpy(entry.text + key.size(), value.data(), value.size());
    entry.checksum = entry.sum();
    // Then it is made durable, and those who follow are told: they find it there.
    const off_t at = static_cast<off_t>(slot * kSlot + offsetof(Slot, entries) + older * sizeof entry);
    file_.write(&entry, sizeof entry, at);
    file_.signal(at, sizeof entry, lock);
    std::uint64_t ours = lock;
    if (!file_.compare_and_swap(static_cast<off_t>(slot * kSlot), ours, lock + 1))
      throw std::runtime_error("it took so long that another one has taken the lock over");
  }

  // False: nobody has set it, or another key has put it out.
  bool get(const std::string& key, std::string& value) {
    const Slot& slot = read(slot_of(key), 1)[0];
    const Entry& entry = slot.entries[slot.newer()];
    value = entry.value();
    return entry.is_whole() && entry.key() == key;
  }

  // Calls `changed` with each entry that is new in the copy, until it says that this is enough.
  template <typename Changed>
  void follow(Changed changed) {
    // In this order: what is set before the first look is seen by that, and what is set later is told.
    pnfsrdma::watch watch(file_, 0, kSlots * kSlot);
    std::vector<std::uint64_t> numbers(kSlots);
    const auto look = [&](std::size_t first, std::size_t count, bool tell) {
      const Slot* slots = read(first, count);
      for (std::size_t i = 0; i < count; ++i) {
        const Entry& entry = slots[i].entries[slots[i].newer()];
        if (!entry.is_whole() || entry.number <= numbers[first + i]) continue;
        numbers[first + i] = entry.number;
        copy_[first + i] = entry;
        if (tell && !changed(copy_[first + i])) return false;
      }
      return true;
    };
    look(0, kSlots, false);
    std::printf("following\n");
    std::fflush(stdout);
    pnfsrdma_event event;
    while (watch.next(event)) {
      // Behind a gap anything may have changed.
      const bool all = event.kind != PNFSRDMA_EVENT_SIGNAL;
      const std::size_t first = all ? 0 : event.offset / kSlot;
      const std::size_t last = all ? kSlots - 1 : (event.offset + event.length - 1) / kSlot;
      if (!look(first, last - first + 1, true)) return;
    }
  }

 private:
  static std::size_t slot_of(const std::string& key) {
    return pnfsrdma::crc32c(key.data(), key.size()) % kSlots;
  }

  // As they are there, in registered memory.
  Slot* read(std::size_t first, std::size_t count) {
    if (file_.read(memory_.data(), count * kSlot, static_cast<off_t>(first * kSlot)) != count * kSlot)
      throw std::runtime_error("the file is no cache");
    return reinterpret_cast<Slot*>(memory_.data());
  }

  // What the lock is now: odd, and ours.
  std::uint64_t take_lock(std::size_t slot) {
    const off_t at = static_cast<off_t>(slot * kSlot);
    std::uint64_t lock = file_.fetch_and_add(at, 0), seen = lock;
    for (auto since = std::chrono::steady_clock::now();;) {
      const bool is_taken = lock % 2 == 1;
      const bool crashed = is_taken && std::chrono::steady_clock::now() - since > kCrashed;
      const std::uint64_t ours = is_taken ? lock + 2 : lock + 1;
      if ((!is_taken || crashed) && file_.compare_and_swap(at, lock, ours)) return ours;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      lock = file_.fetch_and_add(at, 0);
      if (lock != seen) since = std::chrono::steady_clock::now();
      seen = lock;
    }
  }

  pnfsrdma::client client_;
  pnfsrdma::file file_;
  pnfsrdma::buffer memory_;
  std::vector<Entry> copy_{kSlots};
};

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 3 ? arguments[3] : "";
  if (!(what == "set" && count == 6) && !((what == "get" || what == "follow") && count == 5)) {
    std::fprintf(stderr, "usage: cache SOURCE PATH set KEY VALUE | get KEY | follow COUNT\n");
    return 2;
  }
  try {
    Cache cache(arguments[1], arguments[2], what == "set" ? O_RDWR | O_CREAT : O_RDONLY);
    if (what == "set") {
      cache.set(arguments[4], arguments[5]);
    } else if (what == "get") {
      std::string value;
      if (!cache.get(arguments[4], value)) return 1;
      std::printf("%s\n", value.c_str());
    } else {
      long left = std::strtol(arguments[4], nullptr, 10);
      cache.follow([&](const Entry& entry) {
        std::printf("%s %s\n", entry.key().c_str(), entry.value().c_str());
        std::fflush(stdout);
        return --left > 0;
      });
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cache: %s\n", error.what());
    return 1;
  }
}
