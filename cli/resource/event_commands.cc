// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <chrono>

#include "cli/api/event_stream.h"
#include "cli/output/json_member.h"
#include "cli/output/text.h"
#include "cli/resource/resource_command.h"
#include "cli/resource/view.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"

// event: list, follow.
namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr size_t kListedAtOnce = 100;
constexpr auto kPauseBeforeReconnect = std::chrono::seconds(1);
constexpr int kReconnectsMax = 30;

constexpr std::array kEventColumns = {
    Field{"TIME", "/time"},  Field{"LEVEL", "/level", Field::kState}, Field{"COMPONENT", "/component"},
    Field{"EVENT", "/name"}, Field{"", "/text", Field::kText, true},
};

struct Filter {
  std::shared_ptr<std::string> level, component, name;
  Query query() const { return {{"level", *level}, {"component", *component}, {"name", *name}}; }
};

Filter add_filter(CLI::App* command) {
  Filter filter;
  filter.level = optional_word(command, "--level", "this level and above: debug, info, warning, error");
  command->get_option("--level")->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  filter.component = optional_word(command, "--component", "of this component");
  filter.name = optional_word(command, "--name", "of this name");
  return filter;
}

void show_event(Output& output, const json& event) {
  if (output.json) {
    output.value(event);
    return;
  }
  const Cell level = cell_of(event, kEventColumns[1]);
  output.line(fmt::format("{}  {}  {}", printable(text_at(event, "/time")),
                          output.terminal().styled(fmt::format("{:7}", printable(level.text)), level.style),
                          printable(text_at(event, "/text"))));
}

// Until somebody interrupts it. A connection that ends is made anew where it ended.
Outcome<> follow(ApiClient& client, const Filter& filter, Output& output, uint64_t count) {
  EventStreamParser parser;
  uint64_t shown = 0;
  int failures = 0;
  const auto on_event = [&](const ServerEvent& server_event) {
    failures = 0;
    const json event = json::parse(server_event.data, nullptr, false);
    if (!event.is_object() || !event.contains("sequence")) return true;  // a sign of life
    show_event(output, event);
    return count == 0 || ++shown < count;
  };
  bool wanted = true;
  while (wanted) {
    const Outcome<> ended =
        client.stream("/events/stream", filter.query(), parser.last_id(), [&](std::string_view text) {
          wanted = parser.feed(text, on_event);
          return wanted;
        });
    if (!wanted) return {};
    // Refused at once is refused for good; a server that restarts comes back.
    if (!ended &&
        (ended.error().code != ExitCode::kUnreachable || ++failures > kReconnectsMax || shown == 0)) {
      return ended;
    }
    sleep_for(kPauseBeforeReconnect);
  }
  return {};
}

}  // namespace

void add_event_commands(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "event", "Events: what happens on the server");
  CLI::App* const list = noun->add_subcommand("list", "the latest events, oldest first");
  const Filter listed = add_filter(list);
  const auto limit = std::make_shared<size_t>(kListedAtOnce);
  list->add_option("-n,--limit", *limit, "maximum number of entries (100)")->check(CLI::Range(1, 1000));
  admin.does(list, [&admin, listed, limit](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json all, client.list("/events", listed.query(), *limit));
    show_list(admin.output(), all, kEventColumns, "No such events.");
    return {};
  });
  CLI::App* const command = noun->add_subcommand("follow", "show events as they happen, until Ctrl-C");
  const Filter followed = add_filter(command);
  const auto count = std::make_shared<uint64_t>(0);
  command->add_option("-c,--count", *count, "end after so many");
  admin.does(command, [&admin, followed, count](ApiClient& client) -> Outcome<> {
    return follow(client, followed, admin.output(), *count);
  });
}

}  // namespace pnfsrdma::cli
