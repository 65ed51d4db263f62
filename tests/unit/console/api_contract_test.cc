// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "server/console/schema.h"
#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console::testing {
namespace {

const Json kRules{{"path", "/new"}};
const std::string kBrickPath = "/bricks/" + kBrickId;

// One request and the status it must be answered with.
struct Case {
  std::string id;
  std::string method;
  std::string path;
  Json body;
  int status;
  std::string if_match;
};

// In this order: later ones see what earlier ones have changed.
std::vector<Case> cases() {
  return {
      {"getOpenApi", "GET", "/openapi.json", {}, 200, ""},
      {"getReference", "GET", "/", {}, 200, ""},
      {"getProblem", "GET", "/problems/busy", {}, 200, ""},
      {"getProblem", "GET", "/problems/nonsense", {}, 404, ""},
      {"getProblem", "GET", "/problems/NONSENSE", {}, 422, ""},
      {"getVersion", "GET", "/version", {}, 200, ""},
      {"getLive", "GET", "/health/live", {}, 200, ""},
      {"getHealth", "GET", "/health", {}, 200, ""},
      {"getSetup", "GET", "/setup", {}, 200, ""},
      {"postSetup", "POST", "/setup", {{"token", "wrong"}, {"password", "long enough"}}, 403, ""},
      {"postSetup", "POST", "/setup", {{"token", "wrong"}, {"password", "short"}}, 422, ""},
      {"putUser", "PUT", "/users/admin", {{"role", "admin"}}, 422, ""},
      {"putUser", "PUT", "/users/admin", {{"role", "admin"}, {"password", "long enough"}}, 412, "\"old\""},
      {"putUser", "PUT", "/users/admin", {{"role", "admin"}, {"password", "long enough"}}, 201, ""},
      {"putUser", "PUT", "/users/admin", {{"role", "admin"}}, 428, ""},
      {"putUser", "PUT", "/users/admin", {{"role", "admin"}}, 412, "\"old\""},
      {"putUser", "PUT", "/users/admin", {{"role", "viewer"}}, 409, "*"},
      {"putUser", "PUT", "/users/admin", {{"role", "admin"}}, 200, "*"},
      {"postSetup", "POST", "/setup", {{"token", "x"}, {"password", "long enough"}}, 409, ""},
      {"postSession", "POST", "/session", {{"user", "admin"}, {"password", "wrong"}}, 401, ""},
      {"postSession", "POST", "/session", {{"user", "admin"}, {"password", "long enough"}}, 201, ""},
      {"postSession", "POST", "/session", {{"user", "admin"}}, 422, ""},
      {"getSession", "GET", "/session", {}, 200, ""},
      {"deleteSession", "DELETE", "/session", {}, 204, ""},
      {"putPassword",
       "PUT",
       "/session/password",
       {{"old_password", "a"}, {"new_password", "long enough"}},
       409,
       ""},
      {"listUsers", "GET", "/users", {}, 200, ""},
      {"listUsers", "GET", "/users?limit=0", {}, 422, ""},
      {"getUser", "GET", "/users/admin", {}, 200, ""},
      {"getUser", "GET", "/users/nobody", {}, 404, ""},
      {"getUser", "GET", "/users/No", {}, 422, ""},
      {"deleteUser", "DELETE", "/users/admin", {}, 412, "\"old\""},
      {"deleteUser", "DELETE", "/users/admin", {}, 409, ""},
      {"deleteUser", "DELETE", "/users/nobody", {}, 404, ""},
      {"putUser", "PUT", "/users/eve", {{"role", "viewer"}, {"password", "long enough"}}, 201, ""},
      {"deleteUser", "DELETE", "/users/eve", {}, 204, "*"},
      {"listTokens", "GET", "/tokens", {}, 200, ""},
      {"postToken", "POST", "/tokens", {{"name", "scraper"}, {"role", "viewer"}}, 201, ""},
      {"postToken", "POST", "/tokens", {{"name", ""}, {"role", "viewer"}}, 422, ""},
      {"deleteToken", "DELETE", "/tokens/0000000000000000", {}, 404, ""},
      {"listBricks", "GET", "/bricks", {}, 200, ""},
      {"postBrick", "POST", "/bricks", {{"address", "tcp:192.0.2.9:20050"}}, 201, ""},
      {"postBrick", "POST", "/bricks", {{"address", "unix:/run/brick.sock"}}, 409, ""},
      {"postBrick", "POST", "/bricks", {{"address", "tcp:192.0.2.1:1"}}, 422, ""},
      {"getBrick", "GET", kBrickPath, {}, 200, ""},
      {"getBrick", "GET", "/bricks/ff112233-4455-6677-8899-aabbccddeeff", {}, 404, ""},
      {"getBrick", "GET", "/bricks/x", {}, 422, ""},
      {"patchBrick", "PATCH", kBrickPath, {{"draining", true}}, 428, ""},
      {"patchBrick", "PATCH", kBrickPath, {{"draining", true}}, 412, "\"old\""},
      {"patchBrick", "PATCH", kBrickPath, {{"draining", true}}, 200, "*"},
      {"deleteBrick", "DELETE", kBrickPath, {}, 409, ""},
      {"deleteBrick", "DELETE", kBrickPath, {}, 412, "\"old\""},
      {"getBlocks", "GET", kBrickPath + "/blocks", {}, 200, ""},
      {"getBlocks", "GET", kBrickPath + "/blocks?cursor=x", {}, 422, ""},
      {"postBrickFormat", "POST", kBrickPath + "/format", {{"confirm", kBrickId}}, 409, ""},
      {"postBrickFormat",
       "POST",
       kBrickPath + "/format",
       {{"confirm", "ff112233-4455-6677-8899-aabbccddeeff"}},
       422,
       ""},
      {"postBrickCheck", "POST", kBrickPath + "/check", {}, 202, ""},
      {"listExports", "GET", "/exports", {}, 200, ""},
      {"postExport", "POST", "/exports", kRules, 201, ""},
      {"postExport", "POST", "/exports", kRules, 409, ""},
      {"postExport", "POST", "/exports", {{"path", "/x"}, {"read_onyl", true}}, 422, ""},
      {"getExport", "GET", "/exports/2", {}, 200, ""},
      {"getExport", "GET", "/exports/77", {}, 404, ""},
      {"putExport", "PUT", "/exports/2", {{"path", "/new"}, {"read_only", true}}, 428, ""},
      {"putExport", "PUT", "/exports/2", {{"path", "/new"}, {"read_only", true}}, 412, "\"old\""},
      {"putExport", "PUT", "/exports/2", {{"path", "/new"}, {"read_only", true}}, 200, "*"},
      {"putExport", "PUT", "/exports/2", {{"path", "/other"}}, 422, "*"},
      {"deleteExport", "DELETE", "/exports/2", {}, 412, "\"old\""},
      {"deleteExport", "DELETE", "/exports/2", {}, 204, ""},
      {"deleteExport", "DELETE", "/exports/2", {}, 404, ""},
      {"getFile", "GET", "/files?path=/data/file", {}, 200, ""},
      {"getFile", "GET", "/files?path=/none", {}, 404, ""},
      {"getFile", "GET", "/files", {}, 422, ""},
      {"listLayouts", "GET", "/layouts?path=/data/file", {}, 200, ""},
      {"listLayouts", "GET", "/layouts?inode=x", {}, 422, ""},
      {"getLayout", "GET", "/layouts/00000000000a11ce-42", {}, 200, ""},
      {"getLayout", "GET", "/layouts/00000000000a11ce-43", {}, 404, ""},
      {"deleteLayouts", "DELETE", "/layouts", {}, 422, ""},
      {"deleteLayout", "DELETE", "/layouts/00000000000a11ce-42", {}, 200, ""},
      {"deleteLayout", "DELETE", "/layouts/00000000000a11ce-42", {}, 404, ""},
      {"deleteLayouts", "DELETE", "/layouts?inode=42", {}, 200, ""},
      {"listClients", "GET", "/clients", {}, 200, ""},
      {"getClient", "GET", "/clients/00000000000a11ce", {}, 200, ""},
      {"deleteClient", "DELETE", "/clients/00000000000a11ce", {}, 204, ""},
      {"deleteClient", "DELETE", "/clients/00000000000a11ce", {}, 404, ""},
      {"getClient", "GET", "/clients/00000000000a11ce", {}, 404, ""},
      {"getConfiguration", "GET", "/configuration", {}, 200, ""},
      {"patchConfiguration", "PATCH", "/configuration", {{"log_level", "debug"}}, 428, ""},
      {"patchConfiguration", "PATCH", "/configuration", {{"log_level", "debug"}}, 412, "\"old\""},
      {"patchConfiguration", "PATCH", "/configuration", {{"log_level", "loud"}}, 422, "*"},
      {"patchConfiguration", "PATCH", "/configuration", {{"log_level", "debug"}}, 200, "*"},
      {"listEvents", "GET", "/events", {}, 200, ""},
      {"listEvents", "GET", "/events?level=loud", {}, 422, ""},
      {"streamEvents", "GET", "/events/stream", {}, 200, ""},
      {"listJobs", "GET", "/jobs", {}, 200, ""},
      {"getJob", "GET", "/jobs/1", {}, 200, ""},
      {"getJob", "GET", "/jobs/99", {}, 404, ""},
      {"deleteJob", "DELETE", "/jobs/1", {}, 200, ""},
      {"deleteJob", "DELETE", "/jobs/99", {}, 404, ""},
      {"listAudit", "GET", "/audit", {}, 200, ""},
      {"getThroughput", "GET", "/throughput", {}, 200, ""},
      {"getThroughput", "GET", "/throughput?seconds=601", {}, 422, ""},
  };
}

bool documented(const ApiDocument::Operation& operation, int status) {
  return std::ranges::count(operation.statuses, status) > 0;
}

// Where the document gives a schema for this answer, the body obeys it.
void expect_documented_body(const ApiDocument& document, const ApiDocument::Operation& operation,
                            const HttpResponse& response) {
  std::string method = operation.method;
  std::ranges::transform(method, method.begin(), [](char c) { return std::tolower(c); });
  const Json* answer =
      &document.json()["paths"][operation.path][method]["responses"].at(std::to_string(response.status));
  if (answer->contains("$ref"))
    answer = &document.json().at(Json::json_pointer((*answer)["$ref"].get<std::string>().substr(1)));
  const bool json =
      response.content_type == "application/json" || response.content_type == "application/problem+json";
  if (!answer->contains("content") || !json) return;
  const auto wrong = find_wrong(document.json(), (*answer)["content"].at(response.content_type).at("schema"),
                                ApiWorld::json_of(response));
  for (const Problem::Wrong& one : wrong)
    ADD_FAILURE() << operation.id << " " << response.status << ": " << one.pointer << " " << one.detail
                  << "\n"
                  << response.body;
}

TEST(ApiContract, EveryOperationAnswersAsTheDocumentSays) {
  ApiWorld world;
  std::set<std::pair<std::string, int>> seen;
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.id + " " + one.method + " " + one.path + " " + std::to_string(one.status));
    HttpRequest request = world.request(one.method, "/api/v1" + one.path, one.body);
    if (!one.if_match.empty()) request.headers.emplace("if-match", one.if_match);
    const HttpResponse response = world.send(request);
    EXPECT_EQ(response.status, one.status) << response.body;
    const auto& operation = world.document.operation(one.id);
    EXPECT_TRUE(documented(operation, response.status));
    if (documented(operation, response.status)) expect_documented_body(world.document, operation, response);
    seen.emplace(one.id, response.status);
  }
  // A success that is written down and never happens is as wrong as one that is not written down. (Setting
  // the first password, changing one's own, removing a token and formatting have tests of their own.)
  const std::set<std::pair<std::string, int>> elsewhere{{"postSetup", 201},
                                                        {"putPassword", 204},
                                                        {"deleteToken", 204},
                                                        {"postBrickFormat", 202},
                                                        {"deleteBrick", 204}};
  for (const auto& operation : world.document.operations()) {
    for (const int status : operation.statuses) {
      const bool counts = status < 300 || status == 409 || status == 412 || status == 428;
      const std::pair<std::string, int> pair(operation.id, status);
      const std::set<std::string> never{"postToken",      "deleteExport", "deleteJob",
                                        "postBrickCheck", "patchBrick",   "putExport"};
      if (!counts || seen.contains(pair) || elsewhere.contains(pair)) continue;
      if (status == 409 && never.contains(operation.id)) continue;
      ADD_FAILURE() << operation.id << " is never answered with " << status;
    }
  }
}

TEST(ApiContract, TheTableOfRoutesIsTheDocuments) {
  const ApiDocument document;
  ASSERT_EQ(routes().size(), document.operations().size());
  for (const Route& route : routes()) {
    const auto& operation = document.operation(route.id);
    EXPECT_EQ(route.method, operation.method) << route.id;
    EXPECT_EQ(route.path, operation.path) << route.id;
    EXPECT_EQ(name_of(route.role), operation.role) << route.id;
  }
}

TEST(ApiContract, TheTableOfProblemsIsTheDocuments) {
  const ApiDocument document;
  const Json& written = document.json()["x-problems"];
  EXPECT_EQ(problem_types().size(), written.size());
  for (const ProblemType& type : problem_types()) {
    ASSERT_TRUE(written.contains(type.name)) << type.name;
    EXPECT_EQ(written[type.name]["status"], type.status);
    EXPECT_EQ(written[type.name]["title"], type.title);
  }
}

// Every operation but the public ones: without credentials, and with those of the role below.
TEST(ApiContract, NobodyDoesMoreThanTheirRole) {
  ApiWorld world;
  std::map<Role, std::string> secrets;
  for (const Role role : {Role::kViewer, Role::kOperator}) {
    const auto made = world.send("POST", "/api/v1/tokens", {{"name", "t"}, {"role", name_of(role)}});
    secrets[role] = "Bearer " + ApiWorld::json_of(made)["secret"].get<std::string>();
  }
  for (const Route& route : routes()) {
    if (route.role == Role::kPublic) continue;
    SCOPED_TRACE(std::string(route.id));
    const HttpRequest plain = world.request(std::string(route.method), "/api/v1" + std::string(route.path));
    const HttpRequest remote = ApiWorld::from(plain, "192.0.2.7");
    EXPECT_EQ(world.send(remote).status, 401);
    EXPECT_EQ(world.send(ApiWorld::with(remote, "authorization", "Bearer nonsense")).status, 401);
    for (const auto& [role, secret] : secrets) {
      const int status = world.send(ApiWorld::with(remote, "authorization", secret)).status;
      EXPECT_EQ(status == 403 || status == 401, role < route.role) << name_of(role) << " " << status;
    }
  }
}

TEST(ApiContract, WhereTheLoopDoesNotAnswerTheCallerIsToldInTime) {
  ApiWorld world;
  world.loop.stop();
  const auto response = world.send("GET", "/api/v1/clients");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(ApiWorld::header_of(response, "Retry-After"), "1");
  EXPECT_EQ(world.send("POST", "/api/v1/exports", kRules).status, 503);
  EXPECT_EQ(world.administration.all_exports.size(), 1u);
}

TEST(ApiContract, WhatIsNotThereIsSaid) {
  ApiWorld world;
  EXPECT_EQ(world.send("GET", "/api/v1/nothing").status, 404);
  EXPECT_EQ(world.send("GET", "/api/v2/clients").status, 404);
  const auto wrong_method = world.send("DELETE", "/api/v1/clients");
  EXPECT_EQ(wrong_method.status, 405);
  EXPECT_EQ(ApiWorld::header_of(wrong_method, "Allow"), "GET");
  EXPECT_EQ(world.send("GET", "/api/v1").status, 308);
  HttpRequest broken = world.request("POST", "/api/v1/exports");
  broken.body = "{\"path\":";
  EXPECT_EQ(world.send(broken).status, 400);
}

}  // namespace
}  // namespace pnfsrdma::console::testing
