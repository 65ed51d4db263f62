// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/etcd_gateway.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/cluster/base64.h"
#include "cli/output/json_member.h"
#include "shared/base/result.h"
#include "shared/http/client.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr auto kEtcdPatience = std::chrono::seconds(3);

// Why it refuses: etcd 3.4 and 3.5 say it as "error", 3.6 as "message".
std::string said_of(const json& answer) {
  const std::string said = answer.is_object() ? text_at(answer, "/error") : std::string();
  return said.empty() && answer.is_object() ? text_at(answer, "/message") : said;
}

// kUnreachable: there is no answer of etcd's.
Outcome<json> ask(const std::string& endpoint, const EtcdGateway::Files& files, const std::string& path,
                  const json& request) {
  const auto client = http::make_client(endpoint, files.certificate, files.key);
  if (!client) return refuse(ExitCode::kUnreachable, client.error().what());
  if (!files.authority.empty()) (*client)->set_ca_cert_path(files.authority);
  (*client)->enable_server_certificate_verification(true);
  (*client)->set_connection_timeout(kEtcdPatience);
  (*client)->set_read_timeout(kEtcdPatience);
  (*client)->set_write_timeout(kEtcdPatience);
  const httplib::Result answer = (*client)->Post(path, request.dump(), "application/json");
  if (!answer) return refuse(ExitCode::kUnreachable, endpoint + ": " + httplib::to_string(answer.error()));
  json body = json::parse(answer->body, nullptr, /*allow_exceptions=*/false);
  if (answer->status == 200 && body.is_object()) return body;
  const std::string said = said_of(body);
  return refuse(ExitCode::kFailed, fmt::format("etcd at {} refuses: {}", endpoint,
                                               said.empty() ? std::to_string(answer->status) : said));
}

std::string first_of(const json& item, const char* name) {
  const json list = item.value(name, json::array());
  return list.is_array() && !list.empty() && list[0].is_string() ? list[0].get<std::string>() : "";
}

}  // namespace

EtcdGateway::EtcdGateway(std::vector<std::string> endpoints, Files files)
    : endpoints_(std::move(endpoints)), files_(std::move(files)) {}

Outcome<json> EtcdGateway::call(const std::string& path, const json& request) const {
  std::string tried;
  for (const std::string& endpoint : endpoints_) {
    auto answer = ask(endpoint, files_, path, request);
    if (answer || answer.error().code != ExitCode::kUnreachable) return answer;
    tried += (tried.empty() ? "" : "; ") + answer.error().title;
  }
  return refuse(ExitCode::kUnreachable, "no member of etcd answers", tried,
                "systemctl status etcd on its hosts");
}

Outcome<std::vector<EtcdMember>> EtcdGateway::members() const {
  TRY_ASSIGN(const json answer, call("/v3/cluster/member/list", json::object()));
  std::vector<EtcdMember> members;
  for (const json& item : answer.value("members", json::array())) {
    members.push_back({.id = text_at(item, "/ID"),
                       .name = text_at(item, "/name"),
                       .peer_url = first_of(item, "peerURLs"),
                       .client_url = first_of(item, "clientURLs"),
                       .learner = flag_at(item, "/isLearner")});
  }
  return members;
}

Outcome<> EtcdGateway::add_learner(const std::string& peer_url) const {
  TRY(call("/v3/cluster/member/add", {{"peerURLs", {peer_url}}, {"isLearner", true}}));
  return {};
}

Outcome<> EtcdGateway::promote(const std::string& id) const {
  TRY(call("/v3/cluster/member/promote", {{"ID", id}}));
  return {};
}

Outcome<> EtcdGateway::remove(const std::string& id) const {
  TRY(call("/v3/cluster/member/remove", {{"ID", id}}));
  return {};
}

Outcome<bool> EtcdGateway::erase(const std::string& key) const {
  TRY_ASSIGN(const json answer, call("/v3/kv/deleterange", {{"key", to_base64(key)}}));
  return !text_at(answer, "/deleted").empty();
}

bool EtcdGateway::is_well(const std::string& endpoint) const {
  const auto answer = ask(endpoint, files_, "/v3/maintenance/status", json::object());
  const std::string leader = answer ? text_at(*answer, "/leader") : std::string();
  return !leader.empty() && leader != "0";
}

std::string https_url(const std::string& address, uint16_t port) {
  const bool v6 = address.find(':') != std::string::npos;
  return fmt::format("https://{}{}{}:{}", v6 ? "[" : "", address, v6 ? "]" : "", port);
}

}  // namespace pnfsrdma::cli
