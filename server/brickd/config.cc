// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/config.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "shared/brick/partition_key.h"
#include "shared/brick/protocol.h"
#include "shared/rpc/socket_address.h"

namespace pnfsrdma::brick {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kSessionsListedMax = decltype(SessionsResult::sessions)::kMax;
constexpr size_t kGrantsListedMax = decltype(AllGrantsResult::grants)::kMax;

// The one list of keys: loading, printing and the check for unknown keys come from it.
template <typename ConfigType, typename Visitor>
void for_each_key(ConfigType& config, Visitor&& visit) {
  visit("pool", "path", config.pool.path);
  visit("pool", "size", config.pool.size);
  visit("pool", "partition", config.pool.partition);
  visit("pool", "create", config.pool.create);
  visit("pool", "durability", config.pool.durability);
  visit("control", "unix", config.control.unix_path);
  visit("control", "tcp", config.control.tcp);
  visit("control.tls", "certificate", config.control.tls.certificate);
  visit("control.tls", "key", config.control.tls.key);
  visit("control.tls", "ca_file", config.control.tls.ca_file);
  visit("control.tls", "peers", config.control.tls.peers);
  visit("data", "listen", config.data.listen);
  visit("data", "advertise", config.data.advertise);
  visit("data", "crc", config.data.crc);
  visit("data", "rdma", config.data.rdma);
  visit("", "lease_seconds", config.lease_seconds);
  visit("limits", "sessions", config.limits.sessions);
  visit("limits", "grants_per_session", config.limits.grants_per_session);
  visit("limits", "registrations", config.limits.registrations);
  visit("", "log_level", config.log_level);
}

std::string name_of(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
}

bool read(const Json& json, std::string& value) {
  if (!json.is_string()) return false;
  value = json.get<std::string>();
  return true;
}
bool read(const Json& json, bool& value) {
  if (!json.is_boolean()) return false;
  value = json.get<bool>();
  return true;
}
bool read(const Json& json, uint32_t& value) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > UINT32_MAX) return false;
  value = json.get<uint32_t>();
  return true;
}
bool read(const Json& json, std::vector<std::string>& value) {
  if (!json.is_array()) return false;
  value.clear();
  return std::ranges::all_of(json, [&](const Json& item) { return read(item, value.emplace_back()); });
}

// "/control/tls" of "control.tls".
Json::json_pointer place_of(std::string_view section) {
  std::string path(section);
  std::ranges::replace(path, '.', '/');
  return Json::json_pointer(path.empty() ? path : "/" + path);
}

// Every key of the file that is not in the list, by its full name.
std::string first_unknown_key(const Json& json) {
  std::set<std::string> known;
  std::set<std::string> sections;
  const Config defaults;
  for_each_key(defaults, [&](std::string_view section, std::string_view key, const auto&) {
    known.insert(name_of(section, key));
    sections.emplace(section);
  });
  const auto look = [&](const auto& self, const Json& in, const std::string& section) -> std::string {
    for (const auto& [key, value] : in.items()) {
      const std::string name = name_of(section, key);
      if (known.contains(name)) continue;
      if (!sections.contains(name) || !value.is_object()) return name;
      if (const std::string inner = self(self, value, name); !inner.empty()) return inner;
    }
    return {};
  };
  return look(look, json, {});
}

Result<> one_of(std::string_view key, const std::string& value,
                std::initializer_list<std::string_view> allowed) {
  if (std::ranges::find(allowed, value) != allowed.end()) return {};
  std::string list;
  for (const std::string_view word : allowed) list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", word);
  return fail(EINVAL, fmt::format("{} is \"{}\", must be one of {}", key, value, list));
}

bool is_wildcard(const std::string& address) {
  const auto parsed = rpc::SocketAddress::parse(address);
  return parsed && (parsed->host() == "0.0.0.0" || parsed->host() == "::");
}

// tmpfs below /dev holds files.
bool is_device(const std::string& path) {
  return path.starts_with("/dev/") && !path.starts_with("/dev/shm/") && !path.starts_with("/dev/hugepages/");
}

Result<> check(const Config::ControlConfig& control) {
  const auto& tls = control.tls;
  const bool all = !tls.certificate.empty() && !tls.key.empty() && !tls.ca_file.empty();
  const bool none = tls.certificate.empty() && tls.key.empty() && tls.ca_file.empty();
  if (!all && !none)
    return fail(EINVAL, "control.tls needs certificate, key and ca_file, all three or none of them");
  if (none && !tls.peers.empty())
    return fail(EINVAL, "control.tls.peers are names in certificates: set certificate, key and ca_file, too");
  if (all && control.tcp.empty())
    return fail(EINVAL,
                "control.tls is for control.tcp, which is not set; control.unix needs no certificates");
  return {};
}

Result<> check(const Config& config) {
  if (config.pool.path.empty())
    return fail(EINVAL, "pool.path is missing: the file or device that holds the data");
  if (!config.pool.size.empty()) TRY(parse_size(config.pool.size));
  if (config.pool.create && config.pool.size.empty())
    return fail(EINVAL, "pool.create needs pool.size: set the size of the file, for example \"4G\"");
  if (config.pool.create && is_device(config.pool.path))
    return fail(EINVAL, "pool.create is for files; make a pool of a device with --format");
  if (!config.pool.partition.empty() && !is_partition_name(config.pool.partition))
    return fail(EINVAL, "pool.partition must be 1 to 63 letters, digits, '.', '_' and '-'");
  if (!config.pool.partition.empty() && config.pool.create)
    return fail(EINVAL, "pool.create makes no partitions: pnfsrdma-brickd partition format and create do");
  TRY(one_of("pool.durability", config.pool.durability, {"power", "process"}));
  TRY(one_of("data.crc", config.data.crc, {"auto", "on", "off"}));
  TRY(one_of("log_level", config.log_level, {"debug", "info", "warning", "error", "off"}));
  if (config.control.unix_path.empty() && config.control.tcp.empty()) {
    return fail(EINVAL, "neither control.unix nor control.tcp is set: no MDS could reach the brick");
  }
  TRY(check(config.control));
  if (config.data.listen.empty())
    return fail(EINVAL, "data.listen is empty: no client could reach the brick");
  if (config.data.advertise.empty() && std::ranges::any_of(config.data.listen, is_wildcard)) {
    return fail(
        EINVAL,
        "data.listen has a wildcard address: list in data.advertise the addresses that clients can use");
  }
  if (std::ranges::any_of(config.data.rdma, is_wildcard)) {
    return fail(EINVAL, "data.rdma has a wildcard address: write \"auto\" for all addresses of RDMA devices");
  }
  // An answer names them all: as many as the protocol has room for.
  if (config.limits.sessions > kSessionsListedMax)
    return fail(EINVAL, "limits.sessions must not exceed 65536");
  if (config.limits.grants_per_session > kGrantsListedMax) {
    return fail(EINVAL, "limits.grants_per_session must not exceed 1048576");
  }
  if (config.lease_seconds == 0) return fail(EINVAL, "lease_seconds must not be 0");
  return {};
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, text.data() + text.size());
  constexpr std::string_view kUnits = "KMGTP";
  int shift = 0;
  bool good = error == std::errc() && number > 0 && unit.size() <= 1;
  if (good && unit.size() == 1) {
    const size_t index = kUnits.find(unit[0]);
    good = index != std::string_view::npos;
    shift = good ? static_cast<int>(index + 1) * 10 : 0;
  }
  if (!good || number > (UINT64_MAX >> 1 >> shift)) {
    return fail(EINVAL,
                fmt::format("\"{}\" is not a size: write \"4G\", \"512M\" or a number of bytes", text));
  }
  return number << shift;
}

Result<LogLevel> parse_log_level(std::string_view text) {
  constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warning", "error", "off"};
  const auto found = std::ranges::find(kNames, text);
  if (found == kNames.end()) return fail(EINVAL, fmt::format("\"{}\" is not a log level", text));
  return static_cast<LogLevel>(found - kNames.begin());
}

Result<Config> parse_config(std::string_view text) {
  Json json;
  try {
    json = Json::parse(text, nullptr, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const Json::exception& error) {  // third-party exceptions stop here
    return fail(EINVAL, error.what());
  }
  if (!json.is_object()) return fail(EINVAL, "the configuration is not a JSON object");
  if (const std::string key = first_unknown_key(json); !key.empty()) {
    return fail(EINVAL, fmt::format("unknown key \"{}\"", key));
  }
  Config config;
  std::string bad;
  for_each_key(config, [&](const char* section, const char* key, auto& value) {
    const auto place = place_of(section);
    if (!json.contains(place)) return;
    const Json& from = json.at(place);
    if (from.contains(key) && !read(from[key], value) && bad.empty()) bad = name_of(section, key);
  });
  if (!bad.empty()) return fail(EINVAL, fmt::format("the value of \"{}\" has the wrong type", bad));
  TRY(check(config));
  return config;
}

Result<Config> load_config(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::unexpected(Error::from_errno("open " + path));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  auto config = parse_config(text);
  if (!config) return std::unexpected(config.error().in(path));
  return config;
}

std::string print_config(const Config& config) {
  Json json = Json::object();
  for_each_key(config, [&](const char* section, const char* key, const auto& value) {
    json[place_of(section)][key] = value;
  });
  return json.dump(2);
}

}  // namespace pnfsrdma::brick
