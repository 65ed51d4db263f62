// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "cli/output/json_member.h"
#include "cli/output/units.h"
#include "cli/resource/verbs.h"

// alert: list, show, acknowledge, unacknowledge.
namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr std::array kAlertColumns = {
    Field{"ALERT", "/id", Field::kNumber},         Field{"STATE", "/shown_state", Field::kState},
    Field{"SEVERITY", "/severity", Field::kState}, Field{"SINCE", "/since"},
    Field{"WHAT", "/summary", Field::kText, true}, Field{"ACKNOWLEDGED", "/acknowledged/user"},
};
constexpr std::array kAlertFields = {
    Field{"alert", "/id", Field::kNumber},
    Field{"rule", "/rule"},
    Field{"state", "/state", Field::kState},
    Field{"severity", "/severity", Field::kState},
    Field{"what", "/summary"},
    Field{"what to do", "/description"},
    Field{"about", "/subject"},
    Field{"since", "/since"},
    Field{"fired", "/fired"},
    Field{"resolved", "/resolved"},
    Field{"acknowledged by", "/acknowledged/user"},
    Field{"acknowledged at", "/acknowledged/time"},
    Field{"until", "/acknowledged/until"},
    Field{"comment", "/acknowledged/comment"},
};

Outcome<uint64_t> quiet_seconds(const std::string& text) {
  constexpr uint64_t kMonth = 2592000;
  const auto seconds = seconds_of(text);
  if (seconds && *seconds > 0 && *seconds <= kMonth) return *seconds;
  return refuse(ExitCode::kUsage, "--for " + text + " is no duration", {}, "30m, 2h or 1d; at most 30d");
}

json with_state(json alert) {
  const bool acknowledged = text_at(alert, "/state") == "firing" && !flag_at(alert, "/needs_attention");
  alert["shown_state"] = acknowledged ? json("acknowledged") : alert.value("state", json());
  return alert;
}

void add_alert_list(CLI::App* noun, Administration& admin) {
  CLI::App* const command = noun->add_subcommand("list", "firing and pending alerts, newest first");
  const auto all = std::make_shared<bool>(false);
  command->add_flag("--all", *all, "those too that were resolved in the last seven days");
  admin.does(command, [&admin, all](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json alerts, client.list("/alerts"));
    json shown = json::array();
    for (const json& alert : alerts) {
      if (!*all && text_at(alert, "/state") == "resolved") continue;
      shown.push_back(admin.output().json ? alert : with_state(alert));
    }
    show_list(admin.output(), shown, kAlertColumns, *all ? "No alerts." : "No alerts: nothing is wrong.");
    return {};
  });
}

void add_alert_acknowledge(CLI::App* noun, Administration& admin) {
  CLI::App* const command =
      noun->add_subcommand("acknowledge", "mark an alert as seen: it no longer needs attention");
  const auto called = required_word(command, "alert", "its number");
  const auto comment = std::make_shared<std::string>();
  const auto duration = std::make_shared<std::string>();
  command->add_option("--comment", *comment, "why, for others");
  command->add_option("--for", *duration, "how long: 30m, 2h, 1d (else until it is resolved)");
  admin.does(command, [&admin, called, comment, duration](ApiClient& client) -> Outcome<> {
    json body = json::object();
    if (!comment->empty()) body["comment"] = *comment;
    if (!duration->empty()) {
      TRY_ASSIGN(body["for_seconds"], quiet_seconds(*duration));
    }
    TRY_ASSIGN(const Answer alert, client.post("/alerts/" + encoded(*called) + "/acknowledgement", body));
    admin.done(fmt::format("alert {} is acknowledged: {}", *called, text_at(alert.body, "/summary")),
               alert.body);
    return {};
  });
}

}  // namespace

void add_alert_commands(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "alert", "Alerts: problems of the server that need attention");
  add_alert_list(noun, admin);
  CLI::App* const show = noun->add_subcommand("show", "one alert, and what to do");
  const auto shown = required_word(show, "alert", "its number");
  admin.does(show, [&admin, shown](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const Answer alert, client.get("/alerts/" + encoded(*shown)));
    show_one(admin.output(), alert.body, kAlertFields);
    return {};
  });
  add_alert_acknowledge(noun, admin);
  CLI::App* const command = noun->add_subcommand("unacknowledge", "withdraw the acknowledgement of an alert");
  const auto called = required_word(command, "alert", "its number");
  admin.does(command, [&admin, called](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const Answer alert, client.remove("/alerts/" + encoded(*called) + "/acknowledgement"));
    admin.done(fmt::format("alert {} asks for attention again", *called), alert.body);
    return {};
  });
}

}  // namespace pnfsrdma::cli
