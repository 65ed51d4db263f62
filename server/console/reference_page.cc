// SPDX-License-Identifier: Apache-2.0
#include "server/console/reference_page.h"

#include <fmt/format.h>

namespace pnfsrdma::console {

namespace {

constexpr std::string_view kStyle =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:"
    "light dark}code,pre{font:14px/1.4 ui-monospace,monospace}section{border-top:1px solid #8884;margin-top:"
    "1rem}table{border-collapse:collapse}td,th{text-align:left;vertical-align:top;padding:.1rem .8rem .1rem "
    "0}h3 code{font-weight:600}";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title><meta "
      "name=\"viewport\" "
      "content=\"width=device-width\"><style>{}</style></head><body>{}</body></html>",
      escaped(title), kStyle, body);
}

// "string, one of [...]", "integer 1 to 1000", "list of Brick".
std::string schema_type(const Json& schema) {
  if (schema.contains("$ref")) {
    const std::string target = schema["$ref"];
    const std::string name = target.substr(target.rfind('/') + 1);
    return fmt::format("<a href=\"#{0}\">{0}</a>", escaped(name));
  }
  if (!schema.contains("type")) return "any";
  const Json& type = schema["type"];
  std::string text = type.is_array() ? type[0].get<std::string>() + " or null" : type.get<std::string>();
  if (schema.contains("enum")) text = escaped(to_text(schema["enum"]));
  if (schema.contains("items")) text = "list of " + schema_type(schema["items"]);
  if (schema.contains("minimum") && schema["minimum"] != 0) text += " from " + to_text(schema["minimum"]);
  if (schema.contains("maximum")) text += " to " + to_text(schema["maximum"]);
  return text;
}

std::string row(std::string_view name, const Json& schema, bool required) {
  return fmt::format("<tr><td><code>{}</code>{}</td><td>{}</td><td>{}</td></tr>", escaped(name),
                     required ? " *" : "", schema_type(schema), escaped(schema.value("description", "")));
}

std::string operation_section(const ApiDocument::Operation& operation) {
  std::string text =
      fmt::format("<h3 id=\"{}\"><code>{} {}</code></h3><p>{} <em>Role: {}.</em></p>", escaped(operation.id),
                  operation.method, escaped(operation.path), escaped(operation.summary), operation.role);
  if (!operation.parameters.empty()) {
    text += "<table>";
    for (const auto& parameter : operation.parameters)
      text += row(parameter.name, *parameter.schema, parameter.required);
    text += "</table>";
  }
  if (operation.body != nullptr) text += "<p>Body: " + schema_type(*operation.body) + "</p>";
  text += "<p>Answers:";
  for (const int status : operation.statuses) text += fmt::format(" {}", status);
  return text + "</p>";
}

}  // namespace

std::string reference_page(const ApiDocument& document) {
  const Json& info = document.json().at("info");
  std::string body = fmt::format("<h1>{}</h1><p>{}</p><p><a href=\"openapi.json\">openapi.json</a></p>",
                                 escaped(info.at("title").get<std::string>()),
                                 escaped(info.at("description").get<std::string>()));
  for (const Json& tag : document.json().at("tags")) {
    body += fmt::format("<section><h2>{}</h2>", escaped(tag.at("name").get<std::string>()));
    for (const auto& operation : document.operations()) {
      if (operation.tag == tag.at("name").get_ref<const std::string&>()) body += operation_section(operation);
    }
    body += "</section>";
  }
  body += "<section><h2>Values</h2>";
  for (const auto& schema : document.json().at("components").at("schemas").items()) {
    body += fmt::format("<h3 id=\"{0}\">{0}</h3><p>{1}</p><table>", escaped(schema.key()),
                        escaped(schema.value().value("description", "")));
    if (schema.value().contains("properties")) {
      for (const auto& member : schema.value()["properties"].items())
        body += row(member.key(), member.value(), false);
    }
    body += "</table>";
  }
  body += "</section><section><h2>Problems</h2><ul>";
  for (const auto& problem : document.json().at("x-problems").items())
    body += fmt::format("<li><a href=\"problems/{0}\">{0}</a></li>", escaped(problem.key()));
  return page(info.at("title").get<std::string>(), body + "</ul></section>");
}

std::string problem_page(const ApiDocument& document, const std::string& name) {
  const Json& problems = document.json().at("x-problems");
  const auto found = problems.find(name);
  if (found == problems.end()) return {};
  return page(name,
              fmt::format("<h1>{}</h1><p>{}.</p><p>Status {}. The <code>detail</code> says what happened, "
                          "<code>fix</code> what to do.</p>",
                          escaped(name), escaped(found->at("title").get<std::string>()),
                          found->at("status").get<int>()));
}

}  // namespace pnfsrdma::console
