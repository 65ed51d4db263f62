// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/invitation.h"

#include <fmt/format.h>
#include <httplib.h>
#include <openssl/crypto.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/cluster/base64.h"
#include "cli/output/json_member.h"
#include "shared/base/guarded.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/http/client.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr auto kDoorPatience = std::chrono::seconds(20);
constexpr size_t kRequestBytesMax = 64 * 1024;
constexpr const char* kAuthorityPath = "/authority";
constexpr const char* kJoinPath = "/join";
constexpr const char* kJson = "application/json";

std::vector<std::string> texts_at(const json& from, const char* name) {
  std::vector<std::string> texts;
  for (const json& item : from.value(name, json::array()))
    if (item.is_string()) texts.push_back(item.get<std::string>());
  return texts;
}

// httplib takes certificates from files, and to those of a store it adds what the system trusts.
Outcome<FileDescriptor> file_in_memory(const std::string& text) {
  FileDescriptor file(::memfd_create("authority", MFD_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return refuse(ExitCode::kFailed, Error::from_errno("memfd_create").to_string());
  return file;
}

std::unexpected<Failure> no_answer(const InvitationToken& token, httplib::Error error) {
  return refuse(ExitCode::kUnreachable, token.door + ": " + httplib::to_string(error),
                "The member that invites waits there only while `pnfsrdma cluster invite` runs.",
                "Is it still running? Does a firewall let its port pass?");
}

Outcome<http::Client> client_of(const InvitationToken& token) {
  auto client = http::make_client(token.door);
  if (!client)
    return refuse(ExitCode::kUsage, "this is no token of `pnfsrdma cluster invite`", client.error().what());
  (*client)->set_connection_timeout(kDoorPatience);
  (*client)->set_read_timeout(kDoorPatience);
  (*client)->set_write_timeout(kDoorPatience);
  return *std::move(client);
}

}  // namespace

std::string InvitationToken::text() const {
  return to_base64url(json{{"door", door},
                           {"authority", authority},
                           {"secret", secret},
                           {"witness", guest == Guest::kWitness},
                           {"brick", guest == Guest::kBrick}}
                          .dump());
}

Outcome<InvitationToken> InvitationToken::parse(const std::string& text) {
  const auto bytes = from_base64url(text);
  const json from = bytes ? json::parse(*bytes, nullptr, false) : json();
  if (!from.is_object())
    return refuse(ExitCode::kUsage, "this is no token of `pnfsrdma cluster invite`",
                  "A part may be missing.");
  InvitationToken token{.door = text_at(from, "/door"),
                        .authority = text_at(from, "/authority"),
                        .secret = text_at(from, "/secret"),
                        .guest = flag_at(from, "/brick")     ? Guest::kBrick
                                 : flag_at(from, "/witness") ? Guest::kWitness
                                                             : Guest::kServer};
  if (!token.door.starts_with("https://") || token.authority.empty() || token.secret.empty())
    return refuse(ExitCode::kUsage, "this is no token of `pnfsrdma cluster invite`");
  return token;
}

// Whom to trust is asked of anybody: the token says whether it is the right one. Nothing secret is said before that.
Outcome<std::string> authority_of(const InvitationToken& token) {
  TRY_ASSIGN(const http::Client client, client_of(token));
  client->enable_server_certificate_verification(false);
  const httplib::Result answer = client->Get(kAuthorityPath);
  if (!answer) return no_answer(token, answer.error());
  const auto fingerprint = fingerprint_of(answer->body);
  if (!fingerprint || *fingerprint != token.authority)
    return refuse(ExitCode::kNotPermitted, token.door + " is not of the cluster that the token is of",
                  "Nothing secret was sent there.",
                  "pnfsrdma cluster invite, on a member, makes another token");
  return answer->body;
}

Outcome<JoinAnswer> ask_to_join(const InvitationToken& token, const std::string& authority,
                                const JoinRequest& request) {
  TRY_ASSIGN(const FileDescriptor trusted, file_in_memory(authority));
  TRY_ASSIGN(const http::Client client, client_of(token));
  client->set_ca_cert_path(fmt::format("/proc/self/fd/{}", trusted.get()));
  client->enable_server_certificate_verification(true);
  const json body = {{"secret", token.secret},
                     {"name", request.name},
                     {"address", request.address},
                     {"public_keys", request.public_keys}};
  const httplib::Result answer = client->Post(kJoinPath, body.dump(), kJson);
  if (!answer) return no_answer(token, answer.error());
  const json said = json::parse(answer->body, nullptr, false);
  if (answer->status == 403)
    return refuse(ExitCode::kNotPermitted, token.door + " does not know this token",
                  "It is of an earlier invitation.",
                  "pnfsrdma cluster invite, on a member, makes another token");
  if (answer->status != 200 || !said.is_object())
    return refuse(ExitCode::kFailed,
                  said.is_object() ? text_at(said, "/title") : fmt::format("HTTP status {}", answer->status),
                  said.is_object() ? text_at(said, "/detail") : "");
  JoinAnswer welcome{.authority_key = text_at(said, "/authority_key"),
                     .certificates = texts_at(said, "certificates"),
                     .endpoints = texts_at(said, "endpoints"),
                     .prefix = text_at(said, "/prefix")};
  const bool member = token.guest != Guest::kBrick;
  if (welcome.certificates.size() != request.public_keys.size() ||
      (member && (welcome.endpoints.empty() || welcome.prefix.empty())))
    return refuse(ExitCode::kFailed, token.door + " answered in a form that this program does not know", {},
                  "install the same version on both hosts");
  return welcome;
}

Outcome<JoinRequest> receive_one(const Door& door, const InvitationToken& token, Milliseconds patience,
                                 const std::function<Outcome<JoinAnswer>(const JoinRequest&)>& answer,
                                 const std::function<void(uint16_t port)>& opened,
                                 const std::string& authority) {
  struct State {
    std::optional<JoinRequest> came;
    bool ended = false;
  };
  Guarded<State> state;
  Condition wake;
  httplib::SSLServer server(door.certificate.c_str(), door.key.c_str());
  if (!server.is_valid())
    return refuse(ExitCode::kFailed, "the certificate " + door.certificate + " cannot be used");
  server.set_payload_max_length(kRequestBytesMax);
  server.set_read_timeout(kDoorPatience);
  server.set_keep_alive_max_count(1);
  server.Get(kAuthorityPath, [&](const httplib::Request&, httplib::Response& response) {
    response.set_content(authority, "application/x-pem-file");
  });
  server.Post(kJoinPath, [&](const httplib::Request& asked, httplib::Response& response) {
    const json body = json::parse(asked.body, nullptr, false);
    const std::string secret = body.is_object() ? text_at(body, "/secret") : "";
    const bool known = secret.size() == token.secret.size() &&
                       CRYPTO_memcmp(secret.data(), token.secret.data(), secret.size()) == 0;
    auto now = state.lock();
    if (!known || now->came) {
      response.status = 403;
      return;
    }
    JoinRequest request{.name = text_at(body, "/name"),
                        .address = text_at(body, "/address"),
                        .public_keys = texts_at(body, "public_keys")};
    const auto given = answer(request);
    if (!given) {
      response.status = 409;
      response.set_content(json{{"title", given.error().title}, {"detail", given.error().detail}}.dump(),
                           kJson);
      return;
    }
    response.set_content(json{{"authority_key", given->authority_key},
                              {"certificates", given->certificates},
                              {"endpoints", given->endpoints},
                              {"prefix", given->prefix}}
                             .dump(),
                         kJson);
    now->came = std::move(request);
    wake.notify_one();
  });
  const int any = door.port == 0 ? server.bind_to_any_port(door.address) : 0;
  if (door.port == 0 ? any <= 0 : !server.bind_to_port(door.address, door.port))
    return refuse(ExitCode::kFailed, fmt::format("port {} of {} cannot be used", door.port, door.address),
                  "Another program may have it.", "--port PORT");
  Thread serving([&] {
    server.listen_after_bind();
    state.lock()->ended = true;
    wake.notify_one();
  });
  opened(door.port == 0 ? static_cast<uint16_t>(any) : door.port);
  std::optional<JoinRequest> came;
  {
    auto now = state.lock();
    now.wait_until(wake, steady_now() + patience, [](const State& at) { return at.came || at.ended; });
    came = now->came;
  }
  // One that does not listen yet would not be stopped.
  while (!server.is_running() && !state.lock()->ended) yield_thread();
  // Ends when the answer has left.
  server.stop();
  serving.join();
  if (!came) {
    return refuse(ExitCode::kFailed, "no host came with the token", "It can be used no more.",
                  "pnfsrdma cluster invite makes another one");
  }
  return *came;
}

}  // namespace pnfsrdma::cli
