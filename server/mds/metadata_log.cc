// SPDX-License-Identifier: Apache-2.0
#include "server/mds/metadata_log.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "server/console/inventory_json.h"
#include "server/mds/admin/cluster_watch.h"
#include "server/mds/log/copy_client.h"
#include "server/mds/log/copy_wait.h"
#include "server/mds/meta/rocksdb_store.h"
#include "server/service/service_manager.h"
#include "shared/base/guarded.h"
#include "shared/base/log.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {
namespace {

constexpr Milliseconds kCopyTurn{100};

Result<std::string> name_of_host() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0)
    return std::unexpected(Error::from_errno("gethostname"));
  return std::string(name.data());
}

// Sees the signals that end the daemon, while somebody turns the loop.
class EndSignals {
 public:
  EndSignals(EventLoop& loop, const FileDescriptor& signals) : loop_(loop), signals_(signals) {
    loop.watch(signals.get(), EPOLLIN, [this](uint32_t) {
      signalfd_siginfo signal{};
      while (read(signals_.get(), &signal, sizeof(signal)) == static_cast<ssize_t>(sizeof(signal)))
        came_ = came_ || signal.ssi_signo == SIGTERM || signal.ssi_signo == SIGINT;
    });
  }
  ~EndSignals() { loop_.unwatch(signals_.get()); }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  bool came() const { return came_; }

 private:
  EventLoop& loop_;
  const FileDescriptor& signals_;
  bool came_ = false;
};

}  // namespace

EtcdOptions etcd_options(const Config& config) {
  const MetadataLogConfig& log = config.metadata_log;
  return {
      .endpoints = log.endpoints, .authority = log.ca_file, .certificate = log.certificate, .key = log.key};
}

Result<std::unique_ptr<LogMember>> metadata_log_member(EventLoop& loop, Random& random, const Clock& clock,
                                                       const Config& config,
                                                       std::function<void(const std::string&)> status) {
  const MetadataLogConfig& log = config.metadata_log;
  const EtcdOptions options = etcd_options(config);
  TRY(check_files_of(options));
  std::string name = log.name;
  if (name.empty()) {
    TRY_ASSIGN(name, name_of_host());
  }
  TRY_ASSIGN(std::string place, place_of(metadata_path(config)));
  return std::make_unique<LogMember>(
      loop, random,
      LogMember::Options{.prefix = log.prefix,
                         .name = std::move(name),
                         .place = std::move(place),
                         .copies = log.copies.empty() ? "" : "https://" + log.copies,
                         .connect = [options] { return std::make_unique<EtcdClient>(options); },
                         .clock = clock,
                         .status = std::move(status)});
}

Result<bool> follow_until_leading(EventLoop& loop, LogMember& member, KeyValueStore& store,
                                  const FileDescriptor& signals, const std::function<bool()>& failed) {
  const EndSignals end(loop, signals);
  return member.lead(store, [&] { return end.came() || failed(); });
}

namespace {

// In a thread of its own: it may take long.
Result<> take_copy(EventLoop& loop, const Config& config, const std::string& from, OldStore old,
                   const EndSignals& end) {
  ServiceManager::status("standby: takes a copy of the metadata from " + from);
  const MetadataLogConfig& log = config.metadata_log;
  const CopySource source{from, log.ca_file, log.certificate, log.key};
  std::atomic<bool> stopping = false;
  Guarded<std::optional<Result<>>> outcome;
  Thread thread([&] {
    Result<> done = begin_with_copy(source, metadata_path(config), old, stopping);
    *outcome.lock() = std::move(done);
  });
  while (!*outcome.lock()) {
    loop.run_once(kCopyTurn);
    stopping = end.came();
  }
  thread.join();
  return **outcome.lock();
}

}  // namespace

Result<bool> wait_for_copy(EventLoop& loop, const Config& config, LogMember& member, const Error& why,
                           bool again, const FileDescriptor& signals) {
  const EndSignals end(loop, signals);
  // What this daemon has taken it has never changed but by the log.
  const OldStore old = again || member.store_is_empty() ? OldStore::kRemoved : OldStore::kKept;
  const CopyWait wait{
      .take = [&](const std::string& from) { return take_copy(loop, config, from, old, end); },
      .stopping = [&end] { return end.came(); },
      .status = &ServiceManager::status,
      .pause_first = again};
  return wait.run(loop, member, why);
}

std::unique_ptr<CopyServer> open_copies(EventLoop& loop, KeyValueStore& store, const Config& config) {
  const MetadataLogConfig& log = config.metadata_log;
  if (log.endpoints.empty() || log.copies.empty()) return nullptr;
  auto started = CopyServer::start(loop, store,
                                   {.listen = log.copies,
                                    .authority = log.ca_file,
                                    .certificate = log.certificate,
                                    .key = log.key,
                                    .directory = metadata_path(config) + ".given"});
  if (started) return std::move(*started);
  log_error("mds", "copies-not-listening error=\"{}\" what=\"files are still served\"",
            started.error().to_string());
  return nullptr;
}

Result<> check_without_log(KeyValueStore& store) {
  TRY_ASSIGN(const auto position, read_position(store));
  if (!position) return {};
  // It never came so far, and what is served now is no log's beginning any more.
  if (!position->joined) return erase_position(store);
  return fail(
      EINVAL,
      "the metadata store belongs to a log in etcd, which other servers may go on with: set metadata_log, or "
      "take the store out of the log with --leave-log");
}

namespace {

// Whether others go on with a log that a store has been taken out of.
std::string rest_of_log(const Config& config, const std::string& identity) {
  const std::string& prefix = config.metadata_log.prefix;
  if (config.metadata_log.endpoints.empty()) return "metadata_log is not set: etcd was not asked";
  const EtcdOptions options = etcd_options(config);
  if (const auto sound = check_files_of(options); !sound)
    return "etcd could not be asked: " + sound.error().to_string();
  const console::Cluster cluster = survey_once(options, {prefix});
  if (cluster.log.empty()) return cluster.problems.front().detail + " " + cluster.problems.front().fix;
  if (cluster.log != identity) return "etcd has log " + cluster.log + " under " + prefix;
  if (!cluster.leader.empty())
    return cluster.leader + " goes on with the log: stop it before this store is served";
  return "etcd still has the log under " + prefix +
         ", so this server does not begin another one there: if nobody is to go on with it, erase it "
         "(etcdctl del --prefix " +
         prefix + "/)";
}

}  // namespace

int run_leave_log(const Config& config) {
  SystemClock clock;
  EventLoop loop(clock);
  const std::string path = metadata_path(config);
  std::string identity;
  const Result<> left = [&]() -> Result<> {
    TRY_ASSIGN(const auto store, RocksdbStore::open(loop, {.path = path, .create = false}));
    // One that an older program wrote is left, too.
    const auto position = read_position(*store);
    if (!position || *position) identity = position ? (*position)->identity : "?";
    TRY(erase_position(*store));
    return store->close();
  }();
  if (!left) {
    fmt::print(stderr, "pnfsrdma-mdsd: {}\n", left.error().to_string());
    return 2;
  }
  if (identity.empty()) {
    fmt::print("the metadata store {} belonged to no log\n", path);
    return 0;
  }
  fmt::print("{}\nthe metadata store {} belongs to no log any more\n", rest_of_log(config, identity), path);
  return 0;
}

int run_cluster_status(const Config& config) {
  std::optional<console::Cluster> cluster;
  if (!config.metadata_log.endpoints.empty()) {
    const EtcdOptions options = etcd_options(config);
    if (const auto sound = check_files_of(options); !sound) {
      fmt::print(stderr, "pnfsrdma-mdsd: {}\n", sound.error().to_string());
      return 2;
    }
    cluster = survey_once(options, {config.metadata_log.prefix});
  }
  fmt::print("{}\n", console::to_json(cluster).dump());
  return 0;
}

}  // namespace pnfsrdma::mds
