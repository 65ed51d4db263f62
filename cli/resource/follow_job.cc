// SPDX-License-Identifier: Apache-2.0
#include "cli/resource/follow_job.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/output/json_member.h"
#include "cli/output/progress_bar.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"

namespace pnfsrdma::cli {
namespace {

constexpr auto kPause = std::chrono::milliseconds(250);

double progress_of(const nlohmann::json& job) {
  const auto found = job.find("progress");
  return found != job.end() && found->is_number() ? found->get<double>() : 0;
}

}  // namespace

Outcome<nlohmann::json> follow_job(ApiClient& client, nlohmann::json job, Output& output) {
  const std::string path = fmt::format("/jobs/{}", number_at(job, "/id"));
  {
    ProgressBar bar(stderr, output.complaints_terminal());
    while (text_at(job, "/state") == "running") {
      bar.show(progress_of(job), text_at(job, "/message"));
      sleep_for(kPause);
      TRY_ASSIGN(Answer answer, client.get(path));
      job = std::move(answer.body);
    }
    bar.show(progress_of(job), text_at(job, "/message"));
  }
  if (const std::string state = text_at(job, "/state"); state != "done") {
    return refuse(ExitCode::kFailed, fmt::format("job {} {}", number_at(job, "/id"), state),
                  text_at(job, "/message"));
  }
  return job;
}

}  // namespace pnfsrdma::cli
