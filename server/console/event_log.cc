// SPDX-License-Identifier: Apache-2.0
#include "server/console/event_log.h"

#include <algorithm>

#include "shared/base/sync.h"

namespace pnfsrdma::console {

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      return "off";
  }
  return "info";
}

std::vector<std::pair<std::string, std::string>> parse_fields(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> fields;
  size_t at = text.find(' ');
  while (at < text.size()) {
    at = text.find_first_not_of(' ', at);
    if (at == std::string_view::npos) break;
    const size_t end_of_key = text.find_first_of("= ", at);
    if (end_of_key == std::string_view::npos || text[end_of_key] == ' ') {
      at = end_of_key;
      continue;
    }
    const std::string key(text.substr(at, end_of_key - at));
    size_t begin = end_of_key + 1;
    size_t end = std::min(text.find(' ', begin), text.size());
    at = end;
    if (begin < text.size() && text[begin] == '"') {
      ++begin;
      end = std::min(text.find('"', begin), text.size());
      at = std::min(end + 1, text.size());
    }
    fields.emplace_back(key, text.substr(begin, end - begin));
  }
  return fields;
}

bool EventFilter::wants(const Event& event) const {
  return event.level >= least && (component.empty() || component == event.component) &&
         (name.empty() || name == event.name);
}

void EventLog::add(LogLevel level, std::string_view component, std::string_view text) {
  Event event{.time = clock_.wall_now(),
              .level = level,
              .component = std::string(component),
              .name = std::string(text.substr(0, text.find(' '))),
              .fields = parse_fields(text),
              .text = std::string(text)};
  auto state = state_.lock();
  event.sequence = state->next++;
  state->events.push_back(std::move(event));
  if (state->events.size() > kept_) state->events.pop_front();
  added_.notify_all();
}

EventLog::Range EventLog::range() {
  auto state = state_.lock();
  if (state->events.empty()) return {.oldest = 0, .newest = state->next - 1};
  return {.oldest = state->events.front().sequence, .newest = state->next - 1};
}

std::vector<Event> EventLog::behind(uint64_t after, const EventFilter& filter, size_t limit, uint64_t& seen) {
  std::vector<Event> found;
  auto state = state_.lock();
  seen = std::max(after, state->next - 1);
  auto at = std::ranges::upper_bound(state->events, after, {}, &Event::sequence);
  for (; at != state->events.end(); ++at) {
    if (!filter.wants(*at)) continue;
    found.push_back(*at);
    if (found.size() < limit) continue;
    seen = at->sequence;
    break;
  }
  return found;
}

std::vector<Event> EventLog::newest(const EventFilter& filter, size_t limit) {
  std::vector<Event> found;
  auto state = state_.lock();
  for (auto at = state->events.rbegin(); at != state->events.rend() && found.size() < limit; ++at) {
    if (filter.wants(*at)) found.push_back(*at);
  }
  std::ranges::reverse(found);
  return found;
}

bool EventLog::wait_behind(uint64_t after, Milliseconds longest) {
  auto state = state_.lock();
  state.wait_until(added_, steady_now() + longest,
                   [after](const State& now) { return now.stopped || now.next - 1 > after; });
  return state->next - 1 > after;
}

void EventLog::stop() {
  state_.lock()->stopped = true;
  added_.notify_all();
}

}  // namespace pnfsrdma::console
