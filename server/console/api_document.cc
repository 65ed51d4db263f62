// SPDX-License-Identifier: Apache-2.0
#include "server/console/api_document.h"

#include <algorithm>
#include <cctype>

#include "server/console/schema.h"
#include "shared/base/check.h"

namespace pnfsrdma::console {

namespace {

constexpr const char* kJsonType = "application/json";

ApiDocument::Operation read_operation(const std::string& path, const std::string& method, const Json& json) {
  ApiDocument::Operation operation{.method = method,
                                   .path = path,
                                   .id = json.at("operationId"),
                                   .role = json.at("x-role"),
                                   .summary = json.at("summary"),
                                   .tag = json.at("tags").at(0),
                                   .parameters = {},
                                   .statuses = {}};
  std::ranges::transform(operation.method, operation.method.begin(), [](char c) { return std::toupper(c); });
  if (json.contains("parameters")) {
    for (const Json& parameter : json["parameters"]) {
      operation.parameters.push_back({.name = parameter.at("name"),
                                      .in = parameter.at("in"),
                                      .required = parameter.value("required", false),
                                      .schema = &parameter.at("schema")});
    }
  }
  if (json.contains("requestBody"))
    operation.body = &json["requestBody"].at("content").at(kJsonType).at("schema");
  for (const auto& response : json.at("responses").items())
    operation.statuses.push_back(std::stoi(response.key()));
  return operation;
}

Problem invalid(std::vector<Problem::Wrong> wrong) {
  return {.name = "invalid",
          .detail = wrong.front().pointer + " " + wrong.front().detail,
          .fix = "See /api/v1/ for what this operation takes.",
          .errors = std::move(wrong)};
}

}  // namespace

ApiDocument::ApiDocument() : document_(Json::parse(kOpenApiText)) {
  for (const auto& path : document_.at("paths").items()) {
    for (const auto& operation : path.value().items())
      operations_.push_back(read_operation(path.key(), operation.key(), operation.value()));
  }
}

const ApiDocument::Operation& ApiDocument::operation(std::string_view id) const {
  const auto found = std::ranges::find(operations_, id, &Operation::id);
  CHECK(found != operations_.end());
  return *found;
}

void ApiDocument::parse_query(const Operation& operation, const HttpRequest& request, Arguments& arguments,
                              std::vector<Problem::Wrong>& wrong) const {
  for (const auto& [name, text] : request.query) {
    const auto known = std::ranges::find_if(operation.parameters, [&](const Parameter& parameter) {
      return parameter.in == "query" && parameter.name == name;
    });
    if (known == operation.parameters.end()) {
      wrong.push_back({name, "is not a parameter of this operation"});
    } else if (arguments.query.contains(name)) {
      wrong.push_back({name, "is given twice"});
    } else {
      arguments.query[name] = parse_parameter(*known->schema, text);
      const auto found = find_wrong(document_, *known->schema, arguments.query[name], name);
      wrong.insert(wrong.end(), found.begin(), found.end());
    }
  }
  for (const Parameter& parameter : operation.parameters) {
    if (parameter.in != "query" || arguments.query.contains(parameter.name)) continue;
    if (parameter.required) wrong.push_back({parameter.name, "is missing"});
    if (parameter.schema->contains("default"))
      arguments.query[parameter.name] = (*parameter.schema)["default"];
  }
}

Answer<ApiDocument::Arguments> ApiDocument::parse(
    const Operation& operation, const std::vector<std::pair<std::string, std::string>>& path,
    const HttpRequest& request) const {
  Arguments arguments;
  std::vector<Problem::Wrong> wrong;
  for (const auto& [name, text] : path) {
    const auto known = std::ranges::find(operation.parameters, name, &Parameter::name);
    CHECK(known != operation.parameters.end());
    arguments.path[name] = parse_parameter(*known->schema, text);
    const auto found = find_wrong(document_, *known->schema, arguments.path[name], name);
    wrong.insert(wrong.end(), found.begin(), found.end());
  }
  parse_query(operation, request, arguments, wrong);
  if (operation.body != nullptr) {
    arguments.body = Json::parse(request.body, nullptr, false);
    if (arguments.body.is_discarded())
      return refuse("bad-request", "The body is not JSON.", "Send one JSON object in UTF-8.");
    const auto found = find_wrong(document_, *operation.body, arguments.body);
    wrong.insert(wrong.end(), found.begin(), found.end());
  } else if (!request.body.empty()) {
    wrong.push_back({"", "this operation takes no body"});
  }
  if (!wrong.empty()) return std::unexpected(invalid(std::move(wrong)));
  return arguments;
}

}  // namespace pnfsrdma::console
