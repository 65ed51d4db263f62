/* SPDX-License-Identifier: Apache-2.0 */
/* Reads or overwrites 4 KiB of a file at places that come by chance, one at a time in each of some threads, by pread(2)
 * and pwrite(2) or by libpnfsrdma, and prints how many a second and how long the median one took.
 *
 * usage: one_at_a_time FILE read|write buffered|direct|library THREADS SECONDS */
#include <fcntl.h>
#include <pnfsrdma.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kLength = 4096, kLatenciesMax = 1 << 20, kThreadsMax = 256 };

static struct {
  int file;
  pnfsrdma_client* client;
  pnfsrdma_file* opened;
  int writes;
  off_t places;
  double end;
} job;

struct thread {
  pthread_t id;
  unsigned seed;
  long count;
  unsigned* latencies; /* ns */
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static ssize_t move(void* memory, off_t offset) {
  if (job.opened)
    return job.writes ? pnfsrdma_pwrite(job.opened, memory, kLength, offset)
                      : pnfsrdma_pread(job.opened, memory, kLength, offset);
  return job.writes ? pwrite(job.file, memory, kLength, offset) : pread(job.file, memory, kLength, offset);
}

static void* run(void* argument) {
  struct thread* const self = argument;
  void* memory = job.client ? pnfsrdma_alloc(job.client, kLength) : aligned_alloc(kLength, kLength);
  memset(memory, 1, kLength);
  for (double began = now(); began < job.end; ++self->count) {
    const off_t place = (off_t)((unsigned)rand_r(&self->seed) % (unsigned)job.places);
    if (move(memory, place * kLength) != kLength) abort();
    const double done = now();
    if (self->count < kLatenciesMax) self->latencies[self->count] = (unsigned)((done - began) * 1e9);
    began = done;
  }
  job.client ? pnfsrdma_free(job.client, memory) : free(memory);
  return NULL;
}

static int compare(const void* a, const void* b) {
  const unsigned x = *(const unsigned*)a, y = *(const unsigned*)b;
  return (x > y) - (x < y);
}

static void open_file(const char* path, const char* way) {
  if (strcmp(way, "library") == 0) {
    char* const folder = strdup(path);
    char* const name = strrchr(folder, '/');
    *name = '\0';
    if (pnfsrdma_connect(folder, NULL, &job.client) != 0 ||
        pnfsrdma_open(job.client, name + 1, O_RDWR, 0, &job.opened) != 0) {
      fprintf(stderr, "%s\n", pnfsrdma_last_error());
      exit(1);
    }
    free(folder);
  }
  /* One buffered descriptor, and the kernel lets direct writers of the file in one by one. */
  job.file = open(path, O_RDWR | (strcmp(way, "buffered") == 0 ? 0 : O_DIRECT));
  if (job.file < 0) {
    perror(path);
    exit(1);
  }
}

int main(int count, char** arguments) {
  if (count != 6) return 2;
  const int threads = atoi(arguments[4]);
  static struct thread all[kThreadsMax];
  if (threads < 1 || threads > kThreadsMax) return 2;
  open_file(arguments[1], arguments[3]);
  job.writes = strcmp(arguments[2], "write") == 0;
  job.places = lseek(job.file, 0, SEEK_END) / kLength;
  const double began = now();
  job.end = began + atof(arguments[5]);
  for (int i = 0; i < threads; ++i) {
    all[i].seed = (unsigned)i + (unsigned)getpid();
    all[i].latencies = calloc(kLatenciesMax, sizeof(unsigned));
    pthread_create(&all[i].id, NULL, run, &all[i]);
  }
  long done = 0, kept = 0;
  unsigned* const latencies = calloc((size_t)threads * kLatenciesMax, sizeof(unsigned));
  for (int i = 0; i < threads; ++i) {
    pthread_join(all[i].id, NULL);
    done += all[i].count;
    const long known = all[i].count < kLatenciesMax ? all[i].count : kLatenciesMax;
    memcpy(latencies + kept, all[i].latencies, (size_t)known * sizeof(unsigned));
    kept += known;
    free(all[i].latencies);
  }
  const double taken = now() - began;
  qsort(latencies, (size_t)kept, sizeof(unsigned), compare);
  printf("%.0f %.1f\n", (double)done / taken, (double)latencies[kept / 2] / 1e3);
  free(latencies);
  if (job.opened) pnfsrdma_close(job.opened);
  if (job.client) pnfsrdma_disconnect(job.client);
  return 0;
}
