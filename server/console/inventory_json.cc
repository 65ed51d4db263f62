// SPDX-License-Identifier: Apache-2.0
#include "server/console/inventory_json.h"

#include <fmt/format.h>

#include <charconv>
#include <numeric>

#include "server/console/inventory_names.h"
#include "server/console/throughput.h"
#include "server/console/time_text.h"

namespace pnfsrdma::console {

namespace {

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}
Json text_or_null(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json();
}

// "192.0.2.7:20051" of the universal address "192.0.2.7.78.83" (RFC 5665, 5.2.3.3).
std::string endpoint_of(const BrickPath& path) {
  const size_t low = path.address.rfind('.');
  const size_t high = low == std::string::npos || low == 0 ? low : path.address.rfind('.', low - 1);
  if (high == std::string::npos) return path.address;
  unsigned parts[2] = {};
  std::from_chars(&path.address[high + 1], &path.address[low], parts[0]);
  std::from_chars(&path.address[low + 1], path.address.data() + path.address.size(), parts[1]);
  const std::string host = path.address.substr(0, high);
  return fmt::format("{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]",
                     parts[0] * 256 + parts[1]);
}

Json reported_json(const DirectCounters& reported) {
  return {{"reads", reported.reads},
          {"read_bytes", reported.read_bytes},
          {"writes", reported.writes},
          {"write_bytes", reported.write_bytes}};
}

// "read-write" as soon as one handle can write.
const char* iomode_of(const Layout& layout) {
  if (layout.grants.empty()) return "hole";
  for (const Grant& grant : layout.grants) {
    if (grant.writable) return "read-write";
  }
  return "read";
}

Json costs_json(const std::optional<LogCosts>& costs) {
  if (!costs) return nullptr;
  const LatencyHistogram& commits = costs->commits;
  return {{"values", std::accumulate(commits.counts.begin(), commits.counts.end(), uint64_t{0})},
          {"bytes", costs->bytes},
          {"latency_us", {{"p50", percentile(commits, 0.5)}, {"p99", percentile(commits, 0.99)}}},
          {"checkpoint", costs->checkpoint},
          {"checkpoint_seconds", costs->checkpoint_seconds}};
}

}  // namespace

std::string id_text(uint64_t id) {
  return fmt::format("{:016x}", id);
}

uint64_t id_of(const std::string& text) {
  uint64_t id = 0;
  std::from_chars(text.data(), text.data() + text.size(), id, 16);
  return id;
}

std::string layout_id(uint64_t client, uint64_t inode) {
  return fmt::format("{:016x}-{}", client, inode);
}

LayoutId layout_of(const std::string& id) {
  constexpr size_t kDigits = 16;
  LayoutId parsed;
  if (id.size() < kDigits + 2) return parsed;
  parsed.client = id_of(id.substr(0, kDigits));
  std::from_chars(id.data() + kDigits + 1, id.data() + id.size(), parsed.inode);
  return parsed;
}

Json to_json(const Client& client) {
  Json sessions = Json::array();
  for (const ClientSession& session : client.sessions) {
    sessions.push_back({{"id", session.id},
                        {"slots", session.slots},
                        {"peers", session.peers},
                        {"transport", to_string(session.transport)},
                        {"callbacks", to_string(session.callbacks)}});
  }
  Json bricks = Json::array();
  for (const ClientBrick& brick : client.bricks) {
    bricks.push_back({{"brick", brick.brick},
                      {"peer", brick.peer},
                      {"transport", to_string(brick.transport)},
                      {"connection", brick.connection},
                      {"grants", brick.grants}});
  }
  return {{"id", id_text(client.id)},
          {"name", client.name},
          {"host", client.host},
          {"mount_point", text_or_null(client.mount_point)},
          {"owner", client.owner},
          {"uid", client.uid},
          {"confirmed", client.confirmed},
          {"lease_seconds_left", client.lease_seconds_left},
          {"opens", client.opens},
          {"locks", client.locks},
          {"delegations", client.delegations},
          {"layouts", client.layouts},
          {"grants", client.grants},
          {"bytes", client.bytes},
          {"writable_bytes", client.writable_bytes},
          {"sessions", sessions},
          {"bricks", bricks},
          {"revoked_states", client.revoked_states},
          {"reported", reported_json(client.reported)}};
}

Json to_json(const Layout& layout) {
  const Reach reach = reach_of(layout.grants);
  return {{"id", layout_id(layout.client, layout.inode)},
          {"client", id_text(layout.client)},
          {"client_name", layout.client_name},
          {"inode", layout.inode},
          {"path", text_or_null(layout.path)},
          {"export", layout.export_id},
          {"iomode", iomode_of(layout)},
          {"grants", layout.grants.size()},
          {"bytes", reach.bytes},
          {"writable_bytes", reach.writable_bytes},
          {"granted", rfc3339(layout.granted)},
          {"age_seconds", layout.age_seconds},
          {"transport", text_or_null(std::string(to_string(layout.transport)))},
          {"state", to_string(layout.state)},
          {"reported", reported_json(layout.reported)}};
}

Json to_json(const Grant& grant) {
  return {{"id", id_text(grant.id)},       {"offset", grant.offset}, {"length", grant.length},
          {"writable", grant.writable},    {"brick", grant.brick},   {"logical", grant.logical},
          {"connection", grant.connection}};
}

Json to_json(const Brick& brick) {
  Json paths = Json::array();
  for (const BrickPath& path : brick.paths)
    paths.push_back({{"netid", path.netid}, {"address", path.address}, {"endpoint", endpoint_of(path)}});
  Json flush_methods = Json::array();
  for (const FlushMethod method : brick.flush_methods) flush_methods.push_back(to_string(method));
  Json connections = Json::object();
  for (const auto& [transport, count] : brick.connections) connections[to_string(transport)] = count;
  const BrickCounters& counters = brick.counters;
  return {{"id", brick.id},
          {"name", brick.name},
          {"address", brick.address},
          {"tls", brick.tls},
          {"state", to_string(brick.state)},
          {"detail", text_or_null(brick.detail)},
          {"since", rfc3339(brick.since)},
          {"kind", to_string(brick.kind)},
          {"durability", to_string(brick.durability)},
          {"flush_methods", flush_methods},
          {"paths", paths},
          {"block_bytes", brick.block_bytes},
          {"blocks", brick.blocks},
          {"free_blocks", brick.free_blocks},
          {"capacity_bytes", brick.blocks * brick.block_bytes},
          {"free_bytes", brick.free_blocks * brick.block_bytes},
          {"used_bytes", brick.used_bytes},
          {"remove_refusal", text_or_null(brick.remove_refusal)},
          {"format_refusal", text_or_null(brick.format_refusal)},
          {"sessions", brick.sessions},
          {"connections", connections},
          {"unreached_by", brick.unreached_by},
          {"grants", brick.grants},
          {"grants_max", brick.grants_max},
          {"counters",
           {{"rdma_read_bytes", counters.rdma_read_bytes},
            {"rdma_write_bytes", counters.rdma_write_bytes},
            {"rdma_reads", counters.rdma_reads},
            {"rdma_writes", counters.rdma_writes},
            {"rdma_flushes", counters.rdma_flushes},
            {"commit_messages", counters.commit_messages},
            {"mds_flushes", counters.mds_flushes}}}};
}

Json to_json(const BlockRun& run) {
  Json grants = Json::array();
  for (const BlockGrant& grant : run.grants) {
    grants.push_back({{"client", id_text(grant.client)},
                      {"client_name", grant.client_name},
                      {"inode", grant.inode},
                      {"path", text_or_null(grant.path)},
                      {"layout", layout_id(grant.client, grant.inode)},
                      {"writable", grant.writable},
                      {"offset", grant.offset},
                      {"length", grant.length},
                      {"bytes", grant.bytes}});
  }
  return {{"block", run.block},
          {"count", run.count},
          {"state", to_string(run.state)},
          {"bytes", run.reach.bytes},
          {"writable_bytes", run.reach.writable_bytes},
          {"grants", grants}};
}

Json to_json(const Export& item) {
  Json json{{"id", item.id},
            {"path", item.rules.path},
            {"read_only", item.rules.read_only},
            {"root_squash", item.rules.root_squash},
            {"all_squash", item.rules.all_squash},
            {"anonuid", item.rules.anonuid},
            {"anongid", item.rules.anongid},
            {"insecure", item.rules.insecure},
            {"manage_gids", item.rules.manage_gids},
            {"clients", item.rules.clients},
            {"source", to_string(item.stored ? SettingSource::kStore : SettingSource::kFile)},
            {"directory_exists", item.directory_exists}};
  if (!item.warning.empty()) json["warning"] = item.warning;
  return json;
}

Json to_json(const TreeSnapshot& snapshot) {
  Json shown = {{"id", snapshot.id},
                {"name", snapshot.name},
                {"created", rfc3339(snapshot.created)},
                {"state", to_string(snapshot.state)},
                {"schedule", snapshot.schedule ? Json(to_string(*snapshot.schedule)) : Json()},
                {"pinned", snapshot.pinned}};
  for (const RevokedClient& one : snapshot.revoked)
    shown["revoked"].push_back({{"client", id_text(one.id)}, {"name", one.name}, {"layouts", one.layouts}});
  return shown;
}

Json to_json(const SnapshotSchedule& schedule) {
  Json next = Json::array();
  for (const SnapshotSchedule::Next& one : schedule.next)
    next.push_back({{"schedule", to_string(one.schedule)}, {"due", rfc3339(one.due)}});
  Json failure;
  if (schedule.failure)
    failure = {{"schedule", to_string(schedule.failure->schedule)},
               {"time", rfc3339(schedule.failure->time)},
               {"detail", schedule.failure->detail}};
  return {{"hourly", schedule.hourly},
          {"daily", schedule.daily},
          {"weekly", schedule.weekly},
          {"monthly", schedule.monthly},
          {"hour", schedule.hour},
          {"minute", schedule.minute},
          {"next", next},
          {"failure", failure},
          {"tries_in_vain", schedule.tries_in_vain}};
}

Json to_json(const Quota& quota, const std::optional<std::string>& name, const WallTime& now) {
  const auto ends = [](const QuotaUse& use) {
    return use.soft_until ? Json(rfc3339(*use.soft_until)) : Json();
  };
  return {{"kind", to_string(quota.kind)},
          {"id", quota.id},
          {"name", text_or_null(name)},
          {"complete", quota.complete},
          {"limits_from", to_string(quota.limits_from)},
          {"space_used_bytes", quota.space.used},
          {"space_soft_bytes", quota.limits.space.soft},
          {"space_hard_bytes", quota.limits.space.hard},
          {"space_state", to_string(standing_of(quota.limits.space, quota.space, now))},
          {"space_grace_ends", ends(quota.space)},
          {"inodes_used", quota.inodes.used},
          {"inodes_soft", quota.limits.inodes.soft},
          {"inodes_hard", quota.limits.inodes.hard},
          {"inodes_state", to_string(standing_of(quota.limits.inodes, quota.inodes, now))},
          {"inodes_grace_ends", ends(quota.inodes)}};
}

Json to_json(const QuotaLimits& limits) {
  return {{"space_soft_bytes", limits.space.soft},
          {"space_hard_bytes", limits.space.hard},
          {"inodes_soft", limits.inodes.soft},
          {"inodes_hard", limits.inodes.hard}};
}

Json to_json(const QuotaSettings& settings) {
  const bool counting = settings.state == QuotaState::kCounting;
  return {{"state", to_string(settings.state)},
          {"counted_share", counting ? Json(settings.counted_share) : Json()},
          {"space_grace_seconds", settings.space_grace_seconds},
          {"inode_grace_seconds", settings.inode_grace_seconds},
          {"user_default", to_json(settings.user_default)},
          {"group_default", to_json(settings.group_default)}};
}

Json to_json(const File& file) {
  Json extents = Json::array();
  for (const FileExtent& extent : file.extents) {
    extents.push_back({{"offset", extent.offset},
                       {"length", extent.length},
                       {"brick", extent.brick},
                       {"logical", extent.logical}});
  }
  Json open_by = Json::array();
  for (const uint64_t client : file.open_by) open_by.push_back(id_text(client));
  return {{"path", file.path},
          {"inode", file.inode},
          {"type", to_string(file.type)},
          {"size", file.size},
          {"space_used", file.space_used},
          {"mode", fmt::format("{:04o}", file.mode)},
          {"uid", file.uid},
          {"gid", file.gid},
          {"links", file.links},
          {"modified", rfc3339(file.modified)},
          {"open_by", open_by},
          {"extents", extents},
          {"extents_truncated", file.extents_truncated}};
}

Json to_json(const Job& job) {
  return {{"id", job.id},
          {"kind", to_string(job.kind)},
          {"subject", job.subject},
          {"state", to_string(job.state)},
          {"progress", job.progress},
          {"message", job.message},
          {"user", job.user},
          {"started", rfc3339(job.started)},
          {"finished", job.finished ? Json(rfc3339(*job.finished)) : Json()},
          {"cancellable", job.cancellable}};
}

Json to_json(const std::optional<Cluster>& shared) {
  const Cluster cluster = shared.value_or(Cluster{});
  Json servers = Json::array();
  for (const ClusterServer& server : cluster.servers) {
    servers.push_back({{"name", server.name},
                       {"state", to_string(server.state)},
                       {"position", server.position},
                       {"behind", server.behind}});
  }
  Json members = Json::array();
  for (const ClusterMember& member : cluster.members) {
    members.push_back({{"id", member.id},
                       {"name", member.name},
                       {"address", member.address},
                       {"state", member.answers ? "answers" : "silent"},
                       {"leads", member.leads},
                       {"version", member.version},
                       {"database_bytes", member.database_bytes}});
  }
  Json problems = Json::array();
  for (const ClusterProblem& problem : cluster.problems)
    problems.push_back({{"detail", problem.detail}, {"fix", problem.fix}});
  return {{"configured", shared.has_value()},
          {"log", cluster.log},
          {"prefix", cluster.prefix},
          {"leader", cluster.leader.empty() ? Json() : Json(cluster.leader)},
          {"leading_seconds", cluster.leading_seconds ? Json(*cluster.leading_seconds) : Json()},
          {"position", cluster.position},
          {"trimmed", cluster.trimmed},
          {"window_bytes", cluster.window_bytes},
          {"window_bytes_max", cluster.window_bytes_max},
          {"takeover_possible", cluster.takeover},
          {"takeovers", cluster.takeovers},
          {"costs", costs_json(cluster.costs)},
          {"servers", servers},
          {"members", members},
          {"problems", problems}};
}

}  // namespace pnfsrdma::console
