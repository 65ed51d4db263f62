// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/setting_keeper.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {

using Json = nlohmann::ordered_json;

const std::string kLogLevelName = "log_level";
const std::string kSmallFileName = "small_file_bytes";
const std::string kScheduleName = "snapshot_schedule";
const std::string kBrickTlsName = "brick_tls";
constexpr uint64_t kSmallFileMax = uint64_t{1} << 30;
constexpr std::array<std::pair<const char*, LogLevel>, 4> kLevels{{{"debug", LogLevel::kDebug},
                                                                   {"info", LogLevel::kInfo},
                                                                   {"warning", LogLevel::kWarning},
                                                                   {"error", LogLevel::kError}}};

bool run_time(const std::string& name) {
  return name == kLogLevelName || name == kSmallFileName || name == kScheduleName;
}

}  // namespace

SettingKeeper::SettingKeeper(KeyValueStore& store, const Config& config, ServerLimits& limits)
    : store_(store), config_(config), limits_(limits), schedule_(config.snapshot_schedule) {
  const auto scanned =
      Records(store).scan(RecordKind::kSetting, [this](std::string_view key, std::string_view value) {
        // One of a newer program, or one that makes no sense: the file's value is in force.
        if (check(std::string(key), std::string(value))) stored_.emplace(key, value);
        return true;
      });
  if (!scanned) log_error("mds", "settings-unreadable error=\"{}\"", scanned.error().to_string());
  for (const auto& [name, value] : stored_) {
    log_info("mds", "setting-from-store name={} value={}", name, value);
    apply(name, value);
  }
}

Result<> SettingKeeper::check(const std::string& name, const std::string& value) {
  const Json json = Json::parse(value, nullptr, false);
  if (name == kLogLevelName) {
    const bool known = std::ranges::any_of(kLevels, [&](const auto& level) { return json == level.first; });
    return known ? Result<>() : fail(EINVAL, "log_level must be debug, info, warning or error");
  }
  if (name == kSmallFileName) {
    if (json.is_number_unsigned() && json.get<uint64_t>() <= kSmallFileMax) return {};
    return fail(EINVAL, "small_file_bytes must be a whole number up to 1073741824");
  }
  if (name == kScheduleName) {
    TRY(parse_snapshot_schedule(value));
    return {};
  }
  return fail(EINVAL, name + " cannot change at run time");
}

std::string SettingKeeper::configured(const std::string& name) const {
  const Json all = Json::parse(to_json(config_));
  return all.contains(name) ? all[name].dump() : "null";
}

void SettingKeeper::apply(const std::string& name, const std::string& value) {
  const Json json = Json::parse(value, nullptr, false);
  if (name == kSmallFileName) limits_.small_file_bytes = json.get<uint64_t>();
  if (name == kScheduleName) schedule_ = *parse_snapshot_schedule(value);
  if (name != kLogLevelName) return;
  if (json == "off") return set_log_level(LogLevel::kOff);
  const auto* const level =
      std::ranges::find_if(kLevels, [&](const auto& candidate) { return json == candidate.first; });
  if (level != kLevels.end()) set_log_level(level->second);
}

std::vector<console::Setting> SettingKeeper::all() const {
  std::vector<console::Setting> all;
  const Json configured = Json::parse(to_json(config_));
  for (const auto& item : configured.items()) {
    const auto stored = stored_.find(item.key());
    const bool given = config_.given.contains(item.key());
    all.push_back({.name = item.key(),
                   .value = stored == stored_.end() ? item.value().dump() : stored->second,
                   .source = stored != stored_.end() ? console::SettingSource::kStore
                             : given                 ? console::SettingSource::kFile
                                                     : console::SettingSource::kDefault,
                   .run_time = run_time(item.key())});
  }
  return all;
}

void SettingKeeper::change(const Changes& changes, std::function<void(Result<>)> done) {
  Batch batch;
  for (const auto& [name, value] : changes) {
    if (value == "null" && run_time(name)) {
      Records::erase(batch, RecordKind::kSetting, name);
      continue;
    }
    if (const auto good = check(name, value); !good) return done(good);
    Records::put(batch, RecordKind::kSetting, name, value);
  }
  if (batch.empty()) return done({});
  const auto committed = store_.commit(batch, CommitKind::kNamespace);
  if (!committed) return done(std::unexpected(committed.error()));
  for (const auto& [name, value] : changes) {
    if (value == "null") {
      stored_.erase(name);
      apply(name, configured(name));
    } else {
      stored_[name] = value;
      apply(name, value);
    }
  }
  store_.when_synced(*committed, [done = std::move(done)] { done({}); });
}

std::vector<std::string> SettingKeeper::reload(const Config& fresh) {
  const Json before = Json::parse(to_json(config_)), after = Json::parse(to_json(fresh));
  std::vector<std::string> waiting;
  for (const auto& item : after.items()) {
    if (item.key() == kBrickTlsName) continue;  // BrickTls::reload()
    if (!run_time(item.key())) {
      if (!before.contains(item.key()) || before[item.key()] != item.value()) waiting.push_back(item.key());
    } else if (!stored_.contains(item.key())) {
      apply(item.key(), item.value().dump());
    }
  }
  config_.log_level = fresh.log_level;
  config_.small_file_bytes = fresh.small_file_bytes;
  config_.snapshot_schedule = fresh.snapshot_schedule;
  config_.brick_tls = fresh.brick_tls;
  for (const std::string& name : {kLogLevelName, kSmallFileName, kScheduleName, kBrickTlsName}) {
    if (fresh.given.contains(name)) {
      config_.given.insert(name);
    } else {
      config_.given.erase(name);
    }
  }
  return waiting;
}

}  // namespace pnfsrdma::mds
