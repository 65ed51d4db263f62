// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "fuse-client/ring/attached_file.h"
#include "shared/base/owned.h"
#include "shared/base/random.h"
#include "shared/initiator/brick/buffer.h"
#include "shared/ring/control.h"
#include "shared/ring/rings.h"

namespace pnfsrdma::fuse_client {

// A program that is connected to the mount: its socket, its rings, and what it may name in them, by numbers. Its
// methods are the ring thread's; what others look up (`files`, `memories`, `channels`, `secret`) the RingServer guards.
class Program {
 public:
  static constexpr size_t kFilesMax = 65536;
  static constexpr size_t kMemoriesMax = 1024;
  static constexpr size_t kChannelsMax = 64;  // that nothing is sent to yet

  // `user`: who has connected. Then open_rings(), and connected().
  explicit Program(uid_t user) : user(user) {}

  const uid_t user;

  int socket() const { return socket_.get(); }
  int doorbell() const { return doorbell_.get(); }

  // Makes the rings, once. Errors: EINVAL (the depth), and what memfd_create(2) says.
  Result<> open_rings(uint64_t depth, Random& random);
  void connected(FileDescriptor socket) { socket_ = std::move(socket); }
  // Null before open_rings().
  ring::MountRings* rings() { return rings_ ? &*rings_ : nullptr; }
  // What goes to the program, kHelloDescriptors: the rings' memory, the mount's doorbell, the program's own.
  std::array<int, ring::kHelloDescriptors> descriptors() const;
  // When they have gone: it is mapped, and descriptors are few.
  void close_memory() { memory_.reset(); }
  // Shows what was completed; wakes the program if it sleeps.
  void publish();

  ring::Secret secret{};
  std::map<uint32_t, std::shared_ptr<AttachedFile>> files;
  std::map<uint32_t, std::shared_ptr<initiator::Buffer>> memories;
  std::map<uint32_t, FileDescriptor> channels;
  uint32_t next_number = 1;
  size_t memory_bytes = 0;

  // The ring thread's.
  bool completed_any = false;
  // Its newest operation does not fit into a connection: until it does, nothing more is taken from this program.
  bool waits_for_room = false;

 private:
  FileDescriptor socket_, memory_, doorbell_, bell_;
  using Mapping = std::unique_ptr<initiator::Buffer>;
  Mapping mapping_;
  std::optional<ring::MountRings> rings_;
};

}  // namespace pnfsrdma::fuse_client
