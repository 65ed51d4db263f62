/* SPDX-License-Identifier: Apache-2.0
 *
 * An external engine for fio: reads, writes and syncs of files on a mount of pnfsrdma-fuse, by libpnfsrdma instead of
 * the kernel. One connection and one queue for each job; its buffers are memory that the bricks reach, so nothing is
 * copied. `iodepth` operations are under way at most, and what fio queues together goes out with one doorbell. */
#include <stdlib.h>
#include <string.h>

#include "fio.h"
#include "optgroup.h"

#include <pnfsrdma.h>

struct engine_options {
  void* unused; /* fio takes an offset of 0 for none */
  char* mount;
  unsigned durable;
};

static struct fio_option options[] = {
    {
        .name = "mount",
        .lname = "mount",
        .type = FIO_OPT_STR_STORE,
        .off1 = offsetof(struct engine_options, mount),
        .help = "Directory on a mount of pnfsrdma-fuse that all files are below (default: that of the first file)",
        .category = FIO_OPT_C_ENGINE,
        .group = FIO_OPT_G_INVALID,
    },
    {
        .name = "durable",
        .lname = "durable writes",
        .type = FIO_OPT_BOOL,
        .off1 = offsetof(struct engine_options, durable),
        .def = "0",
        .help = "Each write takes its flush along, and is durable when it completes",
        .category = FIO_OPT_C_ENGINE,
        .group = FIO_OPT_G_INVALID,
    },
    {.name = NULL},
};

/* Of one job. */
struct engine {
  pnfsrdma_client* client;
  pnfsrdma_queue* queue;
  char* mount;
  unsigned depth;
  struct pnfsrdma_operation* waiting; /* queued, not submitted: the first `count` */
  unsigned count;
  unsigned under_way;
  struct pnfsrdma_completion* completed;
  void* memory;
};

/* fio's convention: says what failed, and fails the job. */
static int fail(struct thread_data* td, int error, const char* what) {
  log_err("pnfsrdma: %s: %s\n", what, pnfsrdma_last_error());
  td_verror(td, -error, what);
  return 1;
}

/* The directory that `path` is in. The caller's to free. */
static char* directory_of(const char* path) {
  const char* slash = strrchr(path, '/');
  if (slash == NULL) return strdup(".");
  return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static void engine_free(struct engine* engine) {
  if (engine->queue != NULL) pnfsrdma_queue_destroy(engine->queue);
  if (engine->memory != NULL) pnfsrdma_free(engine->client, engine->memory);
  if (engine->client != NULL) pnfsrdma_disconnect(engine->client);
  free(engine->waiting);
  free(engine->completed);
  free(engine->mount);
  free(engine);
}

static void engine_cleanup(struct thread_data* td) {
  if (td->io_ops_data != NULL) engine_free(td->io_ops_data);
  td->io_ops_data = NULL;
}

/* In the job itself: a connection does not survive fork(2). */
static int engine_init(struct thread_data* td) {
  const struct engine_options* wanted = td->eo;
  struct engine* engine = calloc(1, sizeof *engine);
  char* real = NULL;
  int error = 0;

  if (engine == NULL) return 1;
  td->io_ops_data = engine;
  engine->depth = td->o.iodepth;
  engine->waiting = calloc(engine->depth, sizeof *engine->waiting);
  engine->completed = calloc(engine->depth, sizeof *engine->completed);
  engine->mount = wanted->mount != NULL ? strdup(wanted->mount) : directory_of(td->files[0]->file_name);
  real = engine->mount != NULL ? realpath(engine->mount, NULL) : NULL;
  if (real == NULL || engine->waiting == NULL || engine->completed == NULL) {
    td_verror(td, errno, engine->mount != NULL ? engine->mount : "malloc");
    free(real);
    return 1;
  }
  error = pnfsrdma_connect(real, NULL, &engine->client);
  free(real);
  if (error == 0) error = pnfsrdma_queue_create(engine->client, engine->depth, &engine->queue);
  return error == 0 ? 0 : fail(td, error, engine->mount);
}

/* fio's buffers, page by page as it likes them. */
static int engine_iomem_alloc(struct thread_data* td, size_t size) {
  struct engine* engine = td->io_ops_data;
  engine->memory = pnfsrdma_alloc(engine->client, size);
  if (engine->memory == NULL) return fail(td, -ENOMEM, "pnfsrdma_alloc");
  td->orig_buffer = engine->memory;
  return 0;
}

static void engine_iomem_free(struct thread_data* td) {
  struct engine* engine = td->io_ops_data;
  if (engine == NULL || engine->memory == NULL) return;
  pnfsrdma_free(engine->client, engine->memory);
  engine->memory = NULL;
  td->orig_buffer = NULL;
}

/* As the connection knows the file: below the mount's directory. */
static const char* name_of(const struct engine* engine, const struct fio_file* file) {
  size_t length = strlen(engine->mount);
  const char* name = file->file_name;
  while (length > 0 && engine->mount[length - 1] == '/') --length;
  if (strncmp(name, engine->mount, length) == 0 && name[length] == '/') name += length;
  while (*name == '/') ++name;
  return name;
}

static int engine_open_file(struct thread_data* td, struct fio_file* file) {
  struct engine* engine = td->io_ops_data;
  pnfsrdma_file* opened = NULL;
  int flags = td_write(td) && !read_only ? O_RDWR | O_CREAT : O_RDONLY;
  int error = 0;

  if (td->o.sync_io != 0) flags |= O_DSYNC;
  error = pnfsrdma_open(engine->client, name_of(engine, file), flags, 0644, &opened);
  if (error != 0) return fail(td, error, file->file_name);
  FILE_SET_ENG_DATA(file, opened);
  return 0;
}

static int engine_close_file(struct thread_data* td, struct fio_file* file) {
  pnfsrdma_file* opened = FILE_ENG_DATA(file);
  int error = 0;

  FILE_SET_ENG_DATA(file, NULL);
  if (opened == NULL) return 0;
  error = pnfsrdma_close(opened);
  return error == 0 ? 0 : fail(td, error, file->file_name);
}

static enum fio_q_status engine_queue(struct thread_data* td, struct io_u* io_u) {
  const struct engine_options* wanted = td->eo;
  struct engine* engine = td->io_ops_data;
  struct pnfsrdma_operation operation = {
      .file = FILE_ENG_DATA(io_u->file),
      .buffer = io_u->xfer_buf,
      .length = io_u->xfer_buflen,
      .offset = io_u->offset,
      .user_data = (uintptr_t)io_u,
  };

  fio_ro_check(td, io_u);
  switch (io_u->ddir) {
    case DDIR_READ:
      operation.opcode = PNFSRDMA_READ;
      break;
    case DDIR_WRITE:
      operation.opcode = PNFSRDMA_WRITE;
      operation.flags = wanted->durable ? PNFSRDMA_DURABLE : 0;
      break;
    case DDIR_SYNC:
    case DDIR_DATASYNC:
      /* A sync covers what had completed: fio may mean what it has just queued, too. */
      if (engine->count + engine->under_way > 0) return FIO_Q_BUSY;
      operation.opcode = io_u->ddir == DDIR_SYNC ? PNFSRDMA_FSYNC : PNFSRDMA_FDATASYNC;
      operation.buffer = NULL;
      operation.length = operation.offset = 0;
      break;
    default:
      io_u->error = EOPNOTSUPP;
      return FIO_Q_COMPLETED;
  }
  if (engine->count + engine->under_way == engine->depth) return FIO_Q_BUSY;
  engine->waiting[engine->count++] = operation;
  return FIO_Q_QUEUED;
}

static void note_issued(struct thread_data* td, const struct engine* engine, unsigned count) {
  struct timespec now;

  io_u_mark_submit(td, count);
  if (!fio_fill_issue_time(td)) return;
  fio_gettime(&now, NULL);
  for (unsigned i = 0; i < count; ++i) {
    struct io_u* io_u = (struct io_u*)(uintptr_t)engine->waiting[i].user_data;
    memcpy(&io_u->issue_time, &now, sizeof now);
    io_u_queued(td, io_u);
  }
}

static int engine_commit(struct thread_data* td) {
  struct engine* engine = td->io_ops_data;

  while (engine->count > 0) {
    const int taken = pnfsrdma_submit(engine->queue, engine->waiting, engine->count);
    if (taken == -EAGAIN && engine->under_way > 0) return 0; /* fio reaps, and comes again */
    if (taken < 0) {
      fail(td, taken, "pnfsrdma_submit");
      return taken;
    }
    note_issued(td, engine, (unsigned)taken);
    engine->under_way += (unsigned)taken;
    engine->count -= (unsigned)taken;
    memmove(engine->waiting, engine->waiting + taken, engine->count * sizeof *engine->waiting);
  }
  return 0;
}

static int engine_getevents(struct thread_data* td, unsigned int least, unsigned int most,
                            const struct timespec* timeout) {
  struct engine* engine = td->io_ops_data;
  const int patience = least == 0      ? 0
                       : timeout != NULL ? (int)(timeout->tv_sec * 1000 + timeout->tv_nsec / 1000000)
                                         : -1;
  unsigned seen = 0;

  do {
    const int count = pnfsrdma_reap(engine->queue, engine->completed + seen, most - seen, patience);
    if (count == -EINTR) continue;
    if (count < 0) return count;
    seen += (unsigned)count;
    engine->under_way -= (unsigned)count;
    if (count == 0 && timeout != NULL) break;
  } while (seen < least);
  return (int)seen;
}

static struct io_u* engine_event(struct thread_data* td, int number) {
  const struct engine* engine = td->io_ops_data;
  const struct pnfsrdma_completion* completion = &engine->completed[number];
  struct io_u* io_u = (struct io_u*)(uintptr_t)completion->user_data;

  io_u->error = completion->result < 0 ? (int)-completion->result : 0;
  io_u->resid = 0;
  if (completion->result >= 0 && !ddir_sync(io_u->ddir)) io_u->resid = io_u->xfer_buflen - completion->result;
  return io_u;
}

/* What fio looks for in an external engine. */
struct ioengine_ops ioengine = {
    .name = "pnfsrdma",
    .version = FIO_IOOPS_VERSION,
    .flags = FIO_NODISKUTIL | FIO_ASYNCIO_SETS_ISSUE_TIME,
    .init = engine_init,
    .cleanup = engine_cleanup,
    .iomem_alloc = engine_iomem_alloc,
    .iomem_free = engine_iomem_free,
    .open_file = engine_open_file,
    .close_file = engine_close_file,
    .get_file_size = generic_get_file_size,
    .queue = engine_queue,
    .commit = engine_commit,
    .getevents = engine_getevents,
    .event = engine_event,
    .options = options,
    .option_struct_size = sizeof(struct engine_options),
};
