// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/json_text.h"

#include "shared/base/result.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

// Where one member of the object stands, behind its brace: `name` to `end` is "name": value. A comma may stand at
// `before` and at `behind`.
struct Place {
  size_t name = 0;
  size_t value = 0;
  size_t end = 0;
  std::optional<size_t> before;
  std::optional<size_t> behind;
};

// Reads the text of an object that is known to be sound.
class Scanner {
 public:
  explicit Scanner(const std::string& text) : text_(text) {
    skip_blanks();
    brace_ = at_++;
  }

  size_t brace() const { return brace_; }

  std::optional<Place> find(const std::string& wanted) {
    std::optional<size_t> comma;
    for (;;) {
      skip_blanks();
      if (at_ >= text_.size() || text_[at_] == '}') return std::nullopt;
      Place place{.name = at_, .before = comma, .behind = {}};
      skip_string();
      const json name = json::parse(text_.substr(place.name, at_ - place.name), nullptr, false);
      skip_blanks();
      ++at_;  // the colon
      skip_blanks();
      place.value = at_;
      place.end = skip_value();
      skip_blanks();
      const bool more = at_ < text_.size() && text_[at_] == ',';
      if (more) comma = place.behind = at_++;
      if (name == wanted) return place;
      if (!more) return std::nullopt;
    }
  }

 private:
  // Blanks and comments.
  void skip_blanks() {
    while (at_ < text_.size()) {
      if (text_.compare(at_, 2, "//") == 0) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.compare(at_, 2, "/*") == 0) {
        const size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string::npos ? text_.size() : end + 2;
      } else if (std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else {
        return;
      }
    }
  }

  void skip_string() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    ++at_;
  }

  // Its end, without what stands behind it.
  size_t skip_value() {
    size_t depth = 0;
    size_t end = at_;
    for (;;) {
      skip_blanks();
      if (at_ >= text_.size()) return end;
      const char c = text_[at_];
      if (depth == 0 && (c == ',' || c == '}')) return end;
      if (c == '"') {
        skip_string();
      } else {
        if (c == '{' || c == '[') ++depth;
        if (c == '}' || c == ']') --depth;
        ++at_;
      }
      end = at_;
    }
  }

  const std::string& text_;
  size_t at_ = 0;
  size_t brace_ = 0;
};

// As a member stands in a file: its lines two blanks in.
std::string lines_of(const std::string& name, const json& value) {
  std::string lines = json(name).dump() + ": " + value.dump(2);
  for (size_t at = lines.find('\n'); at != std::string::npos; at = lines.find('\n', at + 1))
    lines.insert(at + 1, "  ");
  return lines;
}

Outcome<json> object_in(const std::string& text) {
  std::optional<json> object = read_json_text(text);
  if (!object) return refuse(ExitCode::kFailed, "this is no JSON object");
  return *object;
}

// The text says exactly this: else nothing is changed.
Outcome<std::string> checked(std::string text, const json& wanted) {
  if (read_json_text(text) != wanted)
    return refuse(ExitCode::kFailed, "the text has a form that cannot be changed by a program");
  return text;
}

}  // namespace

std::optional<json> read_json_text(const std::string& text) {
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  if (!object.is_object()) return std::nullopt;
  return object;
}

Outcome<std::string> with_member(const std::string& text, const std::string& name, const json& value) {
  TRY_ASSIGN(json object, object_in(text));
  const bool empty = object.empty();
  object[name] = value;
  Scanner scanner(text);
  const auto place = scanner.find(name);
  std::string changed = text;
  if (place) {
    changed.replace(place->name, place->end - place->name, lines_of(name, value));
  } else {
    changed.insert(scanner.brace() + 1, "\n  " + lines_of(name, value) + (empty ? "\n" : ","));
  }
  return checked(std::move(changed), object);
}

Outcome<std::string> without_member(const std::string& text, const std::string& name) {
  TRY_ASSIGN(json object, object_in(text));
  object.erase(name);
  const auto place = Scanner(text).find(name);
  if (!place) return text;
  std::string changed = text;
  size_t end = place->behind ? *place->behind + 1 : place->end;
  changed.erase(place->name, end - place->name);
  if (!place->behind && place->before) changed.erase(*place->before, 1);
  // The line that it had for itself.
  const size_t line = changed.find_last_not_of(" \t", place->name == 0 ? 0 : place->name - 1);
  const bool alone = line != std::string::npos && changed[line] == '\n' && place->behind &&
                     place->name < changed.size() && changed[place->name] == '\n';
  if (alone) changed.erase(line, place->name - line);
  return checked(std::move(changed), object);
}

}  // namespace pnfsrdma::cli
