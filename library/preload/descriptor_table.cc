// SPDX-License-Identifier: Apache-2.0
#include "library/preload/descriptor_table.h"

namespace pnfsrdma::preload {

DescriptorTable::Entry DescriptorTable::find(int descriptor) const {
  if (static_cast<unsigned>(descriptor) >= kDescriptors) return {};
  const Slot& slot = slots_[static_cast<size_t>(descriptor)];
  const uint32_t version = slot.version.load(std::memory_order_acquire);
  Entry entry{
      .state = static_cast<State>(slot.state.load(std::memory_order_relaxed)),
      .is_shared = false,
      .attached = {slot.mount.load(std::memory_order_relaxed), slot.file.load(std::memory_order_relaxed),
                   slot.device.load(std::memory_order_relaxed), slot.inode.load(std::memory_order_relaxed)}};
  const uint64_t birth = slot.birth.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  // Being written, perhaps by what a signal handler has interrupted: nobody waits for that.
  if (version % 2 != 0 || slot.version.load(std::memory_order_relaxed) != version) return {};
  if (birth < forgotten_before_.load(std::memory_order_relaxed)) return {};
  entry.is_shared = birth < shared_before_.load(std::memory_order_relaxed);
  return entry;
}

void DescriptorTable::opened(int descriptor) {
  if (static_cast<unsigned>(descriptor) >= kDescriptors) return;
  store(descriptor, State::kOpened, {}, next_birth());
  read_up_to(descriptor, 0);
}

void DescriptorTable::attached(int descriptor, const Attached& attached) {
  if (!knows(descriptor)) return;
  store(descriptor, State::kAttached, attached, slots_[static_cast<size_t>(descriptor)].birth);
}

void DescriptorTable::refused(int descriptor) {
  if (!knows(descriptor)) return;
  store(descriptor, State::kRefused, {}, slots_[static_cast<size_t>(descriptor)].birth);
}

void DescriptorTable::forget(int descriptor) {
  if (knows(descriptor)) store(descriptor, State::kUnknown, {}, 0);
}

void DescriptorTable::copied(int from, int to) {
  if (static_cast<unsigned>(to) >= kDescriptors || from == to) return;
  const Entry entry = find(from);
  if (entry.state == State::kUnknown) return forget(to);
  store(to, entry.state, entry.attached, slots_[static_cast<size_t>(from)].birth);
  read_up_to(to, next_read(from));
}

// Two at once: the news of one is lost, which costs time and nothing else.
void DescriptorTable::store(int descriptor, State state, const Attached& attached, uint64_t birth) {
  Slot& slot = slots_[static_cast<size_t>(descriptor)];
  uint32_t version = slot.version.load(std::memory_order_relaxed);
  if (version % 2 != 0 || !slot.version.compare_exchange_strong(version, version + 1)) return;
  std::atomic_thread_fence(std::memory_order_release);
  slot.state.store(static_cast<uint32_t>(state), std::memory_order_relaxed);
  slot.birth.store(birth, std::memory_order_relaxed);
  slot.mount.store(attached.mount, std::memory_order_relaxed);
  slot.file.store(attached.file, std::memory_order_relaxed);
  slot.device.store(attached.device, std::memory_order_relaxed);
  slot.inode.store(attached.inode, std::memory_order_relaxed);
  slot.version.store(version + 2, std::memory_order_release);
}

}  // namespace pnfsrdma::preload
