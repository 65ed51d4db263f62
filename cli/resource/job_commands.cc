// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "cli/output/json_member.h"
#include "cli/resource/follow_job.h"
#include "cli/resource/verbs.h"

// job: list, show, follow, cancel.
namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr std::array kJobColumns = {
    Field{"JOB", "/id", Field::kNumber},
    Field{"KIND", "/kind"},
    Field{"SUBJECT", "/subject", Field::kText, true},
    Field{"STATE", "/state", Field::kState},
    Field{"DONE", "/progress", Field::kPercent},
    Field{"STARTED", "/started"},
    Field{"BY", "/user"},
    Field{"MESSAGE", "/message", Field::kText, true},
};

}  // namespace

void add_job_commands(CLI::App& app, Administration& admin) {
  CLI::App* const noun = add_noun(app, "job", "Jobs: long operations on the server");
  add_list(noun, admin, "jobs since the server was started, newest first", "/jobs", kJobColumns, "No jobs.");
  CLI::App* const show = noun->add_subcommand("show", "one job");
  const auto shown = required_word(show, "job", "its number");
  admin.does(show, [&admin, shown](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const Answer job, client.get("/jobs/" + encoded(*shown)));
    if (admin.output().json) {
      admin.output().value(job.body);
    } else {
      show_list(admin.output(), json::array({job.body}), kJobColumns, "");
    }
    return {};
  });
  CLI::App* const follow = noun->add_subcommand("follow", "wait until a job has ended");
  const auto followed = required_word(follow, "job", "its number");
  admin.does(follow, [&admin, followed](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(Answer now, client.get("/jobs/" + encoded(*followed)));
    TRY_ASSIGN(const json job, follow_job(client, std::move(now.body), admin.output()));
    admin.done(fmt::format("job {} {}: {}", *followed, text_at(job, "/state"), text_at(job, "/message")),
               job);
    return {};
  });
  CLI::App* const cancel = noun->add_subcommand("cancel", "cancel a job");
  const auto cancelled = required_word(cancel, "job", "its number");
  admin.does(cancel, [&admin, cancelled](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const Answer job, client.remove("/jobs/" + encoded(*cancelled)));
    admin.done(fmt::format("job {} is {}", *cancelled, text_at(job.body, "/state")), job.body);
    return {};
  });
}

}  // namespace pnfsrdma::cli
