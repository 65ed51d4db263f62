// SPDX-License-Identifier: Apache-2.0
#include "cli/stat/stat_command.h"

#include <fmt/chrono.h>

#include <chrono>
#include <ctime>
#include <optional>

#include "cli/stat/rates.h"
#include "cli/stat/stat_report.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

Outcome<> show_metrics(const std::vector<Mounted>& mounts, Output& output) {
  if (mounts.size() != 1) {
    return refuse(ExitCode::kUsage, fmt::format("{} mounts: metrics are those of one", mounts.size()), {},
                  "name the mount: pnfsrdma stat --prometheus DIRECTORY");
  }
  TRY_ASSIGN(const std::string text, MountReader::metrics(mounts.front()));
  output.text(text);
  return {};
}

// Those that answer. One that does not must not hide the others: it is `failed`, and what is said last.
struct Readings {
  std::vector<MountReading> taken;
  std::optional<Failure> failed;
};

Readings read_all(const std::vector<Mounted>& mounts, Output& output) {
  Readings readings;
  for (const Mounted& mounted : mounts) {
    auto reading = MountReader::read(mounted);
    if (reading) {
      readings.taken.push_back(*std::move(reading));
      continue;
    }
    if (readings.failed) (void)output.complain(*readings.failed);
    readings.failed = std::move(reading.error());
  }
  return readings;
}

Outcome<> show_once(const std::vector<Mounted>& mounts, Output& output) {
  const Readings readings = read_all(mounts, output);
  json all = json::array();
  for (const MountReading& reading : readings.taken) {
    if (output.json) {
      all.push_back(stat_json(reading));
      continue;
    }
    if (&reading != &readings.taken.front()) output.line();
    output.text(stat_report(reading, output.terminal()));
  }
  if (output.json && !all.empty()) output.value(all);
  if (readings.failed) return std::unexpected(*readings.failed);
  return {};
}

void show_rates(const MountReading& reading, const Rates& rates, Output& output) {
  const std::time_t now = std::time(nullptr);
  if (output.json) {
    output.value({{"mounted_on", reading.mounted.path}, {"time", now}, {"rates", rates_json(rates)}});
    return;
  }
  output.line(output.terminal().styled(
      fmt::format("{:%H:%M:%S}  {}", fmt::localtime(now), reading.mounted.path), Style::kBold));
  output.text(rates_report(rates, output.terminal()));
  output.line();
}

Outcome<> watch(const std::vector<Mounted>& mounts, const StatOptions& options, Output& output) {
  const auto interval =
      std::chrono::duration_cast<SteadyTime::duration>(std::chrono::duration<double>(*options.watch));
  Readings earlier = read_all(mounts, output);
  if (earlier.failed) return std::unexpected(*earlier.failed);
  SteadyTime at = steady_now();
  for (uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    sleep_until(at + interval);
    Readings later = read_all(mounts, output);
    if (later.failed) return std::unexpected(*later.failed);
    const SteadyTime now = steady_now();
    for (size_t k = 0; k < later.taken.size(); ++k) {
      show_rates(later.taken[k], rates_between(earlier.taken[k], later.taken[k], now - at), output);
    }
    earlier = std::move(later);
    at = now;
  }
  return {};
}

}  // namespace

Outcome<> run_stat(const StatOptions& options, Output& output) {
  TRY_ASSIGN(const auto mounts, MountReader::find(options.path));
  if (options.prometheus) return show_metrics(mounts, output);
  if (options.watch) return watch(mounts, options, output);
  return show_once(mounts, output);
}

}  // namespace pnfsrdma::cli
