// SPDX-License-Identifier: Apache-2.0
#include "server/console/event_stream.h"

#include <charconv>

#include "server/console/time_text.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

namespace {

constexpr size_t kAtOnce = 256;

std::string frame(std::string_view id, std::string_view kind, const Json& data) {
  return "id: " + std::string(id) + "\nevent: " + std::string(kind) + "\ndata: " + to_text(data) + "\n\n";
}

}  // namespace

Json event_json(const Event& event, const std::string& run) {
  Json fields = Json::object();
  for (const auto& [key, value] : event.fields) fields[key] = value;
  return {{"sequence", event.sequence},
          {"run", run},
          {"time", rfc3339(event.time)},
          {"level", name_of(event.level)},
          {"component", event.component},
          {"name", event.name},
          {"fields", fields},
          {"text", event.text}};
}

std::optional<uint64_t> sequence_of_id(const std::string& id, const std::string& run) {
  if (!id.starts_with(run + ":")) return std::nullopt;
  uint64_t sequence = 0;
  const char* begin = id.data() + run.size() + 1;
  const auto parsed = std::from_chars(begin, id.data() + id.size(), sequence);
  if (parsed.ec != std::errc() || parsed.ptr != id.data() + id.size()) return std::nullopt;
  return sequence;
}

void EventStream::send(HttpSink& sink) {
  if (!sink.write("retry: 2000\n\n")) return;
  auto last_sign = steady_now();
  auto last_asked = last_sign;
  while (!sink.stopping() && !events.stopped()) {
    if (const auto range = events.range(); range.oldest > after + 1) {
      const Json lost{{"from", after + 1}, {"to", range.oldest - 1}};
      after = range.oldest - 1;
      if (!sink.write(frame(run + ":" + std::to_string(after), "lost", lost))) return;
    }
    uint64_t seen = after;
    std::string text;
    for (const Event& event : events.behind(after, filter, kAtOnce, seen))
      text += frame(run + ":" + std::to_string(event.sequence), "event", event_json(event, run));
    after = seen;
    const auto now = steady_now();
    // By a clock of its own: while events come there is no heartbeat.
    if (now - last_asked >= heartbeat) {
      if (!allowed()) return;
      last_asked = now;
    }
    if (text.empty() && now - last_sign >= heartbeat) text = ": still here\n\n";
    if (!text.empty()) {
      if (!sink.write(text)) return;
      last_sign = now;
    }
    constexpr Milliseconds kLook{500};  // how often it looks whether the server stops
    events.wait_behind(after, std::min(kLook, heartbeat));
  }
}

}  // namespace pnfsrdma::console
