// SPDX-License-Identifier: Apache-2.0
#include "server/console/alert_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace pnfsrdma::console {

namespace {

using std::chrono::seconds;
constexpr seconds kAtOnce{0};
constexpr seconds kMinute{60};
constexpr seconds kTenMinutes{600};
constexpr seconds kHour{3600};

constexpr AlertRule kRules[] = {
    {"PnfsrdmaMdsRestarts", "resets(pnfsrdma_mds_compounds_total[1h]) > 3", kAtOnce, "warning", "server",
     "The MDS {{ $labels.instance }} has started {{ $value }} times in an hour",
     "The reason is in journalctl -u pnfsrdma-mdsd; metadata-sync-failed means that its disk is failing."},
    {"PnfsrdmaMdsSlow",
     "histogram_quantile(0.99, sum by (instance, le) (rate(pnfsrdma_mds_operation_seconds_bucket[5m]))) > "
     "0.5",
     kTenMinutes, "warning", "server",
     "1 % of the operations of {{ $labels.instance }} take longer than {{ $value | humanizeDuration }}",
     "Possible causes: clients that do not return layouts, a brick that is slow to answer, or a disk that is "
     "slow to sync the metadata."},
    {"PnfsrdmaMetadataNotDurable", "pnfsrdma_mds_metadata_unsynced_commits > 10000", kMinute, "warning",
     "server", "{{ $value }} metadata commits of {{ $labels.instance }} wait for their disk",
     "Answers wait with them. Look at the disk under the MDS's data_directory: iostat -x 1."},
    {"PnfsrdmaMetadataDiskNearlyFull",
     "pnfsrdma_mds_metadata_disk_free_bytes < 8589934592 and pnfsrdma_mds_metadata_disk_free_bytes / "
     "pnfsrdma_mds_metadata_disk_bytes < 0.2",
     kTenMinutes, "warning", "server",
     "The disk of the metadata of {{ $labels.instance }} has {{ $value | humanize1024 }}B left",
     "When it is full, no files can be created. Free space on that disk."},
    {"PnfsrdmaMetadataDiskFull", "pnfsrdma_mds_metadata_disk_free_bytes < 67108864", kMinute, "critical",
     "server", "The disk of the metadata of {{ $labels.instance }} is full",
     "Nothing new can be made; files are read and removed. Free space on that disk: the server recovers by "
     "itself."},
    {"PnfsrdmaLeaseExpired", "increase(pnfsrdma_mds_lease_expirations_total[10m]) > 0", kAtOnce, "warning",
     "server", "A client of {{ $labels.instance }} was silent for a whole lease",
     "Its opens and layouts are gone; what it had not flushed is lost. Is the host down, or the network "
     "between? pnfsrdma event list --name lease-expired."},
    {"PnfsrdmaLayoutsRevoked", "increase(pnfsrdma_mds_revocations_total[10m]) > 0", kAtOnce, "warning",
     "server", "{{ $labels.instance }} revoked {{ $value | humanize }} layouts",
     "A client did not return a recalled layout, or an administrator revoked it: pnfsrdma audit list. "
     "Unflushed writes under them are lost."},
    {"PnfsrdmaCertificateExpires", "pnfsrdma_console_certificate_seconds_left < 2592000 >= 604800", kAtOnce,
     "warning", "certificate",
     "The certificate of the console of {{ $labels.instance }} expires in {{ $value | humanizeDuration }}",
     "Replace console.certificate and console.key, then restart pnfsrdma-mdsd; for one of its own, remove "
     "both files."},
    {"PnfsrdmaCertificateExpiresSoon", "pnfsrdma_console_certificate_seconds_left < 604800", kAtOnce,
     "critical", "certificate",
     "The certificate of the console of {{ $labels.instance }} expires in {{ $value | humanizeDuration }}",
     "Browsers and tools then refuse to connect. Replace console.certificate and console.key, then restart "
     "pnfsrdma-mdsd; for one of its own, remove both files."},
    {"PnfsrdmaBrickAway", "pnfsrdma_brick_up == 0", kMinute, "critical", "brick",
     "The brick {{ $labels.brick }} is unreachable",
     "I/O to its files fails until it is back: pnfsrdma brick show {{ $labels.brick }}; on its host: "
     "systemctl status pnfsrdma-brickd."},
    {"PnfsrdmaBrickUnreached", "pnfsrdma_brick_unreached_by > 0", kMinute, "warning", "brick",
     "{{ $value }} clients cannot reach the memory of the brick {{ $labels.brick }}",
     "They read and write through the MDS, which is slow. pnfsrdma health names them; look at the firewall "
     "between them and the brick (ports 20051, 20052), and at data.advertise."},
    {"PnfsrdmaBrickNearlyFull", "pnfsrdma_brick_free_bytes / pnfsrdma_brick_capacity_bytes < 0.1",
     kTenMinutes, "warning", "brick",
     "The brick {{ $labels.brick }} has {{ $value | humanizePercentage }} left",
     "New files go to other bricks; when all are full, writes fail with ENOSPC. Add one: pnfsrdma brick "
     "add."},
    {"PnfsrdmaPoolNearlyFull",
     "sum by (instance) (pnfsrdma_brick_free_bytes) / sum by (instance) (pnfsrdma_brick_capacity_bytes) < "
     "0.2",
     kTenMinutes, "warning", "server",
     "All bricks of {{ $labels.instance }} together have {{ $value | humanizePercentage }} left",
     "When they are full, writes fail with ENOSPC. Remove files, or add a brick: pnfsrdma brick add."},
    {"PnfsrdmaPoolFull",
     "sum by (instance) (pnfsrdma_brick_free_bytes) / sum by (instance) (pnfsrdma_brick_capacity_bytes) < "
     "0.02",
     kMinute, "critical", "server",
     "All bricks of {{ $labels.instance }} together have {{ $value | humanizePercentage }} left",
     "Writes that need space fail with ENOSPC. Remove files, or add a brick: pnfsrdma brick add."},
    {"PnfsrdmaBrickVolatile", "pnfsrdma_brick_durability{class=\"volatile\"} == 1", kHour, "warning", "brick",
     "The brick {{ $labels.brick }} loses its data when the host fails",
     "Its pool is on tmpfs or hugetlbfs: for experiments and benchmarks. Use PMEM or a file on a disk if "
     "files must survive."},
    {"PnfsrdmaSnapshotOverdue", "pnfsrdma_mds_snapshot_overdue_seconds > 3600", kAtOnce, "warning", "server",
     "A scheduled snapshot of {{ $labels.instance }} has been due for {{ $value | humanizeDuration }}",
     "Nothing is deleted until one is taken. pnfsrdma snapshot schedule shows why the last try failed."},
    {"PnfsrdmaNoTakeOver", "pnfsrdma_mds_log_takeover_possible < 1", kMinute, "warning", "server",
     "If the host of {{ $labels.instance }} is lost, no other server takes over",
     "A standby or a member of etcd is away: pnfsrdma cluster status says which, and what to do."},
    {"PnfsrdmaStandbyLags", "max by (instance) (pnfsrdma_mds_log_behind) > 10000", kMinute, "warning",
     "server", "A standby of {{ $labels.instance }} is {{ $value }} values of the log behind",
     "A take-over would wait for it. Look at the standby's disk and at its network to etcd: pnfsrdma cluster "
     "status names it."},
    {"PnfsrdmaLogWindowNearlyFull", "pnfsrdma_mds_log_window_bytes / pnfsrdma_mds_log_window_bytes_max > 0.8",
     kAtOnce, "warning", "server",
     "The log of {{ $labels.instance }} has used {{ $value | humanizePercentage }} of its window",
     "When it is full, a server that does not follow has to begin with a copy of the metadata directory. "
     "Start it, or remove it for good: pnfsrdma cluster status."},
};

// The largest whole unit and the next: "6d 23h", "1m 30s", "500ms".
std::string duration_text(double value) {
  if (value < 0) return "-" + duration_text(-value);
  if (value < 1) return fmt::format("{:.0f}ms", value * 1000);
  constexpr std::pair<const char*, uint64_t> kUnits[] = {{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}};
  auto left = static_cast<uint64_t>(value);
  std::string text;
  for (const auto& [unit, length] : kUnits) {
    if (left < length && text.empty()) continue;
    const bool second = !text.empty();
    text += fmt::format("{}{}{}", second ? " " : "", left / length, unit);
    left %= length;
    if (second) break;
  }
  return text;
}

std::string binary_text(double value) {
  const char* const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return fmt::format("{:.4g}{}", value, units[unit]);
}

std::string value_text(std::string_view how, double value) {
  if (how.find("humanizePercentage") != std::string_view::npos) return fmt::format("{:.4g}%", value * 100);
  if (how.find("humanizeDuration") != std::string_view::npos) return duration_text(value);
  if (how.find("humanize1024") != std::string_view::npos) return binary_text(value);
  return fmt::format("{:.10g}", value);
}

}  // namespace

std::span<const AlertRule> alert_rules() {
  return kRules;
}

const AlertRule* find_alert_rule(std::string_view name) {
  const auto* found = std::ranges::find(kRules, name, &AlertRule::name);
  return found == std::end(kRules) ? nullptr : found;
}

std::vector<double> limits_of(const AlertRule& rule) {
  std::vector<double> limits;
  const std::string text(rule.expression);
  // Labels have an equals sign of their own: comparisons stand between spaces.
  for (size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 1)) {
    const size_t begin = text.find_first_not_of("<>=", at + 1);
    if (begin == at + 1 || begin == std::string::npos || text[begin] != ' ') continue;
    limits.push_back(std::strtod(&text[begin], nullptr));
  }
  return limits;
}

std::chrono::seconds window_of(const AlertRule& rule) {
  const size_t open = rule.expression.find('[');
  if (open == std::string_view::npos) return seconds(0);
  char* unit = nullptr;
  const std::string text(rule.expression.substr(open + 1));
  const long count = std::strtol(text.c_str(), &unit, 10);
  return seconds(count * (*unit == 'h' ? 3600 : *unit == 'm' ? 60 : 1));
}

std::string fill_in(std::string_view text, const AlertWords& words) {
  std::string filled;
  while (!text.empty()) {
    const size_t open = text.find("{{");
    const size_t close = text.find("}}", std::min(open, text.size()));
    if (close == std::string_view::npos) break;
    filled += text.substr(0, open);
    const std::string_view inside = text.substr(open, close - open);
    if (inside.find("$labels.brick") != std::string_view::npos) {
      filled += words.brick;
    } else if (inside.find("$labels.instance") != std::string_view::npos) {
      filled += words.instance;
    } else {
      filled += value_text(inside, words.value);
    }
    text.remove_prefix(close + 2);
  }
  return filled.append(text);
}

}  // namespace pnfsrdma::console
