// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/config.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "shared/http/url.h"
#include "shared/rpc/limits.h"
#include "shared/rpc/socket_address.h"

namespace pnfsrdma::mds {

namespace {

using Json = nlohmann::ordered_json;

inline constexpr std::pair<const char*, LogLevel> kLogLevels[] = {{"debug", LogLevel::kDebug},
                                                                  {"info", LogLevel::kInfo},
                                                                  {"warning", LogLevel::kWarning},
                                                                  {"error", LogLevel::kError},
                                                                  {"off", LogLevel::kOff}};

// One JSON object: takes its keys one by one and keeps the first thing wrong with it. end() refuses keys
// nobody took.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) error_ = where_ + ": must be an object";
  }

  void text(const char* key, std::string& value) {
    if (const Json* found = take(key)) {
      found->is_string() ? void(value = found->get<std::string>()) : wrong(key, "must be a string");
    }
  }
  void boolean(const char* key, bool& value) {
    if (const Json* found = take(key)) {
      found->is_boolean() ? void(value = found->get<bool>()) : wrong(key, "must be true or false");
    }
  }
  template <typename T>
  void number(const char* key, T& value, uint64_t least, uint64_t most) {
    const Json* found = take(key);
    if (!found) return;
    if (!found->is_number_unsigned() || found->get<uint64_t>() < least || found->get<uint64_t>() > most) {
      return wrong(key,
                   "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    value = static_cast<T>(found->get<uint64_t>());
  }
  void texts(const char* key, std::vector<std::string>& values) {
    const Json* found = take(key);
    if (!found) return;
    if (!found->is_array()) return wrong(key, "must be a list of strings");
    values.clear();
    for (const Json& item : *found) {
      if (!item.is_string()) return wrong(key, "must be a list of strings");
      values.push_back(item.get<std::string>());
    }
  }
  // Null if the key is not there.
  const Json* take(const char* key) {
    taken_.insert(key);
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  void wrong(const char* key, const std::string& what) {
    if (error_.empty()) error_ = where_ + ": \"" + key + "\" " + what;
  }
  Result<> end() {
    if (error_.empty()) {
      for (const auto& item : object_.items()) {
        if (!taken_.contains(item.key())) error_ = where_ + ": unknown key \"" + item.key() + "\"";
      }
    }
    if (!error_.empty()) return fail(EINVAL, error_);
    return {};
  }

 private:
  const Json& object_;
  std::string where_;
  std::string error_;
  std::set<std::string> taken_;
};

// "2026-12-31": its first second, UTC.
std::optional<WallTime> parse_day(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int read = 0;
  if (text.size() != 10 || std::sscanf(text.c_str(), "%4d-%2u-%2u%n", &year, &month, &day, &read) != 3 ||
      read != 10)
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return std::nullopt;
  return WallTime{.seconds =
                      std::chrono::sys_seconds(std::chrono::sys_days(date)).time_since_epoch().count()};
}

std::string day_text(const WallTime& time) {
  const std::chrono::year_month_day date{
      std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(std::chrono::seconds(time.seconds)))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

Result<Export> parse_export(const Json& json, size_t index) {
  Export parsed;
  bool root_squash = true;
  bool all_squash = false;
  std::vector<std::string> networks;
  ObjectReader reader(json, "exports[" + std::to_string(index) + "]");
  reader.text("path", parsed.path);
  reader.boolean("read_only", parsed.read_only);
  reader.boolean("root_squash", root_squash);
  reader.boolean("all_squash", all_squash);
  reader.number("anonuid", parsed.anonuid, 0, UINT32_MAX);
  reader.number("anongid", parsed.anongid, 0, UINT32_MAX);
  reader.boolean("insecure", parsed.insecure);
  reader.boolean("manage_gids", parsed.manage_gids);
  reader.texts("clients", networks);
  std::string until;
  reader.text("old_handles_until", until);
  if (!until.empty()) {
    parsed.old_handles_until = parse_day(until);
    if (!parsed.old_handles_until) reader.wrong("old_handles_until", "must be a day: \"2026-12-31\"");
  }
  if (!is_normal_path(parsed.path))
    reader.wrong("path", "must be absolute, without empty, \".\" or \"..\" parts");
  TRY(reader.end());
  parsed.squash = all_squash ? Squash::kAll : root_squash ? Squash::kRoot : Squash::kNone;
  for (const std::string& text : networks) {
    TRY_ASSIGN(Network network, Network::parse(text));
    parsed.clients.push_back(std::move(network));
  }
  return parsed;
}

Result<std::vector<Export>> parse_exports(const Json& json) {
  if (!json.is_array() || json.empty() || json.size() > UINT16_MAX) {
    return fail(EINVAL, "config: \"exports\" must be a list of at least one object");
  }
  std::vector<Export> exports;
  std::set<std::string> paths;
  for (const Json& item : json) {
    TRY_ASSIGN(Export parsed, parse_export(item, exports.size()));
    if (!paths.insert(parsed.path).second) return fail(EINVAL, "config: two exports of " + parsed.path);
    exports.push_back(std::move(parsed));
  }
  return exports;
}

void parse_log_level(ObjectReader& reader, LogLevel& level) {
  std::string name;
  reader.text("log_level", name);
  if (name.empty()) return;
  for (const auto& [known, value] : kLogLevels) {
    if (name == known) return void(level = value);
  }
  reader.wrong("log_level", "must be debug, info, warning, error or off");
}

Result<SnapshotSchedule> parse_schedule(const Json& json) {
  SnapshotSchedule parsed;
  ObjectReader reader(json, "snapshot_schedule");
  reader.number("hourly", parsed.hourly, 0, kScheduledMax);
  reader.number("daily", parsed.daily, 0, kScheduledMax);
  reader.number("weekly", parsed.weekly, 0, kScheduledMax);
  reader.number("monthly", parsed.monthly, 0, kScheduledMax);
  reader.number("hour", parsed.hour, 0, 23);
  reader.number("minute", parsed.minute, 0, 59);
  TRY(reader.end());
  TRY(check_schedule(parsed));
  return parsed;
}

Json schedule_to_json(const SnapshotSchedule& from) {
  return {{"hourly", from.hourly},   {"daily", from.daily}, {"weekly", from.weekly},
          {"monthly", from.monthly}, {"hour", from.hour},   {"minute", from.minute}};
}

Result<ConsoleConfig> parse_console(const Json& json) {
  ConsoleConfig parsed;
  ObjectReader reader(json, "config: console");
  reader.texts("listen", parsed.listen);
  reader.text("socket", parsed.socket);
  reader.text("certificate", parsed.certificate);
  reader.text("key", parsed.key);
  reader.text("web_directory", parsed.web_directory);
  if (parsed.certificate.empty() != parsed.key.empty())
    reader.wrong("certificate", "and \"key\" must be given together, or neither");
  TRY(reader.end());
  return parsed;
}

Json console_to_json(const ConsoleConfig& from) {
  return {{"listen", from.listen},
          {"socket", from.socket},
          {"certificate", from.certificate},
          {"key", from.key},
          {"web_directory", from.web_directory}};
}

Result<MetadataLogConfig> parse_metadata_log(const Json& json) {
  MetadataLogConfig parsed;
  ObjectReader reader(json, "config: metadata_log");
  reader.texts("endpoints", parsed.endpoints);
  reader.text("prefix", parsed.prefix);
  reader.text("name", parsed.name);
  reader.text("ca_file", parsed.ca_file);
  reader.text("certificate", parsed.certificate);
  reader.text("key", parsed.key);
  reader.text("copies", parsed.copies);
  for (const std::string& endpoint : parsed.endpoints) {
    if (!http::parse_url(endpoint))
      reader.wrong("endpoints", "must be of the form \"https://host:port\", an IPv6 address in brackets");
  }
  if (!parsed.prefix.starts_with('/') || parsed.prefix.ends_with('/'))
    reader.wrong("prefix", "must begin with \"/\" and not end with it");
  if (parsed.name.find_first_of("/\n") != std::string::npos) reader.wrong("name", "must not contain \"/\"");
  if (parsed.certificate.empty() != parsed.key.empty())
    reader.wrong("certificate", "and \"key\" must be given together, or neither");
  if (!parsed.copies.empty()) {
    const auto address = rpc::SocketAddress::parse(parsed.copies, 0);
    if (!address || parsed.copies.find_first_of("/ \n") != std::string::npos)
      reader.wrong("copies", "must be of the form \"host:port\"");
    if (parsed.ca_file.empty() || parsed.certificate.empty())
      reader.wrong("copies", "needs \"ca_file\", \"certificate\" and \"key\": it has all metadata");
  }
  TRY(reader.end());
  return parsed;
}

Json metadata_log_to_json(const MetadataLogConfig& from) {
  return {{"endpoints", from.endpoints}, {"prefix", from.prefix},           {"name", from.name},
          {"ca_file", from.ca_file},     {"certificate", from.certificate}, {"key", from.key},
          {"copies", from.copies}};
}

Result<BrickTlsConfig> parse_brick_tls(const Json& json) {
  BrickTlsConfig parsed;
  ObjectReader reader(json, "config: brick_tls");
  reader.text("ca_file", parsed.ca_file);
  reader.text("certificate", parsed.certificate);
  reader.text("key", parsed.key);
  reader.texts("plain", parsed.plain);
  const bool none = parsed.certificate.empty();
  if (parsed.key.empty() != none || parsed.ca_file.empty() != none)
    reader.wrong("certificate", "and \"key\" and \"ca_file\" must be given together, or none of them");
  for (const std::string& address : parsed.plain)
    if (!address.starts_with("tcp:")) reader.wrong("plain", "must name bricks as \"tcp:host:port\"");
  TRY(reader.end());
  return parsed;
}

Json brick_tls_to_json(const BrickTlsConfig& from) {
  return {
      {"ca_file", from.ca_file}, {"certificate", from.certificate}, {"key", from.key}, {"plain", from.plain}};
}

Json export_to_json(const Export& from) {
  Json json;
  json["path"] = from.path;
  json["read_only"] = from.read_only;
  json["root_squash"] = from.squash != Squash::kNone;
  json["all_squash"] = from.squash == Squash::kAll;
  json["anonuid"] = from.anonuid;
  json["anongid"] = from.anongid;
  json["insecure"] = from.insecure;
  json["manage_gids"] = from.manage_gids;
  json["clients"] = Json::array();
  for (const Network& network : from.clients) json["clients"].push_back(network.text());
  json["old_handles_until"] = from.old_handles_until ? day_text(*from.old_handles_until) : "";
  return json;
}

}  // namespace

Result<Config> parse_config(const std::string& json_text) {
  Json json;
  try {
    json = Json::parse(json_text, nullptr, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const Json::exception& error) {  // third-party exceptions stop here; it names line and column
    return fail(EINVAL, std::string("config: not JSON: ") + error.what());
  }
  Config config;
  ObjectReader reader(json, "config");
  reader.texts("listen", config.listen);
  reader.texts("rdma_listen", config.rdma_listen);
  reader.text("data_directory", config.data_directory);
  reader.texts("bricks", config.bricks);
  reader.number("brick_patience_seconds", config.brick_patience_seconds, 1, 3600);
  reader.number("lease_seconds", config.lease_seconds, 1, 3600);
  reader.number("grace_seconds", config.grace_seconds, 0, 3600);
  reader.number("session_slots", config.session_slots, 1, 1024);
  reader.number("small_file_bytes", config.small_file_bytes, 0, UINT32_MAX);
  reader.boolean("delegations", config.delegations);
  reader.number("metadata_cache_mib", config.metadata_cache_mib, 8, 1 << 20);
  reader.number("memory_budget_mib", config.memory_budget_mib, 64, 1 << 20);
  reader.number("memory_per_address_mib", config.memory_per_address_mib, 0, 1 << 20);
  reader.number("connections_per_address", config.connections_per_address, 1, rpc::kConnectionsMax);
  reader.number("stalled_request_seconds", config.stalled_request_seconds, 1, 3600);
  // Less than some requests of the longest kind, and none of them would ever come to its end.
  const uint64_t of_address = config.memory_per_address_mib;
  if (of_address != 0 && (of_address < 16 || of_address > config.memory_budget_mib))
    reader.wrong("memory_per_address_mib", "must be 0, or from 16 to \"memory_budget_mib\"");
  parse_log_level(reader, config.log_level);
  const Json* exports = reader.take("exports");
  const Json* schedule = reader.take("snapshot_schedule");
  const Json* metadata_log = reader.take("metadata_log");
  const Json* brick_tls = reader.take("brick_tls");
  const Json* console = reader.take("console");
  if (config.listen.empty()) reader.wrong("listen", "must name at least one address");
  if (std::set(config.bricks.begin(), config.bricks.end()).size() != config.bricks.size())
    reader.wrong("bricks", "must name every brick once");
  if (config.data_directory.empty()) reader.wrong("data_directory", "must not be empty");
  TRY(reader.end());
  if (exports) {
    TRY_ASSIGN(config.exports, parse_exports(*exports));
  }
  if (schedule) {
    TRY_ASSIGN(config.snapshot_schedule, parse_schedule(*schedule));
  }
  if (metadata_log) {
    TRY_ASSIGN(config.metadata_log, parse_metadata_log(*metadata_log));
  }
  if (brick_tls) {
    TRY_ASSIGN(config.brick_tls, parse_brick_tls(*brick_tls));
  }
  if (console) {
    TRY_ASSIGN(config.console, parse_console(*console));
  }
  for (const auto& item : json.items()) config.given.insert(item.key());
  return config;
}

Result<SnapshotSchedule> parse_snapshot_schedule(const std::string& json_text) {
  return parse_schedule(Json::parse(json_text, nullptr, /*allow_exceptions=*/false));
}

Result<Config> load_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::unexpected(Error::from_errno("open " + path));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto config = parse_config(text);
  if (!config) return std::unexpected(config.error().in(path));
  return config;
}

std::string exports_to_json(const std::vector<Export>& exports) {
  Json json = Json::array();
  for (const Export& item : exports) json.push_back(export_to_json(item));
  return json.dump();
}

std::string to_json(const Config& config) {
  Json json;
  json["listen"] = config.listen;
  json["rdma_listen"] = config.rdma_listen;
  json["data_directory"] = config.data_directory;
  json["bricks"] = config.bricks;
  json["brick_tls"] = brick_tls_to_json(config.brick_tls);
  json["brick_patience_seconds"] = config.brick_patience_seconds;
  json["lease_seconds"] = config.lease_seconds;
  json["grace_seconds"] = config.grace_seconds;
  json["session_slots"] = config.session_slots;
  json["small_file_bytes"] = config.small_file_bytes;
  json["delegations"] = config.delegations;
  json["metadata_cache_mib"] = config.metadata_cache_mib;
  json["metadata_log"] = metadata_log_to_json(config.metadata_log);
  json["memory_budget_mib"] = config.memory_budget_mib;
  json["memory_per_address_mib"] = config.memory_per_address_mib;
  json["connections_per_address"] = config.connections_per_address;
  json["stalled_request_seconds"] = config.stalled_request_seconds;
  json["snapshot_schedule"] = schedule_to_json(config.snapshot_schedule);
  for (const auto& [name, level] : kLogLevels) {
    if (level == config.log_level) json["log_level"] = name;
  }
  for (const Export& item : config.exports) json["exports"].push_back(export_to_json(item));
  json["console"] = console_to_json(config.console);
  return json.dump(2);
}

std::string console_directory(const Config& config) {
  return config.data_directory + "/console";
}

}  // namespace pnfsrdma::mds
