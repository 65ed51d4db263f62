// SPDX-License-Identifier: Apache-2.0
#include "cli/api/event_stream.h"

#include <algorithm>
#include <utility>

namespace pnfsrdma::cli {

bool EventStreamParser::feed(std::string_view text, const std::function<bool(const ServerEvent&)>& on_event) {
  for (const char c : text) {
    // A line ends with LF, CR or both.
    const bool second_half = c == '\n' && after_return_;
    after_return_ = c == '\r';
    if (second_half) continue;
    if (c != '\n' && c != '\r') {
      rest_ += c;
      continue;
    }
    const std::string line = std::move(rest_);
    rest_.clear();
    if (!take_line(line, on_event)) return false;
  }
  return true;
}

bool EventStreamParser::take_line(std::string_view line,
                                  const std::function<bool(const ServerEvent&)>& on_event) {
  if (line.empty()) {
    event_.id = last_id_;
    const ServerEvent event = std::move(event_);
    event_ = {};
    return !std::exchange(has_data_, false) || on_event(event);
  }
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string_view field = line.substr(0, colon);
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  } else if (field == "event") {
    event_.type = value;
  } else if (field == "id") {
    last_id_ = value;
  }  // comments (no field) and others: nothing
  return true;
}

}  // namespace pnfsrdma::cli
