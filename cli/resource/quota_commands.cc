// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <vector>

#include "cli/output/json_member.h"
#include "cli/output/units.h"
#include "cli/resource/follow_job.h"
#include "cli/resource/own_quota_command.h"
#include "cli/resource/resource_command.h"
#include "cli/resource/view.h"
#include "shared/base/result.h"

// quota: list, show, set, remove, on, status, grace, recount; mine: own_quota_command.cc.
namespace pnfsrdma::cli {
namespace {

using nlohmann::json;
using Align = Column::Align;

constexpr std::array kQuotaFields = {
    Field{"kind", "/kind"},
    Field{"name", "/name"},
    Field{"number", "/id", Field::kNumber},
    Field{"counted", "/complete", Field::kFlag},
    Field{"space", "/space_used_bytes", Field::kBytes},
    Field{"limits", "/limits_from"},
    Field{"soft limit", "/space_soft_bytes", Field::kBytes},
    Field{"hard limit", "/space_hard_bytes", Field::kBytes},
    Field{"state", "/space_state", Field::kState},
    Field{"grace ends", "/space_grace_ends"},
    Field{"inodes", "/inodes_used", Field::kNumber},
    Field{"soft limit", "/inodes_soft", Field::kNumber},
    Field{"hard limit", "/inodes_hard", Field::kNumber},
    Field{"state", "/inodes_state", Field::kState},
    Field{"grace ends", "/inodes_grace_ends"},
};
constexpr std::array kSettingFields = {
    Field{"quotas", "/state", Field::kState},
    Field{"counted", "/counted_share", Field::kPercent},
    Field{"grace of space", "/space_grace_seconds", Field::kSeconds},
    Field{"grace of inodes", "/inode_grace_seconds", Field::kSeconds},
};
constexpr std::array kDefaultFields = {
    Field{"soft limit", "/space_soft_bytes", Field::kBytes},
    Field{"hard limit", "/space_hard_bytes", Field::kBytes},
    Field{"inodes, soft limit", "/inodes_soft", Field::kNumber},
    Field{"inodes, hard limit", "/inodes_hard", Field::kNumber},
};
constexpr std::array kLimits = {"space_soft_bytes", "space_hard_bytes", "inodes_soft", "inodes_hard"};

// "a", "a/": the same directory.
std::string directory_path(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// Whose quota a command means: one of --user, --group and --tree, or --default-user and --default-group.
class Whose {
 public:
  explicit Whose(CLI::App* command) {
    user_ = add(command, "--user", "of this user: name or number, as the server's host knows it");
    group_ = add(command, "--group", "of this group: name or number");
    tree_ =
        add(command, "--tree", "of this directory and all that is in it: path from the root of the server");
    const auto add_default = [&](const char* name, const char* setting, const char* description) {
      return command->add_flag_callback(name, [this, setting] { setting_ = setting; }, description);
    };
    const std::array all = {
        user_.option, group_.option, tree_.option,
        add_default("--default-user", "user_default", "of every user without limits of his own, but root"),
        add_default("--default-group", "group_default",
                    "of every group without limits of its own, but root")};
    for (CLI::Option* one : all) {
      for (CLI::Option* other : all) {
        if (one != other) one->excludes(other);
      }
    }
  }
  Whose(const Whose&) = delete;
  Whose& operator=(const Whose&) = delete;

  bool given() const { return is_default() || !word().empty(); }
  // Everybody's, which is a setting of that name.
  bool is_default() const { return !setting_.empty(); }
  const std::string& setting() const { return setting_; }
  bool is_tree() const { return tree_.option->count() > 0; }
  // "user alice", "tree /projects", "every user"
  std::string text() const {
    if (is_default()) return setting_ == "user_default" ? "every user" : "every group";
    if (is_tree()) return "tree " + directory_path(*tree_.word);
    return (user_.option->count() > 0 ? "user " : "group ") + word();
  }
  // Where the API has it. kNotFound: a tree that is none.
  Outcome<std::string> path(ApiClient& client) const {
    if (!is_tree()) {
      const char* kind = user_.option->count() > 0 ? "user/" : "group/";
      return std::string("/quotas/") + kind + encoded(word());
    }
    const std::string called = directory_path(*tree_.word);
    TRY_ASSIGN(const json trees, client.list("/quotas", {{"kind", "tree"}}));
    for (const json& tree : trees) {
      if (text_at(tree, "/name") == called || std::to_string(number_at(tree, "/id")) == called)
        return fmt::format("/quotas/tree/{}", number_at(tree, "/id"));
    }
    return refuse(ExitCode::kNotFound, called + " is no quota tree", {}, "pnfsrdma quota list --tree");
  }
  // The same; a directory that is no tree becomes one.
  Outcome<std::string> path_or_made(ApiClient& client) const {
    auto found = path(client);
    if (found || !is_tree() || found.error().code != ExitCode::kNotFound) return found;
    TRY_ASSIGN(const Answer made, client.post("/quota-trees", {{"path", directory_path(*tree_.word)}}));
    return fmt::format("/quotas/tree/{}", number_at(made.body, "/id"));
  }

 private:
  struct Word {
    std::shared_ptr<std::string> word;
    CLI::Option* option = nullptr;
  };
  static Word add(CLI::App* command, const char* name, const char* description) {
    auto word = optional_word(command, name, description);
    return {std::move(word), command->get_option(name)};
  }
  std::string word() const {
    for (const Word* one : {&user_, &group_, &tree_}) {
      if (!one->word->empty()) return *one->word;
    }
    return {};
  }

  Word user_, group_, tree_;
  std::string setting_;
};

constexpr const char* kWhose =
    "whose? give one of --user NAME, --group NAME, --tree PATH, --default-user, --default-group";

std::shared_ptr<Whose> required_whose(CLI::App* command) {
  const auto whose = std::make_shared<Whose>(command);
  command->parse_complete_callback([whose, name = command->get_name()] {
    if (!whose->given()) throw CLI::ValidationError("quota " + name, kWhose);
  });
  return whose;
}

// 0 is no limit.
json with_limits(json quota) {
  for (const char* name : kLimits) {
    if (quota.value(name, json(0)) == 0) quota[name] = nullptr;
  }
  return quota;
}

// Until when it may be above its soft limit: "6 d 7 h", "expired".
Cell grace_cell(const json& quota, const char* state, const char* ends,
                std::chrono::system_clock::time_point now) {
  const std::string is = text_at(quota, state);
  if (is == "grace-over") return {"expired", style_of_state(is)};
  const auto end = time_of(text_at(quota, ends));
  if (!end) return "-";
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(*end - now);
  return {duration_text(std::max(left, std::chrono::seconds(0))), style_of_state(is)};
}

// Marked with a plus where it is above its soft limit or at its hard one, as repquota(8) does.
Cell used_cell(const json& quota, const Field& field, const char* state) {
  const std::string is = text_at(quota, state);
  Cell cell = cell_of(quota, field);
  const bool over = !is.empty() && is != "ok";
  return {cell.text + (over ? "+" : " "), over ? style_of_state(is) : Style::kPlain};
}

bool is_over(const json& quota) {
  return text_at(quota, "/space_state") != "ok" || text_at(quota, "/inodes_state") != "ok";
}

// Titles as repquota(8) has them: twice the same, of space and of inodes.
void show_quotas(Output& output, const json& quotas) {
  Table table({{"KIND"},
               {"NAME", Align::kLeft, true},
               {"USED ", Align::kRight},
               {"SOFT", Align::kRight},
               {"HARD", Align::kRight},
               {"GRACE", Align::kRight},
               {"INODES ", Align::kRight},
               {"SOFT", Align::kRight},
               {"HARD", Align::kRight},
               {"GRACE", Align::kRight}});
  const auto now = std::chrono::system_clock::now();
  for (const json& each : quotas) {
    const json quota = with_limits(each);
    const std::string name = text_at(quota, "/name");
    table.add({text_at(quota, "/kind"), name.empty() ? std::to_string(number_at(quota, "/id")) : name,
               used_cell(quota, {"", "/space_used_bytes", Field::kBytes}, "/space_state"),
               cell_of(quota, {"", "/space_soft_bytes", Field::kBytes}),
               cell_of(quota, {"", "/space_hard_bytes", Field::kBytes}),
               grace_cell(quota, "/space_state", "/space_grace_ends", now),
               used_cell(quota, {"", "/inodes_used", Field::kNumber}, "/inodes_state"),
               cell_of(quota, {"", "/inodes_soft", Field::kNumber}),
               cell_of(quota, {"", "/inodes_hard", Field::kNumber}),
               grace_cell(quota, "/inodes_state", "/inodes_grace_ends", now)});
  }
  output.table(table);
}

// For people: what the numbers are worth.
void note_state(Output& output, const json& settings) {
  const std::string state = text_at(settings, "/state");
  if (state == "off") output.note("Quotas are off, nothing is counted: pnfsrdma quota on, or set a limit");
  if (state == "counting") {
    output.note(
        fmt::format("Counting what is there, {:.0f} %: the numbers are too small, and no limit holds yet",
                    settings.value("counted_share", 0.0) * 100));
  }
}

// Everybody's limits, before who has something.
json default_rows(const json& settings, const std::string& kind) {
  json rows = json::array();
  for (const char* one : {"user", "group"}) {
    json row = settings.value(std::string(one) + "_default", json::object());
    const bool some =
        std::ranges::any_of(kLimits, [&](const char* name) { return row.value(name, uint64_t{0}) != 0; });
    if (!some || (!kind.empty() && kind != one)) continue;
    row.update({{"kind", one}, {"name", "(default)"}});
    rows.push_back(row);
  }
  return rows;
}

void add_quota_list(CLI::App* noun, Administration& admin) {
  CLI::App* const list =
      noun->add_subcommand("list", "who has how much and may have how much, as repquota(8)");
  const auto kind = std::make_shared<std::string>();
  const auto over = std::make_shared<bool>(false);
  std::vector<CLI::Option*> kinds;
  for (const char* name : {"user", "group", "tree"}) {
    kinds.push_back(list->add_flag_callback(
        std::string("--") + name, [kind, name] { *kind = name; }, std::string("only ") + name + "s"));
  }
  for (CLI::Option* one : kinds) {
    for (CLI::Option* other : kinds) {
      if (one != other) one->excludes(other);
    }
  }
  list->add_flag("--over", *over, "only those above a soft limit or at a hard one");
  admin.does(list, [&admin, kind, over](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json all, client.list("/quotas", {{"kind", *kind}}));
    json shown = json::array();
    for (const json& quota : all) {
      if (!*over || is_over(quota)) shown.push_back(quota);
    }
    if (admin.output().json) {
      admin.output().value(shown);
      return {};
    }
    TRY_ASSIGN(const Answer settings, client.get("/quota-settings"));
    const json defaults = *over ? json::array() : default_rows(settings.body, *kind);
    shown.insert(shown.begin(), defaults.begin(), defaults.end());
    if (!shown.empty()) show_quotas(admin.output(), shown);
    note_state(admin.output(), settings.body);
    if (shown.empty() && text_at(settings.body, "/state") != "off")
      admin.output().note(*over ? "Nobody is over a limit." : "Nobody has files or limits.");
    return {};
  });
}

void add_quota_show(CLI::App* noun, Administration& admin) {
  CLI::App* const show = noun->add_subcommand("show", "one user, group or tree");
  const auto whose = required_whose(show);
  admin.does(show, [&admin, whose](ApiClient& client) -> Outcome<> {
    if (whose->is_default()) {
      TRY_ASSIGN(const Answer settings, client.get("/quota-settings"));
      const json limits = settings.body.value(whose->setting(), json::object());
      show_one(admin.output(), admin.output().json ? limits : with_limits(limits), kDefaultFields);
      return {};
    }
    TRY_ASSIGN(const std::string path, whose->path(client));
    TRY_ASSIGN(const Answer quota, client.get(path));
    show_one(admin.output(), admin.output().json ? quota.body : with_limits(quota.body), kQuotaFields);
    return {};
  });
}

// The limits that a command line names.
class Limits {
 public:
  explicit Limits(CLI::App* command) {
    add(command, "--space-soft", "space_soft_bytes",
        "SIZE that may be exceeded for the grace period: 10G, 1T; 0: none");
    add(command, "--space-hard", "space_hard_bytes", "SIZE that is never exceeded");
    add(command, "--inodes-soft", "inodes_soft", "number of files and directories: 50000, 50K, 1M; 0: none");
    add(command, "--inodes-hard", "inodes_hard", "the same, never exceeded");
  }

  bool any() const {
    return std::ranges::any_of(all_, [](const Limit& each) { return each.option->count() > 0; });
  }
  // What a PATCH takes. kUsage, before anything is asked of the server.
  Outcome<json> body() const {
    json body = json::object();
    for (const Limit& each : all_) {
      if (each.option->count() == 0) continue;
      const bool space = each.option->get_name().starts_with("--space");
      const auto number = space ? bytes_of(*each.word) : count_of(*each.word);
      if (!number) {
        return refuse(
            ExitCode::kUsage,
            fmt::format("{} {} is no {}", each.option->get_name(), *each.word, space ? "size" : "number"), {},
            space ? "a number of bytes, or with K, M, G, T: 512M, 10G, 1T; 0: no limit"
                  : "a number, or with K, M: 50000, 50K, 1M; 0: no limit");
      }
      body[each.key] = *number;
    }
    TRY(check_order(body, "space_soft_bytes", "space_hard_bytes", "space"));
    TRY(check_order(body, "inodes_soft", "inodes_hard", "inodes"));
    return body;
  }

 private:
  struct Limit {
    const char* key;
    std::shared_ptr<std::string> word;
    CLI::Option* option;
  };
  void add(CLI::App* command, const char* name, const char* key, const char* description) {
    auto word = optional_word(command, name, description);
    all_.push_back({key, std::move(word), command->get_option(name)});
  }
  static Outcome<> check_order(const json& body, const char* soft, const char* hard, const char* of) {
    const uint64_t most = body.value(hard, uint64_t{0});
    if (most == 0 || body.value(soft, uint64_t{0}) <= most) return {};
    return refuse(ExitCode::kUsage, fmt::format("--{}-soft is above --{}-hard", of, of), {},
                  "the soft limit is what may be exceeded for some days, the hard one what may not");
  }

  std::vector<Limit> all_;
};

std::string limits_text(const json& quota) {
  const auto text = [&](const char* key, bool bytes) {
    const uint64_t limit = quota.value(key, uint64_t{0});
    if (limit == 0) return std::string("none");
    return bytes ? bytes_text(static_cast<double>(limit)) : std::to_string(limit);
  };
  return fmt::format("space soft {}, hard {}; inodes soft {}, hard {}", text("space_soft_bytes", true),
                     text("space_hard_bytes", true), text("inodes_soft", false), text("inodes_hard", false));
}

Outcome<> set_default(ApiClient& client, Administration& admin, const Whose& whose, const json& limits) {
  TRY_ASSIGN(const Answer now, client.get("/quota-settings"));
  TRY_ASSIGN(const Answer changed, client.patch("/quota-settings", {{whose.setting(), limits}}, now.etag));
  const json set = changed.body.value(whose.setting(), json::object());
  admin.done(whose.text() + " without limits of its own: " + limits_text(set), set);
  return {};
}

void add_quota_set(CLI::App* noun, Administration& admin) {
  CLI::App* const set = noun->add_subcommand(
      "set", "set limits, as setquota(8); those not given stay. A directory becomes a tree");
  const auto whose = std::make_shared<Whose>(set);
  const auto limits = std::make_shared<Limits>(set);
  set->parse_complete_callback([whose, limits] {
    if (!whose->given()) throw CLI::ValidationError("quota set", kWhose);
    if (!limits->any() && !whose->is_tree())
      throw CLI::ValidationError(
          "quota set",
          "nothing to set: give at least one of --space-soft, --space-hard, --inodes-soft, --inodes-hard");
  });
  admin.does(set, [&admin, whose, limits](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json body, limits->body());
    if (whose->is_default()) return set_default(client, admin, *whose, body);
    TRY_ASSIGN(const std::string path, whose->path_or_made(client));
    TRY_ASSIGN(Answer quota, client.get(path));
    if (!body.empty()) {
      TRY_ASSIGN(quota, client.patch(path, body, quota.etag));
    }
    admin.done(whose->text() + ": " + limits_text(quota.body), quota.body);
    if (!flag_at(quota.body, "/complete"))
      admin.output().note("Counting what is there; limits hold when that is done: pnfsrdma quota status");
    return {};
  });
}

void add_quota_remove(CLI::App* noun, Administration& admin) {
  CLI::App* const remove =
      noun->add_subcommand("remove",
                           "remove all limits of a user or group; of a tree: the tree, not its files")
          ->alias("delete");
  const auto whose = required_whose(remove);
  admin.does(remove, [&admin, whose](ApiClient& client) -> Outcome<> {
    if (whose->is_default()) {
      TRY(admin.sure("The limits of " + whose->text() + " without own ones go.", "default"));
      json none;
      for (const char* name : kLimits) none[name] = 0;
      return set_default(client, admin, *whose, none);
    }
    TRY_ASSIGN(const std::string path, whose->path(client));
    TRY_ASSIGN(const Answer quota, client.get(path));
    const std::string name = text_at(quota.body, "/name");
    const std::string shown = name.empty() ? std::to_string(number_at(quota.body, "/id")) : name;
    TRY(admin.sure(whose->is_tree() ? shown + " is no quota tree any more; its files stay."
                                    : "The limits of the " + whose->text() + " go.",
                   shown));
    TRY(client.remove(path, {}, quota.etag));
    admin.done(whose->is_tree() ? "quota " + whose->text() + " removed"
                                : "the limits of the " + whose->text() + " are removed",
               quota.body);
    return {};
  });
}

Outcome<> change_settings(ApiClient& client, Administration& admin, const json& body) {
  TRY_ASSIGN(const Answer now, client.get("/quota-settings"));
  TRY_ASSIGN(const Answer changed, client.patch("/quota-settings", body, now.etag));
  show_one(admin.output(), changed.body, kSettingFields);
  return {};
}

void add_quota_grace(CLI::App* noun, Administration& admin) {
  CLI::App* const grace = noun->add_subcommand(
      "grace", "how long anybody may be above a soft limit, as setquota -t: 7 days at first");
  const auto space = optional_word(grace, "--space", "of space: 7d, 12h, 30m; 0: not at all");
  const auto inodes = optional_word(grace, "--inodes", "of inodes");
  grace->parse_complete_callback([space, inodes] {
    if (space->empty() && inodes->empty())
      throw CLI::ValidationError("quota grace", "nothing to change: give --space, --inodes or both");
  });
  admin.does(grace, [&admin, space, inodes](ApiClient& client) -> Outcome<> {
    json body = json::object();
    for (const auto& [word, option, key] : {std::tuple{space, "--space", "space_grace_seconds"},
                                            std::tuple{inodes, "--inodes", "inode_grace_seconds"}}) {
      if (word->empty()) continue;
      const auto seconds = seconds_of(*word);
      if (!seconds)
        return refuse(ExitCode::kUsage, fmt::format("{} {} is no duration", option, *word), {},
                      "7d, 12h or 30m");
      body[key] = *seconds;
    }
    return change_settings(client, admin, body);
  });
}

void add_quota_recount(CLI::App* noun, Administration& admin) {
  CLI::App* const recount = noun->add_subcommand(
      "recount",
      "count again what everybody has, and mend what is wrong, as quotacheck(8); nothing stops meanwhile");
  const auto background = std::make_shared<bool>(false);
  recount->add_flag("--background", *background, "do not wait for the job (pnfsrdma job follow ID waits)");
  admin.does(recount, [&admin, background](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(Answer started, client.post("/quota-recount", json()));
    json job = std::move(started.body);
    if (!*background) {
      TRY_ASSIGN(job, follow_job(client, std::move(job), admin.output()));
    }
    admin.done(
        fmt::format("job {} {}: {}", number_at(job, "/id"), text_at(job, "/state"), text_at(job, "/message")),
        job);
    return {};
  });
}

}  // namespace

void add_quota_commands(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "quota", "Quotas: how much users, groups and directories may have");
  add_quota_list(noun, admin);
  add_quota_show(noun, admin);
  add_quota_set(noun, admin);
  add_quota_remove(noun, admin);
  admin.does(
      noun->add_subcommand("on", "begin to count what is there, as quotaon(8); the first limit does so too"),
      [&admin](ApiClient& client) { return change_settings(client, admin, {{"on", true}}); });
  admin.does(
      noun->add_subcommand("status", "whether quotas are on, how much is counted, and the grace periods"),
      [&admin](ApiClient& client) -> Outcome<> {
        TRY_ASSIGN(const Answer settings, client.get("/quota-settings"));
        show_one(admin.output(), settings.body, kSettingFields);
        return {};
      });
  add_quota_grace(noun, admin);
  add_quota_recount(noun, admin);
  add_own_quota_command(noun, admin);
}

}  // namespace pnfsrdma::cli
