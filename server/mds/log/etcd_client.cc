// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/etcd_client.h"

#include <fmt/format.h>
#include <httplib.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>

#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>

#include "shared/base/owned.h"
#include "shared/http/client.h"

namespace pnfsrdma::mds {
namespace {

using Json = nlohmann::json;

std::string to_base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // OpenSSL writes a zero behind it
  text.resize(static_cast<size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                                  reinterpret_cast<const unsigned char*>(bytes.data()),
                                                  static_cast<int>(bytes.size()))));
  return text;
}

// nullopt: it is none.
std::optional<std::string> from_base64(const std::string& text) {
  std::string bytes(text.size() / 4 * 3 + 1, '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  bytes.resize(static_cast<size_t>(size) - padding);
  return bytes;
}

// The gateway writes 64-bit numbers as text, and leaves out zeros.
KeyRevision number_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return 0;
  const auto& text = found->get_ref<const std::string&>();
  KeyRevision number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

const Json& member(const Json& object, const char* name) {
  static const Json nothing = Json::object();
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Why it refuses: etcd 3.4 and 3.5 say it as "error", 3.6 as "message".
std::string said_of(const Json& answer) {
  if (!answer.is_object()) return {};
  const std::string said = text_of(answer, "error");
  return said.empty() ? text_of(answer, "message") : said;
}

// As etcdctl shows it.
std::string id_text(const std::string& decimal) {
  uint64_t number = 0;
  std::from_chars(decimal.data(), decimal.data() + decimal.size(), number);
  return fmt::format("{:016x}", number);
}

Result<std::vector<KeyRow>> rows_of(const Json& answer) {
  std::vector<KeyRow> rows;
  for (const Json& item : member(answer, "kvs")) {
    auto key = from_base64(text_of(item, "key"));
    auto value = from_base64(text_of(item, "value"));
    if (!key || !value) return fail(EPROTO, "etcd's answer is not what is expected");
    rows.push_back({std::move(*key), std::move(*value), number_of(item, "mod_revision")});
  }
  return rows;
}

// What a request was refused for may pass, or never does.
int number_of_refusal(int status, const std::string& said) {
  const auto says = [&](const char* text) { return said.find(text) != std::string::npos; };
  if (says("database space exceeded")) return ENOSPC;
  // 400: etcd's own limit. The one of gRPC has the status of many other things.
  if (status == 400 || says("message larger than max") || says("request is too large")) return EPROTO;
  return EIO;
}

using TlsContext = Owned<SSL_CTX, SSL_CTX_free>;

std::unexpected<Error> wrong_file(const char* key, const std::string& path, const char* what) {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  return fail(EINVAL, std::string("config: metadata_log.") + key + " " + path + " " + what +
                          (reason == nullptr ? "" : std::string(": ") + reason));
}

}  // namespace

Result<> check_files_of(const EtcdOptions& options) {
  ERR_clear_error();
  const TlsContext context(SSL_CTX_new(TLS_client_method()));
  if (!context) return fail(ENOMEM, "SSL_CTX_new");
  if (!options.authority.empty() &&
      SSL_CTX_load_verify_locations(context.get(), options.authority.c_str(), nullptr) != 1)
    return wrong_file("ca_file", options.authority, "has no certificates that can be read");
  if (options.certificate.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.certificate.c_str()) != 1)
    return wrong_file("certificate", options.certificate, "has no certificate that can be read");
  if (SSL_CTX_use_PrivateKey_file(context.get(), options.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return wrong_file("key", options.key, "is not the key of the certificate, or cannot be read");
  return {};
}

struct EtcdClient::Connection {
  static Result<std::unique_ptr<Connection>> make(const EtcdOptions& options, const std::string& endpoint) {
    TRY_ASSIGN(http::Client client, http::make_client(endpoint, options.certificate, options.key));
    if (!options.authority.empty()) client->set_ca_cert_path(options.authority);
    client->enable_server_certificate_verification(true);
    client->set_keep_alive(true);
    client->set_tcp_nodelay(true);
    client->set_connection_timeout(options.patience);
    client->set_read_timeout(options.patience);
    client->set_write_timeout(options.patience);
    return std::make_unique<Connection>(std::move(client));
  }
  explicit Connection(http::Client made) : client(std::move(made)) {}
  http::Client client;
};

struct EtcdClient::Body {
  Json json;
};

EtcdClient::EtcdClient(EtcdOptions options) : options_(std::move(options)) {}

EtcdClient::~EtcdClient() = default;

Result<EtcdClient::Body> EtcdClient::call(const std::string& path, const std::string& request) {
  const std::string& endpoint = options_.endpoints[endpoint_ % options_.endpoints.size()];
  if (!connection_) {
    TRY_ASSIGN(connection_, Connection::make(options_, endpoint));
  }
  const httplib::Result answer = connection_->client->Post(path, request, "application/json");
  std::string problem;
  int number = EIO;
  if (!answer) {
    problem = httplib::to_string(answer.error());
  } else {
    Body body{Json::parse(answer->body, nullptr, /*allow_exceptions=*/false)};
    if (answer->status == 200 && body.json.is_object()) return body;
    const std::string said = said_of(body.json);
    problem = "HTTP status " + std::to_string(answer->status) + (said.empty() ? "" : ": " + said);
    number = number_of_refusal(answer->status, said);
  }
  connection_.reset();
  ++endpoint_;
  return fail(number, "etcd at " + endpoint + ": " + problem);
}

Result<KeyOutcome> EtcdClient::commit(const KeyTransaction& transaction) {
  Json request = {{"compare", Json::array()}, {"success", Json::array()}, {"failure", Json::array()}};
  for (const auto& known : transaction.if_all) {
    request["compare"].push_back({{"key", to_base64(known.key)},
                                  {"target", "MOD"},
                                  {"result", "EQUAL"},
                                  {"mod_revision", std::to_string(known.revision)}});
  }
  for (const auto& put : transaction.puts) {
    const Json row = {{"key", to_base64(put.key)}, {"value", to_base64(put.value)}};
    request["success"].push_back({{"request_put", row}});
  }
  for (const std::string& key : transaction.erases) {
    const Json row = {{"key", to_base64(key)}};
    request["success"].push_back({{"request_delete_range", row}});
  }
  for (const std::string& key : transaction.otherwise_read) {
    const Json row = {{"key", to_base64(key)}};
    request["failure"].push_back({{"request_range", row}});
  }
  TRY_ASSIGN(const Body answer, call("/v3/kv/txn", request.dump()));
  const auto done = answer.json.find("succeeded");
  KeyOutcome outcome;
  outcome.done = done != answer.json.end() && done->is_boolean() && done->get<bool>();
  if (outcome.done) {
    outcome.revision = number_of(member(answer.json, "header"), "revision");
    return outcome;
  }
  for (const Json& response : member(answer.json, "responses")) {
    TRY_ASSIGN(std::vector<KeyRow> rows, rows_of(member(response, "response_range")));
    for (KeyRow& row : rows) outcome.found.push_back(std::move(row));
  }
  return outcome;
}

Result<std::vector<KeyRow>> EtcdClient::range(std::string_view from, std::string_view end, size_t limit) {
  const Json request = {
      {"key", to_base64(from)}, {"range_end", to_base64(end)}, {"limit", std::to_string(limit)}};
  TRY_ASSIGN(const Body answer, call("/v3/kv/range", request.dump()));
  return rows_of(answer.json);
}

Result<KeyRevision> EtcdClient::erase(std::string_view from, std::string_view end) {
  const Json erased = {{"key", to_base64(from)}, {"range_end", to_base64(end)}};
  TRY_ASSIGN(const Body answer, call("/v3/kv/deleterange", erased.dump()));
  return number_of(member(answer.json, "header"), "revision");
}

Result<> EtcdClient::forget(KeyRevision before) {
  const Json compacted = {{"revision", std::to_string(before)}};
  // Somebody else may have compacted further: nothing is left to do then.
  const auto compaction = call("/v3/kv/compaction", compacted.dump());
  if (!compaction && compaction.error().what().find("has been compacted") == std::string::npos)
    return std::unexpected(compaction.error());
  return {};
}

Result<std::vector<EtcdMember>> EtcdClient::members() {
  TRY_ASSIGN(const Body answer, call("/v3/cluster/member/list", "{}"));
  std::vector<EtcdMember> members;
  for (const Json& item : member(answer.json, "members")) {
    EtcdMember one{.id = id_text(text_of(item, "ID")), .name = text_of(item, "name"), .addresses = {}};
    for (const Json& address : member(item, "clientURLs"))
      if (address.is_string()) one.addresses.push_back(address.get<std::string>());
    members.push_back(std::move(one));
  }
  if (members.empty()) return fail(EPROTO, "etcd's list of members is not what is expected");
  return members;
}

Result<EtcdState> EtcdClient::state() {
  TRY_ASSIGN(const Body answer, call("/v3/maintenance/status", "{}"));
  const std::string leader = text_of(answer.json, "leader");
  return EtcdState{.version = text_of(answer.json, "version"),
                   .database_bytes = static_cast<uint64_t>(number_of(answer.json, "dbSize")),
                   .leads = !leader.empty() && leader == text_of(member(answer.json, "header"), "member_id")};
}

}  // namespace pnfsrdma::mds
