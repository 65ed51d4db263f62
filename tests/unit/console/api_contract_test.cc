// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "server/console/schema.h"
#include "tests/unit/console/api_cases.h"

namespace pnfsrdma::console::testing {
namespace {

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
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.id + " " + one.method + " " + one.path + " " + std::to_string(one.status));
    HttpRequest request = world.request(one.method, "/api/v1" + one.path, one.body);
    if (!one.if_match.empty()) request.headers.emplace("if-match", one.if_match);
    const HttpResponse response = world.send(request);
    EXPECT_EQ(response.status, one.status) << response.body;
    const auto& operation = world.document.operation(one.id);
    EXPECT_TRUE(documented(operation, response.status));
    if (documented(operation, response.status)) expect_documented_body(world.document, operation, response);
  }
}

// What a person or a program learns the API from is there, and true.
TEST(ApiContract, EveryOperationIsDescribedWithExamplesThatAreValid) {
  const ApiDocument document;
  const auto look = [&](const std::string& where, const Json& content) {
    for (const auto& type : content.items()) {
      ASSERT_TRUE(type.value().contains("example")) << where;
      if (type.key() != "application/json") continue;
      for (const auto& wrong :
           find_wrong(document.json(), type.value().at("schema"), type.value().at("example")))
        ADD_FAILURE() << where << ": " << wrong.pointer << " " << wrong.detail;
    }
  };
  for (const auto& path : document.json()["paths"].items()) {
    for (const auto& method : path.value().items()) {
      const Json& operation = method.value();
      const std::string where = method.key() + " " + path.key();
      EXPECT_FALSE(operation.value("description", "").empty()) << where;
      if (operation.contains("requestBody")) look(where, operation["requestBody"]["content"]);
      for (const auto& answer : operation["responses"].items()) {
        if (answer.key().starts_with('2') && answer.value().contains("content"))
          look(where + " " + answer.key(), answer.value()["content"]);
      }
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
