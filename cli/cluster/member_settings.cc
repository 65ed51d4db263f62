// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/member_settings.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <sstream>

#include "cli/output/json_member.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr const char* kByUs = "# By pnfsrdma cluster.";
constexpr const char* kNameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
constexpr size_t kNameSizeMax = 63;
constexpr uint16_t kCopiesPort = 8445;
constexpr uint16_t kControlPort = 20050;

// "192.0.2.1:8445", "[2001:db8::1]:8445".
std::string place(const std::string& address, uint16_t port) {
  return https_url(address, port).substr(std::string_view("https://").size());
}

// 4 or 16 bytes; empty: it is none.
std::string bytes_of_address(const std::string& text) {
  std::array<char, 16> address{};
  if (inet_pton(AF_INET, text.c_str(), address.data()) == 1) return {address.data(), 4};
  if (inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return {address.data(), 16};
  return {};
}

bool consists_of(const std::string& text, const char* letters) {
  return !text.empty() && text.find_first_not_of(letters) == std::string::npos;
}

}  // namespace

std::vector<std::string> MemberSettings::endpoints() const {
  std::vector<std::string> all = contacts;
  all.push_back(client_url());
  return all;
}

Outcome<> check(const MemberSettings& settings) {
  if (!consists_of(settings.name, kNameLetters) || settings.name.size() > kNameSizeMax)
    return refuse(ExitCode::kUsage, "\"" + settings.name + "\" is no name for a member",
                  "Up to 63 letters, digits, dots, hyphens and underscores.", "--name NAME");
  if (bytes_of_address(settings.address).empty())
    return refuse(
        ExitCode::kUsage, "\"" + settings.address + "\" is no address",
        "An IP address, without brackets, at which the others reach this one: etcd listens at no names.",
        "--address ADDRESS");
  if (settings.client_port == 0 || settings.peer_port == 0 || settings.client_port == settings.peer_port)
    return refuse(ExitCode::kUsage, "etcd needs two ports, for clients and for the other members");
  return {};
}

bool same_address(const std::string& one, const std::string& other) {
  const std::string bytes = bytes_of_address(one);
  return !bytes.empty() && bytes == bytes_of_address(other);
}

json to_json(const MemberSettings& settings) {
  return {{"name", settings.name},
          {"address", settings.address},
          {"client_port", settings.client_port},
          {"peer_port", settings.peer_port},
          {"data_directory", settings.data_directory},
          {"witness", settings.witness},
          {"first", settings.first},
          {"prefix", settings.prefix},
          {"contacts", settings.contacts}};
}

Outcome<MemberSettings> member_settings_from(const json& from) {
  MemberSettings settings{.name = text_at(from, "/name"),
                          .address = text_at(from, "/address"),
                          .client_port = static_cast<uint16_t>(number_at(from, "/client_port")),
                          .peer_port = static_cast<uint16_t>(number_at(from, "/peer_port")),
                          .data_directory = text_at(from, "/data_directory"),
                          .witness = flag_at(from, "/witness"),
                          .first = flag_at(from, "/first"),
                          .prefix = text_at(from, "/prefix"),
                          .contacts = {}};
  for (const json& contact : from.value("contacts", json::array()))
    if (contact.is_string()) settings.contacts.push_back(contact.get<std::string>());
  if (!check(settings) || settings.data_directory.empty() || !settings.prefix.starts_with('/'))
    return refuse(ExitCode::kFailed, "the description of this member is damaged");
  return settings;
}

std::string etcd_environment(const MemberSettings& settings, const MemberPaths& paths,
                             const std::vector<EtcdMember>& members) {
  std::string cluster = settings.name + "=" + settings.peer_url();
  for (const EtcdMember& member : members)
    if (member.peer_url != settings.peer_url()) cluster += "," + member.name + "=" + member.peer_url;
  std::string text = std::string(kByUs) + " Another member of the cluster must not be given this file.\n";
  const auto set = [&text](const char* name, const std::string& value) {
    text += fmt::format("ETCD_{}={}\n", name, value);
  };
  set("NAME", settings.name);
  set("DATA_DIR", settings.data_directory);
  set("LISTEN_CLIENT_URLS", settings.client_url());
  set("ADVERTISE_CLIENT_URLS", settings.client_url());
  set("LISTEN_PEER_URLS", settings.peer_url());
  set("INITIAL_ADVERTISE_PEER_URLS", settings.peer_url());
  set("INITIAL_CLUSTER", cluster);
  set("INITIAL_CLUSTER_STATE", members.empty() ? "new" : "existing");
  for (const std::string& of : {std::string(), std::string("PEER_")}) {
    set((of + "CERT_FILE").c_str(), paths.etcd_certificate());
    set((of + "KEY_FILE").c_str(), paths.etcd_key());
    set((of + "TRUSTED_CA_FILE").c_str(), paths.authority());
    set((of + "CLIENT_CERT_AUTH").c_str(), "true");
  }
  // A member may come from another address of its host than it is reached at. Who it is says the cluster's authority.
  set("PEER_SKIP_CLIENT_SAN_VERIFICATION", "true");
  set("EXPERIMENTAL_PEER_SKIP_CLIENT_SAN_VERIFICATION", "true");  // of etcd 3.4 and 3.5
  return text;
}

bool may_replace_etcd_config(const std::string& text) {
  if (text.starts_with(kByUs)) return true;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin != std::string::npos && line[begin] != '#') return false;
  }
  return true;
}

json metadata_log_of(const MemberSettings& settings, const MemberPaths& paths, const json& before) {
  std::vector<std::string> endpoints{settings.client_url()};
  endpoints.insert(endpoints.end(), settings.contacts.begin(), settings.contacts.end());
  json log = before.is_object() ? before : json::object();
  log.update({{"endpoints", endpoints},
              {"prefix", settings.prefix},
              {"name", settings.name},
              {"ca_file", paths.authority()},
              {"certificate", paths.mds_certificate()},
              {"key", paths.mds_key()}});
  if (!log.contains("copies")) log["copies"] = place(settings.address, kCopiesPort);
  return log;
}

json brick_tls_of(const MemberPaths& paths) {
  return {{"ca_file", paths.authority()}, {"certificate", paths.mds_certificate()}, {"key", paths.mds_key()}};
}

json control_of(const std::string& address, const MemberPaths& paths, const json& before) {
  json control = before.is_object() ? before : json::object();
  if (text_at(control, "/tcp").empty()) control["tcp"] = place(address, kControlPort);
  json& tls = control["tls"];
  if (!tls.is_object()) tls = json::object();
  tls.update({{"ca_file", paths.authority()},
              {"certificate", paths.brick_certificate()},
              {"key", paths.brick_key()}});
  return control;
}

}  // namespace pnfsrdma::cli
