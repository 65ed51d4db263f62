/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that submit to two queues and reap from them, in both ways, beside threads that read, sync, open and close: for
 * the sanitizers, and for what one operation loses to another.
 *
 * usage: library_stress SOURCE SECONDS      prints how many operations were done; 1 if one failed
 */
#include <errno.h>
#include <fcntl.h>
#include <pnfsrdma.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { QUEUES = 2, SUBMITTERS = 4, BUFFERS = 64, BLOCK = 4096, BLOCKS = 2000, BATCH_MAX = 5, DEPTH = 32 };

static pnfsrdma_client *client;
static pnfsrdma_file *file;
static pnfsrdma_queue *queues[QUEUES];
static char *memory;
static atomic_int busy[SUBMITTERS * BUFFERS]; /* a buffer belongs to its operation until that is reaped */
static atomic_int stopping;
static atomic_ulong submitted[QUEUES], reaped[QUEUES];

static void fail(const char *what) {
  fprintf(stderr, "library_stress: %s: %s\n", what, pnfsrdma_last_error());
  exit(1);
}

static struct pnfsrdma_operation some_operation(unsigned submitter, unsigned *seed) {
  unsigned buffer;
  do buffer = submitter * BUFFERS + (unsigned)rand_r(seed) % BUFFERS;
  while (atomic_exchange(&busy[buffer], 1));
  struct pnfsrdma_operation operation = {.file = file, .buffer = memory + (size_t)buffer * BLOCK, .length = BLOCK,
                                         .offset = (uint64_t)rand_r(seed) % BLOCKS * BLOCK, .user_data = buffer};
  const int kind = rand_r(seed) % 8;
  operation.opcode = kind < 4 ? PNFSRDMA_READ : kind < 7 ? PNFSRDMA_WRITE : PNFSRDMA_FDATASYNC;
  operation.flags = kind == 5 ? PNFSRDMA_DURABLE : 0;
  return operation;
}

static void *submit(void *argument) {
  const unsigned self = (unsigned)(uintptr_t)argument, queue = self % QUEUES;
  unsigned seed = self + 1;
  while (!stopping) {
    struct pnfsrdma_operation operations[BATCH_MAX];
    const unsigned count = 1 + (unsigned)rand_r(&seed) % BATCH_MAX;
    for (unsigned i = 0; i < count; ++i) operations[i] = some_operation(self, &seed);
    const int taken = pnfsrdma_submit(queues[queue], operations, count);
    if (taken < 0 && taken != -EAGAIN) fail("submit");
    for (unsigned i = taken < 0 ? 0 : (unsigned)taken; i < count; ++i) busy[operations[i].user_data] = 0;
    if (taken > 0) submitted[queue] += (unsigned)taken;
    const struct timespec pause = {0, 20000};
    if (taken < 0) nanosleep(&pause, NULL);
  }
  return NULL;
}

/* The first of a queue's two reapers waits in the library, the second in poll(2), and takes one at a time. */
static void *reap(void *argument) {
  const unsigned self = (unsigned)(uintptr_t)argument, queue = self % QUEUES;
  while (!stopping || submitted[queue] != reaped[queue]) {
    struct pnfsrdma_completion done[DEPTH];
    struct pollfd readable = {pnfsrdma_queue_fd(queues[queue]), POLLIN, 0};
    const int polls = self >= QUEUES;
    if (polls) (void)poll(&readable, 1, 50);
    const int count = polls ? pnfsrdma_reap(queues[queue], done, 1, 0) : pnfsrdma_reap(queues[queue], done, DEPTH, 50);
    if (count < 0 && count != -EINTR) fail("reap");
    for (int i = 0; i < count; ++i) {
      busy[done[i].user_data] = 0;
      if (done[i].result < 0) {
        fprintf(stderr, "library_stress: an operation: %s\n", strerror((int)-done[i].result));
        exit(1);
      }
    }
    if (count > 0) reaped[queue] += (unsigned)count;
  }
  return NULL;
}

static void *work_without_queue(void *argument) {
  unsigned seed = 100 + (unsigned)(uintptr_t)argument;
  char block[BLOCK];
  while (!stopping) {
    const off_t offset = (off_t)(rand_r(&seed) % BLOCKS) * BLOCK;
    if (pnfsrdma_pread(file, block, BLOCK, offset) != BLOCK) fail("pread");
    if (rand_r(&seed) % 50 == 0 && pnfsrdma_fsync(file) != 0) fail("fsync");
    if (rand_r(&seed) % 20 != 0) continue;
    pnfsrdma_file *own;
    if (pnfsrdma_open(client, "stress", O_RDWR, 0, &own) != 0) fail("open");
    if (pnfsrdma_pwrite_durable(own, block, BLOCK, offset) != BLOCK) fail("pwrite_durable");
    if (pnfsrdma_close(own) != 0) fail("close");
  }
  return NULL;
}

int main(int count, char **arguments) {
  if (count != 3) return fprintf(stderr, "usage: library_stress SOURCE SECONDS\n"), 2;
  if (pnfsrdma_connect(arguments[1], NULL, &client) != 0) fail("connect");
  const size_t size = (size_t)BLOCKS * BLOCK;
  memory = pnfsrdma_alloc(client, size);
  if (memory == NULL) fail("memory");
  if (pnfsrdma_open(client, "stress", O_RDWR | O_CREAT, 0644, &file) != 0) fail("open");
  if (pnfsrdma_pwrite(file, memory, size, 0) != (ssize_t)size || pnfsrdma_fsync(file) != 0) fail("write");
  for (int i = 0; i < QUEUES; ++i)
    if (pnfsrdma_queue_create(client, DEPTH, &queues[i]) != 0) fail("queue");
  pthread_t threads[SUBMITTERS + 2 * QUEUES + 2];
  int started = 0;
  for (uintptr_t i = 0; i < SUBMITTERS; ++i) pthread_create(&threads[started++], NULL, submit, (void *)i);
  for (uintptr_t i = 0; i < 2 * QUEUES; ++i) pthread_create(&threads[started++], NULL, reap, (void *)i);
  for (uintptr_t i = 0; i < 2; ++i) pthread_create(&threads[started++], NULL, work_without_queue, (void *)i);
  const struct timespec time = {atoi(arguments[2]), 0};
  nanosleep(&time, NULL);
  stopping = 1;
  for (int i = 0; i < started; ++i) pthread_join(threads[i], NULL);
  printf("%lu\n", reaped[0] + reaped[1]);
  for (int i = 0; i < QUEUES; ++i) pnfsrdma_queue_destroy(queues[i]);
  if (pnfsrdma_close(file) != 0) fail("close");
  pnfsrdma_free(client, memory);
  return pnfsrdma_disconnect(client) == 0 ? 0 : 1;
}
