/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets from one roll on remote persistent memory, for any number of processes on any hosts: nobody gets a number that
 * another one has.
 *
 *   tickets SOURCE PATH take COUNT   takes COUNT numbers, prints each
 *   tickets SOURCE PATH sold        prints how many are taken
 *   tickets SOURCE PATH close       takes no more; fails if another one has done so
 *
 * The file is two words: the next number, and who has closed the roll (0: nobody yet, else a process id). */
#include <fcntl.h>
#include <inttypes.h>
#include <pnfsrdma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NEXT = 0, CLOSED = 8, SIZE = 16 };

static void fail(const char *what) {
  fprintf(stderr, "tickets: %s: %s\n", what, pnfsrdma_last_error());
  exit(1);
}

static uint64_t word_at(pnfsrdma_file *file, off_t offset) {
  unsigned char bytes[8];
  if (pnfsrdma_pread(file, bytes, sizeof bytes, offset) != sizeof bytes) fail("read");
  uint64_t word = 0;
  for (int i = 7; i >= 0; --i) word = word << 8 | bytes[i]; /* little-endian, whatever this machine is */
  return word;
}

static void take(pnfsrdma_file *file, uint64_t count) {
  while (count-- > 0) {
    if (word_at(file, CLOSED) != 0) {
      fprintf(stderr, "tickets: the roll is closed\n");
      exit(1);
    }
    uint64_t number;
    /* Durable before it is shown to anybody: a number is not given out again behind a crash. */
    if (pnfsrdma_fetch_and_add(file, NEXT, 1, PNFSRDMA_DURABLE, &number) != 0) fail("take");
    printf("%" PRIu64 "\n", number);
  }
}

static void close_roll(pnfsrdma_file *file) {
  uint64_t owner;
  const int swapped = pnfsrdma_compare_and_swap(file, CLOSED, 0, (uint64_t)getpid(), PNFSRDMA_DURABLE, &owner);
  if (swapped < 0) fail("close");
  if (swapped == 0) {
    fprintf(stderr, "tickets: process %" PRIu64 " has closed the roll\n", owner);
    exit(1);
  }
}

int main(int count, char **arguments) {
  const char *what = count >= 4 ? arguments[3] : "";
  const int takes = count == 5 && strcmp(what, "take") == 0;
  const int closes = count == 4 && strcmp(what, "close") == 0;
  if (!takes && !closes && !(count == 4 && strcmp(what, "sold") == 0)) {
    fprintf(stderr, "usage: tickets SOURCE PATH take COUNT | sold | close\n");
    return 2;
  }
  pnfsrdma_client *client;
  pnfsrdma_file *file;
  if (pnfsrdma_connect(arguments[1], NULL, &client) != 0) fail("connect");
  if (pnfsrdma_open(client, arguments[2], O_RDWR | O_CREAT, 0666, &file) != 0) fail("open");
  /* A word has to be inside of the file. Whoever comes second finds it as long as that. */
  struct stat status;
  if (pnfsrdma_fstat(file, &status) != 0) fail("fstat");
  if (status.st_size < SIZE && pnfsrdma_ftruncate(file, SIZE) != 0) fail("growing the file");
  if (takes) take(file, strtoull(arguments[4], NULL, 10));
  if (closes) close_roll(file);
  if (!takes && !closes) printf("%" PRIu64 "\n", word_at(file, NEXT));
  if (pnfsrdma_close(file) != 0) fail("close");
  return pnfsrdma_disconnect(client) != 0;
}
