// SPDX-License-Identifier: Apache-2.0
#include "cli/resource/lookup.h"

#include <initializer_list>
#include <vector>

#include "cli/output/json_member.h"
#include "cli/output/nearest_word.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

// What somebody may have meant: "did you mean /projects?", or how to see all there are.
std::string hint(const json& all, const std::string& noun, const std::string& called,
                 std::initializer_list<const char*> names) {
  std::vector<std::string> known;
  for (const json& resource : all) {
    for (const char* name : names) known.push_back(text_at(resource, name));
  }
  const auto nearest = nearest_word(called, known);
  return nearest ? "did you mean " + *nearest + "?" : "pnfsrdma " + noun + " list";
}

// The one whose id or any of `names` is `called`, else the one whose id begins so.
Outcome<json> one_called(const json& all, const std::string& noun, const std::string& called,
                         std::initializer_list<const char*> names) {
  json exact = json::array();
  json begun = json::array();
  for (const json& resource : all) {
    const std::string id = text_at(resource, "/id");
    bool named = id == called || (resource.contains("id") && resource["id"].dump() == called);
    for (const char* name : names) named = named || (!called.empty() && text_at(resource, name) == called);
    if (named) exact.push_back(resource);
    if (!called.empty() && id.starts_with(called)) begun.push_back(resource);
  }
  const json& found = exact.empty() ? begun : exact;
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return refuse(ExitCode::kNotFound, "no " + noun + " is called " + called, {},
                  hint(all, noun, called, names));
  }
  std::string ids;
  for (const json& resource : found) ids += (ids.empty() ? "" : ", ") + text_at(resource, "/id");
  return refuse(ExitCode::kUsage, "more than one " + noun + " is called " + called, ids,
                "give more of the id");
}

}  // namespace

std::string brick_address(const std::string& typed) {
  if (typed.starts_with('/')) return "unix:" + typed;
  const bool complete = typed.starts_with("unix:") || typed.starts_with("tcp:");
  return complete || typed.find(':') == std::string::npos ? typed : "tcp:" + typed;
}

Outcome<json> find_brick(ApiClient& client, const std::string& called) {
  TRY_ASSIGN(const json all, client.list("/bricks"));
  return one_called(all, "brick", brick_address(called), {"/name", "/address"});
}

Outcome<json> find_export(ApiClient& client, const std::string& called) {
  TRY_ASSIGN(const json all, client.list("/exports"));
  return one_called(all, "export", called, {"/path"});
}

Outcome<json> find_snapshot(ApiClient& client, const std::string& called) {
  TRY_ASSIGN(const json all, client.list("/snapshots"));
  // A name that is a number, too, is a name. One that is being deleted may have the name of one that is there.
  const json* found = nullptr;
  for (const json& snapshot : all) {
    if (text_at(snapshot, "/name") != called) continue;
    if (found == nullptr || text_at(snapshot, "/state") == "ready") found = &snapshot;
  }
  if (found != nullptr) return *found;
  return one_called(all, "snapshot", called, {"/name"});
}

Outcome<json> find_client(ApiClient& client, const std::string& called) {
  TRY_ASSIGN(const json all, client.list("/clients"));
  return one_called(all, "client", called, {"/name", "/host", "/owner"});
}

Outcome<json> find_user(ApiClient& client, const std::string& called) {
  TRY_ASSIGN(const json all, client.list("/users"));
  return one_called(all, "user", called, {"/name"});
}

Outcome<std::string> find_layout(ApiClient& client, const std::string& called) {
  // Never the beginning of another one: layouts come and go, and client-1 is not client-12.
  constexpr size_t kClientDigits = 16;
  if (called.find('-') == kClientDigits && called.size() > kClientDigits + 1) return called;
  TRY_ASSIGN(const json all, client.list("/layouts"));
  TRY_ASSIGN(const json found, one_called(all, "layout", called, {}));
  return text_at(found, "/id");
}

Outcome<json> find_token_called(ApiClient& client, const std::string& called) {
  TRY_ASSIGN(const json all, client.list("/tokens"));
  return one_called(all, "token", called, {"/name"});
}

}  // namespace pnfsrdma::cli
