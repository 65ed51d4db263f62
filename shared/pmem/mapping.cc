// SPDX-License-Identifier: Apache-2.0
#include "shared/pmem/mapping.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <libpmem2.h>
#include <sys/file.h>
#include <sys/mman.h>

#include <cstring>

#include "shared/base/check.h"
#include "shared/base/owned.h"
#include "shared/pmem/page_persistence.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace pnfsrdma::pmem {
namespace {

// libpmem2's destroy functions take the address of the handle.
struct DeleteConfig {
  void operator()(pmem2_config* config) const { pmem2_config_delete(&config); }
};
struct DeleteSource {
  void operator()(pmem2_source* source) const { pmem2_source_delete(&source); }
};
struct DeleteMap {
  void operator()(pmem2_map* map) const { pmem2_map_delete(&map); }
};
using Config = std::unique_ptr<pmem2_config, DeleteConfig>;
using Source = std::unique_ptr<pmem2_source, DeleteSource>;
using Map = std::unique_ptr<pmem2_map, DeleteMap>;

// CLFLUSH drops a line on every such processor, whatever flushes it otherwise (CLWB may keep it).
bool evict_lines(ByteSpan memory) {
#if defined(__x86_64__)
  const auto end = reinterpret_cast<uintptr_t>(memory.data() + memory.size());
  for (auto line = reinterpret_cast<uintptr_t>(memory.data()) & ~(uintptr_t{kLine} - 1); line < end;
       line += kLine)
    _mm_clflush(reinterpret_cast<const void*>(line));
  _mm_mfence();
  return true;
#else
  (void)memory;
  return false;
#endif
}

// Bytes of PMEM in the CPU's reach: libpmem2's choice of instructions (CLWB, CLFLUSHOPT, non-temporal stores;
// nothing at all with eADR).
class LinePersistence final : public Persistence {
 public:
  explicit LinePersistence(pmem2_map* map)
      : flush_(pmem2_get_flush_fn(map)),
        drain_(pmem2_get_drain_fn(map)),
        memcpy_(pmem2_get_memcpy_fn(map)),
        memset_(pmem2_get_memset_fn(map)) {}

  void copy(std::byte* target, ByteSpan source) override {
    memcpy_(target, source.data(), source.size(), PMEM2_F_MEM_NODRAIN);
  }
  void zero(MutableByteSpan target) override {
    memset_(target.data(), 0, target.size(), PMEM2_F_MEM_NODRAIN | PMEM2_F_MEM_NONTEMPORAL);
  }
  Result<> flush(ByteSpan memory) override {
    flush_(memory.data(), memory.size());
    return {};
  }
  Result<> fence() override {
    drain_();
    return {};
  }
  bool evict(ByteSpan memory) override { return evict_lines(memory); }
  Durability durability() const override { return Durability::kPower; }
  bool blocks() const override { return false; }

 private:
  pmem2_flush_fn flush_;
  pmem2_drain_fn drain_;
  pmem2_memcpy_fn memcpy_;
  pmem2_memset_fn memset_;
};

class FileMapping final : public Mapping {
 public:
  FileMapping(FileDescriptor fd, Map map, Medium medium, uint64_t offset)
      : Mapping({static_cast<std::byte*>(pmem2_map_get_address(map.get())), pmem2_map_get_size(map.get())},
                medium),
        fd_(std::move(fd)),
        map_(std::move(map)),
        offset_(offset) {
    // Advice that the kernel does not take costs speed only.
    if (medium.kind == Kind::kFile) (void)madvise(bytes().data(), bytes().size(), MADV_RANDOM);
  }

  void read_ahead(ByteSpan range) const override {
    if (medium().kind != Kind::kFile) return;
    const auto at = static_cast<off_t>(offset_) + (range.data() - bytes().data());
    (void)posix_fadvise(fd_.get(), at, static_cast<off_t>(range.size()), POSIX_FADV_WILLNEED);
  }

  std::unique_ptr<Persistence> make_persistence(FileFlush file_flush) const override {
    const Medium what = medium();
    if (!what.persistent) return std::make_unique<UnflushedPersistence>(Durability::kVolatile);
    const bool dax = what.kind == Kind::kDeviceDax || what.kind == Kind::kFsDax;
    if (dax && flushes_by_line()) return std::make_unique<LinePersistence>(map_.get());
    if (what.kind == Kind::kDeviceDax) return std::make_unique<UnflushedPersistence>(Durability::kVolatile);
    if (file_flush == FileFlush::kPageCache)
      return std::make_unique<UnflushedPersistence>(Durability::kProcess);
    return std::make_unique<SyncPersistence>(fd_.get(), bytes().data(), offset_);
  }

 private:
  // An fsdax file reports this only when MAP_SYNC was given: only then do CPU flushes cover the file's block
  // map.
  bool flushes_by_line() const {
    const pmem2_granularity granularity = pmem2_map_get_store_granularity(map_.get());
    return granularity == PMEM2_GRANULARITY_CACHE_LINE || granularity == PMEM2_GRANULARITY_BYTE;
  }

  FileDescriptor fd_;
  Map map_;
  const uint64_t offset_;  // in the file
};

class AnonymousMapping final : public Mapping {
 public:
  explicit AnonymousMapping(MutableByteSpan bytes) : Mapping(bytes, Medium{Kind::kMemory, false}) {}
  ~AnonymousMapping() override { CHECK(munmap(bytes().data(), bytes().size()) == 0); }

  std::unique_ptr<Persistence> make_persistence(FileFlush) const override {
    return std::make_unique<UnflushedPersistence>(Durability::kVolatile);
  }
};

// libpmem2 answers negative numbers: a negated errno, or one of its own below -100000.
std::unexpected<Error> pmem_error(int answer, const std::string& what) {
  const int number = answer > -100000 ? -answer : EINVAL;
  return fail(number, fmt::format("{} ({})", what, pmem2_errormsg()));
}

Result<Source> source_of(int fd, const std::string& path) {
  pmem2_source* source = nullptr;
  if (const int answer = pmem2_source_from_fd(&source, fd))
    return pmem_error(answer, "libpmem2 source " + path);
  return Source(source);
}

// `window`: none: all of it.
Result<Map> map(int fd, const std::string& path, const Window* window) {
  pmem2_config* config = nullptr;
  if (const int answer = pmem2_config_new(&config)) return pmem_error(answer, "libpmem2 configuration");
  const Config owned_config(config);
  if (const int answer = pmem2_config_set_required_store_granularity(config, PMEM2_GRANULARITY_PAGE)) {
    return pmem_error(answer, "libpmem2 granularity");
  }
  if (window != nullptr) {
    if (const int answer = pmem2_config_set_offset(config, window->offset))
      return pmem_error(answer, "libpmem2 offset");
    if (const int answer = pmem2_config_set_length(config, window->length))
      return pmem_error(answer, "libpmem2 length");
  }
  TRY_ASSIGN(const Source source, source_of(fd, path));
  pmem2_map* map = nullptr;
  if (const int answer = pmem2_map_new(&map, config, source.get()))
    return pmem_error(answer, "mapping " + path);
  return Map(map);
}

Result<FileDescriptor> open_file(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return std::unexpected(Error::from_errno("open " + path));
  return fd;
}

std::unexpected<Error> lock_failure(const std::string& path, const char* what) {
  Error error = Error::from_errno("lock " + path);
  if (error.number() != EWOULDBLOCK && error.number() != EACCES) return std::unexpected(std::move(error));
  return fail(EWOULDBLOCK,
              fmt::format("lock {}: another pnfsrdma-brickd has {} open; stop it first", path, what));
}

// Of an open file, so it ends with that and not with any close(2) of this process (fcntl(2), F_OFD_SETLK).
Result<> lock_window(int fd, const std::string& path, const Window& window) {
  if (flock(fd, LOCK_SH | LOCK_NB) != 0) return lock_failure(path, "all of it");
  if (window.hold == Window::Hold::kBesides) return {};
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(window.offset);
  lock.l_len = static_cast<off_t>(window.length);
  while (fcntl(fd, window.hold == Window::Hold::kWhenFree ? F_OFD_SETLKW : F_OFD_SETLK, &lock) != 0) {
    if (errno != EINTR) return lock_failure(path, "this partition");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Mapping>> Mapping::open(const std::string& path) {
  TRY_ASSIGN(FileDescriptor fd, open_file(path));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return lock_failure(path, "this pool");
  TRY_ASSIGN(const Medium medium, detect_medium(fd.get()));
  TRY_ASSIGN(Map whole, map(fd.get(), path, nullptr));
  return std::make_unique<FileMapping>(std::move(fd), std::move(whole), medium, 0);
}

Result<std::unique_ptr<Mapping>> Mapping::open(const std::string& path, const Window& window) {
  TRY_ASSIGN(FileDescriptor fd, open_file(path));
  TRY(lock_window(fd.get(), path, window));
  TRY_ASSIGN(const Medium medium, detect_medium(fd.get()));
  TRY_ASSIGN(Map part, map(fd.get(), path, &window));
  return std::make_unique<FileMapping>(std::move(fd), std::move(part), medium, window.offset);
}

Result<Mapping::Extent> Mapping::extent(const std::string& path) {
  TRY_ASSIGN(const FileDescriptor fd, open_file(path));
  TRY_ASSIGN(const Source source, source_of(fd.get(), path));
  size_t alignment = 0;
  size_t size = 0;
  if (const int answer = pmem2_source_alignment(source.get(), &alignment))
    return pmem_error(answer, "alignment of " + path);
  if (const int answer = pmem2_source_size(source.get(), &size)) return pmem_error(answer, "size of " + path);
  return Extent{alignment, size};
}

Result<std::unique_ptr<Mapping>> Mapping::anonymous(uint64_t size) {
  void* memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return std::unexpected(Error::from_errno(fmt::format("mmap of {} bytes", size)));
  return std::make_unique<AnonymousMapping>(MutableByteSpan(static_cast<std::byte*>(memory), size));
}

}  // namespace pnfsrdma::pmem
