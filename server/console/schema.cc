// SPDX-License-Identifier: Apache-2.0
#include "server/console/schema.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <regex>
#include <set>

#include "shared/base/check.h"
#include "shared/base/guarded.h"

namespace pnfsrdma::console {

namespace {

// Compiling one takes longer than all else about a request. They come from the document: there are few.
const std::regex& compiled(const std::string& pattern) {
  static Guarded<std::map<std::string, std::regex>> all;
  auto known = all.lock();
  return known->try_emplace(pattern, pattern).first->second;
}

// "format" and the words for people are not enforced, and nothing in a request relies on them.
const std::set<std::string, std::less<>>& known_words() {
  static const std::set<std::string, std::less<>> words{
      "type",      "enum",      "required", "properties", "additionalProperties",
      "items",     "minItems",  "maxItems", "minimum",    "maximum",
      "minLength", "maxLength", "pattern",  "$ref",       "description",
      "default",   "format"};
  return words;
}

bool is_of_type(const Json& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return type == "null" && value.is_null();
}

size_t code_points(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

class Finder {
 public:
  explicit Finder(const Json& document) : document_(document) {}

  void look(const Json& schema, const Json& value, const std::string& where) {
    if (const auto reference = schema.find("$ref"); reference != schema.end()) {
      const std::string target = reference->get<std::string>();
      return look(document_.at(Json::json_pointer(target.substr(1))), value, where);
    }
    for (const auto& item : schema.items()) CHECK(known_words().contains(item.key()));
    if (!check_type(schema, value, where)) return;
    if (const auto allowed = schema.find("enum"); allowed != schema.end()) {
      if (std::ranges::find(*allowed, value) == allowed->end())
        return say(where, "must be one of " + to_text(*allowed));
    }
    if (value.is_string()) look_at_string(schema, value.get_ref<const std::string&>(), where);
    if (value.is_number()) look_at_number(schema, value, where);
    if (value.is_array()) look_at_array(schema, value, where);
    if (value.is_object()) look_at_object(schema, value, where);
  }

  std::vector<Problem::Wrong> found;

 private:
  void say(const std::string& where, std::string what) { found.push_back({where, std::move(what)}); }

  bool check_type(const Json& schema, const Json& value, const std::string& where) {
    const auto type = schema.find("type");
    if (type == schema.end()) return true;
    const bool fits =
        type->is_array()
            ? std::ranges::any_of(*type,
                                  [&](const Json& one) { return is_of_type(value, one.get<std::string>()); })
            : is_of_type(value, type->get<std::string>());
    if (!fits) say(where, "must be of type " + to_text(*type));
    return fits;
  }

  void look_at_string(const Json& schema, const std::string& text, const std::string& where) {
    const size_t length = code_points(text);
    if (schema.contains("minLength") && length < schema["minLength"].get<size_t>())
      return say(where, "must have at least " + to_text(schema["minLength"]) + " characters");
    if (schema.contains("maxLength") && length > schema["maxLength"].get<size_t>())
      return say(where, "must have at most " + to_text(schema["maxLength"]) + " characters");
    // What is matched is short: std::regex recurses by character.
    constexpr size_t kMatchedMax = 128;
    if (!schema.contains("pattern")) return;
    const auto& pattern = schema["pattern"].get_ref<const std::string&>();
    if (text.size() > kMatchedMax || !std::regex_match(text, compiled(pattern)))
      say(where, "must match " + pattern);
  }

  void look_at_number(const Json& schema, const Json& value, const std::string& where) {
    if (schema.contains("minimum") && value < schema["minimum"])
      say(where, "must be at least " + to_text(schema["minimum"]));
    if (schema.contains("maximum") && value > schema["maximum"])
      say(where, "must be at most " + to_text(schema["maximum"]));
  }

  void look_at_array(const Json& schema, const Json& value, const std::string& where) {
    if (schema.contains("minItems") && value.size() < schema["minItems"].get<size_t>())
      say(where, "must have at least " + to_text(schema["minItems"]) + " items");
    if (schema.contains("maxItems") && value.size() > schema["maxItems"].get<size_t>())
      return say(where, "must have at most " + to_text(schema["maxItems"]) + " items");
    if (!schema.contains("items")) return;
    for (size_t index = 0; index < value.size(); ++index)
      look(schema["items"], value[index], where + "/" + std::to_string(index));
  }

  void look_at_object(const Json& schema, const Json& value, const std::string& where) {
    if (const auto required = schema.find("required"); required != schema.end()) {
      for (const Json& name : *required) {
        if (!value.contains(name.get<std::string>()))
          say(where + "/" + name.get<std::string>(), "is missing");
      }
    }
    const Json none = Json::object();
    const Json& properties = schema.contains("properties") ? schema["properties"] : none;
    const auto others = schema.find("additionalProperties");
    for (const auto& item : value.items()) {
      const std::string below = where + "/" + item.key();
      if (const auto property = properties.find(item.key()); property != properties.end()) {
        look(*property, item.value(), below);
      } else if (others != schema.end() && others->is_boolean() && !others->get<bool>()) {
        say(below, "is not known");
      } else if (others != schema.end() && others->is_object()) {
        look(*others, item.value(), below);
      }
    }
  }

  const Json& document_;
};

}  // namespace

std::vector<Problem::Wrong> find_wrong(const Json& document, const Json& schema, const Json& value,
                                       const std::string& where) {
  Finder finder(document);
  finder.look(schema, value, where);
  return std::move(finder.found);
}

Json parse_parameter(const Json& schema, const std::string& text) {
  const auto type = schema.find("type");
  if (type == schema.end()) return text;
  if (*type == "integer") {
    uint64_t number = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end) return number;
  }
  if (*type == "boolean" && (text == "true" || text == "false")) return text == "true";
  return text;
}

}  // namespace pnfsrdma::console
