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

#include "fuse-client/callbacks.h"
#include "fuse-client/close_queue.h"
#include "fuse-client/delegations.h"
#include "fuse-client/file_system.h"
#include "fuse-client/metrics_server.h"
#include "fuse-client/mount_point.h"
#include "fuse-client/mount_status.h"
#include "fuse-client/reclaimer.h"
#include "fuse-client/transports.h"
#include "fuse-client/worker_pool.h"
#include "shared/base/heap_trimmer.h"
#include "shared/base/log.h"
#include "shared/base/random.h"
#include "shared/base/sync.h"
#include "shared/initiator/session/session_mds.h"
#include "shared/nfs4/status_errno.h"

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

// The mounted directory: PUTROOTFH, a LOOKUP per component, GETFH, GETATTR.
struct Root {
  std::shared_ptr<Inode> inode;
  bool layouts = false;  // the server's files may have layouts of our type
};

Result<Root> find_root(Session& session, const MountOptions& options) {
  Session::Operations operations = {nfs4::PutRootFileHandleArguments{}};
  for (size_t start = 0; start < options.path.size();) {
    const size_t end = std::min(options.path.find('/', start), options.path.size());
    if (end > start) operations.emplace_back(nfs4::LookupArguments{options.path.substr(start, end - start)});
    start = end + 1;
  }
  const size_t handle_at = operations.size();
  operations.emplace_back(nfs4::GetFileHandleArguments{});
  operations.emplace_back(
      nfs4::GetAttributesArguments{stat_attributes() | nfs4::Bitmap::of(nfs4::Attribute::kFsLayoutTypes)});
  const SteadyTime asked_at = steady_now();
  initiator::CallOptions call;
  call.deadline = asked_at + std::chrono::seconds(30);
  TRY_ASSIGN(const auto reply, session.call(std::move(operations), {::getuid(), ::getgid(), {}}, call));
  const auto* handle = reply.result<nfs4::GetFileHandleResponse>(handle_at);
  const auto* attributes = reply.result<nfs4::GetAttributesResponse>(handle_at + 1);
  if (reply.status == nfs4::Status::kPerm) {
    return fail(EPERM,
                fmt::format("{}:{}: the server serves this export to ports below 1024 only, which root "
                            "may bind: mount as root, or set \"insecure\" of the export on the server",
                            session.server(), options.path));
  }
  if (handle == nullptr || attributes == nullptr) {
    return fail(nfs4::to_errno(reply.status),
                fmt::format("{}:{}: the server answers {}; is this path exported there?", session.server(),
                            options.path, nfs4::to_string(reply.status)));
  }
  const auto file = to_file_attributes(attributes->attributes);
  if (!file) return fail(EPROTO, "the server does not return the attributes of the root");
  if (!S_ISDIR(file->status.st_mode))
    return fail(ENOTDIR, options.path + " is not a directory on the server");
  Root root{std::make_shared<Inode>(handle->object, file->status.st_ino)};
  (void)root.inode->learn(*file, asked_at, options.attributes, std::nullopt);
  // Our own server offers none while it has no brick.
  const auto& types = attributes->attributes.fs_layout_types;
  root.layouts = session.implementation().starts_with("pnfsrdma") ||
                 (types && std::ranges::find(*types, nfs4::kLayoutTypePmem) != types->end());
  return root;
}

Result<> check_durability(const MountOptions& options, const std::string& durability) {
  if (!options.require_persistent || durability == "power") return {};
  return fail(
      EPERM, fmt::format("require_durability=persistent: the server's memory is of class \"{}\" and does not "
                         "survive a loss of power; put the pool on PMEM or a disk file, or mount without "
                         "require_durability",
                         durability));
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

std::string make_owner() {
  std::array<char, 256> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  std::array<std::byte, 16> random;
  SystemRandom().fill(random);
  return fmt::format("pnfsrdma-{}-{}", host.data(), to_hex(random));
}

std::string durability_told(std::string_view implementation) {
  constexpr std::string_view kKey = "durability=";
  const size_t at = implementation.find(kKey);
  if (at == std::string_view::npos) return "unknown";
  implementation.remove_prefix(at + kKey.size());
  return std::string(implementation.substr(0, implementation.find_first_of(" ,;")));
}

std::vector<std::string> fuse_arguments(const MountOptions& options, std::string_view transport,
                                        std::string_view durability) {
  // "server:/path[iwarp+process]": what `mount` shows as the source, with where the data goes and what it
  // survives.
  const bool is_v6 = options.host.find(':') != std::string::npos;
  const std::string host = is_v6 ? "[" + options.host + "]" : options.host;
  std::string source;
  for (const char c : fmt::format("{}:{}[{}+{}]", host, options.path, transport, durability)) {
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
  TRY_ASSIGN(auto transports, make_transports(options.data_transports, random));
  auto reach = session_options(options, make_owner());
  if (options.calls_by_rdma) reach.rdma_transports = transports;
  TRY_ASSIGN(const auto session, Session::start(std::move(reach), nullptr, nullptr));
  TRY_ASSIGN(const Root root, find_root(*session, options));
  const std::string durability = durability_told(session->implementation());
  TRY(check_durability(options, durability));

  // The data path: RDMA to the bricks, the session where there is no layout.
  initiator::SessionMds mds(*session);
  const std::string transport = root.layouts ? names_of(transports) : "through the server";
  std::vector<std::string> transport_names;
  for (const auto& each : transports) {
    if (root.layouts) transport_names.push_back(each->name());
  }
  initiator::DataPath data_path(mds, clock, std::move(transports),
                                {.persistence = options.persistence,
                                 .flush_after = std::chrono::seconds(options.flush_after_seconds),
                                 .require_power = options.require_persistent,
                                 .layouts = root.layouts});

  // What the kernel sees. The inodes go before the data path: they hold its files.
  InodeTable inodes(static_cast<uint32_t>(random.next_u64()));
  inodes.set_root(root.inode);
  mds.bring_attributes(stat_attributes(),
                       [&](const auto& handle, const auto& attributes, SteadyTime at, bool changed) {
                         const auto inode = inodes.find(handle);
                         const auto data = inode ? inode->data() : nullptr;
                         const auto file = to_file_attributes(attributes);
                         if (!data || !file) return;
                         inode->judge_pages({file->change, at, clock.now(), changed}, file->status.st_mtim);
                         inode->learn_with_write(*file, at, options.attributes, data->local_version() + 1);
                       });
  LockCalls lock_calls(*session);
  BlockedLocks blocked_locks;
  CloseQueue closes(*session);
  Delegations delegations(closes);
  Reclaimer reclaimer(*session, data_path, inodes, lock_calls, delegations, closes.revoked());
  Callbacks callbacks(data_path, inodes, delegations, blocked_locks);
  session->set_handlers(&callbacks, &reclaimer);
  const SessionEnd session_end(*session);
  CallerGroups callers(clock);
  Invalidator invalidator;
  WorkerCounts worker_counts;
  const MountStatus status({*session, data_path, inodes, delegations, worker_counts, options, clock,
                            std::move(transport_names), durability});
  TRY_ASSIGN(const auto metrics, serve_metrics(options, status));
  FileSystem file_system({*session, data_path, inodes, callers, invalidator, lock_calls, blocked_locks,
                          closes, delegations, clock, options, status, root.layouts});
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
  delegations.end_all();
  closes.stop();
  if (in_time) close_what_is_open(*session, inodes);
  data_path.shut_down(farewell);
  (void)session->drain_posts(farewell);
  log_info("fuse", "unmounted source={}:{}", session->server(), options.path);
  return {};
}

}  // namespace pnfsrdma::fuse_client
