// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/brick_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/cluster/host_files.h"
#include "cli/cluster/json_text.h"
#include "cli/output/json_member.h"
#include "cli/output/program.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr const char* kBrickUser = "pnfsrdma";
constexpr const char* kBrickUnit = "pnfsrdma-brickd";
constexpr const char* kControl = "control";

// What TLS the daemon's configuration has is given this host's certificate; control.tcp, if it has none, this address.
Outcome<> configure(HostSteps& steps, const MemberPaths& paths, const std::string& text,
                    const std::string& address) {
  const std::string& path = paths.brick_config;
  const auto before = read_json_text(text);
  if (!before) return refuse(ExitCode::kFailed, path + " is no JSON object");
  const json known = before->value(kControl, json::object());
  const json control = control_of(address, paths, known);
  if (control == known) {
    steps.next(fmt::format("systemctl reload {}: it reads its certificate again", kBrickUnit));
    return {};
  }
  TRY_ASSIGN(const std::string changed, with_member(text, kControl, control));
  TRY(steps.try_config(brick_program(), path, changed));
  TRY(steps.write({.path = path, .content = changed, .keep_copy = true}, kControl, control.dump(2) + "\n"));
  steps.next(
      fmt::format("on each metadata server \"brick_tls\" (pnfsrdma cluster join shows it there); then "
                  "systemctl restart {}",
                  kBrickUnit));
  steps.next("on the server that serves, if it does not have this brick: pnfsrdma brick add tcp:" +
             text_at(control, "/tcp"));
  return {};
}

// The daemon shows its certificate to whom it trusts, and reads both anew at any time: they go together.
Outcome<> check_authority(const MemberPaths& paths, const std::string& authority) {
  TRY_ASSIGN(const auto certificate, read_host_file(paths.brick_certificate()));
  TRY_ASSIGN(const auto trusted, read_host_file(paths.authority()));
  if (!certificate || !trusted || *trusted == authority) return {};
  return refuse(ExitCode::kConflict, "the bricks of this host are controlled by another cluster",
                paths.authority() + " is not of the cluster that the token is of.",
                "if that is to change: remove " + paths.brick_certificate() + " first");
}

Outcome<json> read_object(const std::string& path) {
  TRY_ASSIGN(const auto text, read_host_file(path));
  return (text ? read_json_text(*text) : std::nullopt).value_or(json::object());
}

}  // namespace

Outcome<> become_brick_host(HostSteps& steps, const MemberPaths& paths, const InvitationToken& token,
                            const std::string& name, const std::string& address) {
  TRY(check({.name = name, .address = address}));
  TRY_ASSIGN(const auto config, read_host_file(paths.brick_config));
  if (!config)
    return refuse(ExitCode::kNotFound, "there is no " + paths.brick_config,
                  "A host with bricks needs the configuration of its brick daemon.",
                  "install pnfsrdma-server; --brick-config FILE");
  if (!steps.dry_run()) {
    TRY_ASSIGN(const std::string authority, authority_of(token));
    TRY(check_authority(paths, authority));
    JoinRequest request{.name = name, .address = address, .public_keys = {}};
    TRY_ASSIGN(const std::string key, steps.private_key(paths.brick_key(), kBrickUser));
    TRY_ASSIGN(request.public_keys.emplace_back(), public_key_of(key));
    TRY_ASSIGN(const JoinAnswer answer, ask_to_join(token, authority, request));
    TRY(steps.write({.path = paths.authority(), .content = authority}, "the cluster's authority"));
    TRY(steps.write({.path = paths.brick_certificate(), .content = answer.certificates[0]}, "a certificate"));
  }
  steps.did("ask " + token.door + " for a certificate");
  return configure(steps, paths, *config, address);
}

Outcome<> tell_of_brick_control(HostSteps& steps, const MemberPaths& paths) {
  TRY_ASSIGN(const json server, read_object(paths.config));
  TRY_ASSIGN(const json brick, read_object(paths.brick_config));
  const std::string files = brick_tls_of(paths).dump();
  const json bricks = server.value("bricks", json::array());
  const bool by_tcp = std::ranges::any_of(bricks, [](const json& brick) {
    return brick.is_string() && brick.get<std::string>().starts_with("tcp:");
  });
  if (by_tcp && !server.contains("brick_tls"))
    steps.next(fmt::format(
        "so that nobody else controls the bricks: pnfsrdma cluster invite --brick ADDRESS, for each of "
        "those hosts; then in {} \"brick_tls\": {}, and systemctl reload pnfsrdma-mdsd",
        paths.config, files));
  if (!text_at(brick, "/control/tcp").empty() && text_at(brick, "/control/tls/certificate").empty())
    steps.next(fmt::format(
        "the same for the brick of this host: in \"control\" of {} \"tls\": {}, and systemctl restart {}",
        paths.brick_config, files, kBrickUnit));
  return {};
}

}  // namespace pnfsrdma::cli
