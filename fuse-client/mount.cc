// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/mount.h"

#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "fuse-client/beliefs.h"
#include "fuse-client/callbacks.h"
#include "fuse-client/close_queue.h"
#include "fuse-client/delegations.h"
#include "fuse-client/file_opens.h"
#include "fuse-client/file_system.h"
#include "fuse-client/metrics_server.h"
#include "fuse-client/mount_point.h"
#include "fuse-client/mount_status.h"
#include "fuse-client/reclaimer.h"
#include "fuse-client/ring/ring_server.h"
#include "fuse-client/worker_pool.h"
#include "shared/base/heap_trimmer.h"
#include "shared/base/log.h"
#include "shared/base/random.h"
#include "shared/base/sync.h"
#include "shared/client/server.h"
#include "shared/client/transports.h"
#include "shared/initiator/session/session_mds.h"

namespace pnfsrdma::fuse_client {
namespace {

using initiator::Session;

// How long the end of a mount may take for what has to reach the servers; then everything that waits fails.
constexpr Milliseconds kFarewell = std::chrono::seconds(10);
constexpr Milliseconds kWatch = std::chrono::seconds(1);
constexpr int kTrimEach = 5;  // turns

// TERM, INT and HUP arrive here instead of killing threads. Before any thread is started: they inherit the
// mask.
Result<FileDescriptor> take_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  if (::pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) return fail(errno, "pthread_sigmask");
  (void)::signal(SIGPIPE, SIG_IGN);
  FileDescriptor fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return std::unexpected(Error::from_errno("signalfd"));
  return fd;
}

// Null: not wanted.
Result<std::unique_ptr<MetricsServer>> serve_metrics(const MountOptions& options, const MountStatus& status) {
  if (options.metrics.empty()) return nullptr;
  TRY_ASSIGN(const auto address, rpc::SocketAddress::parse(options.metrics));
  TRY_ASSIGN(auto server, MetricsServer::start(address, [&status] { return status.metrics_text(); }));
  log_info("fuse", "metrics address={}", server->address().to_string());
  return server;
}

// Sleeps until the mount is to end: a signal, or the session is over.
void wait_for_end(const FileDescriptor& signals, WorkerPool& workers, const MountPoint& point,
                  const InodeTable& inodes) {
  // Inodes; what closed files still owed the server goes with their flush, which may be ten seconds later.
  HeapTrimmer trimmer(8192, 4);
  for (int turn = 1;; ++turn) {
    std::array<pollfd, 2> watched = {pollfd{signals.get(), POLLIN, 0}, pollfd{workers.ended_fd(), POLLIN, 0}};
    const int count = ::poll(watched.data(), watched.size(), static_cast<int>(kWatch.count()));
    if (count > 0) return;
    // Nobody reads /dev/fuse when all workers wait for servers: an abort by the kernel shows only here.
    if (count == 0 && workers.all_busy() && point.aborted_by_kernel()) return;
    if (turn % kTrimEach == 0 && trimmer.tick(inodes.forgotten())) (void)::malloc_trim(0);
  }
}

void close_what_is_open(Session& session, InodeTable& inodes) {
  // Only after a lazy unmount or an abort: else the kernel has released everything.
  for (const std::shared_ptr<Inode>& inode : inodes.open_ones()) {
    const auto data = inode->data();
    const auto open = inode->open_state(false);
    if (data) data->release();
    if (!open) continue;
    nfs4::CloseArguments close;
    close.open_stateid = open->stateid;
    initiator::CallOptions options;
    options.deadline = steady_now() + std::chrono::seconds(2);
    if (!session.call({nfs4::PutFileHandleArguments{inode->handle}, close}, open->credential, options))
      return;
  }
}

// Cuts the mount's end short: what still waits for servers at the deadline fails.
class EndInTime {
 public:
  EndInTime(Session& session, initiator::DataPath& data_path, SteadyTime deadline)
      : thread_([this, &session, &data_path, deadline] {
          std::unique_lock lock(mutex_);
          if (ended_.wait_until(lock, deadline, [this] { return is_over_; })) return;
          log_warning("fuse", "unmount-aborts cause=\"servers do not answer\"");
          data_path.abort();
          session.abort();
        }) {}
  ~EndInTime() {
    {
      std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }
  EndInTime(const EndInTime&) = delete;
  EndInTime& operator=(const EndInTime&) = delete;

 private:
  Mutex mutex_;
  Condition ended_;
  bool is_over_ = false;
  Thread thread_;  // last: uses the others
};

// Ends the session's threads on every way out, before what their handlers touch is gone.
class SessionEnd {
 public:
  explicit SessionEnd(Session& session) : session_(session) {}
  ~SessionEnd() { session_.end(); }
  SessionEnd(const SessionEnd&) = delete;
  SessionEnd& operator=(const SessionEnd&) = delete;

 private:
  Session& session_;
};

}  // namespace

std::vector<std::string> fuse_arguments(const MountOptions& options, std::string_view transport,
                                        std::string_view durability) {
  // "server:/path[iwarp+process]": what `mount` shows as the source, with where the data goes and what it
  // survives.
  std::string source;
  for (const char c : fmt::format("{}:{}[{}+{}]", initiator::hosts_text(options.host, options.other_hosts),
                                  options.path, transport, durability)) {
    if (c == ',' || c == '\\') source += '\\';  // libfuse splits options at commas
    source += c;
  }
  std::vector<std::string> arguments = {"pnfsrdma-fuse"};
  const auto option = [&](std::string text) {
    arguments.emplace_back("-o");
    arguments.push_back(std::move(text));
  };
  option("fsname=" + source);
  option("subtype=pnfsrdma");
  option(fmt::format("max_read={}", initiator::kBufferPayload));
  option(options.read_only ? "ro" : "rw");
  // The kernel keeps names and attributes for all users; only it can refuse those who may not see them. The
  // server checks each call in the caller's name as well.
  if (options.default_permissions) option("default_permissions");
  if (options.allow_other) option("allow_other");
  for (const std::string& text : options.kernel) option(text);
  if (options.debug) arguments.emplace_back("-d");
  return arguments;
}

// The architecture of the client, top to bottom.
Result<> run_mount(const MountOptions& options, Readiness& readiness) {
  TRY_ASSIGN(const FileDescriptor signals, take_signals());
  const SystemClock clock;
  SystemRandom random;

  // The MDS: one session.
  TRY_ASSIGN(auto transports, client::make_transports(options.data_transports, random));
  auto reach = session_options(options, client::make_owner());
  if (options.calls_by_rdma) reach.rdma_transports = transports;
  TRY_ASSIGN(const auto session, Session::start(std::move(reach), nullptr, nullptr));
  TRY_ASSIGN(const client::Root root, client::find_root(*session, options.path));
  const std::string durability = client::durability_told(session->implementation());
  TRY(client::check_durability(options, durability));

  // The data path: RDMA to the bricks, the session where there is no layout.
  initiator::SessionMds mds(*session);
  const std::string transport = root.layouts ? client::names_of(transports) : "through the server";
  std::vector<std::string> transport_names;
  for (const auto& each : transports) {
    if (root.layouts) transport_names.push_back(each->name());
  }
  initiator::DataPath data_path(mds, clock, std::move(transports),
                                {.persistence = options.persistence,
                                 .activity_distance = std::chrono::seconds(options.layoutstats_timer_seconds),
                                 .flush_after = std::chrono::seconds(options.flush_after_seconds),
                                 .require_power = options.require_persistent,
                                 .layouts = root.layouts});

  // What the kernel sees. The inodes go before the data path: they hold its files.
  InodeTable inodes(static_cast<uint32_t>(random.next_u64()), KnownNames::inode_bytes(options));
  const auto root_inode = std::make_shared<Inode>(root.handle, root.attributes.status.st_ino);
  (void)root_inode->learn(root.attributes, root.asked_at, options.attributes, std::nullopt);
  inodes.set_root(root_inode);
  BlockedLocks blocked_locks;
  CloseQueue closes(*session);
  Delegations delegations(closes);
  LockCalls lock_calls(*session, delegations, clock);
  Beliefs beliefs(clock, *session, delegations, options.attributes);
  KnownNames names(inodes, beliefs, options);
  KeptListings listings(KnownNames::listing_bytes(options));
  mds.bring_attributes(client::stat_attributes(), [&](const auto& handle, const auto&... said) {
    if (const auto inode = inodes.find(handle)) beliefs.learn_with_write(*inode, said...);
  });
  const FileOpens opens(*session, data_path, delegations, closes, beliefs, clock, options.attributes);
  Reclaimer reclaimer(*session, data_path, inodes, lock_calls, delegations, closes.revoked());
  Callbacks callbacks(data_path, inodes, delegations, [&](const Inode& inode) { blocked_locks.look(inode); });
  session->set_handlers(&callbacks, &reclaimer);
  const SessionEnd session_end(*session);
  CallerGroups callers(clock);
  Invalidator invalidator;
  RingServer rings(
      {data_path, invalidator, random, size_t{options.ring_memory_mib} << 20, transport, durability});
  if (options.serves_rings()) {
    if (const auto serving = rings.start(); !serving)
      log_warning("fuse", "rings-not-served cause=\"{}\"", serving.error().to_string());
  }
  WorkerCounts worker_counts;
  const MountStatus status({*session, data_path, inodes, delegations, closes, rings, worker_counts, options,
                            clock, std::move(transport_names), durability});
  TRY_ASSIGN(const auto metrics, serve_metrics(options, status));
  FileSystem file_system({*session, data_path, inodes, callers, invalidator, lock_calls, blocked_locks,
                          delegations, beliefs, names, listings, opens, rings, clock, options, status,
                          root.layouts, root.posix_acls});
  TRY_ASSIGN(MountPoint point, MountPoint::mount(file_system, fuse_arguments(options, transport, durability),
                                                 options.mountpoint));
  invalidator.start(point.session());
  blocked_locks.start([&](BlockedLocks::Waiting& waiting) { return file_system.try_lock_again(waiting); });
  bool in_time = true;
  {
    WorkerPool workers({point.session(), data_path, inodes, worker_counts, options});
    TRY(workers.start());
    log_info("fuse", "mounted source={}:{} on={} minor={} transport={} durability={} local_lock={}",
             session->server(), options.path, options.mountpoint, session->minor_version(), transport,
             durability, to_string(options.effective_local_lock()));
    readiness.report();
    wait_for_end(signals, workers, point, inodes);

    in_time = workers.stop(steady_now() + kFarewell);
    if (!in_time) {
      log_warning("fuse", "unmount-aborts cause=\"servers do not answer\"");
      data_path.abort();
      session->abort();
    }
  }
  blocked_locks.stop();
  // Only now: it closes /dev/fuse, whose number no worker may still read from.
  invalidator.stop();
  point.unmount();
  const SteadyTime farewell = steady_now() + kFarewell;
  const EndInTime end_in_time(*session, data_path, farewell);
  data_path.send_held(farewell);
  delegations.end_all();
  closes.stop();
  rings.stop();
  if (in_time) close_what_is_open(*session, inodes);
  data_path.shut_down(farewell);
  (void)session->drain_posts(farewell);
  log_info("fuse", "unmounted source={}:{}", session->server(), options.path);
  return {};
}

}  // namespace pnfsrdma::fuse_client
