// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/mount_connection.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <utility>

#include "library/mounted/mounted_directory.h"
#include "library/mounted/mounted_file.h"
#include "library/mounted/ring_flight.h"
#include "library/program_memory.h"

namespace pnfsrdma::library::mounted {
namespace {

constexpr size_t kBouncesKeptMax = 8;

}  // namespace

Result<std::unique_ptr<MountConnection>> MountConnection::connect(std::string_view source,
                                                                  std::string_view options) {
  const std::string path(source);
  if (!options.empty())
    return fail(EINVAL,
                fmt::format("options {}: a connection through {} has those of the mount", options, path));
  FileDescriptor root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return std::unexpected(Error::from_errno(path));
  TRY_ASSIGN(const ring::Find found, find_mount(root.get(), path));
  auto opened = Door::open(found.socket.data(), found.token);
  if (!opened) return std::unexpected(opened.error().in(path));
  TRY_ASSIGN(auto ring, Ring::make(**opened));
  return std::unique_ptr<MountConnection>(
      new MountConnection(std::move(root), found, std::move(*opened), std::move(ring)));
}

MountConnection::MountConnection(FileDescriptor root, const ring::Find& found, std::unique_ptr<Door> door,
                                 std::unique_ptr<Ring> ring)
    : Connection(found.transport.data(), found.durability.data()),
      names_(std::move(root)),
      door_(std::move(door)),
      ring_(std::move(ring)) {}

Result<std::unique_ptr<OpenFile>> MountConnection::open(std::string_view path, int flags, mode_t mode) {
  TRY(OpenFile::check_flags(path, flags));
  return MountedFile::open(*this, names_, path, flags, mode);
}

Result<std::unique_ptr<Directory>> MountConnection::open_directory(std::string_view path) {
  return MountedDirectory::open(*this, names_, path);
}

Result<void*> MountConnection::allocate(size_t size, void* wanted) {
  TRY_ASSIGN(auto memory, SharedMemory::make(*door_, size, wanted));
  return memory_.add(std::move(memory), MemoryOwner::kLibrary);
}

Result<> MountConnection::free(void* memory) {
  TRY(memory_.remove(memory, MemoryOwner::kLibrary));
  return {};
}

Result<> MountConnection::register_memory(MutableByteSpan) {
  return fail(ENOTSUP,
              "the mount's process cannot reach memory of this one: put it into a memfd, and register that "
              "(pnfsrdma_register_fd)");
}

Result<void*> MountConnection::register_file(int memfd, size_t size) {
  TRY(check_memfd(memfd, size));
  TRY_ASSIGN(auto memory, SharedMemory::share(*door_, memfd, size, nullptr));
  return memory_.add(std::move(memory), MemoryOwner::kProgram);
}

Result<> MountConnection::unregister(void* memory) {
  TRY(memory_.remove(memory, MemoryOwner::kProgram));
  return {};
}

std::unique_ptr<Flight> MountConnection::make_flight(FlightListener& listener) {
  return std::make_unique<RingFlight>(*this, *ring_, listener);
}

// The mount has one flush for all that it finds in the ring (fuse-client/ring).
void MountConnection::together(Starter& starter) {
  class None final : public Together {};
  None none;
  starter.start(none);
  ring_->ring();
}

Result<std::unique_ptr<SharedMemory>> MountConnection::take_bounce() {
  {
    auto kept = bounces_.lock();
    if (!kept->empty()) {
      auto bounce = std::move(kept->back());
      kept->pop_back();
      return bounce;
    }
  }
  return SharedMemory::make(*door_, kBounceSize);
}

void MountConnection::give_back(std::unique_ptr<SharedMemory> bounce) {
  auto kept = bounces_.lock();
  if (kept->size() < kBouncesKeptMax) kept->push_back(std::move(bounce));
}

}  // namespace pnfsrdma::library::mounted
