// SPDX-License-Identifier: Apache-2.0
// bench-brick: what a running brick does, by the clock: fencing, and durable writes.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>

#include "shared/base/log.h"
#include "tests/bench/brick/attacker.h"
#include "tests/bench/brick/device.h"
#include "tests/bench/brick/durable.h"
#include "tests/bench/brick/fencing.h"
#include "tests/bench/brick/recall_ignorer.h"

namespace pnfsrdma::bench {
namespace {

struct AttackSettings {
  std::string transport, address, ticket, behaviour;
};

struct IgnorerSettings {
  std::string transport = "verbs", mds, file;
};

int complain(const Error& error) {
  fmt::print(stderr, "bench-brick: {}\n", error.to_string());
  return 2;
}

int run_attack(const AttackSettings& settings) {
  SystemRandom random;
  const auto transport = open_transport(settings.transport, random);
  const auto behaviour = behaviour_of(settings.behaviour);
  Ticket ticket{};
  if (!transport || !behaviour || settings.ticket.size() != 2 * ticket.size()) return 2;
  for (size_t i = 0; i < ticket.size(); ++i) {
    ticket[i] = static_cast<std::byte>(std::stoul(settings.ticket.substr(2 * i, 2), nullptr, 16));
  }
  return Attacker(**transport, settings.address, ticket, *behaviour).run();
}

int run_ignorer(const IgnorerSettings& settings) {
  SystemRandom random;
  const auto transport = open_transport(settings.transport, random);
  if (!transport) return complain(transport.error());
  const auto moments = RecallIgnorer(**transport, settings.mds, settings.file).run();
  if (!moments) return complain(moments.error());
  fmt::print("recalled {}\nrefused {}\nlast-success-posted {}\n", moments->recalled_ns, moments->refused_ns,
             moments->last_success_posted_ns);
  return 0;
}

int run(int argc, char** argv) {
  BrickSettings settings;
  AttackSettings attack;
  IgnorerSettings ignorer;
  CLI::App app{"Fencing and durable writes of a running brick that has no MDS. It claims the brick."};
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* what) {
    CLI::App* command = app.add_subcommand(name, what);
    command->add_option("--control", settings.control, "the brick's control socket")->required();
    command->add_option("--transport", settings.transport, "how to reach its memory")
        ->check(CLI::IsMember({"verbs", "iwarp"}))
        ->capture_default_str();
    command->add_flag("--json", settings.json, "print one JSON object instead of tables");
    return command;
  };
  CLI::App* fencing = add("fencing", "takes grants from clients of all kinds, with a stop-watch");
  fencing->add_option("--rounds", settings.rounds, "of each row")->capture_default_str();
  fencing->add_flag("--without-revocation", settings.without_revocation,
                    "the canary: revoke nothing, which must be noticed");
  CLI::App* durable = add("durable", "latency of a durable 4 KiB WRITE");
  durable->add_option("--operations", settings.operations, "of each method")->capture_default_str();
  durable->add_option("--method", settings.method, "how the WRITE becomes durable")
      ->check(CLI::IsMember({"both", "native_flush", "commit_message"}))
      ->capture_default_str();
  CLI::App* attacker = app.add_subcommand("attack", "the watched client of fencing, which starts it");
  attacker->add_option("--transport", attack.transport)->required();
  attacker->add_option("--address", attack.address)->required();
  attacker->add_option("--ticket", attack.ticket)->required();
  attacker->add_option("--behaviour", attack.behaviour)->required();
  CLI::App* ignores =
      app.add_subcommand("ignore-recall", "a client of an MDS that returns no layout, until it is refused");
  ignores->add_option("--mds", ignorer.mds, "host:port")->required();
  ignores->add_option("--file", ignorer.file, "its name in the root")->required();
  ignores->add_option("--transport", ignorer.transport)
      ->check(CLI::IsMember({"verbs", "iwarp"}))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  ::signal(SIGPIPE, SIG_IGN);
  set_log_level(LogLevel::kError);
  if (*fencing) return run_fencing(settings);
  if (*ignores) return run_ignorer(ignorer);
  return *durable ? run_durable(settings) : run_attack(attack);
}

}  // namespace
}  // namespace pnfsrdma::bench

int main(int argc, char** argv) {
  return pnfsrdma::bench::run(argc, argv);
}
