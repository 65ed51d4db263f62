// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace pnfsrdma::cli {

// One event of a stream of server-sent events.
struct ServerEvent {
  std::string id;
  std::string type;
  std::string data;
};

// Takes the stream apart (WHATWG HTML, 9.2.6) however it is cut into pieces. A value with state; not
// thread-safe.
class EventStreamParser {
 public:
  // Calls `on_event` for each event that is complete now. False as soon as it answers false.
  bool feed(std::string_view text, const std::function<bool(const ServerEvent&)>& on_event);
  // Of the last event that had one: where a new connection goes on.
  const std::string& last_id() const { return last_id_; }

 private:
  bool take_line(std::string_view line, const std::function<bool(const ServerEvent&)>& on_event);

  std::string rest_;  // a line that is not complete
  bool after_return_ = false;
  bool has_data_ = false;
  ServerEvent event_;
  std::string last_id_;
};

}  // namespace pnfsrdma::cli
