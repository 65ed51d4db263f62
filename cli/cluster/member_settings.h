// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/cluster/etcd_gateway.h"
#include "cli/output/failure.h"

namespace pnfsrdma::cli {

// Where the files of a member are on its host.
struct MemberPaths {
  std::string directory = "/etc/pnfsrdma/cluster";  // what is below belongs to these commands
  std::string config = "/etc/pnfsrdma/mdsd.json";
  std::string brick_config = "/etc/pnfsrdma/brickd.json";
  std::string etcd_config = "/etc/default/etcd";

  std::string member() const { return directory + "/member.json"; }
  std::string authority() const { return directory + "/ca.pem"; }
  std::string authority_key() const { return directory + "/ca.key"; }
  std::string etcd_certificate() const { return directory + "/etcd.pem"; }
  std::string etcd_key() const { return directory + "/etcd.key"; }
  std::string mds_certificate() const { return directory + "/mds.pem"; }
  std::string mds_key() const { return directory + "/mds.key"; }
  // Of a host that is no member.
  std::string brick_certificate() const { return directory + "/brick.pem"; }
  std::string brick_key() const { return directory + "/brick.key"; }
};

// This host as a member of the cluster: what its files are made of.
struct MemberSettings {
  std::string name;
  std::string address;  // IP, where the others reach it
  uint16_t client_port = 2379;
  uint16_t peer_port = 2380;
  std::string data_directory;  // etcd's
  bool witness = false;        // etcd only, no metadata server
  bool first = false;          // made the cluster
  std::string prefix = "/pnfsrdma";
  std::vector<std::string> contacts;  // other members, where clients of etcd ask them

  std::string client_url() const { return https_url(address, client_port); }
  std::string peer_url() const { return https_url(address, peer_port); }
  // For EtcdGateway: the others before this one, which may not have started.
  std::vector<std::string> endpoints() const;
};

// kUsage: a name, an address or a port is none that a member can have.
Outcome<> check(const MemberSettings& settings);

// However the two are written: an IPv6 address has several forms.
bool same_address(const std::string& one, const std::string& other);

nlohmann::json to_json(const MemberSettings& settings);
// kFailed: it is not what to_json() gives.
Outcome<MemberSettings> member_settings_from(const nlohmann::json& json);

// etcd's settings as environment variables, as its unit reads them. `members`: all there are, this one included unless
// it is the first.
std::string etcd_environment(const MemberSettings& settings, const MemberPaths& paths,
                             const std::vector<EtcdMember>& members);

// The text sets nothing, or is of etcd_environment(): it may be replaced.
bool may_replace_etcd_config(const std::string& text);

// "metadata_log" of the metadata server, in the place of `before`: what that has besides stays. This host's etcd is
// asked first.
nlohmann::json metadata_log_of(const MemberSettings& settings, const MemberPaths& paths,
                               const nlohmann::json& before);

// "brick_tls" of the metadata server.
nlohmann::json brick_tls_of(const MemberPaths& paths);

// "control" of the brick daemon, in the place of `before`: with TLS at this address, for whoever has a certificate of
// the cluster. What that has besides stays.
nlohmann::json control_of(const std::string& address, const MemberPaths& paths, const nlohmann::json& before);

}  // namespace pnfsrdma::cli
