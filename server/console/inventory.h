// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/durability.h"

// What the console shows of the server, as plain values: openapi.json says what each means to a user. Whoever
// fills them in knows NFS and bricks; the console does not.
namespace pnfsrdma::console {

// --- clients and what they hold ---------------------------------------------------------------------------

// What carries a session's calls; kNone: it has no connection now.
enum class SessionTransport : uint8_t { kNone, kTcp, kRdmaVerbs, kRdmaIwarp };
// The back channel; kNone: the client wants none.
enum class CallbackState : uint8_t { kNone, kDown, kUp };
struct ClientSession {
  std::string id;  // 32 hexadecimal digits
  uint32_t slots = 0;
  std::vector<std::string> peers;
  SessionTransport transport = SessionTransport::kNone;
  CallbackState callbacks = CallbackState::kNone;
};
// What carries a client's data; kNone: it is not connected; kOther: a newer brick's, or a test's.
enum class DataTransport : uint8_t { kNone, kIwarp, kOther, kVerbs };
// A client's connection for data.
struct ClientBrick {
  std::string brick;  // uuid
  std::string peer;
  DataTransport transport = DataTransport::kNone;
  uint32_t connection = 0;
  uint32_t grants = 0;
};
// What clients moved straight to and from the memory of bricks.
struct DirectCounters {
  uint64_t read_bytes = 0;
  uint64_t write_bytes = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
};
struct Client {
  uint64_t id = 0;
  std::string name;         // "HOST-1a2b3c"
  std::string host;         // as it says; else its address
  std::string mount_point;  // as it says, printable; empty: it does not
  std::string owner;        // printable
  uint32_t uid = 0;
  bool confirmed = false;
  double lease_seconds_left = 0;
  uint32_t opens = 0;
  uint32_t locks = 0;
  uint32_t delegations = 0;
  uint32_t layouts = 0;
  uint32_t grants = 0;
  uint64_t bytes = 0;
  uint64_t writable_bytes = 0;
  std::vector<ClientSession> sessions;
  std::vector<ClientBrick> bricks;
  uint32_t revoked_states = 0;
  DirectCounters reported;  // by itself
};

// One handle to one range of memory.
struct Grant {
  uint64_t id = 0;      // the brick's number
  uint64_t offset = 0;  // in the file
  uint64_t length = 0;
  bool writable = false;
  std::string brick;  // uuid
  uint64_t logical = 0;
  uint32_t connection = 0;
};
// Bytes within reach, each counted once however many handles lead to it.
struct Reach {
  uint64_t bytes = 0;
  uint64_t writable_bytes = 0;
};
Reach reach_of(const std::vector<Grant>& grants);

enum class LayoutState : uint8_t { kHeld, kRecalling, kRevoking };
// All that one client holds of one file.
struct Layout {
  uint64_t client = 0;
  std::string client_name;
  uint64_t inode = 0;
  std::optional<std::string> path;  // the last name it was seen by
  uint16_t export_id = 0;
  WallTime granted;
  double age_seconds = 0;
  DataTransport transport = DataTransport::kNone;
  LayoutState state = LayoutState::kHeld;
  std::vector<Grant> grants;
  DirectCounters reported;  // by its client
};

// Everything above at one moment: by client id, and by (client, inode).
struct Holdings {
  std::vector<Client> clients;
  std::vector<Layout> layouts;
};

// --- control loops ----------------------------------------------------------------------------------------

// Counts by how long something took: counts[i] those of at most kBoundsUs[i], the last one the rest.
struct LatencyHistogram {
  static constexpr std::array<uint32_t, 22> kBoundsUs{
      1,    2,     5,     10,    20,     50,     100,    200,     500,     1000,    2000,
      5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000, 2000000, 5000000, 10000000};
  std::array<uint64_t, kBoundsUs.size() + 1> counts{};
  uint64_t sum_us = 0;

  LatencyHistogram& operator+=(const LatencyHistogram& more) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += more.counts[i];
    sum_us += more.sum_us;
    return *this;
  }
};
// Reads of the metadata that were not in memory, since the start.
struct MetadataReads {
  uint64_t misses = 0;
  uint64_t blocking = 0;       // in the control loop, which serves nobody meanwhile
  LatencyHistogram fetches{};  // all others: of one request at once, outside of the loop
};
// How long the turns of a control loop took: while one runs nobody else is served.
struct LoopTurns {
  LatencyHistogram times;   // since the start; no count: not known
  uint64_t slow = 0;        // of more than 100 ms, since the start
  uint64_t longest_ms = 0;  // of the last minute or two
  uint64_t stalled = 0;     // of more than 1 s, in that time
};

// --- bricks -----------------------------------------------------------------------------------------------

struct BrickPath {
  std::string netid;    // "tcp", "rdma", "rdma6"
  std::string address;  // universal address (RFC 5665)
};
// Bytes and operations where the transport runs in software (iwarp): what a device moves no processor sees.
struct BrickCounters {
  uint64_t rdma_read_bytes = 0;
  uint64_t rdma_write_bytes = 0;
  uint64_t rdma_reads = 0;
  uint64_t rdma_writes = 0;
  uint64_t rdma_flushes = 0;
  uint64_t commit_messages = 0;
  uint64_t mds_flushes = 0;
  uint64_t flush_failures = 0;
  uint64_t damaged_blocks = 0;
  uint32_t waiting = 0;  // queue: changes of the block table and work on memory
};
enum class BrickState : uint8_t {
  kConnecting,  // never reached yet
  kReconciling,
  kReady,
  kDraining,
  kAway,
  kFenced,
  kForeign,
};
// The medium of a brick's pool; kUnknown: the brick was not reached, or is newer and knows another kind.
enum class PoolKind : uint8_t { kUnknown, kDeviceDax, kFilesystemDax, kFile, kTmpfs };
// How a client can make its writes durable.
enum class FlushMethod : uint8_t { kNative, kCommit, kLayoutCommit };
struct Brick {
  std::string id;        // its pool's uuid; `first_id` while it was never reached
  std::string first_id;  // "new-<number>": whoever was told this one still finds the brick
  std::string name;      // that people gave it; empty: none
  std::string address;   // as configured
  bool tls = false;      // the control connection was protected when it was made last
  BrickState state = BrickState::kConnecting;
  std::string detail;  // why it is not ready; empty when it is
  WallTime since;
  PoolKind kind = PoolKind::kUnknown;
  std::optional<Durability> durability;  // none: as with kUnknown
  std::vector<FlushMethod> flush_methods;
  std::vector<BrickPath> paths;
  uint64_t block_bytes = 0;
  uint64_t blocks = 0;
  uint64_t free_blocks = 0;
  uint64_t used_bytes = 0;     // grains of files
  std::string remove_refusal;  // why it would be refused now; empty: it would not
  std::string format_refusal;  // likewise
  uint32_t sessions = 0;
  std::map<DataTransport, uint32_t> connections;  // of clients
  std::vector<std::string> unreached_by;          // names of clients that say so
  uint32_t grants = 0;
  uint32_t grants_max = 0;
  bool counted = false;  // `counters` are the brick's, no longer the zeros of before it told them
  BrickCounters counters;
  LoopTurns turns;

  // The MDS can use it.
  bool usable() const { return state == BrickState::kReady || state == BrickState::kDraining; }
};
// Runs of blocks in the order of addresses, everything covered once.
enum class BlockState : uint8_t { kFree, kData, kGrantedRead, kGrantedWrite };
struct BlockGrant {
  uint64_t client = 0;
  std::string client_name;
  uint64_t inode = 0;
  std::optional<std::string> path;
  bool writable = false;
  uint64_t offset = 0;  // in the file
  uint64_t length = 0;
  uint64_t bytes = 0;  // of the run, without those that a grant before it of the same layout reaches
};
struct BlockRun {
  uint64_t block = 0;
  uint64_t count = 0;
  BlockState state = BlockState::kFree;
  Reach reach;                     // of all clients
  std::vector<BlockGrant> grants;  // at most kBlockGrantsMax
};
inline constexpr size_t kBlockGrantsMax = 64;
struct BlockMap {
  std::string brick;
  uint64_t block_bytes = 0;
  uint64_t blocks = 0;
  std::vector<BlockRun> runs;
};
// Who keeps a brick from being removed.
struct Holders {
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> exports;  // paths
};

// --- who does how much ------------------------------------------------------------------------------------

// Since the start of the server, of one client or export: what went through it.
struct ServedCounters {
  uint64_t operations = 0;
  uint64_t read_bytes = 0;
  uint64_t write_bytes = 0;
};
struct ClientActivity {
  uint64_t id = 0;
  std::string name;
  ServedCounters served;
};
struct ExportActivity {
  uint16_t id = 0;
  std::string path;
  ServedCounters served;
};
// By each client since its session there began, as the brick counts it; not of one that has an RDMA device.
struct BrickActivity {
  std::string brick;  // uuid
  std::vector<std::pair<uint64_t, DirectCounters>> clients;
};
// Of those that are there now. Asked for once a second.
struct Activity {
  std::vector<ClientActivity> clients;
  std::vector<ExportActivity> exports;
  std::vector<BrickActivity> bricks;  // those that have told; one of before does not know it
};
// A file that is busy now: rates of the last half minute or so, per second; bytes are those through the server.
struct BusyFile {
  uint64_t inode = 0;
  std::optional<std::string> path;
  double operations = 0;
  double read_bytes = 0;
  double write_bytes = 0;
};

// --- exports, files ---------------------------------------------------------------------------------------

struct ExportRules {
  std::string path;
  bool read_only = false;
  bool root_squash = true;
  bool all_squash = false;
  uint32_t anonuid = 65534;
  uint32_t anongid = 65534;
  bool insecure = false;             // calls by TCP from every port
  bool manage_gids = false;          // groups as the server's host has them
  std::vector<std::string> clients;  // networks; none: everybody
  bool operator==(const ExportRules&) const = default;
};
struct Export {
  uint16_t id = 0;
  ExportRules rules;
  bool stored = false;  // in the store; else from the configuration file
  bool directory_exists = false;
  std::string warning;  // of the change that is answered
};

// What a new export would cost clients that are mounted now.
struct ExportEffect {
  std::string inside;               // path of the export it lies in; empty: in none, and it costs nothing
  uint64_t clients = 0;             // that have that one mounted: their filehandles end
  std::vector<std::string> losing;  // those of them that the new one does not admit: they lose its path
  std::string text;                 // for people
};

// A snapshot of all files.
enum class SnapshotState : uint8_t { kMaking, kReady, kDeleting };
enum class SnapshotClass : uint8_t { kHourly, kDaily, kWeekly, kMonthly };
struct RevokedClient {
  uint64_t id = 0;
  std::string name;
  uint64_t layouts = 0;
};
struct TreeSnapshot {
  uint32_t id = 0;
  std::string name;
  WallTime created;
  SnapshotState state = SnapshotState::kMaking;
  std::optional<SnapshotClass> schedule;  // the part of it that took this one; none: a person did
  bool pinned = false;                    // cannot be deleted
  std::vector<RevokedClient> revoked;     // only when it is taken: who did not answer, and was forced
};
struct TreeSnapshots {
  std::vector<TreeSnapshot> all;  // by id
  uint64_t held_bytes = 0;        // memory that no file has any more, but a snapshot
};
// The setting snapshot_schedule, and how it goes.
struct SnapshotSchedule {
  struct Next {
    SnapshotClass schedule = SnapshotClass::kHourly;
    WallTime due;  // past: it is overdue
  };
  struct Failure {
    SnapshotClass schedule = SnapshotClass::kHourly;
    WallTime time;
    std::string detail;
  };
  // How many are kept.
  uint32_t hourly = 0;
  uint32_t daily = 0;
  uint32_t weekly = 0;
  uint32_t monthly = 0;
  uint32_t hour = 0;  // UTC
  uint32_t minute = 0;
  std::vector<Next> next;          // of the classes that are taken
  std::optional<Failure> failure;  // the last one of this run
  uint32_t tries_in_vain = 0;      // since the last success
};

// What a user, a group or a directory with all that is in it has, and may have. 0: no limit.
enum class QuotaKind : uint8_t { kUser, kGroup, kTree };
struct QuotaLimit {
  uint64_t soft = 0;
  uint64_t hard = 0;
  bool operator==(const QuotaLimit&) const = default;
};
struct QuotaLimits {
  QuotaLimit space;  // bytes
  QuotaLimit inodes;
  bool operator==(const QuotaLimits&) const = default;
};
struct QuotaUse {
  uint64_t used = 0;
  std::optional<WallTime> soft_until;  // above its soft limit: from then on it cannot grow
};
// From the best to the worst; the last two cannot grow.
enum class QuotaStanding : uint8_t { kWithin, kOverSoft, kGraceOver, kFull };
inline QuotaStanding standing_of(const QuotaLimit& limit, const QuotaUse& use, const WallTime& now) {
  if (limit.hard != 0 && use.used >= limit.hard) return QuotaStanding::kFull;
  if (limit.soft == 0 || use.used <= limit.soft) return QuotaStanding::kWithin;
  return use.soft_until && *use.soft_until <= now ? QuotaStanding::kGraceOver : QuotaStanding::kOverSoft;
}
// Whose limits it has: its own, those of every user or group without own ones, or none.
enum class QuotaSource : uint8_t { kNone, kOwn, kDefault };
struct Quota {
  QuotaKind kind = QuotaKind::kUser;
  uint64_t id = 0;       // uid, gid, or the tree's number
  std::string path;      // of a tree; empty: not known just now
  bool complete = true;  // of a tree: all that is in it is counted, and its limits hold
  QuotaSource limits_from = QuotaSource::kNone;
  QuotaLimits limits;
  QuotaUse space;
  QuotaUse inodes;
};
enum class QuotaState : uint8_t { kOff, kCounting, kOn };
struct QuotaSettings {
  QuotaState state = QuotaState::kOff;
  double counted_share = 0;  // while it is counted
  uint64_t space_grace_seconds = 0;
  uint64_t inode_grace_seconds = 0;
  QuotaLimits user_default;  // of each that has none of its own, but root
  QuotaLimits group_default;
};
struct QuotaPage {
  QuotaSettings settings;
  std::vector<Quota> all;  // by kind and id
};

struct FileExtent {
  uint64_t offset = 0;
  uint64_t length = 0;
  std::string brick;
  uint64_t logical = 0;
};
enum class FileType : uint8_t {
  kRegular,
  kDirectory,
  kSymlink,
  kBlockDevice,
  kCharacterDevice,
  kSocket,
  kFifo,
};
struct File {
  std::string path;
  uint64_t inode = 0;
  FileType type = FileType::kRegular;
  uint64_t size = 0;
  uint64_t space_used = 0;
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t links = 0;
  WallTime modified;
  std::vector<uint64_t> open_by;  // clients
  std::vector<FileExtent> extents;
  bool extents_truncated = false;
};

// --- the server itself ------------------------------------------------------------------------------------

// From the best to the worst.
enum class HealthStatus : uint8_t { kOk, kWarning, kFailed };
struct HealthCheck {
  std::string name;
  HealthStatus status = HealthStatus::kOk;
  std::string detail;
  std::string fix;  // empty when ok
};

enum class JobKind : uint8_t { kFormat, kCheck, kRecount };
enum class JobState : uint8_t { kRunning, kDone, kFailed, kCancelled };
struct Job {
  uint64_t id = 0;
  JobKind kind = JobKind::kCheck;
  std::string subject;
  JobState state = JobState::kRunning;
  double progress = 0;
  std::string message;
  std::string user;
  WallTime started;
  std::optional<WallTime> finished;
  bool cancellable = false;
};

struct OperationCounter {
  std::string name;  // "GETATTR"
  uint64_t count = 0;
  uint64_t errors = 0;
  LatencyHistogram latency;
};
// A metadata server of those that share a log.
enum class ClusterServerState : uint8_t { kLeads, kFollows, kAway };
struct ClusterServer {
  std::string name;
  ClusterServerState state = ClusterServerState::kAway;
  uint64_t position = 0;  // so much of the log is on its medium
  uint64_t behind = 0;    // values of the log
};
// A member of the etcd that has the log.
struct ClusterMember {
  std::string id;
  std::string name;     // empty: it has not started yet
  std::string address;  // for clients; empty: none
  bool answers = false;
  bool leads = false;   // among the members: who serves files is another matter
  std::string version;  // empty: not known
  uint64_t database_bytes = 0;
};
struct ClusterProblem {
  std::string detail;
  std::string fix;
};
// What the log costs the server that leads.
struct LogCosts {
  LatencyHistogram
      commits;         // of each value, from the first try to write it until etcd has it; since the start
  uint64_t bytes = 0;  // of these values
  uint64_t checkpoint = 0;          // up to here the log is in its store, on its medium
  uint64_t checkpoint_seconds = 0;  // for so long
};
// The metadata servers that share a log in etcd, as one of them sees them.
struct Cluster {
  std::string log;     // its identity; empty: it could not be read
  std::string prefix;  // of its keys
  std::string leader;  // empty: nobody
  std::optional<uint64_t> leading_seconds;
  uint64_t position = 0;  // the log's last value
  uint64_t trimmed = 0;   // up to here it may be gone
  uint64_t window_bytes = 0;
  uint64_t window_bytes_max = 0;
  bool takeover = false;          // when the host that leads is lost, another one serves by itself
  uint64_t takeovers = 0;         // from a server that had not given the lead back, since the log's beginning
  std::optional<LogCosts> costs;  // by the server that leads only
  std::vector<ClusterServer> servers;
  std::vector<ClusterMember> members;
  std::vector<ClusterProblem> problems;
};

// Counters since the start of the process, and gauges.
struct Numbers {
  WallTime time;
  uint64_t uptime_seconds = 0;
  uint64_t start_count = 0;
  uint64_t grace_seconds_left = 0;
  std::vector<OperationCounter> operations;  // those called at least once
  uint64_t compounds = 0;
  uint64_t replays = 0;
  uint64_t illegal_operations = 0;
  uint64_t old_handle_uses = 0;  // filehandles of before the upgrade, since the start
  uint64_t port_refusals = 0;    // calls from ports that their export does not serve, since the start
  uint64_t mds_read_bytes = 0;
  uint64_t mds_write_bytes = 0;
  uint64_t layouts_granted = 0;
  uint64_t layouts_recalled = 0;
  uint64_t layouts_revoked = 0;
  DirectCounters reported;  // by clients
  uint64_t delegations_granted = 0;
  uint64_t delegations_recalled = 0;
  uint64_t delegations_revoked = 0;
  uint64_t clients_expired = 0;
  uint32_t clients = 0;
  uint32_t sessions = 0;
  uint32_t opens = 0;
  uint32_t locks = 0;
  uint32_t layouts = 0;
  uint32_t delegations = 0;
  uint32_t grants = 0;
  uint32_t snapshots = 0;
  uint64_t snapshot_bytes = 0;               // memory that no file has any more, but a snapshot
  uint64_t scheduled_snapshots = 0;          // taken since the start
  uint64_t scheduled_snapshot_failures = 0;  // tries in vain since the start
  uint64_t snapshot_overdue_seconds = 0;     // 0: none is due
  uint32_t running_compounds = 0;            // queue: begun, not answered
  uint64_t unsynced_commits = 0;             // queue: in the metadata engine's log, not durable yet
  uint64_t memory_bytes = 0;                 // that peers make the server hold
  uint64_t memory_budget_bytes = 0;
  uint64_t memory_waiting = 0;       // connections not read from because of the budget
  uint64_t connections = 0;          // by which calls come
  uint64_t connections_refused = 0;  // since the start: their address's limit, or the budget's end
  uint64_t connections_ended = 0;    // since the start: half a request, or their memory was needed
  uint64_t metadata_disk_bytes = 0;  // 0: not known
  uint64_t metadata_disk_free_bytes = 0;
  MetadataReads metadata_reads;
  LoopTurns turns;
  std::vector<Brick> bricks;
  std::vector<HealthCheck> checks;
  std::optional<Cluster> cluster;  // nullopt: the metadata are on this host only, or it was not looked yet
};

// Where the value in force comes from.
enum class SettingSource : uint8_t { kDefault, kFile, kStore };
// A value of the configuration, as JSON text.
struct Setting {
  std::string name;
  std::string value;
  SettingSource source = SettingSource::kDefault;
  bool run_time = false;
};

}  // namespace pnfsrdma::console
