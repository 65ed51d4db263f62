/* SPDX-License-Identifier: Apache-2.0 */
/* What operations of the library cost a program in steady state: system calls of the thread that asks, and allocations of
 * the whole process. A line each: name, operations, allocations, and the calls as "name of the call/what its first
 * descriptor is=how many".
 *
 *   library_costs SOURCE
 *
 * The parent traces the child's first thread (ptrace(2)) between two calls that mean nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pnfsrdma.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 400, WARM_UP = 200, BLOCK = 4096, BLOCKS = 64, CHAIN = 16, BEGIN = -1000, END = -2000, TOLD = -3000 };

static atomic_long allocations;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t), void (*)(const volatile void *));
static void allocated(const volatile void *memory, size_t size) {
  (void)memory, (void)size;
  ++allocations;
}
static void freed(const volatile void *memory) { (void)memory; }
static void count_allocations(void) { __sanitizer_install_malloc_and_free_hooks(allocated, freed); }
#else
/* glibc's own; ours stand before it for every library of the process. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size) {
  ++allocations;
  return __libc_realloc(memory, size);
}
static void count_allocations(void) {}
#endif

/* ---- the parent ---- */

static const char *name_of(uint64_t number) {
  static char unknown[32];
  switch (number) {
    case SYS_read: return "read";
    case SYS_write: return "write";
    case SYS_writev: return "writev";
    case SYS_readv: return "readv";
    case SYS_sendto: return "send";
    case SYS_sendmsg: return "sendmsg";
    case SYS_recvfrom: return "recv";
    case SYS_recvmsg: return "recvmsg";
    case SYS_poll: case SYS_ppoll: return "poll";
    case SYS_epoll_wait: case SYS_epoll_pwait: return "epoll_wait";
    case SYS_epoll_ctl: return "epoll_ctl";
    case SYS_futex: return "futex";
    case SYS_pread64: return "pread";
    case SYS_pwrite64: return "pwrite";
    case SYS_pwritev2: return "pwritev2";
    case SYS_fdatasync: return "fdatasync";
    case SYS_ioctl: return "ioctl";
    default: snprintf(unknown, sizeof unknown, "call%" PRIu64, number); return unknown;
  }
}

struct kind {
  char text[96];
  long count;
};

static void note(struct kind *kinds, pid_t child, const struct __ptrace_syscall_info *info) {
  char link[64], target[64] = "", text[96];
  const uint64_t number = info->entry.nr;
  if (number != SYS_futex && number != SYS_poll && number != SYS_ppoll) {
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)child, (int)info->entry.args[0]);
    const ssize_t length = readlink(link, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    /* "socket:[123]", "anon_inode:[eventfd]", or a path. */
    if (strncmp(target, "socket:", 7) == 0) strcpy(target, "socket");
    if (strncmp(target, "anon_inode:", 11) == 0) memmove(target, target + 11, strlen(target + 11) + 1);
    if (target[0] == '/') strcpy(target, "file");
  }
  snprintf(text, sizeof text, "%s/%s", name_of(number), target);
  while (kinds->count > 0 && strcmp(kinds->text, text) != 0) ++kinds;
  strcpy(kinds->text, text);
  ++kinds->count;
}

static int trace(pid_t child) {
  static struct kind kinds[64];
  int status, counting = 0, in_call = 0;
  if (waitpid(child, &status, 0) != child || ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) != 0) return 1;
  for (int delivered = 0;;) {
    if (ptrace(PTRACE_SYSCALL, child, 0, delivered) != 0) return 1;
    if (waitpid(child, &status, 0) != child) return 1;
    delivered = 0;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (WIFSIGNALED(status)) return 1;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
      delivered = WSTOPSIG(status);
      continue;
    }
    if ((in_call = !in_call) == 0) continue;
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) < 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY) return 1;
    const int mark = info.entry.nr == SYS_getpgid ? (int)info.entry.args[0] : 0;
    if (mark == BEGIN) {
      memset(kinds, 0, sizeof kinds);
      counting = 1;
    } else if (mark == END) {
      counting = 0;
    } else if (mark == TOLD) { /* the child has written the line's beginning */
      for (const struct kind *each = kinds; each->count > 0; ++each) printf(" %s=%ld", each->text, each->count);
      printf("\n");
      fflush(stdout);
    } else if (counting) {
      note(kinds, child, &info);
    }
  }
}

/* ---- the child ---- */

static pnfsrdma_client *client;
static pnfsrdma_file *file;
static pnfsrdma_queue *queue;
static pnfsrdma_map *map;
static char *memory;

static void check(int64_t result, int64_t wanted, const char *what) {
  if (result == wanted) return;
  fprintf(stderr, "library_costs: %s: %" PRId64 " (%s)\n", what, result, pnfsrdma_last_error());
  _exit(1);
}

static void by_queue(uint32_t opcode, uint32_t flags, unsigned count, unsigned turn) {
  struct pnfsrdma_operation operations[CHAIN] = {{0}};
  struct pnfsrdma_completion completions[CHAIN];
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t at = (turn * count + i) % BLOCKS * BLOCK;
    operations[i] = (struct pnfsrdma_operation){file, opcode, flags, memory + at, BLOCK, at, i};
  }
  check(pnfsrdma_submit(queue, operations, count), count, "submit");
  for (unsigned done = 0; done < count;) {
    const int some = pnfsrdma_reap(queue, completions, CHAIN, -1);
    check(some > 0, 1, "reap");
    for (int i = 0; i < some; ++i) check(completions[i].result, BLOCK, "operation");
    done += (unsigned)some;
  }
}

static void queue_read(unsigned turn) { by_queue(PNFSRDMA_READ, 0, 1, turn); }
static void queue_write(unsigned turn) { by_queue(PNFSRDMA_WRITE, 0, 1, turn); }
static void queue_durable(unsigned turn) { by_queue(PNFSRDMA_WRITE, PNFSRDMA_DURABLE, 1, turn); }
static void chain_read(unsigned turn) { by_queue(PNFSRDMA_READ, 0, CHAIN, turn); }
static void chain_write(unsigned turn) { by_queue(PNFSRDMA_WRITE, 0, CHAIN, turn); }
static void chain_durable(unsigned turn) { by_queue(PNFSRDMA_WRITE, PNFSRDMA_DURABLE, CHAIN, turn); }
static off_t place(unsigned turn) { return (off_t)(turn % BLOCKS * BLOCK); }
static void wait_read(unsigned turn) { check(pnfsrdma_pread(file, memory, BLOCK, place(turn)), BLOCK, "pread"); }
static void wait_write(unsigned turn) { check(pnfsrdma_pwrite(file, memory, BLOCK, place(turn)), BLOCK, "pwrite"); }
static void wait_durable(unsigned turn) { check(pnfsrdma_pwrite_durable(file, memory, BLOCK, place(turn)), BLOCK, "pwrite_durable"); }
static void flush(unsigned turn) {
  wait_write(turn);
  check(pnfsrdma_fdatasync(file), 0, "fdatasync");
}
static void map_sync(unsigned turn) {
  struct pnfsrdma_range ranges[CHAIN];
  for (unsigned i = 0; i < CHAIN; ++i) ranges[i] = (struct pnfsrdma_range){((uint64_t)turn + i) % BLOCKS * BLOCK, 64};
  check(pnfsrdma_map_sync(map, ranges, CHAIN), 0, "map_sync");
}
static void notify(unsigned turn) { check(pnfsrdma_signal(file, place(turn), BLOCK, turn), 0, "signal"); }
static void verify(unsigned turn) {
  const struct pnfsrdma_range range = {(uint64_t)place(turn), BLOCK};
  uint32_t found;
  check(pnfsrdma_flush_and_verify(file, &range, 1, NULL, &found) >= 0, 1, "flush_and_verify");
}
static void word(unsigned turn) { check(pnfsrdma_fetch_and_add(file, place(turn), 1, 0, NULL), 0, "fetch_and_add"); }

static void measure(const char *name, void (*operation)(unsigned turn)) {
  for (unsigned turn = 0; turn < WARM_UP; ++turn) operation(turn);
  const long before = allocations;
  (void)syscall(SYS_getpgid, BEGIN);
  for (unsigned turn = 0; turn < COUNT; ++turn) operation(turn);
  /* printf(3) allocates nothing here: its buffer is ours. */
  char line[128];
  const int length = snprintf(line, sizeof line, "%s %d %ld", name, COUNT, allocations - before);

  (void)syscall(SYS_getpgid, END);
  if (write(1, line, (size_t)length) != length) _exit(1);
  (void)syscall(SYS_getpgid, TOLD);
}

static void work(const char *source) {
  count_allocations();
  check(pnfsrdma_connect(source, NULL, &client), 0, "connect");
  memory = pnfsrdma_alloc(client, BLOCKS * BLOCK);
  check(memory != NULL, 1, "alloc");
  check(pnfsrdma_open(client, "costs", O_RDWR | O_CREAT, 0644, &file), 0, "open");
  check(pnfsrdma_pwrite(file, memory, BLOCKS * BLOCK, 0), BLOCKS * BLOCK, "pwrite");
  check(pnfsrdma_fsync(file), 0, "fsync");
  check(pnfsrdma_queue_create(client, CHAIN, &queue), 0, "queue");
  check(pnfsrdma_map_create(file, 0, BLOCKS * BLOCK, &map), 0, "map");
  measure("queue_read", queue_read);
  measure("queue_write", queue_write);
  measure("queue_durable", queue_durable);
  measure("chain_read", chain_read);
  measure("chain_write", chain_write);
  measure("chain_durable", chain_durable);
  measure("read", wait_read);
  measure("write", wait_write);
  measure("durable", wait_durable);
  measure("flush", flush);
  measure("map_sync", map_sync);
  measure("word", word);
  measure("signal", notify);
  measure("verify", verify);
  pnfsrdma_map_destroy(map);
  pnfsrdma_queue_destroy(queue);
  check(pnfsrdma_close(file), 0, "close");
  pnfsrdma_free(client, memory);
  check(pnfsrdma_disconnect(client), 0, "disconnect");
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  const pid_t child = fork();
  if (child != 0) return child < 0 ? 1 : trace(child);
  if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) {
    perror("ptrace");
    _exit(1);
  }
  raise(SIGSTOP);
  work(arguments[1]);
  _exit(0); /* a leak checker cannot work in a process that is traced */
}
