// SPDX-License-Identifier: Apache-2.0
#include "cli/resource/lookup.h"

#include <initializer_list>

#include "cli/output/json_member.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr size_t kPrefixLeast = 4;

// The one whose id or any of `names` is `called`, else the one whose id begins so.
Outcome<json> one_called(const json& all, const std::string& noun, const std::string& called,
                         std::initializer_list<const char*> names) {
  json exact = json::array();
  json begun = json::array();
  for (const json& resource : all) {
    const std::string id = text_at(resource, "/id");
    bool named = id == called || (resource.contains("id") && resource["id"].dump() == called);
    for (const char* name : names) named = named || text_at(resource, name) == called;
    if (named) exact.push_back(resource);
    if (called.size() >= kPrefixLeast && id.starts_with(called)) begun.push_back(resource);
  }
  const json& found = exact.empty() ? begun : exact;
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return refuse(ExitCode::kNotFound, "no " + noun + " is called " + called, {},
                  "pnfsrdma " + noun + " list");
  }
  std::string ids;
  for (const json& resource : found) ids += (ids.empty() ? "" : ", ") + text_at(resource, "/id");
  return refuse(ExitCode::kUsage, "more than one " + noun + " is called " + called, ids, "give the whole id");
}

}  // namespace

Outcome<json> find_brick(ApiClient& client, const std::string& called) {
  TRY_ASSIGN(const json all, client.list("/bricks"));
  return one_called(all, "brick", called, {"/address"});
}

Outcome<json> find_export(ApiClient& client, const std::string& called) {
  TRY_ASSIGN(const json all, client.list("/exports"));
  return one_called(all, "export", called, {"/path"});
}

Outcome<json> find_client(ApiClient& client, const std::string& called) {
  TRY_ASSIGN(const json all, client.list("/clients"));
  return one_called(all, "client", called, {"/name", "/owner"});
}

Outcome<json> find_token_called(ApiClient& client, const std::string& called) {
  TRY_ASSIGN(const json all, client.list("/tokens"));
  return one_called(all, "token", called, {"/name"});
}

}  // namespace pnfsrdma::cli
