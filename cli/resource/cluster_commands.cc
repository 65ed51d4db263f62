// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "cli/api/token.h"
#include "cli/output/json_member.h"
#include "cli/output/program.h"
#include "cli/output/units.h"
#include "cli/resource/resource_command.h"
#include "cli/resource/view.h"
#include "shared/base/result.h"

// The metadata servers that share a log in etcd: cluster (status).
namespace pnfsrdma::cli {

using nlohmann::json;

namespace {

constexpr std::array kServers = {
    Field{"SERVER", "/name"},
    Field{"STATE", "/state", Field::kState},
    Field{"HAS THE LOG TO", "/position", Field::kNumber},
    Field{"BEHIND", "/behind", Field::kNumber},
};
constexpr std::array kMembers = {
    Field{"ETCD MEMBER", "/name"},
    Field{"STATE", "/state", Field::kState},
    Field{"LEADS ETCD", "/leads", Field::kFlag},
    Field{"VERSION", "/version"},
    Field{"DATABASE", "/database_bytes", Field::kBytes},
    Field{"ADDRESS", "/address", Field::kText, true},
};
constexpr std::array kProblems = {
    Field{"PROBLEM", "/detail", Field::kText, true},
    Field{"FIX", "/fix", Field::kText, true},
};

// By a host that serves nobody now: only the server that leads has the API.
Outcome<json> ask_etcd(const std::string& config) {
  TRY_ASSIGN(const std::string text, output_of({daemon_program(), "--config", config, "--cluster-status"}));
  json cluster = json::parse(text, nullptr, false);
  if (!cluster.is_object())
    return refuse(ExitCode::kFailed, "pnfsrdma-mdsd answered with something else than JSON");
  return cluster;
}

}  // namespace

Outcome<json> ask_cluster(ApiClient& client, const ApiOptions& api, const std::string& config) {
  auto answer = client.get("/cluster");
  if (answer) return answer->body;
  const bool elsewhere = !api.server.empty() || !environment("PNFSRDMA_SERVER").empty();
  const bool away = answer.error().code == ExitCode::kUnreachable;
  if (elsewhere || !away || ::access(config.c_str(), R_OK) != 0) return std::unexpected(answer.error());
  return ask_etcd(config);
}

namespace {

void show_costs(const json& costs, Output& output) {
  const auto latency = [&](const char* share) {
    const double microseconds = costs.value("latency_us", json::object()).value(share, 0.0);
    return latency_text(std::chrono::duration<double>(microseconds / 1e6));
  };
  const uint64_t values = number_at(costs, "/values");
  const uint64_t bytes = number_at(costs, "/bytes");
  if (values > 0) {
    output.line(fmt::format(
        "Written since the start: {} values of {} on average; half of them took up to {}, 99 % up to {}.",
        values, bytes_text(static_cast<double>(bytes) / static_cast<double>(values)), latency("p50"),
        latency("p99")));
  }
  output.line(fmt::format("On this server's medium: up to {}, {} ago.", number_at(costs, "/checkpoint"),
                          duration_text(std::chrono::seconds(number_at(costs, "/checkpoint_seconds")))));
}

void show(const json& cluster, Output& output) {
  const std::string leader = text_at(cluster, "/leader");
  std::string leads = leader.empty() ? "Nobody leads." : leader + " leads";
  if (!leader.empty() && cluster.value("leading_seconds", json()).is_number())
    leads += " since " + duration_text(std::chrono::seconds(number_at(cluster, "/leading_seconds")));
  if (!leader.empty()) leads += ".";
  output.line(leads);
  output.line(fmt::format("Log: {} values, trimmed to {}; {} of {} that some server may still need.",
                          number_at(cluster, "/position"), number_at(cluster, "/trimmed"),
                          bytes_text(static_cast<double>(number_at(cluster, "/window_bytes"))),
                          bytes_text(static_cast<double>(number_at(cluster, "/window_bytes_max")))));
  output.line(flag_at(cluster, "/takeover_possible")
                  ? "If the host that leads is lost, another server takes over."
                  : "If the host that leads is lost, no other server takes over.");
  const uint64_t takeovers = number_at(cluster, "/takeovers");
  if (takeovers > 0) {
    output.line(fmt::format("So far, {} of a lead that had not been given back.",
                            takeovers == 1 ? "one take-over" : fmt::format("{} take-overs", takeovers)));
  }
  if (cluster.value("costs", json()).is_object()) show_costs(cluster.at("costs"), output);
  show_part(output, "Metadata servers", cluster.value("servers", json::array()), kServers);
  show_part(output, "Members of etcd", cluster.value("members", json::array()), kMembers);
  show_part(output, "Problems", cluster.value("problems", json::array()), kProblems);
}

Outcome<> show_status(ApiClient& client, Administration& admin, const std::string& config) {
  TRY_ASSIGN(const json cluster, ask_cluster(client, admin.api, config));
  Output& output = admin.output();
  if (output.json) output.value(cluster);
  if (!flag_at(cluster, "/configured")) {
    if (!output.json)
      output.line("Not a cluster: the metadata are on one host only (metadata_log is not set).");
    return {};
  }
  if (!output.json) show(cluster, output);
  if (!cluster.value("problems", json::array()).empty())
    return refuse(ExitCode::kFailed, "the cluster is not well", "The problems above say why.");
  return {};
}

}  // namespace

void add_cluster_commands(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "cluster", "Metadata servers that share a log in etcd");
  CLI::App* const status =
      noun->add_subcommand("status", "who leads, who follows, the members of etcd, and what is wrong");
  const auto config = std::make_shared<std::string>("/etc/pnfsrdma/mdsd.json");
  status->add_option(
      "--config", *config,
      "of this host's metadata server, which asks etcd where no API answers (" + *config + ")");
  admin.does(status, [&admin, config](ApiClient& client) { return show_status(client, admin, *config); });
}

}  // namespace pnfsrdma::cli
