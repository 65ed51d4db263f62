// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "cli/output/json_member.h"
#include "cli/output/nearest_word.h"
#include "cli/output/units.h"
#include "cli/resource/resource_command.h"
#include "cli/resource/view.h"
#include "shared/base/result.h"

// The server itself: health, config (show, set, reset), audit (list).
namespace pnfsrdma::cli {

using nlohmann::json;

json settings_of(const json& configuration) {
  json all = json::array();
  const json settings = configuration.value("settings", json::object());
  for (const auto& [name, setting] : settings.items()) {
    json one = setting;
    one["name"] = name;
    all.push_back(std::move(one));
  }
  return all;
}

namespace {

constexpr std::array kChecks = {
    Field{"STATUS", "/status", Field::kState},
    Field{"CHECK", "/name"},
    Field{"DETAIL", "/detail", Field::kText, true},
    Field{"FIX", "/fix", Field::kText, true},
};
constexpr std::array kSettings = {
    Field{"SETTING", "/name"},
    Field{"VALUE", "/value", Field::kText, true},
    Field{"FROM", "/source"},
    Field{"AT RUN TIME", "/run_time", Field::kFlag},
};
constexpr std::array kAudit = {
    Field{"TIME", "/time"},
    Field{"USER", "/user"},
    Field{"FROM", "/origin", Field::kText, true},
    Field{"WHAT", "/summary", Field::kText, true},
};

// A server that takes so long to say how it is is not well.
constexpr std::chrono::seconds kHealthPatience(5);

Outcome<> show_health(ApiClient& client, Output& output) {
  client.wait_at_most(kHealthPatience);
  TRY_ASSIGN(const Answer health, client.get("/health"));
  TRY_ASSIGN(const Answer version, client.get("/version"));
  const std::string status = text_at(health.body, "/status");
  if (output.json) {
    json all = health.body;
    all["version"] = version.body;
    output.value(all);
  } else {
    const Cell shown = cell_of(health.body, kChecks[0]);
    output.line(fmt::format("{}: pnfsrdma {}, up {}", output.terminal().styled(shown.text, shown.style),
                            text_at(version.body, "/version"),
                            duration_text(std::chrono::seconds(number_at(health.body, "/uptime_seconds")))));
    show_list(output, health.body.value("checks", json::array()), kChecks, "No checks.");
  }
  if (status == "failed")
    return refuse(ExitCode::kFailed, "the server is not well", "The checks above say why.");
  return {};
}

// "debug" is text, "65536" a number.
json value_of(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() || value.is_object() ? json(text) : value;
}

// Whether a setting is there and can change while the server runs; if not, what to do.
Outcome<> check_changeable(const json& configuration, const std::string& name) {
  const json settings = configuration.value("settings", json::object());
  if (!settings.contains(name)) {
    std::vector<std::string> known;
    for (const auto& [each, setting] : settings.items()) known.push_back(each);
    const auto nearest = nearest_word(name, known);
    return refuse(ExitCode::kNotFound, "there is no setting " + name, {},
                  nearest ? "did you mean " + *nearest + "?" : "pnfsrdma config show");
  }
  if (flag_at(settings[name], "/run_time")) return {};
  std::string file = text_at(configuration, "/configuration_file");
  if (file.empty()) file = "the configuration file";
  return refuse(ExitCode::kFailed, name + " is read when the server starts",
                "Nothing was changed. Mounts survive a restart of the server.",
                "set it in " + file + ", then systemctl restart pnfsrdma-mdsd");
}

Outcome<> change(ApiClient& client, Administration& admin, const std::string& name, const json& value) {
  TRY_ASSIGN(const Answer now, client.get("/configuration"));
  TRY(check_changeable(now.body, name));
  TRY_ASSIGN(const Answer changed, client.patch("/configuration", {{name, value}}, now.etag));
  const json setting = changed.body.value(json::json_pointer("/settings/" + name), json::object());
  admin.done(fmt::format("{} is {} (from the {})", name, setting.value("value", json()).dump(),
                         text_at(setting, "/source")),
             setting);
  return {};
}

void add_configuration(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "config", "Configuration of the server");
  admin.does(noun->add_subcommand("show", "show the settings in force and where they come from"),
             [&admin](ApiClient& client) -> Outcome<> {
               TRY_ASSIGN(const Answer now, client.get("/configuration"));
               if (admin.output().json) {
                 admin.output().value(now.body);
               } else {
                 show_list(admin.output(), settings_of(now.body), kSettings, "No settings.");
               }
               return {};
             });
  CLI::App* const set = noun->add_subcommand("set", "change a setting at run time; survives restarts");
  const auto name = required_word(set, "setting", "its name");
  const auto value = required_word(set, "value", "a text or a number");
  admin.does(set, [&admin, name, value](ApiClient& client) {
    return change(client, admin, *name, value_of(*value));
  });
  CLI::App* const reset = noun->add_subcommand("reset", "return to the value in the configuration file");
  const auto reset_name = required_word(reset, "setting", "its name");
  admin.does(reset,
             [&admin, reset_name](ApiClient& client) { return change(client, admin, *reset_name, json()); });
}

}  // namespace

void add_server_commands(CLI::App& app, Administration& admin) {
  admin.does(app.add_subcommand("health", "Whether the server works, and if not, what to do"),
             [&admin](ApiClient& client) { return show_health(client, admin.output()); });
  add_configuration(app, admin);
  CLI::App* const audit = add_noun(app, "audit", "Audit log: who changed what");
  CLI::App* const list = audit->add_subcommand("list", "newest first");
  const auto limit = std::make_shared<size_t>(100);
  list->add_option("-n,--limit", *limit, "maximum number of entries (100)")->check(CLI::Range(1, 100000));
  admin.does(list, [&admin, limit](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json all, client.list("/audit", {}, *limit));
    show_list(admin.output(), all, kAudit, "Nothing was changed yet.");
    return {};
  });
}

}  // namespace pnfsrdma::cli
