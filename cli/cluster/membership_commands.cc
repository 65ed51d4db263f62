// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/membership_commands.h"

#include <chrono>
#include <memory>
#include <string>

#include "cli/cluster/membership.h"
#include "cli/output/json_member.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr uint16_t kDoorPort = 8444;
constexpr int kMinutes = 60;

// The words of one command line.
struct Words {
  MembershipOptions options;
  MemberSettings member;
  std::string token;
  std::string other;
  uint16_t port = kDoorPort;
  int minutes = kMinutes;
  bool witness = false;
  std::string brick;   // address
  bool stays = false;  // --no-start
};
using SharedWords = std::shared_ptr<Words>;

// Where things are: as the packages have them, unless the host is special.
void add_paths(CLI::App* command, const SharedWords& words) {
  MemberPaths& paths = words->options.paths;
  command->add_option("--directory", paths.directory,
                      "keys, certificates and the description of this member (" + paths.directory + ")");
}

void add_host(CLI::App* command, const SharedWords& words) {
  MemberPaths& paths = words->options.paths;
  add_paths(command, words);
  command->add_option("--config", paths.config, "of this host's metadata server (" + paths.config + ")");
  command->add_option("--brick-config", paths.brick_config,
                      "of this host's brick daemon (" + paths.brick_config + ")");
  command->add_option("--etcd-config", paths.etcd_config,
                      "environment of etcd's unit (" + paths.etcd_config + ")");
  command->add_flag("-n,--dry-run", words->options.dry_run, "change nothing: show what would be changed");
  command->add_flag("--no-start", words->stays, "start and stop no units: show how");
}

void add_member(CLI::App* command, const SharedWords& words) {
  MemberSettings& member = words->member;
  command->add_option("--name", member.name, "of this member (the host's name)");
  command->add_option("--client-port", member.client_port, "etcd's, for clients (2379)");
  command->add_option("--peer-port", member.peer_port, "etcd's, for the other members (2380)");
  command->add_option("--data-directory", words->options.data_directory,
                      "where etcd's data get a directory (" + words->options.data_directory + ")");
}

Outcome<> with_report(Membership& membership, const Outcome<>& outcome) {
  if (outcome) membership.report();
  return outcome;
}

void add_init(CLI::App* noun, Administration& admin) {
  CLI::App* const command = noun->add_subcommand(
      "init", "makes this host the first member: certificates, etcd, metadata_log of its metadata server");
  const auto words = std::make_shared<Words>();
  command->add_option("--address", words->member.address, "at which the other hosts reach this one")
      ->required();
  command->add_flag("--witness", words->member.witness, "etcd only: this host has no metadata server");
  add_member(command, words);
  add_host(command, words);
  command->callback([&admin, words] {
    admin.context.does([&admin, words]() -> Outcome<> {
      words->options.starts = !words->stays;
      Membership membership(words->options, admin.output());
      return with_report(membership, membership.init(words->member));
    });
  });
}

void add_join(CLI::App* noun, Administration& admin) {
  CLI::App* const command = noun->add_subcommand(
      "join", "makes this host a member; without a token it goes on, and writes the members of now");
  const auto words = std::make_shared<Words>();
  command->add_option("token", words->token, "of pnfsrdma cluster invite, on a member");
  command->add_option("--address", words->member.address, "at which the other hosts reach this one");
  add_member(command, words);
  add_host(command, words);
  command->callback([&admin, words] {
    admin.context.does([&admin, words]() -> Outcome<> {
      words->options.starts = !words->stays;
      std::optional<InvitationToken> token;
      if (!words->token.empty()) {
        TRY_ASSIGN(token, InvitationToken::parse(words->token));
      }
      Membership membership(words->options, admin.output());
      return with_report(membership, membership.join(token, words->member));
    });
  });
}

void add_invite(CLI::App* noun, Administration& admin) {
  CLI::App* const command =
      noun->add_subcommand("invite", "shows a token that lets one host in, and waits for that host");
  const auto words = std::make_shared<Words>();
  CLI::Option* const witness = command->add_flag("--witness", words->witness,
                                                 "for a host without a metadata server, which has a vote");
  CLI::Option* const brick =
      command
          ->add_option("--brick", words->brick,
                       "address of a host with bricks alone: a certificate for their control there, no vote")
          ->excludes(witness);
  command->add_option("--port", words->port, "where this host waits (8444)");
  command->add_option("--ttl", words->minutes, "minutes until the token is void (60)")
      ->check(CLI::Range(1, 1440));
  add_paths(command, words);
  command->callback([&admin, words, brick] {
    admin.context.does([&admin, words, is_brick = brick->count() > 0] {
      return Membership(words->options, admin.output())
          .invite({.guest = is_brick         ? Guest::kBrick
                            : words->witness ? Guest::kWitness
                                             : Guest::kServer,
                   .address = words->brick},
                  words->port, std::chrono::minutes(words->minutes));
    });
  });
}

// Whether `name` serves and nobody could go on.
bool serves_alone(const json& cluster, const std::string& name) {
  if (text_at(cluster, "/leader") != name) return false;
  for (const json& server : cluster.value("servers", json::array()))
    if (text_at(server, "/state") == "follows") return false;
  return true;
}

void add_leave(CLI::App* noun, Administration& admin) {
  CLI::App* const command = noun->add_subcommand(
      "leave", "takes this host out of the cluster, or another one that is lost for good");
  const auto words = std::make_shared<Words>();
  command->add_option("member", words->other, "another member, whose host is lost");
  command->add_flag("--force", words->options.force, "even if nobody serves then");
  add_host(command, words);
  admin.does(command, [&admin, words](ApiClient& client) -> Outcome<> {
    words->options.starts = !words->stays;
    Membership membership(words->options, admin.output());
    const auto leads = [&](const std::string& name) -> Outcome<bool> {
      TRY_ASSIGN(const json cluster, ask_cluster(client, admin.api, words->options.paths.config));
      return serves_alone(cluster, name);
    };
    const auto sure = [&](const std::string& what, const std::string& name) {
      return admin.sure(what, name);
    };
    return with_report(membership, membership.leave(words->other, leads, sure));
  });
}

}  // namespace

void add_membership_commands(CLI::App& app, Administration& administration) {
  CLI::App* const noun = app.get_subcommand("cluster");
  add_init(noun, administration);
  add_invite(noun, administration);
  add_join(noun, administration);
  add_leave(noun, administration);
}

}  // namespace pnfsrdma::cli
