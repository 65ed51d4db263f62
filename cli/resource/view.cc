// SPDX-License-Identifier: Apache-2.0
#include "cli/resource/view.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <vector>

#include "cli/output/table.h"
#include "cli/output/units.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;
using Align = Column::Align;

std::string plain(const json& value) {
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string listed(const json& values) {
  std::string all;
  for (const json& value : values) all += (all.empty() ? "" : ", ") + plain(value);
  return all;
}

bool is_right(Field::Kind kind) {
  return kind == Field::kNumber || kind == Field::kBytes || kind == Field::kSeconds ||
         kind == Field::kPercent;
}

std::string number_text(double number, Field::Kind kind) {
  if (kind == Field::kBytes) return bytes_text(number);
  if (kind == Field::kPercent) return fmt::format("{:.0f} %", number * 100);
  // A lease that never ends, say.
  if (!std::isfinite(number) || std::abs(number) > 1e15) return "-";
  return duration_text(std::chrono::seconds(std::llround(number)));
}

}  // namespace

Style style_of_state(std::string_view state) {
  struct Known {
    std::string_view state;
    Style style;
  };
  static constexpr std::array kKnown = {
      Known{"ready", Style::kGood},         Known{"ok", Style::kGood},
      Known{"done", Style::kGood},          Known{"power", Style::kGood},
      Known{"connecting", Style::kWarning}, Known{"reconciling", Style::kWarning},
      Known{"draining", Style::kWarning},   Known{"deleting", Style::kWarning},
      Known{"warning", Style::kWarning},    Known{"recalling", Style::kWarning},
      Known{"revoking", Style::kWarning},   Known{"volatile", Style::kWarning},
      Known{"process", Style::kWarning},    Known{"away", Style::kBad},
      Known{"fenced", Style::kBad},         Known{"foreign", Style::kBad},
      Known{"failed", Style::kBad},         Known{"error", Style::kBad},
      Known{"counting", Style::kWarning},   Known{"over-soft", Style::kWarning},
      Known{"grace-over", Style::kBad},     Known{"full", Style::kBad},
  };
  for (const Known& known : kKnown) {
    if (known.state == state) return known.style;
  }
  return Style::kPlain;
}

Cell cell_of(const json& resource, const Field& field) {
  const json::json_pointer at(field.pointer);
  if (!resource.contains(at)) return "-";
  const json& value = resource[at];
  switch (field.kind) {
    case Field::kState:
      return {plain(value), style_of_state(plain(value))};
    case Field::kFlag:
      return value.is_boolean() ? Cell(value.get<bool>() ? "yes" : "no") : Cell(plain(value));
    case Field::kList:
      return value.is_array() ? listed(value) : plain(value);
    case Field::kBytes:
    case Field::kSeconds:
    case Field::kPercent:
      return value.is_number() ? number_text(value.get<double>(), field.kind) : plain(value);
    case Field::kText:
    case Field::kNumber:
      return plain(value);
  }
  return "-";
}

void show_list(Output& output, const json& resources, std::span<const Field> fields, const char* none) {
  if (output.json) {
    output.value(resources);
    return;
  }
  if (resources.empty()) {
    output.note(none);
    return;
  }
  std::vector<Column> columns;
  for (const Field& field : fields) {
    columns.push_back({field.title, is_right(field.kind) ? Align::kRight : Align::kLeft, field.may_shrink});
  }
  Table table(std::move(columns));
  for (const json& resource : resources) {
    std::vector<Cell> row;
    for (const Field& field : fields) row.push_back(cell_of(resource, field));
    table.add(std::move(row));
  }
  output.table(table);
}

void show_one(Output& output, const json& resource, std::span<const Field> fields) {
  if (output.json) {
    output.value(resource);
    return;
  }
  Table table({{"", Align::kLeft, false}, {"", Align::kLeft, true}});
  for (const Field& field : fields) table.add({Cell(field.title, Style::kFaint), cell_of(resource, field)});
  output.table(table, false);
}

void show_part(Output& output, const char* title, const json& parts, std::span<const Field> fields) {
  if (output.json || parts.empty()) return;
  output.line();
  output.line(output.terminal().styled(title, Style::kBold));
  show_list(output, parts, fields, "");
}

}  // namespace pnfsrdma::cli
