// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "cli/output/json_member.h"
#include "cli/output/text.h"
#include "cli/resource/lookup.h"
#include "cli/resource/verbs.h"

// snapshot: list, show, create, pin, unpin, remove, schedule.
namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr std::array kSnapshotColumns = {
    Field{"ID", "/id", Field::kNumber}, Field{"NAME", "/name", Field::kText, true},
    Field{"CREATED", "/created"},       Field{"STATE", "/state", Field::kState},
    Field{"SCHEDULE", "/schedule"},     Field{"PINNED", "/pinned", Field::kFlag},
};
constexpr std::array kSnapshotFields = {
    Field{"snapshot", "/id", Field::kNumber},
    Field{"name", "/name"},
    Field{"created", "/created"},
    Field{"state", "/state", Field::kState},
    Field{"taken by the schedule", "/schedule"},
    Field{"pinned", "/pinned", Field::kFlag},
};
constexpr std::array kScheduleFields = {
    Field{"hourly", "/hourly", Field::kNumber},
    Field{"daily", "/daily", Field::kNumber},
    Field{"weekly, on Mondays", "/weekly", Field::kNumber},
    Field{"monthly, on the first", "/monthly", Field::kNumber},
    Field{"at", "/at"},
};
constexpr std::array kDueColumns = {
    Field{"SCHEDULE", "/schedule"},
    Field{"DUE", "/due"},
};
constexpr std::array kFailureColumns = {
    Field{"SCHEDULE", "/schedule"},
    Field{"TRIED", "/time"},
    Field{"REASON", "/detail", Field::kText, true},
};
constexpr std::array kKept = {"hourly", "daily", "weekly", "monthly"};

void add_create(CLI::App* noun, Administration& admin) {
  CLI::App* const create = noun->add_subcommand("create", "take a snapshot of all files of the server");
  const auto name =
      optional_word(create, "name", "what it is called; default: the time, as 2026-11-28T01.30.00Z");
  const auto force = std::make_shared<bool>(false);
  create->add_flag(
      "--force", *force,
      "revoke the layouts of clients that write and do not answer within 2 s: what they have not flushed "
      "may be lost");
  admin.does(create, [&admin, name, force](ApiClient& client) -> Outcome<> {
    json body = json::object();
    if (!name->empty()) body["name"] = *name;
    if (*force) body["force"] = true;
    TRY_ASSIGN(const Answer taken, client.post("/snapshots", body));
    const std::string called = text_at(taken.body, "/name");
    for (const json& one : taken.body.value("revoked", json::array())) {
      admin.output().note(fmt::format(
          "{} did not answer: {} of its layouts were revoked, and what it had not flushed may be lost",
          printable(text_at(one, "/name")), number_at(one, "/layouts")));
    }
    admin.done(fmt::format("snapshot {} taken: .snapshots/{} of each mount shows it", called, called),
               taken.body);
    return {};
  });
}

// All are found before anything is done to the first one.
Outcome<json> find_all(ApiClient& client, const std::vector<std::string>& called) {
  json all = json::array();
  for (const std::string& one : called) {
    TRY_ASSIGN(const json found, find_snapshot(client, one));
    all.push_back(found);
  }
  return all;
}

std::string names_of(const json& all) {
  std::string names;
  for (const json& one : all) names += (names.empty() ? "" : ", ") + text_at(one, "/name");
  return names;
}

std::shared_ptr<std::vector<std::string>> called_snapshots(CLI::App* command) {
  auto called = std::make_shared<std::vector<std::string>>();
  command->add_option("snapshot", *called, "names or numbers")->required();
  return called;
}

void add_pin(CLI::App* noun, Administration& admin, const char* verb, const char* description, bool pinned) {
  CLI::App* const pin = noun->add_subcommand(verb, description);
  admin.does(pin, [&admin, pinned, called = called_snapshots(pin)](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(json all, find_all(client, *called));
    for (json& one : all) {
      const std::string path = fmt::format("/snapshots/{}", number_at(one, "/id"));
      TRY_ASSIGN(Answer changed, client.patch(path, {{"pinned", pinned}}, ""));
      one = std::move(changed.body);
    }
    admin.done((pinned ? "pinned " : "unpinned ") + names_of(all), all);
    return {};
  });
}

void add_remove(CLI::App* noun, Administration& admin) {
  CLI::App* const remove =
      noun->add_subcommand("remove", "remove snapshots: what only they have is lost")->alias("delete");
  admin.does(remove, [&admin, called = called_snapshots(remove)](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json all, find_all(client, *called));
    for (const json& one : all) {
      if (!flag_at(one, "/pinned")) continue;
      const std::string name = text_at(one, "/name");
      return refuse(ExitCode::kConflict, "the snapshot " + name + " is pinned", "Nothing was removed.",
                    "pnfsrdma snapshot unpin " + name);
    }
    const std::string names = names_of(all);
    TRY(admin.sure("Files that only " + names + (all.size() == 1 ? " has" : " have") + " are lost.",
                   text_at(all.front(), "/name")));
    for (const json& one : all) TRY(client.remove(fmt::format("/snapshots/{}", number_at(one, "/id"))));
    admin.done("removed " + names + "; the memory is freed in the background", all);
    return {};
  });
}

// --- the schedule ---

// "02:30", as the API has it; {-1, -1}: it is no time.
std::pair<int, int> time_of(const std::string& text) {
  int hour = -1;
  int minute = -1;
  int read = 0;
  const bool whole = std::sscanf(text.c_str(), "%2d:%2d%n", &hour, &minute, &read) == 2 &&
                     static_cast<size_t>(read) == text.size();
  if (!whole || hour < 0 || hour > 23 || minute < 0 || minute > 59) return {-1, -1};
  return {hour, minute};
}

// What the command line says of the schedule; what it leaves out stays as it is.
class ScheduleOptions {
 public:
  explicit ScheduleOptions(CLI::App* command) {
    for (size_t i = 0; i < kKept.size(); ++i)
      numbers_[i] =
          command->add_option(fmt::format("--{}", kKept[i]), kept_[i],
                              fmt::format("how many {} ones are kept; 0: none are taken", kKept[i]));
    at_ = command->add_option("--at", time_, "when in UTC, HH:MM; hourly ones at that minute of each hour");
    at_->check([](const std::string& text) {
      return time_of(text).first < 0 ? "a time of the day is HH:MM, as 02:30" : std::string();
    });
    CLI::Option* const off = command->add_flag("--off", off_, "take none; those that there are stay");
    for (CLI::Option* const each : numbers_) off->excludes(each);
  }

  bool any() const {
    return off_ || at_->count() > 0 ||
           std::ranges::any_of(numbers_, [](const CLI::Option* each) { return each->count() > 0; });
  }
  // The members that a PUT takes.
  json applied_to(const json& now) const {
    json body = json::object();
    for (size_t i = 0; i < kKept.size(); ++i) {
      body[kKept[i]] =
          numbers_[i]->count() > 0 ? kept_[i] : number_at(now, fmt::format("/{}", kKept[i]).c_str());
      if (off_) body[kKept[i]] = 0;
    }
    body["hour"] = at_->count() > 0 ? time_of(time_).first : number_at(now, "/hour");
    body["minute"] = at_->count() > 0 ? time_of(time_).second : number_at(now, "/minute");
    return body;
  }

 private:
  std::array<uint32_t, kKept.size()> kept_{};
  std::array<CLI::Option*, kKept.size()> numbers_{};
  std::string time_;
  CLI::Option* at_ = nullptr;
  bool off_ = false;
};

void show_schedule(Output& output, const json& schedule) {
  if (output.json) return output.value(schedule);
  json shown = schedule;
  shown["at"] = fmt::format("{:02}:{:02} UTC; hourly ones at minute {}", number_at(schedule, "/hour"),
                            number_at(schedule, "/minute"), number_at(schedule, "/minute"));
  const json next = schedule.value("next", json::array());
  if (next.empty())
    return output.line("No snapshots are scheduled: pnfsrdma snapshot schedule --hourly 24 --daily 7");
  show_one(output, shown, kScheduleFields);
  show_part(output, "Next", next, kDueColumns);
  if (schedule.contains("failure") && schedule["failure"].is_object())
    show_part(output, "Last failure", json::array({schedule["failure"]}), kFailureColumns);
}

void add_schedule(CLI::App* noun, Administration& admin) {
  CLI::App* const schedule =
      noun->add_subcommand("schedule", "snapshots that are taken by themselves, and how many are kept");
  const auto options = std::make_shared<ScheduleOptions>(schedule);
  admin.does(schedule, [&admin, options](ApiClient& client) -> Outcome<> {
    const std::string path = "/snapshots/schedule";
    TRY_ASSIGN(Answer now, client.get(path));
    if (options->any()) {
      TRY_ASSIGN(now, client.put(path, options->applied_to(now.body), now.etag));
    }
    show_schedule(admin.output(), now.body);
    return {};
  });
}

}  // namespace

void add_snapshot_commands(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "snapshot", "Snapshots: all files as they were");
  add_list(noun, admin, "all snapshots", "/snapshots", kSnapshotColumns,
           "No snapshots: pnfsrdma snapshot create");
  add_show(noun, admin, "snapshot", "name or number", find_snapshot, kSnapshotFields);
  add_create(noun, admin);
  add_pin(noun, admin, "pin", "protect snapshots: nothing deletes them", true);
  add_pin(noun, admin, "unpin", "let snapshots be deleted again", false);
  add_remove(noun, admin);
  add_schedule(noun, admin);
}

}  // namespace pnfsrdma::cli
