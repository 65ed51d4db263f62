// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/api/api_client.h"
#include "cli/command/context.h"
#include "cli/output/prompter.h"

namespace pnfsrdma::cli {

// What the commands over the API share. Lives as long as the command line.
struct Administration {
  Context& context;
  ApiOptions api;
  Prompter& prompter;
  bool yes = false;  // --yes

  Output& output() { return context.output; }

  // The command's work, with a client at hand.
  void does(CLI::App* command, std::function<Outcome<>(ApiClient&)> work) {
    command->callback([this, work = std::move(work)] {
      context.does([this, work]() -> Outcome<> {
        auto client = ApiClient::make(api);
        if (!client) return std::unexpected(client.error());
        return work(*client);
      });
    });
  }
  // "Really?", unless --yes.
  Outcome<> sure(const std::string& what, const std::string& name) {
    return confirm(prompter, what, name, yes);
  }
  // For people: what was done. With --json the resource itself.
  void done(const std::string& text, const nlohmann::json& resource) {
    if (output().json) {
      output().value(resource);
    } else {
      output().line(text);
    }
  }
};

// A noun with its verbs.
inline CLI::App* add_noun(CLI::App& app, const std::string& name, const std::string& description) {
  CLI::App* const noun = app.add_subcommand(name, description);
  noun->require_subcommand(1);
  return noun;
}

// A word of the command line that outlives its reading.
inline std::shared_ptr<std::string> required_word(CLI::App* command, const std::string& name,
                                                  const std::string& description) {
  auto word = std::make_shared<std::string>();
  command->add_option(name, *word, description)->required();
  return word;
}

inline std::shared_ptr<std::string> optional_word(CLI::App* command, const std::string& name,
                                                  const std::string& description) {
  auto word = std::make_shared<std::string>();
  command->add_option(name, *word, description);
  return word;
}

// The settings in an answer of /configuration as a list: each with its "name".
nlohmann::json settings_of(const nlohmann::json& configuration);

// What the API says of the cluster; on a host that does not serve, what the metadata server of `config` sees in etcd.
Outcome<nlohmann::json> ask_cluster(ApiClient& client, const ApiOptions& api, const std::string& config);

// The families; one file each.
void add_brick_commands(CLI::App& app, Administration& administration);
void add_export_commands(CLI::App& app, Administration& administration);
void add_quota_commands(CLI::App& app, Administration& administration);
void add_snapshot_commands(CLI::App& app, Administration& administration);
void add_holding_commands(CLI::App& app, Administration& administration);  // layout, client, file
void add_alert_commands(CLI::App& app, Administration& administration);
void add_cluster_commands(CLI::App& app, Administration& administration);
void add_job_commands(CLI::App& app, Administration& administration);
void add_event_commands(CLI::App& app, Administration& administration);
void add_account_commands(CLI::App& app, Administration& administration);  // user, token, setup
void add_server_commands(CLI::App& app, Administration& administration);   // config, health, audit

}  // namespace pnfsrdma::cli
