// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cli/cluster/json_text.h"
#include "cli/cluster/member_settings.h"
#include "cli/doctor/certificate_finding.h"
#include "cli/doctor/checks.h"
#include "cli/output/json_member.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

json configuration(const Host& host, const std::string& path) {
  const auto text = host.read(path);
  return (text ? read_json_text(*text) : std::nullopt).value_or(json::object());
}

// `tls`: an object that names them.
void add_certificates(const Host& host, const json& tls, const std::string& named_in, Findings& findings) {
  const std::set<std::string> paths{text_at(tls, "/ca_file"), text_at(tls, "/certificate")};
  for (const std::string& path : paths)
    if (!path.empty())
      findings.push_back(certificate_finding(host, path, "bricks are not controlled with it", named_in));
}

}  // namespace

Findings check_control(const Host& host) {
  const MemberPaths paths;
  Findings findings;
  const json brick = configuration(host, paths.brick_config);
  const std::string address = text_at(brick, "/control/tcp");
  if (!address.empty() && text_at(brick, "/control/tls/certificate").empty())
    findings.push_back(
        {"brick control", Verdict::kWarning,
         "whoever reaches " + address + " controls the brick: it asks for no certificate",
         "pnfsrdma cluster invite --brick ADDRESS, on a member, and cluster join with its token, here; or "
         "control.tls in brickd.json"});
  add_certificates(host, brick.value("/control/tls"_json_pointer, json::object()),
                   "control.tls in brickd.json", findings);

  const json server = configuration(host, paths.config);
  add_certificates(host, server.value("/brick_tls"_json_pointer, json::object()), "brick_tls in mdsd.json",
                   findings);
  for (const json& plain : server.value("/brick_tls/plain"_json_pointer, json::array()))
    if (plain.is_string())
      findings.push_back({"brick control", Verdict::kWarning,
                          plain.get<std::string>() + " is reached without TLS, as mdsd.json says",
                          "give its host a certificate, and take it out of brick_tls.plain"});
  return findings;
}

}  // namespace pnfsrdma::cli
