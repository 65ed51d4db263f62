// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>

#include "server/console/console.h"
#include "server/mds/admin/administrator.h"
#include "server/mds/admin/cluster_watch.h"
#include "server/mds/admin/config.h"
#include "server/mds/admin/console_records.h"
#include "server/mds/admin/data_plane.h"
#include "server/mds/brick_address.h"
#include "server/mds/brick_tls.h"
#include "server/mds/check_command.h"
#include "server/mds/console_options.h"
#include "server/mds/meta/boot_record.h"
#include "server/mds/meta/rocksdb_store.h"
#include "server/mds/metadata_log.h"
#include "server/mds/ops/ended_handles.h"
#include "server/mds/ops/handle_keys.h"
#include "server/mds/ops/layout_callbacks.h"
#include "server/mds/ops/nfs_program.h"
#include "server/mds/ops/user_groups.h"
#include "server/mds/rdma_listeners.h"
#include "server/mds/state/idle_connections.h"
#include "server/mds/state/lease_keeper.h"
#include "server/mds/state/lock_waiters.h"
#include "server/mds/state/recovery.h"
#include "server/mds/state/server_limits.h"
#include "server/mds/state/state_memory.h"
#include "server/service/journal.h"
#include "server/service/service_manager.h"
#include "shared/base/heap_settings.h"
#include "shared/brick/client.h"
#include "shared/rdma/iwarp/transport.h"
#include "shared/version/version.h"

namespace pnfsrdma::mds {
namespace {

// Another server serves, or may: started again, this one waits for its turn.
constexpr int kExitFenced = 3;
// As TimeoutStartSec= of the unit: all extents are read.
constexpr Milliseconds kLongestOpening = std::chrono::minutes(10);

struct CommandLine {
  std::string config;
  bool print_config = false;
  bool check = false;
  bool accept_loss = false;
  bool leave_log = false;
  bool cluster_status = false;
};

// Blocked before any thread starts, so that all threads inherit it: signals come to the loop as events.
Result<FileDescriptor> block_signals() {
  signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  FileDescriptor fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return std::unexpected(Error::from_errno("signalfd"));
  return fd;
}

// A file with a mistake in it changes nothing, and neither do certificates that cannot be used.
void reload(const std::string& path, BrickTls& tls, Administrator& administrator) {
  auto fresh = load_config(path);
  if (fresh) {
    if (const auto read = tls.reload(*fresh); !read) fresh = std::unexpected(read.error());
  }
  if (!fresh) return log_error("mds", "reload-refused error=\"{}\"", fresh.error().to_string());
  const std::vector<std::string> waiting = administrator.reload(*fresh);
  log_info("mds", "reloaded path={}", path);
  if (!waiting.empty()) {
    log_warning(
        "mds",
        "restart-needed keys={} what=\"these have changed in the file and take effect after a restart\"",
        fmt::join(waiting, ","));
  }
}

// SIGHUP reads the configuration again, SIGUSR1 logs the counters, SIGTERM and SIGINT end the loop.
void watch_signals(EventLoop& loop, const FileDescriptor& signals, const Counters& counters,
                   std::function<void()> on_hangup) {
  loop.watch(signals.get(), EPOLLIN,
             [&loop, &signals, &counters, on_hangup = std::move(on_hangup)](uint32_t) {
               signalfd_siginfo signal{};
               while (read(signals.get(), &signal, sizeof(signal)) == static_cast<ssize_t>(sizeof(signal))) {
                 if (signal.ssi_signo == SIGUSR1) {
                   log_info("mds", "counters {}", to_json(counters));
                 } else if (signal.ssi_signo == SIGHUP) {
                   on_hangup();
                 } else {
                   loop.stop();
                 }
               }
             });
}

Result<std::unique_ptr<KeyValueStore>> open_store(EventLoop& loop, const Config& config,
                                                  std::function<void(Error)> failed) {
  std::error_code error;
  std::filesystem::create_directories(config.data_directory, error);
  if (error) return fail(error.value(), "creating the data directory " + config.data_directory);
  const RocksdbOptions options{.path = metadata_path(config), .cache_bytes = config.metadata_cache_mib << 20};
  return RocksdbStore::open(loop, options, std::move(failed));
}

ServerLimits limits_of(const Config& config) {
  ServerLimits limits;
  limits.lease = std::chrono::seconds(config.lease_seconds);
  limits.session_slots_max = config.session_slots;
  limits.small_file_bytes = config.small_file_bytes;
  limits.delegations = config.delegations;
  limits.clients_per_address_max = static_cast<uint32_t>(config.connections_per_address);
  return limits;
}

rpc::MemoryLimits memory_limits(const Config& config) {
  return {.bytes = config.memory_budget_mib << 20,
          .bytes_per_address = config.memory_per_address_mib << 20,
          .connections_per_address = config.connections_per_address,
          .stalled_record = std::chrono::seconds(config.stalled_request_seconds)};
}

Result<std::vector<std::unique_ptr<rpc::Listener>>> listen(EventLoop& loop, const Config& config,
                                                           const rpc::Service& service) {
  std::vector<std::unique_ptr<rpc::Listener>> listeners;
  for (const std::string& text : config.listen) {
    TRY_ASSIGN(const auto address, rpc::SocketAddress::parse(text, nfs4::kPort));
    TRY_ASSIGN(auto listener, rpc::Listener::listen(loop, address, service));
    log_info("mds", "listening address={}", listener->address().to_string());
    listeners.push_back(std::move(listener));
  }
  return listeners;
}

// The control sockets of bricks.
class SocketBrick final : public BrickConnection {
 public:
  SocketBrick(EventLoop& loop, BrickTls& tls, brick::BrickClientOptions options,
              brick::BrickClient::Events events)
      : tls_(tls), client_(loop, std::move(options), std::move(events)) {
    tls_.add(client_);
    client_.start();
  }
  ~SocketBrick() override { tls_.remove(client_); }
  brick::Control& control() override { return client_; }
  Milliseconds silence() const override { return client_.silence(); }
  bool secured() const { return client_.secured(); }

 private:
  BrickTls& tls_;
  brick::BrickClient client_;
};

// `log`: null: nobody else may take this server's place.
ConnectBrick connect_bricks(EventLoop& loop, const Config& config, const LogMember* log, BrickTls& tls,
                            BrickList& list) {
  // Found to be silent well before its files have waited long enough.
  const Milliseconds silence =
      std::min<Milliseconds>(Milliseconds(10'000), std::chrono::seconds(config.brick_patience_seconds) / 2);
  std::function<bool()> may_speak;
  if (log != nullptr) may_speak = [log] { return log->leads(); };
  return [&loop, &tls, &list, silence, may_speak](const std::string& address,
                                                  brick::BrickClient::Events events) {
    const auto made = std::make_shared<SocketBrick*>(nullptr);
    events.on_connected = [&list, address, made, connected = std::move(events.on_connected)] {
      if (const auto noted = list.note_tls(address, (*made)->secured()); !noted)
        log_warning("mds", "brick-tls-not-noted address={} error=\"{}\"", address, noted.error().to_string());
      connected();
    };
    auto brick = std::make_unique<SocketBrick>(
        loop, tls,
        brick::BrickClientOptions{
            .address = brick_address(address),
            .silence = silence,
            .may_speak = may_speak,
            .tls = [&tls, &list, address] { return tls.endpoint_for(address, list.tls_noted(address)); }},
        std::move(events));
    *made = brick.get();
    return brick;
  };
}

// Files are served without it, too: what keeps it from starting must not keep clients from their data.
void start_console(console::Console& console) {
  if (const auto started = console.start(); !started)
    log_error("console", "not-started error=\"{}\" what=\"files are still served\"",
              started.error().to_string());
}

std::function<std::optional<console::Cluster>()> cluster_of(ClusterWatch* watch, const LogMember* log) {
  if (watch == nullptr) return nullptr;
  return [watch, log] {
    auto cluster = watch->last();
    if (cluster) cluster->costs = view_costs(log->costs());
    return cluster;
  };
}

// The architecture of the MDS, from the ground up: metadata, client state, layouts over bricks, the NFS
// program, and the console for its administrator.
Result<> serve(const Config& config, const std::string& config_path) {
  TRY_ASSIGN(const FileDescriptor signals, block_signals());
  TRY_ASSIGN(const auto brick_tls, BrickTls::open(config));
  SystemClock clock;
  SystemRandom random;
  DeferredDestruction destruction("mds-destroy");
  rpc::MemoryBudget memory(clock, memory_limits(config));
  EventLoop loop(clock);
  memory.start(loop);
  Result<> outcome;
  Counters counters;
  ServerLimits limits = limits_of(config);

  ServiceManager manager(loop);
  BootClock lead_clock;
  Compounds* serving = nullptr;
  std::unique_ptr<LogMember> log;
  std::unique_ptr<ClusterWatch> cluster;
  const auto end = [&](Error why) {
    // Whoever waits is answered by the server that goes on with the log, if there is one: what he asked for may be in
    // it.
    if (serving != nullptr && !log) serving->refuse_all();
    if (outcome) outcome = std::unexpected(std::move(why));
    loop.stop();
  };
  const auto open = [&] {
    return open_store(loop, config, [&](const Error& failed) {
      // What is in memory and not on the medium can be trusted no more: end, recover at the next start.
      log_error("mds",
                "metadata-sync-failed error=\"{}\" what=\"stopping: no further change can be made durable\"",
                failed.to_string());
      note_failed_sync(metadata_path(config), random);
      end(failed.in("syncing the metadata"));
    });
  };
  TRY_ASSIGN(std::unique_ptr<KeyValueStore> store, open());
  KeyValueStore* engine = nullptr;  // what is behind the log
  TRY_ASSIGN(std::string host_boot, read_host_boot_id(metadata_path(config)));
  if (config.metadata_log.endpoints.empty()) {
    TRY(check_without_log(*store));
  } else {
    manager.ready();
    for (bool leads = false, copied = false; !leads;) {
      TRY_ASSIGN(log, metadata_log_member(loop, random, lead_clock, config, &ServiceManager::status));
      const auto led = follow_until_leading(loop, *log, *store, signals, [&] { return !outcome; });
      TRY(outcome);
      leads = led && *led;
      if (leads) continue;
      if (!led && !log->needs_copy()) return std::unexpected(led.error());
      TRY(store->close());
      if (led) return {};
      store.reset();
      TRY_ASSIGN(copied, wait_for_copy(loop, config, *log, led.error(), copied, signals));
      if (!copied) return {};
      TRY_ASSIGN(store, open());
    }
    engine = store.get();
    manager.busy(kLongestOpening);
    store = log->open(std::move(store), [&](const Error& lost) {
      if (lost.number() == ESTALE) {
        log_error("mds", "lead-lost error=\"{}\" what=\"stopping: another server may serve\"",
                  lost.to_string());
      } else {
        log_error("mds", "log-failed error=\"{}\" what=\"stopping: no further change can be made durable\"",
                  lost.to_string());
      }
      end(lost);
    });
    // What was promised is in the log, whichever host boots: clients keep their state.
    host_boot = "log-" + log->identity();
    cluster = std::make_unique<ClusterWatch>(etcd_options(config), LogKeys{config.metadata_log.prefix});
  }
  TRY_ASSIGN(const BootRecord boot, open_boot(*store, random, host_boot, limits.lease));
  TRY_ASSIGN(const auto names, Namespace::open(*store, clock, boot.boot_count));
  TRY_ASSIGN(const auto bricks,
             BrickList::open(*store, clock, loop, [&](const Error& error) { end(error); }));
  TRY_ASSIGN(const std::vector<std::string> strange, bricks->configure(config.bricks));
  for (const std::string& address : strange) {
    log_warning("mds",
                "brick-not-in-use address={} what=\"the stored list of bricks is used: pnfsrdma brick add\"",
                address);
  }
  TRY_ASSIGN(auto initial_exports, ExportKeeper::initial(*store, config.exports));
  Exports exports(*names, std::move(initial_exports.exports));
  exports.reserve_ids(initial_exports.next_id);
  // A first start that died before it had keys has named no file either.
  const auto root = names->get(kRootInode);
  const bool served_before = boot.boot_count > 1 && (!root || (*root)->size > 0);
  TRY_ASSIGN(const auto handles, HandleKeys::open(*store, random, clock, exports, served_before));

  ClientTable clients(clock, random, limits.lease);
  SessionTable sessions(random, &memory);
  sessions.start(loop);
  StateMemory state_memory(memory, clients);
  OpenTable opens(&state_memory);
  LockTable locks(&state_memory);
  StateStore state_store(*store);
  GracePeriod grace(clock);
  CallbackChannel callbacks(loop, clients, sessions, limits.lease);
  LockWaiters lock_waiters(clock, locks, callbacks, limits.lease);
  DelegationTable delegation_table(&state_memory);
  Delegations delegations(loop, delegation_table, callbacks, state_store, counters, limits.lease);
  LayoutCallbacks layout_callbacks(callbacks, clients, opens, delegation_table, *names, *handles);

  const std::shared_ptr<rdma::Transport> iwarp = rdma::iwarp::make_transport({}, random);
  DataPlane layouts({.loop = loop,
                     .clock = clock,
                     .random = random,
                     .names = *names,
                     .list = *bricks,
                     .connect = connect_bricks(loop, config, log.get(), *brick_tls, *bricks),
                     .recaller = layout_callbacks,
                     .counters = counters},
                    {.first_epoch = boot.epoch,
                     .owner = to_hex(boot.instance),
                     .lease = limits.lease,
                     .brick_patience = std::chrono::seconds(config.brick_patience_seconds),
                     .metadata_era = boot.era,
                     .transports = {{iwarp, iwarp->make_protection_domain()}},
                     .on_fenced = [&](const std::string& why) {
                       outcome = fail(ESTALE, why);
                       loop.stop();
                     }});
  names->set_in_use([&](InodeId inode) {
    return layout_callbacks.is_open(inode) || layouts.conflicts().file_in_use(inode);
  });
  delegations.set_unused([&](InodeId inode) {
    if (!opens.is_open(inode)) layouts.conflicts().on_last_close({inode}, [] {});
  });
  delegations.set_fence(
      [&](ClientId client, InodeId inode, std::function<void(LayoutConflicts::Fence)> done) {
        layouts.conflicts().before_delegation_revoked(client, inode, std::move(done));
      });
  LeaseKeeper leases(clients, sessions, opens, locks, delegations, state_store, layouts.conflicts(),
                     counters);

  HostNameService name_service;
  UserGroups user_groups(loop, name_service);
  const ServerIdentity identity{boot.instance};
  Services services{clock,          random,      limits,      identity, exports,
                    *handles,       *store,      *names,      clients,  sessions,
                    opens,          grace,       state_store, leases,   layouts.conflicts(),
                    layouts.data(), callbacks,   counters,    locks,    lock_waiters,
                    loop.turns(),   user_groups, delegations};
  Compounds compounds(services);
  serving = &compounds;

  const Milliseconds grace_wanted =
      config.grace_seconds ? Milliseconds(std::chrono::seconds(config.grace_seconds)) : limits.lease;
  const Milliseconds grace_longest = std::max(grace_wanted, boot.lease_before);
  TRY_ASSIGN(
      const std::vector<ClientId> expiring,
      recover_state(boot, state_store, clients, opens, locks, delegation_table, grace, grace_longest, [&] {
        if (const auto noted = forget_earlier_leases(*store, limits.lease); !noted)
          log_warning("mds", "lease-not-noted error=\"{}\"", noted.error().to_string());
      }));
  TRY(layouts.recover(boot.boot_count, [&](ClientId client) { return clients.find(client) != nullptr; }));
  leases.start(loop, std::clamp(limits.lease / 10, Milliseconds(100), Milliseconds(1000)));
  leases.resume(expiring);
  // The configuration may have other exports now, or the last run may have ended behind such a change.
  recall_under_ended_handles(delegations, *handles);
  Administrator administrator({.loop = loop,
                               .clock = clock,
                               .counters = counters,
                               .store = *store,
                               .names = *names,
                               .exports = exports,
                               .handles = *handles,
                               .clients = clients,
                               .sessions = sessions,
                               .opens = opens,
                               .locks = locks,
                               .delegations = delegations,
                               .grace = grace,
                               .memory = memory,
                               .leases = leases,
                               .layouts = layouts,
                               .compounds = compounds,
                               .config = config,
                               .limits = limits,
                               .user_groups = user_groups,
                               .start_count = boot.boot_count,
                               .cluster = cluster_of(cluster.get(), log.get())});
  administrator.end_layouts_of_gone_exports();
  watch_signals(loop, signals, counters, [&] {
    user_groups.forget();
    reload(config_path, *brick_tls, administrator);
  });
  ConsoleRecords console_records(*store);
  auto console = std::make_unique<console::Console>(
      console::Console::Parts{loop, clock, random, administrator, console_records},
      console_options(config, config_path));
  start_console(*console);
  IdleConnections idle_connections(loop, sessions, limits.lease);
  idle_connections.start();
  const rpc::Service service = nfs_service(compounds, idle_connections, &memory);
  // By TCP last: whoever waits for the server asks there, and then mounts by either.
  TRY_ASSIGN(auto rdma_listeners, open_rdma_listeners(loop, config, iwarp, service, destruction));
  TRY_ASSIGN(auto listeners, listen(loop, config, service));
  std::unique_ptr<CopyServer> copies = engine == nullptr ? nullptr : open_copies(loop, *engine, config);
  manager.ready();
  log_info("mds", "ready start={} same_boot={} version={}", boot.boot_count, boot.same_host_boot, version());
  loop.run();

  if (log) log->loop_ends();
  manager.stopping();
  log_info("mds", "stopping");
  console.reset();
  copies.reset();
  listeners.clear();
  rdma_listeners.clear();
  loop.unwatch(signals.get());
  TRY(outcome);
  bricks->stop_reading();
  store->end_checkpoints();
  TRY(store->sync());
  TRY(close_boot(*store));
  return store->close();
}

int complain(const Error& error) {
  fmt::print(stderr, "pnfsrdma-mdsd: {}\n", error.to_string());
  return 1;
}

int run(const CommandLine& line) {
  const auto config = load_config(line.config);
  if (!config) return complain(config.error());
  if (line.print_config) {
    fmt::print("{}\n", to_json(*config));
    return 0;
  }
  set_log_level(config->log_level);
  if (line.check) return run_check(*config);
  if (line.accept_loss) return run_accept_loss(*config);
  if (line.leave_log) return run_leave_log(*config);
  if (line.cluster_status) return run_cluster_status(*config);
  log_to_journal("pnfsrdma-mdsd");
  const auto served = serve(*config, line.config);
  if (served) return 0;
  complain(served.error());
  const bool follows = !config->metadata_log.endpoints.empty();
  return follows && served.error().number() == ESTALE ? kExitFenced : 1;
}

}  // namespace
}  // namespace pnfsrdma::mds

int main(int count, char** arguments) {
  pnfsrdma::mds::CommandLine line;
  CLI::App app("pnfsrdma-mdsd: the NFSv4.2 metadata server, which grants RDMA layouts on bricks.");
  app.set_version_flag("--version,-V", pnfsrdma::version_text("pnfsrdma-mdsd"));
  app.add_option("--config,-c", line.config, "JSON configuration file: pnfsrdma.json(5)")->required();
  app.add_flag("--print-config", line.print_config, "print the configuration with all defaults and exit");
  app.add_flag("--check", line.check,
               "check metadata and blocks and exit: 0 sound, 1 problems, 2 cannot be opened");
  app.add_flag("--accept-metadata-loss", line.accept_loss,
               "copy a damaged metadata store, keep what can be read, and exit");
  app.add_flag("--leave-log", line.leave_log, "take the metadata store out of its log in etcd, and exit");
  app.add_flag("--cluster-status", line.cluster_status,
               "print who shares the log in etcd, as JSON, and exit");
  CLI11_PARSE(app, count, arguments);
  pnfsrdma::set_heap_for_short_turns();
  return pnfsrdma::mds::run(line);
}
