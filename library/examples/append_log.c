/* SPDX-License-Identifier: Apache-2.0 */
/* A log on remote persistent memory, with group commit and recovery.
 *
 *   append_log SOURCE PATH write COUNT   appends COUNT records, prints each number once it is durable
 *   append_log SOURCE PATH check        reads it, prints the number of the last whole record
 *
 * A record is {magic, length, number, checksum} and its bytes, padded to 64. The file is allocated ahead and written in
 * place, so a commit is one round trip: the records that came together go out in one write with the flush behind it.
 * After a crash the log ends before the first record that is not whole: its checksum covers its number and its bytes, and
 * what lies behind the end is zeros or an older attempt at the same record. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pnfsrdma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, BATCH = 16, AHEAD = 1 << 20, MAGIC = 0x4c4f4731, TEXT_MAX = 200 };

struct record {
  uint32_t magic, length;
  uint64_t number, checksum;
};

static void fail(const char *what) {
  fprintf(stderr, "append_log: %s: %s\n", what, pnfsrdma_last_error());
  exit(1);
}

static uint64_t fnv1a(uint64_t hash, const void *bytes, size_t count) {
  for (const unsigned char *at = bytes; count > 0; --count) hash = (hash ^ *at++) * 0x100000001b3u;
  return hash;
}

static uint64_t checksum(const struct record *record, const void *text) {
  const uint64_t hash = fnv1a(fnv1a(0xcbf29ce484222325u, &record->number, sizeof record->number), &record->length, sizeof record->length);
  return fnv1a(hash, text, record->length);
}

static size_t padded(uint32_t length) {
  return (sizeof(struct record) + length + ALIGN - 1) / ALIGN * ALIGN;
}

/* The text of a record is a function of its number, so that a reader can check it. */
static uint32_t text_of(uint64_t number, char *text) {
  const int length = snprintf(text, TEXT_MAX, "record %" PRIu64 " %.*s", number, (int)(number % 97),
                              "the quick brown fox jumps over the lazy dog and runs on over the hills and far away until it stops here ");
  return (uint32_t)length;
}

/* Where the log ends, and the number of its last record; 0: it is empty. */
static uint64_t recover(pnfsrdma_file *file, char *memory, uint64_t *end) {
  uint64_t last = 0, offset = 0;
  for (;;) {
    const ssize_t got = pnfsrdma_pread(file, memory, AHEAD, (off_t)offset);
    if (got < 0) fail("read");
    size_t at = 0;
    for (;;) {
      struct record record;
      if (at + sizeof record > (size_t)got) break;
      memcpy(&record, memory + at, sizeof record);
      if (record.magic != MAGIC || record.length > TEXT_MAX || record.number != last + 1) goto done;
      if (at + padded(record.length) > (size_t)got) break;
      if (record.checksum != checksum(&record, memory + at + sizeof record)) goto done;
      char text[TEXT_MAX];
      if (text_of(record.number, text) != record.length || memcmp(text, memory + at + sizeof record, record.length) != 0) {
        fprintf(stderr, "append_log: record %" PRIu64 " says something else\n", record.number);
        exit(1);
      }
      last = record.number;
      at += padded(record.length);
    }
    if (at == 0) break; /* the end of the file */
    offset += at;
    *end = offset;
    continue;
  done:
    *end = offset + at;
    return last;
  }
  *end = offset;
  return last;
}

static void write_log(pnfsrdma_file *file, char *memory, uint64_t count) {
  uint64_t end = 0;
  uint64_t number = recover(file, memory, &end);
  struct stat status;
  if (pnfsrdma_fstat(file, &status) != 0) fail("fstat");
  uint64_t size = (uint64_t)status.st_size;
  const uint64_t last = number + count;
  while (number < last) {
    /* Growth is a call to the metadata server: once in AHEAD bytes. */
    if (end + BATCH * padded(TEXT_MAX) > size) {
      size = end + AHEAD;
      if (pnfsrdma_ftruncate(file, (off_t)size) != 0 || pnfsrdma_fsync(file) != 0) fail("growing the log");
    }
    size_t bytes = 0;
    uint64_t next = number;
    for (; next < last && next < number + BATCH; ++next) {
      struct record record = {.magic = MAGIC, .number = next + 1};
      char *text = memory + bytes + sizeof record;
      memset(memory + bytes, 0, padded(TEXT_MAX));
      record.length = text_of(next + 1, text);
      record.checksum = checksum(&record, text);
      memcpy(memory + bytes, &record, sizeof record);
      bytes += padded(record.length);
    }
    if (pnfsrdma_pwrite_durable(file, memory, bytes, (off_t)end) != (ssize_t)bytes) fail("commit");
    end += bytes;
    for (; number < next; ++number) printf("%" PRIu64 "\n", number + 1); /* acknowledged */
    fflush(stdout);
  }
}

int main(int count, char **arguments) {
  const int writes = count == 5 && strcmp(arguments[3], "write") == 0;
  if (!writes && !(count == 4 && strcmp(arguments[3], "check") == 0)) {
    fprintf(stderr, "usage: append_log SOURCE PATH write COUNT | check\n");
    return 2;
  }
  pnfsrdma_client *client;
  pnfsrdma_file *file;
  if (pnfsrdma_connect(arguments[1], NULL, &client) != 0) fail("connect");
  char *memory = pnfsrdma_alloc(client, AHEAD);
  if (memory == NULL) fail("memory");
  if (pnfsrdma_open(client, arguments[2], writes ? O_RDWR | O_CREAT : O_RDONLY, 0644, &file) != 0) fail("open");
  if (writes) {
    write_log(file, memory, strtoull(arguments[4], NULL, 10));
  } else {
    uint64_t end;
    printf("%" PRIu64 "\n", recover(file, memory, &end));
  }
  if (pnfsrdma_close(file) != 0) fail("close");
  pnfsrdma_free(client, memory);
  if (pnfsrdma_disconnect(client) != 0) fail("disconnect");
  return 0;
}
