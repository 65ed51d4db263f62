// SPDX-License-Identifier: Apache-2.0
#ifndef PNFSRDMA_HPP
#define PNFSRDMA_HPP

// pnfsrdma.h for C++17: objects that end what they began, and std::system_error (generic_category, with the library's
// words) instead of negative errnos. Everything else is as pnfsrdma.h says. Objects are moved, not copied; a client
// outlives its files, directories, buffers and queues, a file its maps and watches, blocks their mappings.

#include <pnfsrdma.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace pnfsrdma {

namespace detail {

// The result, or an exception.
template <typename Number>
Number check(Number result, const char* what) {
  if (result < 0) {
    throw std::system_error(static_cast<int>(-result), std::generic_category(),
                            std::string(what) + ": " + pnfsrdma_last_error());
  }
  return result;
}

// Owns one object of the C interface.
template <typename Object>
class owner {
 public:
  owner() = default;
  owner(owner&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  owner& operator=(owner&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  explicit operator bool() const { return object_ != nullptr; }
  Object* get() const { return object_; }

 protected:
  ~owner() = default;
  Object* object_ = nullptr;
};

}  // namespace detail

class client : public detail::owner<pnfsrdma_client> {
 public:
  client(const std::string& source, const std::string& options = {}) {
    detail::check(pnfsrdma_connect(source.c_str(), options.c_str(), &object_), "connect");
  }
  client(client&&) noexcept = default;
  client& operator=(client&&) noexcept = default;
  ~client() {
    if (object_ != nullptr) (void)pnfsrdma_disconnect(object_);
  }

  std::string transport() const { return pnfsrdma_transport(object_); }
  std::string durability() const { return pnfsrdma_durability(object_); }
  struct stat stat(const std::string& path) const {
    struct stat status;
    detail::check(pnfsrdma_stat(object_, path.c_str(), &status), "stat");
    return status;
  }
  void unlink(const std::string& path) { detail::check(pnfsrdma_unlink(object_, path.c_str()), "unlink"); }
  void rename(const std::string& from, const std::string& to) {
    detail::check(pnfsrdma_rename(object_, from.c_str(), to.c_str()), "rename");
  }
  // PNFSRDMA_RENAME_NOREPLACE, PNFSRDMA_RENAME_EXCHANGE.
  void rename(const std::string& from, const std::string& to, unsigned flags) {
    detail::check(pnfsrdma_rename2(object_, from.c_str(), to.c_str(), flags), "rename");
  }
  void mkdir(const std::string& path, mode_t mode = 0777) {
    detail::check(pnfsrdma_mkdir(object_, path.c_str(), mode), "mkdir");
  }
  void rmdir(const std::string& path) { detail::check(pnfsrdma_rmdir(object_, path.c_str()), "rmdir"); }
};

// What is in a directory, without "." and "..".
class directory : public detail::owner<pnfsrdma_directory> {
 public:
  directory(client& of, const std::string& path) {
    detail::check(pnfsrdma_opendir(of.get(), path.c_str(), &object_), path.c_str());
  }
  directory(directory&&) noexcept = default;
  directory& operator=(directory&&) noexcept = default;
  ~directory() {
    if (object_ != nullptr) (void)pnfsrdma_closedir(object_);
  }

  // False: that was all.
  bool read(struct dirent& entry) { return detail::check(pnfsrdma_readdir(object_, &entry), "readdir") == 1; }
};

// Registered memory.
class buffer {
 public:
  buffer(client& of, std::size_t size)
      : client_(of.get()), data_(static_cast<std::byte*>(pnfsrdma_alloc(of.get(), size))), size_(size) {
    if (data_ == nullptr) throw std::system_error(ENOMEM, std::generic_category(), pnfsrdma_last_error());
  }
  buffer(buffer&& other) noexcept
      : client_(other.client_), data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  buffer& operator=(buffer&&) = delete;
  ~buffer() { pnfsrdma_free(client_, data_); }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  pnfsrdma_client* client_;
  std::byte* data_;
  std::size_t size_;
};

// Memory of the program's own, registered as long as this lives: what is mapped already (with a connection to a server), or
// the beginning of a memfd, which is mapped here.
class registration {
 public:
  registration(client& of, void* address, std::size_t length)
      : client_(of.get()), data_(static_cast<std::byte*>(address)), size_(length) {
    detail::check(pnfsrdma_register(of.get(), address, length), "registration");
  }
  registration(client& of, int memfd, std::size_t length) : client_(of.get()), size_(length) {
    void* address = nullptr;
    detail::check(pnfsrdma_register_fd(of.get(), memfd, length, &address), "registration");
    data_ = static_cast<std::byte*>(address);
  }
  registration(registration&& other) noexcept
      : client_(other.client_), data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  registration& operator=(registration&&) = delete;
  // Nothing is under way from or to it.
  ~registration() {
    if (data_ != nullptr) (void)pnfsrdma_unregister(client_, data_);
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  pnfsrdma_client* client_;
  std::byte* data_ = nullptr;
  std::size_t size_;
};

class file : public detail::owner<pnfsrdma_file> {
 public:
  file(client& of, const std::string& path, int flags, mode_t mode = 0666) {
    detail::check(pnfsrdma_open(of.get(), path.c_str(), flags, mode, &object_), path.c_str());
  }
  file(file&&) noexcept = default;
  file& operator=(file&&) noexcept = default;
  // What an error at the end says is lost here: close() says it.
  ~file() {
    if (object_ != nullptr) (void)pnfsrdma_close(object_);
  }

  void close() { detail::check(pnfsrdma_close(std::exchange(object_, nullptr)), "close"); }
  std::size_t read(void* to, std::size_t count, off_t offset) {
    return static_cast<std::size_t>(detail::check(pnfsrdma_pread(object_, to, count, offset), "read"));
  }
  std::size_t write(const void* from, std::size_t count, off_t offset) {
    return static_cast<std::size_t>(detail::check(pnfsrdma_pwrite(object_, from, count, offset), "write"));
  }
  std::size_t write_durable(const void* from, std::size_t count, off_t offset) {
    return static_cast<std::size_t>(
        detail::check(pnfsrdma_pwrite_durable(object_, from, count, offset), "durable write"));
  }
  // Where it went.
  off_t append(const void* from, std::size_t count) {
    off_t at = 0;
    detail::check(pnfsrdma_append(object_, from, count, &at), "append");
    return at;
  }
  // A word that several change, at an offset that is a multiple of eight (pnfsrdma_atomic_write(3)).
  void atomic_write(off_t offset, std::uint64_t value) {
    detail::check(pnfsrdma_atomic_write(object_, offset, value), "atomic write");
  }
  // False: it was another one, which `expected` is now.
  bool compare_and_swap(off_t offset, std::uint64_t& expected, std::uint64_t desired, bool durable = false) {
    return detail::check(pnfsrdma_compare_and_swap(object_, offset, expected, desired,
                                                   durable ? std::uint32_t{PNFSRDMA_DURABLE} : 0, &expected),
                         "compare and swap") == 1;
  }
  // What it was.
  std::uint64_t fetch_and_add(off_t offset, std::uint64_t addend, bool durable = false) {
    std::uint64_t old = 0;
    detail::check(pnfsrdma_fetch_and_add(object_, offset, addend, durable ? std::uint32_t{PNFSRDMA_DURABLE} : 0, &old),
                  "fetch and add");
    return old;
  }
  // True: as it is on the medium; false: in a copy in front of it. Throws where a range is not what is expected.
  bool flush_and_verify(const std::vector<pnfsrdma_range>& ranges, const std::vector<std::uint32_t>& expected) {
    if (ranges.size() != expected.size()) detail::check(-EINVAL, "flush and verify");
    return detail::check(pnfsrdma_flush_and_verify(object_, ranges.data(), static_cast<unsigned>(ranges.size()),
                                                   expected.data(), nullptr),
                         "flush and verify") == PNFSRDMA_VERIFIED_MEDIUM;
  }
  // Makes it durable and tells those who watch it (pnfsrdma_signal(3)).
  void signal(off_t offset, std::size_t length, std::uint64_t value) {
    detail::check(pnfsrdma_signal(object_, offset, length, value), "signal");
  }
  // PNFSRDMA_LOCK_SHARED or _EXCLUSIVE; 0 bytes: to the end. False: not within the time.
  bool lock(int kind, off_t offset = 0, off_t length = 0, int timeout_ms = -1) {
    const int locked = pnfsrdma_lock(object_, kind, offset, length, timeout_ms);
    return locked != -EAGAIN && detail::check(locked, "lock") == 0;
  }
  void unlock(off_t offset = 0, off_t length = 0) { detail::check(pnfsrdma_unlock(object_, offset, length), "unlock"); }
  bool may_lock(int kind, off_t offset = 0, off_t length = 0) {
    return detail::check(pnfsrdma_may_lock(object_, kind, offset, length), "lock") == 1;
  }
  void fdatasync() { detail::check(pnfsrdma_fdatasync(object_), "fdatasync"); }
  void fsync() { detail::check(pnfsrdma_fsync(object_), "fsync"); }
  void truncate(off_t length) { detail::check(pnfsrdma_ftruncate(object_, length), "truncate"); }
  struct stat stat() const {
    struct stat status;
    detail::check(pnfsrdma_fstat(object_, &status), "fstat");
    return status;
  }
};

inline std::uint32_t crc32c(const void* bytes, std::size_t count) { return pnfsrdma_crc32c(bytes, count); }

// A part of a file as memory.
class map : public detail::owner<pnfsrdma_map> {
 public:
  map(file& of, off_t offset, std::size_t length) {
    detail::check(pnfsrdma_map_create(of.get(), offset, length, &object_), "map");
  }
  // At the beginning of a page where nothing is mapped.
  map(file& of, off_t offset, std::size_t length, void* address) {
    detail::check(pnfsrdma_map_create_at(of.get(), offset, length, address, &object_), "map");
  }
  map(map&&) noexcept = default;
  map& operator=(map&&) noexcept = default;
  ~map() { pnfsrdma_map_destroy(object_); }

  void* address() const { return pnfsrdma_map_address(object_); }
  void sync(const std::vector<pnfsrdma_range>& ranges) {
    detail::check(pnfsrdma_map_sync(object_, ranges.data(), static_cast<unsigned>(ranges.size())), "sync");
  }
  void refresh(const std::vector<pnfsrdma_range>& ranges) {
    detail::check(pnfsrdma_map_refresh(object_, ranges.data(), static_cast<unsigned>(ranges.size())), "refresh");
  }
};

// What others signal in a part of a file.
class watch : public detail::owner<pnfsrdma_watch> {
 public:
  watch(file& of, off_t offset, std::size_t length) {
    detail::check(pnfsrdma_watch_create(of.get(), offset, length, &object_), "watch");
  }
  watch(watch&&) noexcept = default;
  watch& operator=(watch&&) noexcept = default;
  ~watch() { pnfsrdma_watch_destroy(object_); }

  int fd() const { return pnfsrdma_watch_fd(object_); }
  // False when the time has passed, or a signal of the system's came.
  bool next(pnfsrdma_event& event, int timeout_ms = -1) {
    const int count = pnfsrdma_watch_next(object_, &event, timeout_ms);
    return count != -EINTR && detail::check(count, "watch") == 1;
  }
};

class queue : public detail::owner<pnfsrdma_queue> {
 public:
  queue(client& of, unsigned depth) { detail::check(pnfsrdma_queue_create(of.get(), depth, &object_), "queue"); }
  queue(queue&&) noexcept = default;
  queue& operator=(queue&&) noexcept = default;
  ~queue() { pnfsrdma_queue_destroy(object_); }

  int fd() const { return pnfsrdma_queue_fd(object_); }
  // How many were taken; 0: the queue is full.
  unsigned submit(const pnfsrdma_operation* operations, unsigned count) {
    const int taken = pnfsrdma_submit(object_, operations, count);
    return taken == -EAGAIN ? 0 : static_cast<unsigned>(detail::check(taken, "submit"));
  }
  // How many there are; 0 when the time has passed, or a signal came.
  unsigned reap(pnfsrdma_completion* completions, unsigned most, int timeout_ms) {
    const int count = pnfsrdma_reap(object_, completions, most, timeout_ms);
    return count == -EINTR ? 0 : static_cast<unsigned>(detail::check(count, "reap"));
  }
};

// A partition, opened by its owner.
class blocks : public detail::owner<pnfsrdma_blocks> {
 public:
  blocks(const std::string& address, const std::string& partition, const std::string& key_file,
         const std::string& options = {}) {
    detail::check(pnfsrdma_blocks_open(address.c_str(), partition.c_str(), key_file.c_str(), options.c_str(), &object_),
                  "open blocks");
  }
  blocks(blocks&&) noexcept = default;
  blocks& operator=(blocks&&) noexcept = default;
  ~blocks() {
    if (object_ != nullptr) (void)pnfsrdma_blocks_close(object_);
  }

  std::string transport() const { return pnfsrdma_blocks_transport(object_); }
  std::string durability() const { return pnfsrdma_blocks_durability(object_); }
  pnfsrdma_partition stat() const {
    pnfsrdma_partition partition;
    detail::check(pnfsrdma_blocks_stat(object_, &partition), "stat");
    return partition;
  }
  // Where they are.
  std::uint64_t alloc(std::uint64_t count, std::uint64_t wanted = PNFSRDMA_ANY_ADDRESS, std::uint64_t tag = 0) {
    std::uint64_t address = 0;
    detail::check(pnfsrdma_blocks_alloc(object_, count, wanted, tag, &address), "alloc");
    return address;
  }
  void free(std::uint64_t address, std::uint64_t count) {
    detail::check(pnfsrdma_blocks_free(object_, address, count), "free");
  }
  void unmap(std::uint64_t address, std::uint64_t count) {
    detail::check(pnfsrdma_blocks_unmap(object_, address, count), "unmap");
  }
  std::vector<pnfsrdma_run> list(std::uint64_t from = 0, unsigned most = 4096) const {
    std::vector<pnfsrdma_run> runs(most);
    runs.resize(static_cast<std::size_t>(detail::check(pnfsrdma_blocks_list(object_, from, runs.data(), most), "list")));
    return runs;
  }
};

// Blocks that are mapped, as long as this lives.
class mapping : public detail::owner<pnfsrdma_mapping> {
 public:
  // `flags`: PNFSRDMA_MAP_READ, PNFSRDMA_MAP_WRITE, PNFSRDMA_MAP_SHARED.
  mapping(blocks& of, std::uint64_t address, std::uint64_t count, unsigned flags) {
    detail::check(pnfsrdma_blocks_map(of.get(), address, count, flags, &object_), "map");
  }
  mapping(mapping&&) noexcept = default;
  mapping& operator=(mapping&&) noexcept = default;
  ~mapping() {
    if (object_ != nullptr) (void)pnfsrdma_mapping_release(object_);
  }

  void read(void* to, std::size_t count, std::uint64_t offset) {
    detail::check(pnfsrdma_mapping_read(object_, to, count, offset), "read");
  }
  void write(const void* from, std::size_t count, std::uint64_t offset, bool durable = false) {
    detail::check(pnfsrdma_mapping_write(object_, from, count, offset, flags(durable)), "write");
  }
  void flush(std::uint64_t offset, std::uint64_t length) {
    detail::check(pnfsrdma_mapping_flush(object_, offset, length), "flush");
  }
  // False: it was another one, which `expected` is now.
  bool compare_and_swap(std::uint64_t offset, std::uint64_t& expected, std::uint64_t desired, bool durable = false) {
    return detail::check(pnfsrdma_mapping_compare_and_swap(object_, offset, expected, desired, flags(durable), &expected),
                         "compare and swap") == 1;
  }
  // What it was.
  std::uint64_t fetch_and_add(std::uint64_t offset, std::uint64_t addend, bool durable = false) {
    std::uint64_t old = 0;
    detail::check(pnfsrdma_mapping_fetch_and_add(object_, offset, addend, flags(durable), &old), "fetch and add");
    return old;
  }

 private:
  static std::uint32_t flags(bool durable) { return durable ? std::uint32_t{PNFSRDMA_DURABLE} : 0; }
};

}  // namespace pnfsrdma
#endif
