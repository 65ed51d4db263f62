// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <span>
#include <string>

#include "library/brick_request.h"
#include "library/connection.h"
#include "library/directory.h"
#include "library/guarded_call.h"
#include "library/last_error.h"
#include "library/map.h"
#include "library/open_file.h"
#include "library/pnfsrdma.h"
#include "library/queue.h"
#include "library/watch.h"
#include "shared/base/crc32c.h"
#include "shared/base/log.h"
#include "shared/base/log_observer.h"
#include "shared/version/version.h"

// The C functions of pnfsrdma.h: arguments checked, results as negative errnos. No exception leaves here, and a
// forked child touches nothing of its parent's.
namespace {

using namespace pnfsrdma;
using library::Connection;
using library::Directory;
using library::failed;
using library::guarded;
using library::LockWish;
using library::Map;
using library::number;
using library::OpenFile;
using library::Queue;
using library::Watch;
using library::WordChange;

// The opaque types of the header are these.
Connection* inside(pnfsrdma_client* client) {
  return reinterpret_cast<Connection*>(client);
}
const Connection* inside(const pnfsrdma_client* client) {
  return reinterpret_cast<const Connection*>(client);
}
OpenFile* inside(pnfsrdma_file* file) {
  return reinterpret_cast<OpenFile*>(file);
}
Directory* inside(pnfsrdma_directory* directory) {
  return reinterpret_cast<Directory*>(directory);
}
Queue* inside(pnfsrdma_queue* queue) {
  return reinterpret_cast<Queue*>(queue);
}
const Queue* inside(const pnfsrdma_queue* queue) {
  return reinterpret_cast<const Queue*>(queue);
}

Map* inside(pnfsrdma_map* map) {
  return reinterpret_cast<Map*>(map);
}
const Map* inside(const pnfsrdma_map* map) {
  return reinterpret_cast<const Map*>(map);
}

Watch* inside(pnfsrdma_watch* watch) {
  return reinterpret_cast<Watch*>(watch);
}
const Watch* inside(const pnfsrdma_watch* watch) {
  return reinterpret_cast<const Watch*>(watch);
}

template <typename Call>
int64_t on_file(pnfsrdma_file* file, Call call) {
  return guarded(file == nullptr ? nullptr : &inside(file)->connection(),
                 [&] { return call(*inside(file)); });
}

template <typename Call>
int64_t on_directory(pnfsrdma_directory* directory, Call call) {
  return guarded(directory == nullptr ? nullptr : &inside(directory)->connection(),
                 [&] { return call(*inside(directory)); });
}

template <typename Call>
int64_t on_map(pnfsrdma_map* map, const pnfsrdma_range* ranges, unsigned count, Call call) {
  return guarded(map == nullptr ? nullptr : &inside(map)->file().connection(), [&]() -> Result<> {
    if (ranges == nullptr && count > 0) return fail(EFAULT, "a null pointer");
    return call(*inside(map), std::span(ranges, count));
  });
}

// Bytes from an offset, as the system call has them.
Result<> check_range(const void* buffer, size_t count, off_t offset) {
  if (buffer == nullptr && count > 0) return fail(EFAULT, "the buffer is a null pointer");
  if (offset < 0) return fail(EINVAL, "a negative offset");
  constexpr auto kMost = std::numeric_limits<off_t>::max();
  if (count > static_cast<uint64_t>(kMost - offset)) return fail(EFBIG, "a file ends before that");
  return {};
}

Result<> check_lock_range(off_t offset, off_t length) {
  if (offset < 0 || length < 0) return fail(EINVAL, "a negative offset or length");
  if (length > std::numeric_limits<off_t>::max() - offset) return fail(EOVERFLOW, "no file reaches that");
  return {};
}

Result<LockWish> lock_wish(const OpenFile& file, int kind, off_t offset, off_t length, int timeout_ms) {
  if (kind != PNFSRDMA_LOCK_SHARED && kind != PNFSRDMA_LOCK_EXCLUSIVE)
    return fail(EINVAL, "the kind of lock");
  TRY(check_lock_range(offset, length));
  const bool exclusive = kind == PNFSRDMA_LOCK_EXCLUSIVE;
  if (exclusive ? !file.writable() : !file.readable())
    return fail(EBADF, exclusive ? "the file is not open for writing" : "the file is not open for reading");
  return LockWish{exclusive, static_cast<uint64_t>(offset), static_cast<uint64_t>(length), timeout_ms};
}

using Move = Result<size_t> (*)(OpenFile& file, const iovec& piece, uint64_t offset);

int64_t move_vector(pnfsrdma_file* file, const iovec* vector, int count, off_t offset, Move move) {
  return on_file(file, [&](OpenFile& open) -> Result<size_t> {
    if (count < 0 || (vector == nullptr && count > 0)) return fail(EINVAL, "the vector");
    for (int i = 0; i < count; ++i) TRY(check_range(vector[i].iov_base, vector[i].iov_len, offset));
    size_t done = 0;
    for (int i = 0; i < count; ++i) {
      const auto moved = move(open, vector[i], static_cast<uint64_t>(offset) + done);
      if (!moved && done == 0) return moved;
      if (!moved) break;  // the error comes again
      done += *moved;
      if (*moved < vector[i].iov_len) break;
    }
    return done;
  });
}

int64_t write_range(pnfsrdma_file* file, const void* buffer, size_t count, off_t offset, bool durable) {
  return on_file(file, [&](OpenFile& open) -> Result<size_t> {
    TRY(check_range(buffer, count, offset));
    return open.write(buffer, count, static_cast<uint64_t>(offset), durable || open.durable());
  });
}

}  // namespace

const char* pnfsrdma_version() {
  return version();
}

const char* pnfsrdma_last_error() {
  return library::last_error();
}

int pnfsrdma_connect(const char* source, const char* options, pnfsrdma_client** client) {
  if (source == nullptr || client == nullptr) return failed({EINVAL, "a null pointer"});
  *client = nullptr;
  return number(library::without_exceptions([&]() -> Result<> {
    library::keep_quiet();
    TRY_ASSIGN(auto made, Connection::connect(source, options != nullptr ? options : ""));
    *client = reinterpret_cast<pnfsrdma_client*>(made.release());
    return {};
  }));
}

int pnfsrdma_disconnect(pnfsrdma_client* client) {
  return number(guarded(inside(client), [&]() -> Result<> {
    if (inside(client)->is_used())
      return fail(EBUSY, "files, directories or queues of the connection are open");
    delete inside(client);
    return {};
  }));
}

const char* pnfsrdma_transport(const pnfsrdma_client* client) {
  return inside(client)->transport().c_str();
}

const char* pnfsrdma_durability(const pnfsrdma_client* client) {
  return inside(client)->durability().c_str();
}

void* pnfsrdma_alloc(pnfsrdma_client* client, size_t size) {
  void* memory = nullptr;
  (void)guarded(inside(client), [&]() -> Result<> {
    TRY_ASSIGN(memory, inside(client)->allocate(size));
    return {};
  });
  return memory;
}

void pnfsrdma_free(pnfsrdma_client* client, void* memory) {
  if (memory == nullptr) return;
  (void)guarded(inside(client), [&]() -> Result<> { return inside(client)->free(memory); });
}

int pnfsrdma_register(pnfsrdma_client* client, void* address, size_t length) {
  return number(guarded(inside(client), [&]() -> Result<> {
    if (address == nullptr) return fail(EFAULT, "a null pointer");
    return inside(client)->register_memory({static_cast<std::byte*>(address), length});
  }));
}

int pnfsrdma_register_fd(pnfsrdma_client* client, int fd, size_t length, void** address) {
  if (address != nullptr) *address = nullptr;
  return number(guarded(inside(client), [&]() -> Result<> {
    if (address == nullptr) return fail(EFAULT, "a null pointer");
    TRY_ASSIGN(*address, inside(client)->register_file(fd, length));
    return {};
  }));
}

int pnfsrdma_unregister(pnfsrdma_client* client, void* address) {
  return number(guarded(inside(client), [&]() -> Result<> { return inside(client)->unregister(address); }));
}

int pnfsrdma_open(pnfsrdma_client* client, const char* path, int flags, mode_t mode, pnfsrdma_file** file) {
  if (file != nullptr) *file = nullptr;
  return number(guarded(inside(client), [&]() -> Result<> {
    if (path == nullptr || file == nullptr) return fail(EFAULT, "a null pointer");
    TRY_ASSIGN(auto opened, inside(client)->open(path, flags, mode));
    *file = reinterpret_cast<pnfsrdma_file*>(opened.release());
    return {};
  }));
}

int pnfsrdma_close(pnfsrdma_file* file) {
  return number(on_file(file, [](OpenFile& open) -> Result<> {
    if (open.in_flight > 0)
      return fail(EBUSY, "operations of a queue are under way, or maps or watches of the file are open");
    const Result<> closed = open.close();
    delete &open;
    return closed;
  }));
}

ssize_t pnfsrdma_pread(pnfsrdma_file* file, void* buffer, size_t count, off_t offset) {
  return on_file(file, [&](OpenFile& open) -> Result<size_t> {
    TRY(check_range(buffer, count, offset));
    return open.read(buffer, count, static_cast<uint64_t>(offset));
  });
}

ssize_t pnfsrdma_pwrite(pnfsrdma_file* file, const void* buffer, size_t count, off_t offset) {
  return write_range(file, buffer, count, offset, false);
}

ssize_t pnfsrdma_pwrite_durable(pnfsrdma_file* file, const void* buffer, size_t count, off_t offset) {
  return write_range(file, buffer, count, offset, true);
}

ssize_t pnfsrdma_preadv(pnfsrdma_file* file, const iovec* vector, int count, off_t offset) {
  return move_vector(file, vector, count, offset, [](OpenFile& open, const iovec& piece, uint64_t at) {
    return open.read(piece.iov_base, piece.iov_len, at);
  });
}

ssize_t pnfsrdma_pwritev(pnfsrdma_file* file, const iovec* vector, int count, off_t offset) {
  return move_vector(file, vector, count, offset, [](OpenFile& open, const iovec& piece, uint64_t at) {
    return open.write(piece.iov_base, piece.iov_len, at, open.durable());
  });
}

ssize_t pnfsrdma_append(pnfsrdma_file* file, const void* buffer, size_t count, off_t* offset) {
  return on_file(file, [&](OpenFile& open) -> Result<size_t> {
    TRY(check_range(buffer, count, 0));
    TRY_ASSIGN(const uint64_t at, open.append(buffer, count, open.durable()));
    if (offset != nullptr) *offset = static_cast<off_t>(at);
    return count;
  });
}

int pnfsrdma_atomic_write(pnfsrdma_file* file, off_t offset, uint64_t value) {
  return number(on_file(file, [&](OpenFile& open) -> Result<> {
    TRY(library::change_word(open, {.kind = WordChange::Kind::kStore, .operand = value},
                             static_cast<uint64_t>(offset), PNFSRDMA_DURABLE));
    return {};
  }));
}

int pnfsrdma_compare_and_swap(pnfsrdma_file* file, off_t offset, uint64_t expected, uint64_t desired,
                              uint32_t flags, uint64_t* old) {
  return number(on_file(file, [&](OpenFile& open) -> Result<int> {
    const WordChange swap{
        .kind = WordChange::Kind::kCompareAndSwap, .operand = desired, .expected = expected};
    TRY_ASSIGN(const uint64_t before, library::change_word(open, swap, static_cast<uint64_t>(offset), flags));
    if (old != nullptr) *old = before;
    return before == expected ? 1 : 0;
  }));
}

int pnfsrdma_fetch_and_add(pnfsrdma_file* file, off_t offset, uint64_t addend, uint32_t flags,
                           uint64_t* old) {
  return number(on_file(file, [&](OpenFile& open) -> Result<> {
    const WordChange sum{.kind = WordChange::Kind::kFetchAndAdd, .operand = addend};
    TRY_ASSIGN(const uint64_t before, library::change_word(open, sum, static_cast<uint64_t>(offset), flags));
    if (old != nullptr) *old = before;
    return {};
  }));
}

int pnfsrdma_flush_and_verify(pnfsrdma_file* file, const pnfsrdma_range* ranges, unsigned count,
                              const uint32_t* expected, uint32_t* found) {
  return number(on_file(file, [&](OpenFile& open) -> Result<int> {
    if (ranges == nullptr && count > 0) return fail(EFAULT, "a null pointer");
    return library::verify(open, {ranges, count}, expected, found);
  }));
}

int pnfsrdma_watch_create(pnfsrdma_file* file, off_t offset, size_t length, pnfsrdma_watch** watch) {
  if (watch != nullptr) *watch = nullptr;
  return number(on_file(file, [&](OpenFile& open) -> Result<> {
    if (watch == nullptr) return fail(EFAULT, "a null pointer");
    TRY(check_range(&open, length, offset));
    if (!open.readable()) return fail(EBADF, "the file is not open for reading");
    TRY_ASSIGN(auto made, open.watch({static_cast<uint64_t>(offset), length}));
    *watch = reinterpret_cast<pnfsrdma_watch*>(made.release());
    return {};
  }));
}

void pnfsrdma_watch_destroy(pnfsrdma_watch* watch) {
  if (watch == nullptr) return;
  (void)guarded(&inside(watch)->file().connection(), [&]() -> Result<> {
    delete inside(watch);
    return {};
  });
}

int pnfsrdma_watch_fd(const pnfsrdma_watch* watch) {
  return watch == nullptr ? failed({EINVAL, "a null pointer"}) : inside(watch)->fd();
}

int pnfsrdma_watch_next(pnfsrdma_watch* watch, pnfsrdma_event* event, int timeout_ms) {
  return number(
      guarded(watch == nullptr ? nullptr : &inside(watch)->file().connection(), [&]() -> Result<bool> {
        if (event == nullptr) return fail(EFAULT, "a null pointer");
        return inside(watch)->next(*event, timeout_ms);
      }));
}

int pnfsrdma_signal(pnfsrdma_file* file, off_t offset, size_t length, uint64_t value) {
  return number(on_file(file, [&](OpenFile& open) -> Result<> {
    return library::signal(open, {static_cast<uint64_t>(offset), length}, value);
  }));
}

int pnfsrdma_lock(pnfsrdma_file* file, int kind, off_t offset, off_t length, int timeout_ms) {
  return number(on_file(file, [&](OpenFile& open) -> Result<> {
    TRY_ASSIGN(const LockWish wish, lock_wish(open, kind, offset, length, timeout_ms));
    return open.lock(wish);
  }));
}

int pnfsrdma_unlock(pnfsrdma_file* file, off_t offset, off_t length) {
  return number(on_file(file, [&](OpenFile& open) -> Result<> {
    TRY(check_lock_range(offset, length));
    return open.unlock(static_cast<uint64_t>(offset), static_cast<uint64_t>(length));
  }));
}

int pnfsrdma_may_lock(pnfsrdma_file* file, int kind, off_t offset, off_t length) {
  return number(on_file(file, [&](OpenFile& open) -> Result<bool> {
    TRY_ASSIGN(const LockWish wish, lock_wish(open, kind, offset, length, 0));
    return open.may_lock(wish);
  }));
}

uint32_t pnfsrdma_crc32c(const void* bytes, size_t count) {
  return crc32c({static_cast<const std::byte*>(bytes), count});
}

int pnfsrdma_fdatasync(pnfsrdma_file* file) {
  return number(on_file(file, [](OpenFile& open) { return open.sync(true); }));
}

int pnfsrdma_fsync(pnfsrdma_file* file) {
  return number(on_file(file, [](OpenFile& open) { return open.sync(false); }));
}

int pnfsrdma_ftruncate(pnfsrdma_file* file, off_t length) {
  return number(on_file(file, [&](OpenFile& open) -> Result<> {
    if (length < 0) return fail(EINVAL, "a negative length");
    return open.truncate(static_cast<uint64_t>(length));
  }));
}

int pnfsrdma_fstat(pnfsrdma_file* file, struct stat* status) {
  return number(on_file(file, [&](OpenFile& open) -> Result<> {
    if (status == nullptr) return fail(EFAULT, "a null pointer");
    TRY_ASSIGN(*status, open.status());
    return {};
  }));
}

int pnfsrdma_stat(pnfsrdma_client* client, const char* path, struct stat* status) {
  return number(guarded(inside(client), [&]() -> Result<> {
    if (path == nullptr || status == nullptr) return fail(EFAULT, "a null pointer");
    TRY_ASSIGN(*status, inside(client)->status(path));
    return {};
  }));
}

int pnfsrdma_unlink(pnfsrdma_client* client, const char* path) {
  return number(guarded(inside(client), [&]() -> Result<> {
    if (path == nullptr) return fail(EFAULT, "a null pointer");
    return inside(client)->unlink(path);
  }));
}

int pnfsrdma_rmdir(pnfsrdma_client* client, const char* path) {
  return number(guarded(inside(client), [&]() -> Result<> {
    if (path == nullptr) return fail(EFAULT, "a null pointer");
    return inside(client)->remove_directory(path);
  }));
}

int pnfsrdma_opendir(pnfsrdma_client* client, const char* path, pnfsrdma_directory** directory) {
  if (directory != nullptr) *directory = nullptr;
  return number(guarded(inside(client), [&]() -> Result<> {
    if (path == nullptr || directory == nullptr) return fail(EFAULT, "a null pointer");
    TRY_ASSIGN(auto opened, inside(client)->open_directory(path));
    *directory = reinterpret_cast<pnfsrdma_directory*>(opened.release());
    return {};
  }));
}

int pnfsrdma_readdir(pnfsrdma_directory* directory, struct dirent* entry) {
  return number(on_directory(directory, [&](Directory& open) -> Result<bool> {
    if (entry == nullptr) return fail(EFAULT, "a null pointer");
    return open.next(*entry);
  }));
}

int pnfsrdma_closedir(pnfsrdma_directory* directory) {
  return number(on_directory(directory, [](Directory& open) -> Result<> {
    delete &open;
    return {};
  }));
}

int pnfsrdma_rename(pnfsrdma_client* client, const char* from, const char* to) {
  return pnfsrdma_rename2(client, from, to, 0);
}

int pnfsrdma_rename2(pnfsrdma_client* client, const char* from, const char* to, unsigned flags) {
  return number(guarded(inside(client), [&]() -> Result<> {
    if (from == nullptr || to == nullptr) return fail(EFAULT, "a null pointer");
    switch (flags) {
      case 0:
        return inside(client)->rename(from, to, Connection::Renaming::kReplace);
      case PNFSRDMA_RENAME_NOREPLACE:
        return inside(client)->rename(from, to, Connection::Renaming::kNoReplace);
      case PNFSRDMA_RENAME_EXCHANGE:
        return inside(client)->rename(from, to, Connection::Renaming::kExchange);
      default:
        return fail(EINVAL, "flags of a rename");
    }
  }));
}

int pnfsrdma_mkdir(pnfsrdma_client* client, const char* path, mode_t mode) {
  return number(guarded(inside(client), [&]() -> Result<> {
    if (path == nullptr) return fail(EFAULT, "a null pointer");
    return inside(client)->make_directory(path, mode);
  }));
}

int pnfsrdma_queue_create(pnfsrdma_client* client, unsigned depth, pnfsrdma_queue** queue) {
  if (queue != nullptr) *queue = nullptr;
  return number(guarded(inside(client), [&]() -> Result<> {
    if (queue == nullptr) return fail(EFAULT, "a null pointer");
    TRY_ASSIGN(auto made, Queue::create(*inside(client), depth));
    *queue = reinterpret_cast<pnfsrdma_queue*>(made.release());
    return {};
  }));
}

void pnfsrdma_queue_destroy(pnfsrdma_queue* queue) {
  if (queue == nullptr) return;
  (void)guarded(&inside(queue)->connection(), [&]() -> Result<> {
    delete inside(queue);
    return {};
  });
}

int pnfsrdma_queue_fd(const pnfsrdma_queue* queue) {
  return queue == nullptr ? failed({EINVAL, "a null pointer"}) : inside(queue)->fd();
}

int pnfsrdma_submit(pnfsrdma_queue* queue, const pnfsrdma_operation* operations, unsigned count) {
  return number(guarded(queue == nullptr ? nullptr : &inside(queue)->connection(), [&]() -> Result<size_t> {
    if (operations == nullptr && count > 0) return fail(EFAULT, "a null pointer");
    return inside(queue)->submit({operations, count});
  }));
}

int pnfsrdma_reap(pnfsrdma_queue* queue, pnfsrdma_completion* completions, unsigned most, int timeout_ms) {
  return number(guarded(queue == nullptr ? nullptr : &inside(queue)->connection(), [&]() -> Result<size_t> {
    if (completions == nullptr && most > 0) return fail(EFAULT, "a null pointer");
    return inside(queue)->reap({completions, most}, timeout_ms);
  }));
}

int pnfsrdma_map_create(pnfsrdma_file* file, off_t offset, size_t length, pnfsrdma_map** map) {
  return pnfsrdma_map_create_at(file, offset, length, nullptr, map);
}

int pnfsrdma_map_create_at(pnfsrdma_file* file, off_t offset, size_t length, void* address,
                           pnfsrdma_map** map) {
  if (map != nullptr) *map = nullptr;
  return number(on_file(file, [&](OpenFile& open) -> Result<> {
    if (map == nullptr) return fail(EFAULT, "a null pointer");
    TRY(check_range(&open, length, offset));
    TRY_ASSIGN(auto made, Map::make(open, static_cast<uint64_t>(offset), length, address));
    *map = reinterpret_cast<pnfsrdma_map*>(made.release());
    return {};
  }));
}

void pnfsrdma_map_destroy(pnfsrdma_map* map) {
  if (map == nullptr) return;
  (void)guarded(&inside(map)->file().connection(), [&]() -> Result<> {
    delete inside(map);
    return {};
  });
}

void* pnfsrdma_map_address(const pnfsrdma_map* map) {
  return map == nullptr ? nullptr : inside(map)->address();
}

int pnfsrdma_map_sync(pnfsrdma_map* map, const pnfsrdma_range* ranges, unsigned count) {
  return number(on_map(map, ranges, count, [](Map& image, auto all) { return image.sync(all); }));
}

int pnfsrdma_map_refresh(pnfsrdma_map* map, const pnfsrdma_range* ranges, unsigned count) {
  return number(on_map(map, ranges, count, [](Map& image, auto all) { return image.refresh(all); }));
}

void pnfsrdma_set_log(int level, void (*write)(int level, const char* line)) {
  if (level < PNFSRDMA_LOG_DEBUG || level > PNFSRDMA_LOG_OFF || library::forks_before() > 0) return;
  library::let_log();
  if (write != nullptr) {
    write_log_with([write](LogLevel at, std::string_view component, std::string_view text) {
      write(static_cast<int>(at), fmt::format("{}: {}", component, text).c_str());
    });
  }
  set_log_level(static_cast<LogLevel>(level));
}
