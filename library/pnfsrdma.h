/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PNFSRDMA_H
#define PNFSRDMA_H

/* libpnfsrdma: files on remote persistent memory, for programs, without the kernel in the way.
 *
 * A program connects (pnfsrdma_connect) through a mount of its host, or to a server, opens files and reads and
 * writes them by RDMA, straight from and to its own memory. Many operations may be under way at once
 * (pnfsrdma_queue). What was written is durable when pnfsrdma_fdatasync or pnfsrdma_fsync has returned 0, or the
 * write itself if it asked for it (PNFSRDMA_DURABLE).
 *
 * Through a mount, any user's program may do what open(2) lets it do there, and programs that use the mount
 * without the library see its writes at once. That is what most programs want. A connection to a server needs no
 * mount: it is a client of its own, which others see as NFS promises (close-to-open, or sooner: reads and writes
 * go to the memory itself, nothing is cached here). It speaks in the name of the calling process (its effective
 * user and groups), so the server must trust the host: by default it serves ports below 1024 only, which takes
 * root; the export option "insecure" lifts that.
 *
 * Errors: functions return 0 or more, or a negative errno; pnfsrdma_last_error() then says why in words.
 * Threads: any function may be called from any thread at any time, except that nothing else uses an object
 * while it is closed, freed or disconnected.
 * fork(2): a connection belongs to the process that made it. In a child every call fails with -EPERM; connect
 * anew there. Signals: the library starts threads that block all signals, and changes no handler.
 */

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pnfsrdma_client pnfsrdma_client; /* a connection: a mount, or a server */
typedef struct pnfsrdma_file pnfsrdma_file;     /* an open file */
typedef struct pnfsrdma_queue pnfsrdma_queue;   /* operations under way, and what became of them */

/* "0.1.0": of the library that is loaded. */
const char* pnfsrdma_version(void);

/* Why this thread's last call failed: one line, in words; "" if none has. Valid until its next call. */
const char* pnfsrdma_last_error(void);

/* ---- connection ---- */

/* Connects to `source`: "/mnt/pmem", a directory on a mount of pnfsrdma-fuse(8) on this host; or a server,
 * "server:/export/path" ("server:port:/path", "[v6-address]:/path", "a,b:/path": several addresses), as mount(8) would.
 * `options`: NULL or "" for a mount, which has its own; for a server NULL or as behind -o of pnfsrdma-fuse(8):
 * hard, soft, softerr, timeo=, retrans=, port=, proto=, minorversion=, require_durability=persistent,
 * layoutstats_timer=, flush_after=.
 * Errors: -EINVAL (an option or the source), -ENOTSUP (not on a mount, or one that lets no programs in), -EPERM
 * (the port, or the durability), -ENOENT, -EACCES, -ECONNREFUSED, -ETIMEDOUT, -EHOSTUNREACH. */
int pnfsrdma_connect(const char* source, const char* options, pnfsrdma_client** client);

/* Returns all layouts, takes leave of the server or the mount. -EBUSY while files, directories or queues are open;
 * else the client is gone, 10 seconds later at most. */
int pnfsrdma_disconnect(pnfsrdma_client* client);

/* What the data travels over: "iwarp", "verbs", "verbs/iwarp"; "through the server" if it grants no memory. */
const char* pnfsrdma_transport(const pnfsrdma_client* client);
/* What the server says its memory survives: "power", "process" (its programs may crash, the host may not), "volatile"
 * (nothing), "unknown". */
const char* pnfsrdma_durability(const pnfsrdma_client* client);

/* ---- memory ---- */

/* Zeroed memory, page-aligned, registered with every transport (by the mount, if it is one): data goes straight from
 * and to it. Any other memory works, too, at the price of a copy. NULL: see pnfsrdma_last_error() (memlock, no
 * memory). */
void* pnfsrdma_alloc(pnfsrdma_client* client, size_t size);
/* `memory` is the start of what pnfsrdma_alloc() returned, or NULL. Nothing may be under way from or to it. */
void pnfsrdma_free(pnfsrdma_client* client, void* memory);

/* Registers memory that is the program's own, whole pages (4096 bytes; huge ones, too): from then on data goes straight
 * from and to it, as with pnfsrdma_alloc()ed memory. It stays mapped, and a child of fork(2) does not have it, until it
 * is unregistered. Only with a connection to a server: the process of a mount cannot reach it (-ENOTSUP; use
 * pnfsrdma_register_fd()). Errors: -EINVAL (no whole pages), -EFAULT (not mapped, not to be written, or memory of a
 * device), -EEXIST (some of it is registered already), -ENOMEM (RLIMIT_MEMLOCK: see pnfsrdma_last_error()). */
int pnfsrdma_register(pnfsrdma_client* client, void* address, size_t length);
/* The same with the first `length` bytes of a memfd (memfd_create(2)), which is mapped at `*address`, and in the
 * mount's process, too, if the connection goes through one. It must not be possible to cut it (F_SEAL_SHRINK). The
 * descriptor is the program's, who may close it. Through a mount only with ordinary pages. Errors: -EINVAL (no memfd,
 * not sealed, shorter, no whole pages), -ENOTSUP (a dma-buf), -EACCES and -EPERM (not open for writing, or sealed
 * against it), -ENOMEM (as above; or the mount's ring_memory). */
int pnfsrdma_register_fd(pnfsrdma_client* client, int fd, size_t length, void** address);
/* `address` is where registered memory begins. -EBUSY while an operation from or to it is under way, or has completed
 * and was not reaped; -EINVAL. What was registered by a descriptor is unmapped. */
int pnfsrdma_unregister(pnfsrdma_client* client, void* address);

/* ---- files ----
 * Paths are relative to the directory connected to, with or without a leading '/'. Symbolic links that lead to
 * a place below it are followed. */

/* `flags` as open(2): O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND; O_CLOEXEC, O_DIRECT, O_NOCTTY,
 * O_LARGEFILE mean nothing here; O_SYNC and O_DSYNC make each write durable. Others are -EINVAL. `mode`: of a new
 * file, less the umask.
 * Errors: as open(2). */
int pnfsrdma_open(pnfsrdma_client* client, const char* path, int flags, mode_t mode, pnfsrdma_file** file);
/* The file is closed whatever is returned; an error tells of earlier writes. What was written and not flushed is
 * not durable, as with close(2). Nothing may be under way. */
int pnfsrdma_close(pnfsrdma_file* file);

/* As pread(2) and pwrite(2): bytes moved; fewer than asked for at the end of the file only (reads). */
ssize_t pnfsrdma_pread(pnfsrdma_file* file, void* buffer, size_t count, off_t offset);
ssize_t pnfsrdma_pwrite(pnfsrdma_file* file, const void* buffer, size_t count, off_t offset);
ssize_t pnfsrdma_preadv(pnfsrdma_file* file, const struct iovec* vector, int count, off_t offset);
ssize_t pnfsrdma_pwritev(pnfsrdma_file* file, const struct iovec* vector, int count, off_t offset);
/* pwrite(2) that is durable when it returns: one round trip for an overwrite, the flush behind the data. */
ssize_t pnfsrdma_pwrite_durable(pnfsrdma_file* file, const void* buffer, size_t count, off_t offset);
/* Writes at the end of the file; `*offset` (may be NULL) tells where that was. Appends of this connection never
 * overwrite each other (each in one piece up to 1 MiB). As with NFS, another client's are seen once it has flushed
 * them, and it sees ours then. */
ssize_t pnfsrdma_append(pnfsrdma_file* file, const void* buffer, size_t count, off_t* offset);

/* As fdatasync(2), fsync(2). -EIO: something written through this file was lost; told once, so of several that
 * are under way at once only one may say so. (A durable write always tells of its own.) */
int pnfsrdma_fdatasync(pnfsrdma_file* file);
int pnfsrdma_fsync(pnfsrdma_file* file);
int pnfsrdma_ftruncate(pnfsrdma_file* file, off_t length);
int pnfsrdma_fstat(pnfsrdma_file* file, struct stat* status);

/* Locks `length` bytes from `offset` on (0: to the end, wherever that is by then), towards all who lock the file:
 * with fcntl(2) on mounts, by this library, by NFS. They are the open file's (fcntl(2): F_OFD_SETLK), until it
 * unlocks or is closed, and keep nobody from reading and writing. Its own locks are no obstacle: they change their
 * kind, byte by byte. Who has got a lock sees what the one before has written. `timeout_ms`: how long it is waited
 * for (0: not at all, -1: forever). Errors: -EAGAIN (somebody else has locked a part of it), -EBADF (exclusive: not
 * open for writing; shared: not for reading), -EINTR, -EINVAL, -EOVERFLOW, -ENOLCK (too many), -EIO: the server has
 * lost earlier locks of this open file, others may have had them since, and it reads and writes nothing until they
 * are unlocked. */
enum { PNFSRDMA_LOCK_SHARED = 0, PNFSRDMA_LOCK_EXCLUSIVE = 1 };
int pnfsrdma_lock(pnfsrdma_file* file, int kind, off_t offset, off_t length, int timeout_ms);
int pnfsrdma_unlock(pnfsrdma_file* file, off_t offset, off_t length);
/* 1: nobody else's lock is in the way just now; 0: one is. */
int pnfsrdma_may_lock(pnfsrdma_file* file, int kind, off_t offset, off_t length);

/* As stat(2), unlink(2), rename(2), mkdir(2), rmdir(2). */
int pnfsrdma_stat(pnfsrdma_client* client, const char* path, struct stat* status);
int pnfsrdma_unlink(pnfsrdma_client* client, const char* path);
int pnfsrdma_rename(pnfsrdma_client* client, const char* from, const char* to);
/* As renameat2(2): 0; PNFSRDMA_RENAME_NOREPLACE: -EEXIST if `to` is there; PNFSRDMA_RENAME_EXCHANGE: each gets the
 * other's name, and both have to be there. -EINVAL: the server is of another make, and knows neither. */
enum { PNFSRDMA_RENAME_NOREPLACE = 1, PNFSRDMA_RENAME_EXCHANGE = 2 };
int pnfsrdma_rename2(pnfsrdma_client* client, const char* from, const char* to, unsigned flags);
int pnfsrdma_mkdir(pnfsrdma_client* client, const char* path, mode_t mode);
int pnfsrdma_rmdir(pnfsrdma_client* client, const char* path);

/* What is in a directory. It is read in pieces: of what is made or removed meanwhile each may be seen or not. One
 * thread at a time. */
typedef struct pnfsrdma_directory pnfsrdma_directory;
/* Errors: as opendir(3). */
int pnfsrdma_opendir(pnfsrdma_client* client, const char* path, pnfsrdma_directory** directory);
/* 1: `entry` is the next one (d_name, d_type, d_ino; "." and ".." are none); 0: that was all. */
int pnfsrdma_readdir(pnfsrdma_directory* directory, struct dirent* entry);
int pnfsrdma_closedir(pnfsrdma_directory* directory);

/* ---- many operations at once ---- */

enum {
  PNFSRDMA_READ = 0,
  PNFSRDMA_WRITE = 1,
  PNFSRDMA_APPEND = 2,
  PNFSRDMA_FDATASYNC = 3, /* of what had completed before it was submitted */
  PNFSRDMA_FSYNC = 4,
  /* As the functions below, whose result is the operation's; `buffer` is one of the structures behind this. */
  PNFSRDMA_ATOMIC_WRITE = 5,     /* struct pnfsrdma_word */
  PNFSRDMA_COMPARE_AND_SWAP = 6, /* struct pnfsrdma_word */
  PNFSRDMA_FETCH_AND_ADD = 7,    /* struct pnfsrdma_word */
  PNFSRDMA_VERIFY = 8,           /* struct pnfsrdma_verification; `offset` is 0 */
  PNFSRDMA_SIGNAL = 9            /* uint64_t, the value; `offset` and `length` are the range */
};
enum { PNFSRDMA_DURABLE = 1 }; /* a write, append or change of a word is durable when it completes */

/* Of a word at `offset`; `length` of the operation: its size. */
struct pnfsrdma_word {
  uint64_t operand;  /* what is stored, or added */
  uint64_t expected; /* of a comparison */
  uint64_t old;      /* what it was, when it has completed; not of an atomic write */
};

struct pnfsrdma_range;
/* As pnfsrdma_flush_and_verify() has them; `length` of the operation: its size. */
struct pnfsrdma_verification {
  const struct pnfsrdma_range* ranges;
  const uint32_t* expected;
  uint32_t* found;
  uint32_t count;
  uint32_t reserved;
};

/* One operation. A value: copied by pnfsrdma_submit(). `buffer` belongs to the queue until it completes. */
struct pnfsrdma_operation {
  pnfsrdma_file* file;
  uint32_t opcode;
  uint32_t flags;
  void* buffer;
  uint64_t length;
  uint64_t offset; /* not of an append */
  uint64_t user_data;
};

struct pnfsrdma_completion {
  uint64_t user_data;
  int64_t result;  /* bytes, 0, or a negative errno */
  uint64_t offset; /* where an append went */
};

/* A queue of at most `depth` operations (1 to 4096) that are submitted and not reaped. */
int pnfsrdma_queue_create(pnfsrdma_client* client, unsigned depth, pnfsrdma_queue** queue);
/* Waits until all that is under way has completed. */
void pnfsrdma_queue_destroy(pnfsrdma_queue* queue);
/* Readable (poll(2), epoll(7)) when pnfsrdma_reap() may find something. Now and then it is readable for nothing. */
int pnfsrdma_queue_fd(const pnfsrdma_queue* queue);

/* Starts operations, in no order among each other, with one doorbell, and one flush of each brick behind all writes of
 * up to 1 MiB that have to be durable: these complete together. How many were taken, fewer than `count` if the
 * queue is full; -EAGAIN if none, -EINVAL if the first one is not an operation of this connection. Does not wait for
 * what it has started. */
int pnfsrdma_submit(pnfsrdma_queue* queue, const struct pnfsrdma_operation* operations, unsigned count);
/* What has completed, at most `most`. Waits up to `timeout_ms` for the first (0: not at all, -1: forever); -EINTR if a
 * signal came before that. */
int pnfsrdma_reap(pnfsrdma_queue* queue, struct pnfsrdma_completion* completions, unsigned most,
                  int timeout_ms);

/* ---- words that several change ----
 * A word is eight bytes at an offset that is a multiple of eight, little-endian, inside of the file. The brick
 * changes it, so all changes of a word by these functions, from whatever hosts and through whatever connections,
 * come one after the other; each happens once, also if the connection to the brick is lost on the way. Other writes
 * do not count: one that overlaps may come between. `flags`: PNFSRDMA_DURABLE, and the change is durable when the
 * function returns (it always is where the file is open with O_DSYNC or O_SYNC); else as after a write. `*old` (may
 * be NULL): what the word was. The file is open for reading and writing, and not with O_APPEND. Errors: -EINVAL
 * (not aligned, behind the end, flags), -EBADF, -ENOTSUP (the file's data does not go by RDMA; a brick or mount of
 * an older version), -EAGAIN (no memory is granted just now): nothing was changed. -EIO: the brick was started anew
 * or does not answer, so whether the word was changed is not known; or it was, and could not be made durable. */

/* Stores `value`, durably, never in part. For writing. 0. */
int pnfsrdma_atomic_write(pnfsrdma_file* file, off_t offset, uint64_t value);
/* Stores `desired` if the word is `expected`: 1. If not: 0. */
int pnfsrdma_compare_and_swap(pnfsrdma_file* file, off_t offset, uint64_t expected, uint64_t desired,
                              uint32_t flags, uint64_t* old);
/* Adds, modulo 2^64. 0. */
int pnfsrdma_fetch_and_add(pnfsrdma_file* file, off_t offset, uint64_t addend, uint32_t flags, uint64_t* old);

/* ---- what is really there ---- */

/* Bytes of a file, or of a map, from its beginning. */
struct pnfsrdma_range {
  uint64_t offset;
  uint64_t length;
};

enum {
  PNFSRDMA_VERIFIED_COPY =
      0, /* read from a copy in front of the medium: its server's page cache, or plain memory */
  PNFSRDMA_VERIFIED_MEDIUM = 1 /* read from the medium: the processor's caches were emptied of it before */
};

/* Makes everything that was written to the file durable, has the bricks read these ranges back, and compares the CRC32C
 * of each with `expected[i]`, that of what the caller has written there (NULL: compares nothing). `found` (may be
 * NULL): what they are. At most 1024 ranges of 64 MiB together. One of the above; -EBADMSG: some range is not what is
 * expected, and pnfsrdma_last_error() names the first. For reading. Other errors: as of pnfsrdma_fdatasync(), -EBADF,
 * -EINVAL (behind the end of the file, or too much), -ENOTSUP, -EAGAIN (as below). */
int pnfsrdma_flush_and_verify(pnfsrdma_file* file, const struct pnfsrdma_range* ranges, unsigned count,
                              const uint32_t* expected, uint32_t* found);
/* CRC32C (Castagnoli) of `count` bytes. */
uint32_t pnfsrdma_crc32c(const void* bytes, size_t count);

/* ---- events ----
 * A writer signals what it has written; programs on this and on other hosts that watch a part of it wake, when it is
 * durable and can be read. An event or a gap: whatever happens to programs, connections and bricks on the way, whoever
 * watches is told of each signal, or that it may have missed some and has to look again. Never before what was
 * signalled can be read; now and then twice. */

typedef struct pnfsrdma_watch pnfsrdma_watch;

/* Behind a gap look again at all that is watched. _SLOW: more was signalled than was taken; 256 to 1024 events are
 * kept. _LOST: connection, brick or memory were lost for a while; it comes then, and once more when the watch is there
 * again. */
enum { PNFSRDMA_EVENT_SIGNAL = 0, PNFSRDMA_EVENT_GAP_SLOW = 1, PNFSRDMA_EVENT_GAP_LOST = 2 };
struct pnfsrdma_event {
  uint32_t kind;
  uint32_t reserved;
  uint64_t offset; /* in the file: what was signalled of what is watched; with a gap all that is watched */
  uint64_t length;
  uint64_t value; /* the writer's */
};

/* Watches `length` bytes from `offset` on: whoever signals there behind the return of this is told of. The file must be
 * open for reading and stays open as long as the watch: pnfsrdma_close() says -EBUSY. Errors: -EBADF, -EINVAL (behind
 * the end of the file), -EAGAIN (no memory is granted just now, or its brick does not answer), -ENOSPC (too many: 256
 * of a connection to a server; 192 of all programs of a mount, 64 of one user but root), -EOPNOTSUPP (a brick or mount
 * of an older version; a mount with `writeback`; the file's data does not go by RDMA). */
int pnfsrdma_watch_create(pnfsrdma_file* file, off_t offset, size_t length, pnfsrdma_watch** watch);
void pnfsrdma_watch_destroy(pnfsrdma_watch* watch);
/* Readable (poll(2), epoll(7)) while there is an event. */
int pnfsrdma_watch_fd(const pnfsrdma_watch* watch);
/* 1: `event` is the next one; 0: none came within `timeout_ms` (0: does not wait, -1: forever); -EINTR if a signal of
 * the system's came before that. */
int pnfsrdma_watch_next(pnfsrdma_watch* watch, struct pnfsrdma_event* event, int timeout_ms);

/* Makes durable what was written to this range through this connection, as pnfsrdma_fdatasync() does, and tells `value`
 * to those who watch a part of it. For an overwrite of memory of one brick this is one round trip. The file must be
 * open for writing. On an error some of them may have been told. Errors: as pnfsrdma_fdatasync(), -EBADF, -EINVAL,
 * -EAGAIN, -EOPNOTSUPP (as above). */
int pnfsrdma_signal(pnfsrdma_file* file, off_t offset, size_t length, uint64_t value);

/* ---- a file as memory ----
 * SNIA's NVM programming model, with the memory at the other end of a network: a map is a private image, in
 * registered memory, of a part of a file. Store into it, and sync() the ranges that were stored to; nothing else
 * is ever written. What others have written is seen after a refresh(), and nothing is before. */

typedef struct pnfsrdma_map pnfsrdma_map;

/* Reads `length` bytes from `offset`; zeros where the file has ended. The file must be open for reading (and
 * writing, if it is to be synced) and stays open as long as the map: pnfsrdma_close() says -EBUSY. */
int pnfsrdma_map_create(pnfsrdma_file* file, off_t offset, size_t length, pnfsrdma_map** map);
/* The same with the image at `address`, the beginning of a page, so that pointers in the file stay true; NULL:
 * anywhere. -EEXIST: something of the process is mapped there; nothing is replaced. */
int pnfsrdma_map_create_at(pnfsrdma_file* file, off_t offset, size_t length, void* address,
                           pnfsrdma_map** map);
void pnfsrdma_map_destroy(pnfsrdma_map* map);
void* pnfsrdma_map_address(const pnfsrdma_map* map);
/* Writes these ranges, all at once, in no order, with one flush of each brick behind each 64 of them; they are durable
 * when it returns. On an error, and after a crash meanwhile, some of them are and some are not: a range is not atomic.
 * pnfsrdma_last_error() names those that may not be. One thread at a time. */
int pnfsrdma_map_sync(pnfsrdma_map* map, const struct pnfsrdma_range* ranges, unsigned count);
/* Reads these ranges again, over what was stored and not synced. One thread at a time. */
int pnfsrdma_map_refresh(pnfsrdma_map* map, const struct pnfsrdma_range* ranges, unsigned count);

/* ---- blocks ----
 * For programs that bring their own metadata: a partition of a brick's medium (pnfsrdma-brickd-partition(8)),
 * which has one owner, whoever has its key. Its blocks have 64-bit addresses; they are allocated, mapped, read and
 * written by RDMA, and freed. No server, no files and no mount are there. Any number of processes may be the owner
 * at once. Calls wait, for up to 60 seconds where the brick does not answer, those that move bytes for 30, and go
 * on over lost connections and restarts of the brick. */

typedef struct pnfsrdma_blocks pnfsrdma_blocks;   /* a partition, opened by its owner */
typedef struct pnfsrdma_mapping pnfsrdma_mapping; /* blocks of it that are mapped */

/* `address`: of the brick's control port, "host", "host:port" or the path of its socket. `key_file`: what
 * pnfsrdma-brickd partition create has written; nobody else may read it. `options`: NULL, or proto=,
 * require_durability=persistent, as of a connection to a server. Errors: -EACCES (another key, or another
 * partition), -EINVAL (a name, an option, no key), -EPERM (others may read the key file; the durability), -ENOENT,
 * -ENOTSUP (nobody there serves an owner), -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT, -ENFILE (too many processes). */
int pnfsrdma_blocks_open(const char* address, const char* partition, const char* key_file,
                         const char* options, pnfsrdma_blocks** blocks);
/* -EBUSY while something is mapped; else it is gone. */
int pnfsrdma_blocks_close(pnfsrdma_blocks* blocks);
/* As pnfsrdma_transport(), pnfsrdma_durability(). */
const char* pnfsrdma_blocks_transport(const pnfsrdma_blocks* blocks);
const char* pnfsrdma_blocks_durability(const pnfsrdma_blocks* blocks);

struct pnfsrdma_partition {
  uint64_t block_size; /* bytes; addresses are multiples of it */
  uint64_t blocks;
  uint64_t quota; /* blocks that may be allocated; 0: all */
  uint64_t allocated;
  uint64_t epoch; /* grows with each start of the brick, and when mappings are taken away */
};
int pnfsrdma_blocks_stat(pnfsrdma_blocks* blocks, struct pnfsrdma_partition* partition);

#define PNFSRDMA_ANY_ADDRESS UINT64_MAX
/* Allocates `count` blocks of neighbouring addresses, all zeros, durably. `wanted`: where, or
 * PNFSRDMA_ANY_ADDRESS. `tag`: 0, or a random number that the program has written down before: when it has
 * crashed, the same call says what the first one said. `*address`: of the first block. Errors: -ENOSPC, -EDQUOT,
 * -EEXIST (`wanted` is taken), -EINVAL. */
int pnfsrdma_blocks_alloc(pnfsrdma_blocks* blocks, uint64_t count, uint64_t wanted, uint64_t tag,
                          uint64_t* address);
/* Ends all mappings that have a part of `count` blocks from `address` on, whosever they are: when it returns,
 * nobody reads or writes by them any more. -EBUSY is never an answer. -ECONNRESET: the brick ended before it
 * answered, and may have done it. */
int pnfsrdma_blocks_unmap(pnfsrdma_blocks* blocks, uint64_t address, uint64_t count);
/* The same, and gives the blocks back. -ENOENT: not all of them are allocated. */
int pnfsrdma_blocks_free(pnfsrdma_blocks* blocks, uint64_t address, uint64_t count);

struct pnfsrdma_run {
  uint64_t address;
  uint64_t count; /* blocks */
};
/* What is allocated, in order of addresses, `from` and above: how many runs, at most `most`. Where it is `most`,
 * go on behind the last one. */
int pnfsrdma_blocks_list(pnfsrdma_blocks* blocks, uint64_t from, struct pnfsrdma_run* runs, unsigned most);

enum {
  PNFSRDMA_MAP_READ = 0,
  PNFSRDMA_MAP_WRITE = 1, /* for reading and writing */
  PNFSRDMA_MAP_SHARED = 2 /* beside others that are shared, for writing, too */
};
/* Maps allocated blocks. Two mappings exclude each other where they overlap and one is for writing, unless both
 * are shared. A mapping ends with pnfsrdma_blocks_unmap() and pnfsrdma_blocks_free() by whichever process, and
 * when the brick has not heard of this process for its lease; it outlives a restart of the brick, if nobody else
 * can have had the blocks meanwhile. Errors: -EBUSY (another one excludes it), -ENOENT (not allocated), -EINVAL,
 * -ENFILE (too many). */
int pnfsrdma_blocks_map(pnfsrdma_blocks* blocks, uint64_t address, uint64_t count, unsigned flags,
                        pnfsrdma_mapping** mapping);
/* The mapping is gone whatever is returned. What was written and not flushed is not durable. Nothing may be under
 * way. */
int pnfsrdma_mapping_release(pnfsrdma_mapping* mapping);

/* Offsets are bytes of the mapping. 0: all of it was moved; on an error a part may have been. `flags`:
 * PNFSRDMA_DURABLE. Errors: -EINVAL (the mapping ends before that, flags), -EBADF (not for writing), -ESTALE (the
 * mapping has ended), -ETIMEDOUT (the brick does not answer), -EIO. */
int pnfsrdma_mapping_read(pnfsrdma_mapping* mapping, void* buffer, size_t count, uint64_t offset);
int pnfsrdma_mapping_write(pnfsrdma_mapping* mapping, const void* buffer, size_t count, uint64_t offset,
                           uint32_t flags);
/* Makes durable what was written there by this mapping. -EIO: the brick has lost some of what was written and not
 * flushed; told once. */
int pnfsrdma_mapping_flush(pnfsrdma_mapping* mapping, uint64_t offset, uint64_t length);
/* As the functions of these names for words of a file, on a mapping for writing: -ENOTSUP (a brick of an older
 * version), -EIO (also: whether the word was changed is not known). */
int pnfsrdma_mapping_compare_and_swap(pnfsrdma_mapping* mapping, uint64_t offset, uint64_t expected,
                                      uint64_t desired, uint32_t flags, uint64_t* old);
int pnfsrdma_mapping_fetch_and_add(pnfsrdma_mapping* mapping, uint64_t offset, uint64_t addend,
                                   uint32_t flags, uint64_t* old);

/* ---- log ---- */

enum {
  PNFSRDMA_LOG_DEBUG = 0,
  PNFSRDMA_LOG_INFO = 1,
  PNFSRDMA_LOG_WARNING = 2,
  PNFSRDMA_LOG_ERROR = 3,
  PNFSRDMA_LOG_OFF = 4
};
/* The process's log, from `level` on: to `write` (called by one thread at a time, which must not call back into the
 * library), or with NULL to stderr. Nothing is logged before, and nothing in the children of a process that has used
 * the library. Before the first connection. */
void pnfsrdma_set_log(int level, void (*write)(int level, const char* line));

#ifdef __cplusplus
}
#endif
#endif
