// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>
#include <functional>

#include "server/brickd/boot_id.h"
#include "server/brickd/brick.h"
#include "server/brickd/check_command.h"
#include "server/brickd/config.h"
#include "server/brickd/control_tls.h"
#include "server/brickd/first_pool.h"
#include "server/brickd/format_command.h"
#include "server/brickd/partition_command.h"
#include "server/brickd/pool.h"
#include "server/brickd/rdma_doors.h"
#include "server/service/journal.h"
#include "server/service/service_manager.h"
#include "shared/base/event_loop.h"
#include "shared/base/log.h"
#include "shared/base/owned.h"
#include "shared/pmem/mapping.h"
#include "shared/rdma/iwarp/transport.h"
#include "shared/version/version.h"

namespace pnfsrdma::brick {
namespace {

struct CommandLine {
  std::string config;
  bool print_config = false;
  bool format = false;
  bool force = false;
  bool check = false;
};

int complain(const Error& error) {
  fmt::print(stderr, "pnfsrdma-brickd: {}\n", error.to_string());
  return 1;
}

rdma::iwarp::Options iwarp_options(const Config& config) {
  rdma::iwarp::Options options;
  if (config.data.crc == "on") options.crc = rdma::iwarp::CrcPolicy::kRequire;
  if (config.data.crc == "off") options.crc = rdma::iwarp::CrcPolicy::kDecline;
  return options;
}

BrickOptions brick_options(const Config& config) {
  return {.lease = std::chrono::seconds(config.lease_seconds), .limits = config.limits};
}

// Nobody shall take a stand-in for the real thing.
void tell_what_it_is(const Config& config, const pmem::Mapping& mapping) {
  const pmem::Medium medium = mapping.medium();
  if (!medium.persistent) {
    log_warning("brick", "volatile-memory path={} kind={} cause=\"{}\"", config.pool.path,
                to_string(medium.kind), medium.doubt);
  }
  if (medium.kind != pmem::Kind::kFile) return;
  log_warning(
      "brick",
      "not-persistent-memory path={} kind=file what=\"a plain file: each flush is a disk write, and RDMA "
      "devices cannot register it\"",
      config.pool.path);
}

Result<std::unique_ptr<Pool>> open_pool(const Config& config, const Clock& clock) {
  TRY_ASSIGN(auto mapping, open_pool_memory(config));
  tell_what_it_is(config, *mapping);
  auto persistence = mapping->make_persistence(file_flush_of(config));
  auto pool = Pool::open(std::move(mapping), std::move(persistence), clock.now());
  if (!pool) return std::unexpected(pool.error().in(config.pool.path));
  return pool;
}

// The key decides who is let in, on both.
Result<> open_owners_doors(Brick& brick, const Config& config) {
  if (config.control.tls.wanted())
    return fail(EINVAL, "control.tls is for an MDS: this partition has an owner, who is let in by the key");
  if (!config.control.unix_path.empty()) TRY(brick.serve_owner("unix:" + config.control.unix_path));
  if (!config.control.tcp.empty()) TRY(brick.serve_owner(config.control.tcp));
  return {};
}

Result<> open_doors(Brick& brick, rdma::Transport& iwarp, const ControlTls& tls, const Config& config) {
  for (const std::string& address : config.data.listen) {
    // What is advertised is a list for the whole brick: told once.
    const bool first = &address == &config.data.listen.front();
    const bool listed = !config.data.advertise.empty();
    if (listed && !first) {
      TRY(brick.listen_data(iwarp, {.listen = address, .advertised = false}));
    } else {
      TRY(brick.listen_data(iwarp, {.listen = address, .advertise = config.data.advertise}));
    }
  }
  if (brick.has_owner_by_key()) return open_owners_doors(brick, config);
  if (!config.control.unix_path.empty()) TRY(brick.serve_control_unix(config.control.unix_path));
  if (!config.control.tcp.empty()) TRY(brick.serve_control_tcp(config.control.tcp, tls.endpoint()));
  return {};
}

// Signals come to the loop as events. Blocked before any thread starts, so that all threads inherit it.
FileDescriptor block_signals() {
  signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

// The log level can change while the brick runs, and who may control it, and nothing else. A file with a mistake in it
// changes nothing.
void reload(const std::string& path, const Config& config, ControlTls& tls, Brick& brick) {
  auto fresh = load_config(path);
  if (fresh) {
    if (const auto read = tls.reload(*fresh); !read) fresh = std::unexpected(read.error());
  }
  if (!fresh) return log_error("brick", "reload-refused error=\"{}\"", fresh.error().to_string());
  brick.reassess_tls();
  if (const auto level = parse_log_level(fresh->log_level)) set_log_level(*level);
  log_info("brick", "reloaded path={}", path);
  fresh->log_level = config.log_level;
  if (fresh->control.tls.wanted() == config.control.tls.wanted()) fresh->control.tls = config.control.tls;
  if (print_config(*fresh) != print_config(config)) {
    log_warning("brick",
                "restart-needed what=\"keys other than log_level, and those of control.tls, have changed in "
                "the file: "
                "they take effect after a restart\"");
  }
}

// SIGHUP reads the configuration again, SIGTERM and SIGINT end the loop.
void watch_signals(EventLoop& loop, const FileDescriptor& signals, std::function<void()> on_hangup) {
  loop.watch(signals.get(), EPOLLIN, [&loop, &signals, on_hangup = std::move(on_hangup)](uint32_t) {
    signalfd_siginfo signal{};
    while (read(signals.get(), &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
      if (signal.ssi_signo == SIGHUP) {
        on_hangup();
      } else {
        loop.stop();
      }
    }
  });
}

// The architecture of the brick: a pool, a loop, the transports, and the brick that joins them.
Result<> serve(const Config& config, const std::string& path) {
  const FileDescriptor signals = block_signals();
  SystemClock clock;
  SystemRandom random;
  EventLoop loop(clock);
  const auto iwarp = rdma::iwarp::make_transport(iwarp_options(config), random);
  TRY_ASSIGN(const RdmaTransports devices, open_rdma_devices(config));
  TRY_ASSIGN(const BootId boot, read_boot_id());
  TRY_ASSIGN(ControlTls tls, ControlTls::open(config));
  TRY(make_first_pool(config, random));
  TRY_ASSIGN(auto pool, open_pool(config, clock));
  Brick brick(loop, std::move(pool), boot, random, brick_options(config));
  TRY(open_doors(brick, *iwarp, tls, config));
  TRY(open_rdma_doors(brick, devices, config));

  watch_signals(loop, signals, [&] { reload(path, config, tls, brick); });
  ServiceManager manager(loop);
  manager.ready();
  log_info("brick", "ready version={}", version());
  loop.run();
  manager.stopping();
  log_info("brick", "stopping");
  return {};
}

int run(const CommandLine& line) {
  const auto config = load_config(line.config);
  if (!config) return complain(config.error());
  if (line.print_config) {
    fmt::print("{}\n", print_config(*config));
    return 0;
  }
  if (line.check) return run_check(*config);
  Result<> result;
  if (line.format && !config->pool.partition.empty()) {
    result = fail(EINVAL, "pool.partition is set: partitions are made by pnfsrdma-brickd partition create");
  } else if (line.format) {
    SystemRandom random;
    result = format_pool(*config, line.force, random);
  } else {
    log_to_journal("pnfsrdma-brickd");
    if (const auto level = parse_log_level(config->log_level)) set_log_level(*level);
    result = serve(*config, line.config);
  }
  return result ? 0 : complain(result.error());
}

}  // namespace
}  // namespace pnfsrdma::brick

int main(int count, char** arguments) {
  pnfsrdma::brick::CommandLine line;
  CLI::App app("pnfsrdma-brickd: serves persistent memory to clients by RDMA, as its MDS requests.");
  app.set_version_flag("--version,-V", pnfsrdma::version_text("pnfsrdma-brickd"));
  app.add_option("--config,-c", line.config, "JSON configuration file: pnfsrdma.json(5)");
  app.add_flag("--print-config", line.print_config, "print the configuration with all defaults and exit");
  app.add_flag("--format", line.format, "create the pool (a file of pool.size, or the device) and exit");
  app.add_flag("--force", line.force, "with --format: destroy an existing pool");
  app.add_flag("--check", line.check, "check the pool and exit: 0 sound, 1 problems, 2 cannot be opened");
  pnfsrdma::brick::PartitionCommand partition(app);
  CLI11_PARSE(app, count, arguments);
  if (partition.asked()) {
    const auto done = partition.run();
    return done ? 0 : pnfsrdma::brick::complain(done.error());
  }
  if (line.config.empty()) return pnfsrdma::brick::complain({EINVAL, "--config is required"});
  return pnfsrdma::brick::run(line);
}
