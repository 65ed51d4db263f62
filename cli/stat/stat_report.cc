// SPDX-License-Identifier: Apache-2.0
#include "cli/stat/stat_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/output/json_member.h"
#include "cli/output/table.h"
#include "cli/output/units.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;
using Align = Column::Align;

Style style_of_durability(const std::string& durability) {
  return durability == "power" ? Style::kGood : Style::kWarning;
}

std::string joined(const json& texts) {
  std::string all;
  if (!texts.is_array()) return all;
  for (const json& text : texts) {
    if (!text.is_string()) continue;
    if (!all.empty()) all += ", ";
    all += text.get<std::string>();
  }
  return all;
}

std::string server_text(const json& status) {
  const std::string address = text_at(status, "/server/address");
  // Of several hosts the one that serves.
  const bool several = address.find(',') != std::string::npos;
  return fmt::format("{}{}, NFSv4.{}, calls by {}, lease {} s, {} of {} slots in use", address,
                     several ? " at " + text_at(status, "/server/host") : "",
                     number_at(status, "/server/minor_version"), text_at(status, "/server/calls_by"),
                     number_at(status, "/server/lease_seconds"), number_at(status, "/server/slots_in_use"),
                     number_at(status, "/server/slots"));
}

std::string options_text(const json& status) {
  std::string text = text_at(status, "/options/persistence");
  text += flag_at(status, "/options/read_only") ? ", read-only" : ", read-write";
  if (flag_at(status, "/options/writeback")) text += ", writeback";
  if (flag_at(status, "/options/direct_io")) text += ", direct_io";
  if (flag_at(status, "/options/require_durability")) text += ", require_durability=persistent";
  return text;
}

std::string head(const MountReading& reading, const Terminal& terminal) {
  const json& status = reading.status;
  Table facts({{"", Align::kLeft, false}, {"", Align::kLeft, true}});
  facts.add({"  server", server_text(status)});
  facts.add(
      {"  mounted", fmt::format("{}, {}, version {}",
                                duration_text(std::chrono::seconds(number_at(status, "/mounted_seconds"))),
                                options_text(status), text_at(status, "/version"))});
  const std::string durability = text_at(status, "/durability");
  facts.add({"  durability", {durability, style_of_durability(durability)}});
  const std::string transports = joined(status.value("transports", json::array()));
  facts.add({"  transports", transports.empty() ? "none: all data goes through the server" : transports});
  facts.add(
      {"  layouts", fmt::format("{} files, {} segments; {} may be read, {} written",
                                number_at(status, "/layouts/files"), number_at(status, "/layouts/segments"),
                                bytes_text(double(number_at(status, "/layouts/readable_bytes"))),
                                bytes_text(double(number_at(status, "/layouts/writable_bytes"))))});
  facts.add({"  files", fmt::format("{} known to the kernel, {} with data state, {} with a delegation",
                                    number_at(status, "/files/known_to_kernel"),
                                    number_at(status, "/files/with_data_state"),
                                    number_at(status, "/delegations/held"))});
  facts.add(
      {"  requests", fmt::format("{} in progress, {} threads of {}; {} parked ({})",
                                 number_at(status, "/workers/busy"), number_at(status, "/workers/running"),
                                 number_at(status, "/workers/limit"), number_at(status, "/workers/parked"),
                                 bytes_text(double(number_at(status, "/workers/parked_bytes"))))});
  return terminal.styled(reading.mounted.source + " on " + reading.mounted.path, Style::kBold) + '\n' +
         facts.to_string(terminal, false);
}

// As the server shows it: a brick's id with its dashes.
std::string brick_id(const std::string& device) {
  if (device.size() != 32 || device.find('-') != std::string::npos) return device;
  std::string id = device;
  for (const size_t at : {8, 13, 18, 23}) id.insert(at, 1, '-');
  return id;
}

std::string devices(const json& status, const Terminal& terminal) {
  Table table({{"DEVICE", Align::kLeft, true},
               {"TRANSPORT"},
               {"PEER", Align::kLeft, true},
               {"DURABILITY"},
               {"FLUSH"},
               {"DEPTH", Align::kRight},
               {"STATE"},
               {"WHY", Align::kLeft, true}});
  for (const json& device : status.value("devices", json::array())) {
    const bool connected = flag_at(device, "/connected");
    const std::string durability = text_at(device, "/durability");
    table.add({brick_id(text_at(device, "/device")),
               text_at(device, "/transport"),
               text_at(device, "/address"),
               {durability, style_of_durability(durability)},
               text_at(device, "/flush_method"),
               std::to_string(number_at(device, "/in_flight")),
               connected ? Cell("connected", Style::kGood) : Cell("not connected", Style::kWarning),
               text_at(device, "/choice")});
  }
  if (table.empty()) return "\nNo brick in use yet: no file with a layout has been accessed.\n";
  return '\n' + table.to_string(terminal);
}

std::string average(const json& status, const std::string& operation) {
  const uint64_t count = number_at(status, ("/latency/" + operation + "/count").c_str());
  if (count == 0) return "-";
  const uint64_t total = number_at(status, ("/latency/" + operation + "/nanoseconds").c_str());
  return latency_text(std::chrono::duration<double>(double(total) / double(count) / 1e9));
}

std::string data(const MountReading& reading, const Terminal& terminal) {
  const json& counters = reading.statistics;
  Table table({{"DATA"},
               {"BY RDMA", Align::kRight},
               {"BYTES", Align::kRight},
               {"BY THE MDS", Align::kRight},
               {"BYTES", Align::kRight},
               {"AVERAGE", Align::kRight}});
  for (const std::string name : {"read", "write"}) {
    const auto number = [&](const std::string& key) { return number_at(counters, ("/" + key).c_str()); };
    table.add({name, std::to_string(number("rdma_" + name + "s")),
               bytes_text(double(number("rdma_" + name + "_bytes"))),
               std::to_string(number("mds_" + name + "s")),
               bytes_text(double(number("mds_" + name + "_bytes"))), average(reading.status, name)});
  }
  return '\n' + table.to_string(terminal);
}

std::string flushes(const MountReading& reading, const Terminal& terminal) {
  Table table({{"FSYNC", Align::kRight},
               {"FDATASYNC", Align::kRight},
               {"AVERAGE", Align::kRight},
               {"NATIVE FLUSH", Align::kRight},
               {"COMMIT MESSAGE", Align::kRight},
               {"LAYOUTCOMMIT", Align::kRight},
               {"COMMIT", Align::kRight}});
  const auto number = [&](const char* key) { return std::to_string(number_at(reading.statistics, key)); };
  table.add({number("/fsyncs"), number("/fdatasyncs"), average(reading.status, "sync"),
             number("/flushes_native"), number("/flushes_commit_message"), number("/flushes_layoutcommit"),
             number("/flushes_mds_commit")});
  return '\n' + table.to_string(terminal);
}

// What should stay zero, and does not: with what it means.
std::string events(const json& counters, const Terminal& terminal) {
  struct Event {
    const char* key;
    Style style;
    const char* meaning;
  };
  static constexpr Event kEvents[] = {
      {"/lost_writes", Style::kBad, "unflushed writes were lost with a brick; reported as EIO"},
      {"/connect_failures", Style::kWarning, "no path to a device worked"},
      {"/fallbacks", Style::kWarning, "I/Os through the MDS although a layout was wanted"},
      {"/layouts_dropped", Style::kWarning, "all layouts of the mount or a device died"},
      {"/layoutgets_refused", Style::kWarning, "the MDS refused a layout"},
      {"/reconnects", Style::kPlain, "reconnections to a device"},
      {"/replays", Style::kPlain, "I/Os posted again after their connection died"},
      {"/restorations", Style::kPlain, "times growth was rewritten after its layout was lost"},
      {"/recalls", Style::kPlain, "layout recalls by the MDS"},
      {"/mds_reconnects", Style::kPlain, "reconnections to the MDS"},
      {"/mds_new_sessions", Style::kPlain, "sessions that replaced a lost one"},
      {"/mds_delays", Style::kPlain, "repetitions because the MDS was busy (DELAY, GRACE)"},
  };
  Table table({{"EVENT"}, {"COUNT", Align::kRight}, {"", Align::kLeft, true}});
  for (const Event& event : kEvents) {
    const uint64_t count = number_at(counters, event.key);
    if (count > 0) table.add({event.key + 1, {std::to_string(count), event.style}, event.meaning});
  }
  return table.empty() ? std::string() : '\n' + table.to_string(terminal);
}

std::string calls(const MountReading& reading, const Terminal& terminal) {
  std::vector<std::pair<std::string, uint64_t>> operations;
  const json counted = reading.statistics.value("mds_operations", json::object());
  for (const auto& [name, count] : counted.items()) {
    if (count.is_number_integer()) operations.emplace_back(name, count.get<uint64_t>());
  }
  std::ranges::stable_sort(operations, std::ranges::greater(), [](const auto& one) { return one.second; });
  std::string text;
  for (const auto& [name, count] : operations)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  Table table({{"MDS CALLS", Align::kRight},
               {"AVERAGE", Align::kRight},
               {"RENEWALS", Align::kRight},
               {"OPERATIONS", Align::kLeft, true}});
  table.add({std::to_string(number_at(reading.statistics, "/mds_calls")), average(reading.status, "mds_call"),
             std::to_string(number_at(reading.statistics, "/mds_renewals")), text});
  return '\n' + table.to_string(terminal);
}

}  // namespace

std::string stat_report(const MountReading& reading, const Terminal& terminal) {
  return head(reading, terminal) + devices(reading.status, terminal) + data(reading, terminal) +
         flushes(reading, terminal) + calls(reading, terminal) + events(reading.statistics, terminal);
}

json stat_json(const MountReading& reading) {
  json all = reading.status;
  all["source"] = reading.mounted.source;
  all["mounted_on"] = reading.mounted.path;
  all["statistics"] = reading.statistics;
  return all;
}

}  // namespace pnfsrdma::cli
