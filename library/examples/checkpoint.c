/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint of many large shards on remote persistent memory: written in parallel, durable, verified, and then, by one
 * rename, the current one. A crash leaves the checkpoint of before.
 *
 *   checkpoint SOURCE NAME save SHARDS MIB SEED    the shards' bytes are a function of SEED
 *   checkpoint SOURCE NAME load                    reads and verifies it, prints its seed
 *
 * A checkpoint is a folder NAME.SEED of shards, and a file NAME that says which one counts: {magic, shards, bytes, seed,
 * a checksum for each shard}. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pnfsrdma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 20, DEPTH = 16, SHARDS_MAX = 64, PATH_SIZE = 300 };

struct manifest {
  uint64_t magic, shards, bytes, seed, checksums[SHARDS_MAX];
};
static const uint64_t MAGIC = 0x31544e504b434843u;

static void fail(const char *what) {
  fprintf(stderr, "checkpoint: %s: %s\n", what, pnfsrdma_last_error());
  exit(1);
}

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
  return *state;
}

static uint64_t checksum(uint64_t sum, const char *bytes, size_t count) {
  for (size_t i = 0; i < count; i += 8) {
    uint64_t word;
    memcpy(&word, bytes + i, 8);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  return sum;
}

/* What a program would have in its memory anyway. */
static void fill(char *piece, uint64_t seed, uint64_t shard, uint64_t offset) {
  uint64_t state = seed * 1000003 + shard * 7919 + offset + 1;
  for (size_t i = 0; i < PIECE; i += 8) {
    const uint64_t word = next_random(&state);
    memcpy(piece + i, &word, 8);
  }
}

static void shard_path(char *path, const char *name, uint64_t seed, uint64_t shard) {
  snprintf(path, PATH_SIZE, "%s.%" PRIu64 "/shard%" PRIu64, name, seed, shard);
}

/* Waits for one operation; returns its slot. */
static unsigned wait_for_one(pnfsrdma_queue *queue) {
  struct pnfsrdma_completion done;
  int count;
  do count = pnfsrdma_reap(queue, &done, 1, -1);
  while (count == -EINTR);
  if (count != 1) fail("reap");
  if (done.result != PIECE) {
    fprintf(stderr, "checkpoint: a piece: %s\n", done.result < 0 ? strerror((int)-done.result) : "it is short");
    exit(1);
  }
  return (unsigned)done.user_data;
}

/* Writes or reads one shard, DEPTH pieces at a time, and returns its checksum. */
static uint64_t move_shard(pnfsrdma_client *client, pnfsrdma_queue *queue, char *memory, const char *path, int writes, uint64_t seed,
                           uint64_t shard, uint64_t bytes) {
  pnfsrdma_file *file;
  if (pnfsrdma_open(client, path, writes ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0644, &file) != 0) fail(path);
  uint64_t sum = shard;
  for (uint64_t batch = 0; batch < bytes; batch += (uint64_t)DEPTH * PIECE) {
    const unsigned pieces = (unsigned)((bytes - batch) / PIECE < DEPTH ? (bytes - batch) / PIECE : DEPTH);
    for (unsigned i = 0; i < pieces; ++i) {
      struct pnfsrdma_operation operation = {.file = file, .opcode = writes ? PNFSRDMA_WRITE : PNFSRDMA_READ, .buffer = memory + i * (size_t)PIECE,
                                             .length = PIECE, .offset = batch + i * (uint64_t)PIECE, .user_data = i};
      if (writes) fill(operation.buffer, seed, shard, operation.offset);
      if (pnfsrdma_submit(queue, &operation, 1) != 1) fail("submit");
    }
    for (unsigned i = 0; i < pieces; ++i) (void)wait_for_one(queue);
    for (unsigned i = 0; i < pieces; ++i) sum = checksum(sum, memory + i * (size_t)PIECE, PIECE);
  }
  if (writes && pnfsrdma_fsync(file) != 0) fail("fsync");
  if (pnfsrdma_close(file) != 0) fail("close");
  return sum;
}

static void save(pnfsrdma_client *client, pnfsrdma_queue *queue, char *memory, const char *name, struct manifest *manifest) {
  char path[PATH_SIZE], temporary[PATH_SIZE];
  snprintf(path, sizeof path, "%s.%" PRIu64, name, manifest->seed);
  const int made = pnfsrdma_mkdir(client, path, 0755);
  if (made != 0 && made != -EEXIST) fail(path);
  for (uint64_t shard = 0; shard < manifest->shards; ++shard) {
    shard_path(path, name, manifest->seed, shard);
    manifest->checksums[shard] = move_shard(client, queue, memory, path, 1, manifest->seed, shard, manifest->bytes);
  }
  pnfsrdma_file *file;
  snprintf(temporary, sizeof temporary, "%s.new", name);
  if (pnfsrdma_open(client, temporary, O_WRONLY | O_CREAT | O_TRUNC, 0644, &file) != 0) fail(temporary);
  if (pnfsrdma_pwrite_durable(file, manifest, sizeof *manifest, 0) != sizeof *manifest || pnfsrdma_fsync(file) != 0) fail(temporary);
  if (pnfsrdma_close(file) != 0 || pnfsrdma_rename(client, temporary, name) != 0) fail(name);
  printf("saved %" PRIu64 "\n", manifest->seed);
}

static void load(pnfsrdma_client *client, pnfsrdma_queue *queue, char *memory, const char *name) {
  struct manifest manifest;
  pnfsrdma_file *file;
  if (pnfsrdma_open(client, name, O_RDONLY, 0, &file) != 0) fail(name);
  if (pnfsrdma_pread(file, &manifest, sizeof manifest, 0) != sizeof manifest || manifest.magic != MAGIC || manifest.shards > SHARDS_MAX) {
    fprintf(stderr, "checkpoint: %s is not a checkpoint\n", name);
    exit(1);
  }
  if (pnfsrdma_close(file) != 0) fail(name);
  for (uint64_t shard = 0; shard < manifest.shards; ++shard) {
    char path[PATH_SIZE];
    shard_path(path, name, manifest.seed, shard);
    if (move_shard(client, queue, memory, path, 0, manifest.seed, shard, manifest.bytes) != manifest.checksums[shard]) {
      fprintf(stderr, "checkpoint: %s is damaged\n", path);
      exit(1);
    }
  }
  printf("%" PRIu64 "\n", manifest.seed);
}

int main(int count, char **arguments) {
  struct manifest manifest = {.magic = MAGIC};
  const int saves = count == 7 && strcmp(arguments[3], "save") == 0;
  if (saves) {
    manifest.shards = strtoull(arguments[4], NULL, 10);
    manifest.bytes = strtoull(arguments[5], NULL, 10) * PIECE;
    manifest.seed = strtoull(arguments[6], NULL, 10);
  }
  if (manifest.shards > SHARDS_MAX || !(saves || (count == 4 && strcmp(arguments[3], "load") == 0))) {
    fprintf(stderr, "usage: checkpoint SOURCE NAME save SHARDS MIB SEED | load     (at most %d shards)\n", SHARDS_MAX);
    return 2;
  }
  pnfsrdma_client *client;
  pnfsrdma_queue *queue;
  if (pnfsrdma_connect(arguments[1], NULL, &client) != 0) fail("connect");
  char *memory = pnfsrdma_alloc(client, (size_t)DEPTH * PIECE);
  if (memory == NULL || pnfsrdma_queue_create(client, DEPTH, &queue) != 0) fail("memory");
  if (saves) {
    save(client, queue, memory, arguments[2], &manifest);
  } else {
    load(client, queue, memory, arguments[2]);
  }
  pnfsrdma_queue_destroy(queue);
  pnfsrdma_free(client, memory);
  return pnfsrdma_disconnect(client) != 0;
}
