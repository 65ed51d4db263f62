/* SPDX-License-Identifier: Apache-2.0 */
/* A ring between two hosts: one sends lines, one receives them, through remote persistent memory and without a server
 * program of their own. Either may crash, lose its connection or be stopped, and goes on where it was.
 *
 *   ring SOURCE PATH send            sends the lines of stdin, waits while the ring is full
 *   ring SOURCE PATH receive COUNT   prints COUNT lines as they come
 *   ring SOURCE PATH status          prints how many were sent and received, and who sends
 *   ring SOURCE PATH take-over       sends, although a sender that has crashed still has the ring
 *
 * A line that was sent is received once, in order; twice if the receiver crashed between printing it and saying so.
 *
 * The file is three words, then the slots. The sender alone counts SENT, and behind the slots; the receiver alone counts
 * RECEIVED. Neither waits for a lock. What a process had under way when it was killed may come to pass when another has its
 * place: so a count carries a number of its process, which the next one changes first, and is swapped, never stored. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pnfsrdma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SENT = 0, RECEIVED = 8, SENDER = 16, SLOTS = 4096, SLOT = 256, COUNT = 1024, SIZE = SLOTS + COUNT * SLOT };
enum { BATCH = 64, OF_PROCESS = 48 }; /* slots at once; bits of a count below the number of its process */

static void fail(const char *what) {
  fprintf(stderr, "ring: %s: %s\n", what, pnfsrdma_last_error());
  exit(1);
}

static uint64_t word_at(pnfsrdma_file *file, off_t offset) {
  unsigned char bytes[8];
  if (pnfsrdma_pread(file, bytes, sizeof bytes, offset) != sizeof bytes) fail("read");
  uint64_t word = 0;
  for (int i = 7; i >= 0; --i) word = word << 8 | bytes[i]; /* little-endian, whatever this machine is */
  return word;
}

static void pause_a_little(void) {
  const struct timespec pause = {0, 50 * 1000};
  nanosleep(&pause, NULL);
}

/* 1: swapped; 0: `*word` is what it is. */
static int swap_word(pnfsrdma_file *file, off_t offset, uint64_t *word, uint64_t desired) {
  int swapped;
  const uint64_t expected = *word;
  /* -EAGAIN: the server has taken the memory back for the moment. */
  while ((swapped = pnfsrdma_compare_and_swap(file, offset, expected, desired, PNFSRDMA_DURABLE, word)) == -EAGAIN)
    pause_a_little();
  if (swapped < 0) fail("compare and swap");
  return swapped;
}

static uint64_t number_in(uint64_t count) { return count & (((uint64_t)1 << OF_PROCESS) - 1); }

/* The count is ours from here on. */
static uint64_t take_count(pnfsrdma_file *file, off_t offset) {
  uint64_t count = word_at(file, offset);
  while (!swap_word(file, offset, &count, count + ((uint64_t)1 << OF_PROCESS))) continue;
  return count + ((uint64_t)1 << OF_PROCESS);
}

static uint64_t count_up(pnfsrdma_file *file, off_t offset, uint64_t count, uint64_t by) {
  if (swap_word(file, offset, &count, count + by)) return count + by;
  fprintf(stderr, "ring: another process has taken over\n");
  exit(1);
}

/* Until the number is another one: one RDMA READ a look, and the other host's processor does not notice. */
static uint64_t wait_for_change(pnfsrdma_file *file, off_t offset, uint64_t before) {
  uint64_t now;
  while ((now = number_in(word_at(file, offset))) == before) pause_a_little();
  return now;
}

/* How many slots lie one behind the other from `number` on, `wanted` at most. */
static uint64_t in_a_row(uint64_t number, uint64_t wanted) {
  const uint64_t to_end = COUNT - number % COUNT;
  if (wanted > BATCH) wanted = BATCH;
  return wanted < to_end ? wanted : to_end;
}

static off_t place_of(uint64_t number) {
  return SLOTS + (off_t)(number % COUNT) * SLOT;
}

/* One line a slot: what one read of stdin has brought, so that many that come together travel together. 0: stdin has
 * ended. */
static uint64_t take_lines(char *slots, uint64_t most) {
  static char input[BATCH * SLOT];
  static size_t filled;
  for (;;) {
    uint64_t count = 0;
    char *start = input, *end;
    while (count < most && (end = memchr(start, '\n', (size_t)(input + filled - start))) != NULL && end - start < SLOT) {
      memcpy(slots + count++ * SLOT, start, (size_t)(end + 1 - start));
      start = end + 1;
    }
    filled -= (size_t)(start - input);
    memmove(input, start, filled);
    if (count > 0) return count;
    if (filled >= SLOT) {
      fprintf(stderr, "ring: a line has more than %d bytes\n", SLOT - 1);
      exit(1);
    }
    const ssize_t read_now = read(STDIN_FILENO, input + filled, sizeof input - filled - 1);
    if (read_now <= 0 && filled == 0) return 0;
    if (read_now > 0) filled += (size_t)read_now;
    if (read_now <= 0) input[filled++] = '\n'; /* the last line had none */
  }
}

static void send_lines(pnfsrdma_file *file, char *slots) {
  uint64_t ours = take_count(file, SENT);
  uint64_t received = number_in(word_at(file, RECEIVED));
  for (;;) {
    const uint64_t sent = number_in(ours);
    while (sent - received == COUNT) received = wait_for_change(file, RECEIVED, received);
    const uint64_t count = take_lines(slots, in_a_row(sent, COUNT - (sent - received)));
    if (count == 0) return;
    /* First the lines, durably, then the word that says they are there. */
    if (pnfsrdma_pwrite_durable(file, slots, count * SLOT, place_of(sent)) != (ssize_t)(count * SLOT)) fail("send");
    ours = count_up(file, SENT, ours, count);
  }
}

static void receive_lines(pnfsrdma_file *file, char *slots, uint64_t wanted) {
  uint64_t ours = take_count(file, RECEIVED);
  uint64_t sent = number_in(word_at(file, SENT));
  while (wanted > 0) {
    const uint64_t received = number_in(ours);
    while (sent == received) sent = wait_for_change(file, SENT, sent);
    const uint64_t there = sent - received;
    const uint64_t count = in_a_row(received, there < wanted ? there : wanted);
    if (pnfsrdma_pread(file, slots, count * SLOT, place_of(received)) != (ssize_t)(count * SLOT)) fail("receive");
    for (uint64_t i = 0; i < count; ++i) {
      const char *line = slots + i * SLOT, *end = memchr(line, '\n', SLOT);
      if (end == NULL) {
        fprintf(stderr, "ring: slot %" PRIu64 " holds no line: is this file a ring?\n", (received + i) % COUNT);
        exit(1);
      }
      fwrite(line, 1, (size_t)(end + 1 - line), stdout);
    }
    if (fflush(stdout) != 0) exit(1);
    /* The slots are the sender's again. */
    ours = count_up(file, RECEIVED, ours, count);
    wanted -= count;
  }
}

/* One sender at a time: whoever swaps its number in. */
static void begin_sending(pnfsrdma_file *file, uint64_t me, int take_over) {
  uint64_t owner = take_over ? word_at(file, SENDER) : 0;
  if (!swap_word(file, SENDER, &owner, me)) {
    fprintf(stderr, "ring: process %" PRIu64 " sends; if it has crashed: take-over\n", owner);
    exit(1);
  }
}

int main(int count, char **arguments) {
  const char *what = count >= 4 ? arguments[3] : "";
  const int takes_over = count == 4 && strcmp(what, "take-over") == 0;
  const int sends = takes_over || (count == 4 && strcmp(what, "send") == 0);
  const int receives = count == 5 && strcmp(what, "receive") == 0;
  if (!sends && !receives && !(count == 4 && strcmp(what, "status") == 0)) {
    fprintf(stderr, "usage: ring SOURCE PATH send | receive COUNT | status | take-over\n");
    return 2;
  }
  pnfsrdma_client *client;
  pnfsrdma_file *file;
  if (pnfsrdma_connect(arguments[1], NULL, &client) != 0) fail("connect");
  if (pnfsrdma_open(client, arguments[2], O_RDWR | O_CREAT, 0666, &file) != 0) fail("open");
  struct stat status;
  if (pnfsrdma_fstat(file, &status) != 0) fail("fstat");
  if (status.st_size < SIZE && pnfsrdma_ftruncate(file, SIZE) != 0) fail("growing the file");
  /* Registered: the adapter reads and writes it without a copy. */
  char *slots = pnfsrdma_alloc(client, BATCH * SLOT);
  if (slots == NULL) fail("memory");
  uint64_t me = (uint64_t)getpid();
  if (sends) {
    begin_sending(file, me, takes_over);
    send_lines(file, slots);
    /* A sender that was taken over leaves the other one its place. */
    (void)swap_word(file, SENDER, &me, 0);
  } else if (receives) {
    receive_lines(file, slots, strtoull(arguments[4], NULL, 10));
  } else {
    printf("sent %" PRIu64 ", received %" PRIu64 ", sender %" PRIu64 "\n", number_in(word_at(file, SENT)),
           number_in(word_at(file, RECEIVED)), word_at(file, SENDER));
  }
  pnfsrdma_free(client, slots);
  if (pnfsrdma_close(file) != 0) fail("close");
  return pnfsrdma_disconnect(client) != 0;
}
