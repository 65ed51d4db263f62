// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "cli/api/token.h"
#include "cli/output/json_member.h"
#include "cli/output/units.h"
#include "cli/resource/resource_command.h"
#include "cli/resource/view.h"
#include "shared/base/owned.h"
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

constexpr const char* kDaemon = "pnfsrdma-mdsd";
constexpr size_t kAnswerBytesMax = size_t{1} << 20;

// Beside this program as it was built, then as it is installed; else wherever PATH has it.
std::string daemon_program() {
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& folder : {here, here.parent_path() / "sbin"}) {
    const std::string program = folder / kDaemon;
    if (!error && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return kDaemon;
}

// What it writes to standard output; its complaints go to ours. kFailed: it cannot be started, or fails.
Outcome<std::string> output_of(const std::vector<std::string>& words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return refuse(ExitCode::kFailed, "no pipe to " + words[0], Error::from_errno("pipe2").to_string());
  const FileDescriptor reads(ends[0]);
  FileDescriptor writes(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writes.get(), STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  writes = {};
  if (failed != 0)
    return refuse(ExitCode::kFailed, words[0] + " cannot be started",
                  Error(failed, "posix_spawnp").to_string());
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t came = ::read(reads.get(), part.data(), part.size());
    if (came < 0 && errno == EINTR) continue;
    if (came <= 0 || text.size() > kAnswerBytesMax) break;
    text.append(part.data(), static_cast<size_t>(came));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return refuse(ExitCode::kFailed, words[0] + " has failed");
  return text;
}

// By a host that serves nobody now: only the server that leads has the API.
Outcome<json> ask_etcd(const std::string& config) {
  TRY_ASSIGN(const std::string text, output_of({daemon_program(), "--config", config, "--cluster-status"}));
  json cluster = json::parse(text, nullptr, false);
  if (!cluster.is_object())
    return refuse(ExitCode::kFailed, std::string(kDaemon) + " answered with something else than JSON");
  return cluster;
}

Outcome<json> ask(ApiClient& client, const ApiOptions& api, const std::string& config) {
  auto answer = client.get("/cluster");
  if (answer) return answer->body;
  const bool elsewhere = !api.server.empty() || !environment("PNFSRDMA_SERVER").empty();
  const bool away = answer.error().code == ExitCode::kUnreachable;
  if (elsewhere || !away || ::access(config.c_str(), R_OK) != 0) return std::unexpected(answer.error());
  return ask_etcd(config);
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
  show_part(output, "Metadata servers", cluster.value("servers", json::array()), kServers);
  show_part(output, "Members of etcd", cluster.value("members", json::array()), kMembers);
  show_part(output, "Problems", cluster.value("problems", json::array()), kProblems);
}

Outcome<> show_status(ApiClient& client, Administration& admin, const std::string& config) {
  TRY_ASSIGN(const json cluster, ask(client, admin.api, config));
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
