// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/cluster/json_text.h"
#include "cli/cluster/member_settings.h"
#include "cli/doctor/certificate_finding.h"
#include "cli/doctor/checks.h"
#include "cli/output/json_member.h"
#include "cli/output/program.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr int kElectionDefaultMs = 1000;
// A lead lasts 5 s (server/mds/log/leadership.h), and an election takes up to 2.6 times etcd's timeout.
constexpr int kElectionMaxMs = 1900;
constexpr const char* kElection = "ETCD_ELECTION_TIMEOUT=";

int election_timeout_ms(const std::string& settings) {
  std::istringstream lines(settings);
  int value = kElectionDefaultMs;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kElection)) continue;
    std::string text = line.substr(std::string_view(kElection).size());
    std::erase_if(text, [](char c) { return c == '"' || c == '\''; });
    std::from_chars(text.data(), text.data() + text.size(), value);
  }
  return value;
}

Finding election(const Host& host) {
  const std::string path = MemberPaths().etcd_config;
  const int value = election_timeout_ms(host.read(path).value_or(""));
  if (value <= kElectionMaxMs)
    return {"etcd election", Verdict::kOk, fmt::format("timeout {} ms, shorter than a lead", value), ""};
  return {"etcd election", Verdict::kWarning,
          fmt::format("timeout {} ms: when etcd loses its leader, the metadata server ends, too", value),
          fmt::format("ETCD_ELECTION_TIMEOUT={} in {} of every member; systemctl restart etcd",
                      kElectionDefaultMs, path)};
}

Finding copies(const json& log) {
  const std::string address = text_at(log, "/copies");
  if (!address.empty()) return {"copies", Verdict::kOk, "of the metadata are given at " + address, ""};
  return {"copies", Verdict::kWarning,
          "metadata_log.copies is not set: who was away for too long has to be given a copy by hand",
          "pnfsrdma cluster join sets it on a member; else in mdsd.json: \"copies\": \"ADDRESS:8445\""};
}

// What the metadata server of this host sees: the members of etcd, and what is wrong.
Findings etcd(const Host& host, const std::string& config) {
  const auto text = host.run({daemon_program(), "--config", config, "--cluster-status"});
  const json cluster = text ? json::parse(*text, nullptr, false) : json();
  if (!cluster.is_object())
    return {{"cluster", Verdict::kProblem,
             text ? "pnfsrdma-mdsd answered with something else than JSON" : text.error().to_string(),
             "as root: pnfsrdma cluster status"}};
  const json members = cluster.value("members", json::array());
  const auto answering = std::ranges::count_if(
      members, [](const json& member) { return text_at(member, "/state") == "answers"; });
  std::set<std::string> versions;
  for (const json& member : members)
    if (const std::string version = text_at(member, "/version"); !version.empty()) versions.insert(version);
  const bool serves = static_cast<size_t>(answering) > members.size() / 2;
  Findings findings{
      {"etcd", serves ? Verdict::kOk : Verdict::kProblem,
       members.empty()
           ? "no member answers of those that metadata_log has"
           : fmt::format("{} of {} members answer, version {}", answering, members.size(),
                         versions.empty() ? "not known" : fmt::format("{}", fmt::join(versions, " and "))),
       serves ? "" : "systemctl status etcd, on the hosts of the members"}};
  for (const json& problem : cluster.value("problems", json::array()))
    findings.push_back({"cluster", serves ? Verdict::kWarning : Verdict::kProblem,
                        text_at(problem, "/detail"), text_at(problem, "/fix")});
  return findings;
}

}  // namespace

Findings check_cluster(const Host& host) {
  const MemberPaths paths;
  const auto text = host.read(paths.config);
  const auto config = text ? read_json_text(*text) : std::nullopt;
  const json log = config ? config->value("metadata_log", json::object()) : json::object();
  if (!log.is_object() || log.value("endpoints", json::array()).empty()) return {};
  Findings findings = etcd(host, paths.config);
  std::set<std::string> certificates{text_at(log, "/ca_file"), text_at(log, "/certificate")};
  if (host.exists(paths.etcd_certificate())) certificates.insert(paths.etcd_certificate());
  for (const std::string& path : certificates)
    if (!path.empty())
      findings.push_back(
          certificate_finding(host, path, "nobody is let into etcd with it", "metadata_log in mdsd.json"));
  findings.push_back(copies(log));
  findings.push_back(election(host));
  return findings;
}

}  // namespace pnfsrdma::cli
