// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "server/console/event_log.h"
#include "server/console/http.h"
#include "server/console/json.h"

namespace pnfsrdma::console {

// Server-sent events: sends what comes behind `after` until the reader goes, the server stops, or `allowed`
// says no (asked once in a heartbeat's time: who has logged out or was removed reads no further). A reader
// that falls behind what the log keeps is told "lost" and goes on with what there is: nothing queues up for
// it.
struct EventStream {
  EventLog& events;
  std::string run;  // random per process: part of each id
  EventFilter filter;
  uint64_t after = 0;
  std::function<bool()> allowed;
  Milliseconds heartbeat{15'000};

  void send(HttpSink& sink);
};

Json event_json(const Event& event, const std::string& run);
// The sequence of "RUN:SEQUENCE" when it is of this run.
std::optional<uint64_t> sequence_of_id(const std::string& id, const std::string& run);

}  // namespace pnfsrdma::console
