// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/console/json.h"
#include "server/console/problem.h"

namespace pnfsrdma::console {

// openapi.json as part of the program.
extern const std::string_view kOpenApiText;

// The contract, read: what each operation takes. What is written there is what is enforced. Immutable:
// thread-safe.
class ApiDocument {
 public:
  ApiDocument();

  struct Parameter {
    std::string name;
    std::string in;  // "path", "query", "header"
    bool required = false;
    const Json* schema = nullptr;
  };
  struct Operation {
    std::string method;  // "GET"
    std::string path;    // "/bricks/{brick}"
    std::string id;
    std::string role;
    std::string summary;
    std::string tag;
    std::vector<Parameter> parameters;
    const Json* body = nullptr;  // schema of it, or none is taken
    std::vector<int> statuses;
  };
  const std::vector<Operation>& operations() const { return operations_; }
  // CHECKs that there is one.
  const Operation& operation(std::string_view id) const;
  const Json& json() const { return document_; }

  // Parameters and body as the operation wants them, defaults filled in; or each thing wrong with them.
  struct Arguments {
    Json path = Json::object();
    Json query = Json::object();
    Json body;
  };
  Answer<Arguments> parse(const Operation& operation,
                          const std::vector<std::pair<std::string, std::string>>& path,
                          const HttpRequest& request) const;

 private:
  void parse_query(const Operation& operation, const HttpRequest& request, Arguments& arguments,
                   std::vector<Problem::Wrong>& wrong) const;

  const Json document_;
  std::vector<Operation> operations_;
};

}  // namespace pnfsrdma::console
