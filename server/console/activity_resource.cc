// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/console/audit_words.h"
#include "server/console/authenticate.h"
#include "server/console/event_stream.h"
#include "server/console/http_limits.h"
#include "server/console/inventory_json.h"
#include "server/console/page.h"
#include "server/console/resources.h"

namespace pnfsrdma::console {

namespace {

EventFilter filter_of(const Call& call) {
  EventFilter filter{.component = call.query_text("component"), .name = call.query_text("name")};
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (call.query_text("level") == name_of(level)) filter.least = level;
  }
  return filter;
}

// Newest first, behind a cursor that is the id of the last one shown.
Answer<uint64_t> before_of(const Call& call) {
  if (call.cursor().empty()) return 0;
  return number_of_cursor(call.cursor());
}

Answer<std::vector<Job>> all_jobs(Backend& backend) {
  return or_problem(
      backend.loop.call<std::vector<Job>>([&backend] { return backend.administration.jobs(); }));
}

}  // namespace

Response list_events(Backend& backend, Call& call) {
  const EventFilter filter = filter_of(call);
  const EventLog::Range range = backend.events.range();
  uint64_t seen = range.newest;
  std::vector<Event> found;
  if (!call.cursor().empty() || call.arguments.query.contains("after")) {
    uint64_t after = call.query_number("after");
    if (!call.cursor().empty()) {
      TRY_ASSIGN(const uint64_t cursor, number_of_cursor(call.cursor()));
      after = std::max(after, cursor);
    }
    found = backend.events.behind(after, filter, call.limit(), seen);
  } else {
    found = backend.events.newest(filter, call.limit());
  }
  Json items = Json::array();
  for (const Event& event : found) items.push_back(event_json(event, backend.run));
  // There is always a next page: of what has not happened yet.
  Json json = page_json(std::move(items), number_cursor(seen));
  json["oldest"] = range.oldest;
  json["newest"] = range.newest;
  return ok(json);
}

Response stream_events(Backend& backend, Call& call) {
  // Counted by an object that lives as long as the stream.
  std::shared_ptr<void> place(nullptr, [&backend](void*) { --backend.streams; });
  if (++backend.streams > kStreamsMax)
    return std::unexpected(Problem{.name = "too-many-requests",
                                   .detail = "Too many clients read the stream already.",
                                   .retry_after_seconds = 10});
  const std::string last(call.request.header("last-event-id"));
  const uint64_t newest = backend.events.range().newest;
  // An id of an earlier run of the server: everything of this one is new.
  const uint64_t after =
      last.empty() ? newest : std::min(sequence_of_id(last, backend.run).value_or(0), newest);
  auto stream = std::make_shared<EventStream>(EventStream{.events = backend.events,
                                                          .run = backend.run,
                                                          .filter = filter_of(call),
                                                          .after = after,
                                                          .allowed = [&backend, request = call.request] {
                                                            const auto caller =
                                                                authenticate(backend, request);
                                                            return caller && caller->role >= Role::kViewer;
                                                          }});
  HttpResponse response{.content_type = "text/event-stream"};
  response.stream = [stream](HttpSink& sink) { stream->send(sink); };
  response.keep = std::move(place);
  return response.with("X-Accel-Buffering", "no");
}

Response started(Result<Result<Job>> answer) {
  TRY_ASSIGN(const Result<Job> job, or_problem(std::move(answer)));
  if (!job) return std::unexpected(Problem::from(job.error()));
  return ok(to_json(*job), 202).with("Location", "/api/v1/jobs/" + std::to_string(job->id));
}

Response list_jobs(Backend& backend, Call& call) {
  TRY_ASSIGN(const uint64_t before, before_of(call));
  TRY_ASSIGN(auto jobs, all_jobs(backend));
  std::ranges::sort(jobs, std::greater(), &Job::id);
  Json items = Json::array();
  for (const Job& job : jobs) {
    if (before != 0 && job.id >= before) continue;
    if (items.size() >= call.limit()) return ok(page_json(items, number_cursor(items.back()["id"])));
    items.push_back(to_json(job));
  }
  return ok(page_json(items, {}));
}

Response get_job(Backend& backend, Call& call) {
  TRY_ASSIGN(const auto jobs, all_jobs(backend));
  const auto found = std::ranges::find(jobs, call.number("id"), &Job::id);
  if (found == jobs.end())
    return refuse("not-found", "There is no job " + std::to_string(call.number("id")) + " of this run.");
  return ok(to_json(*found));
}

Response delete_job(Backend& backend, Call& call) {
  TRY_ASSIGN(const Result<Job> job,
             or_problem(backend.loop.call<Result<Job>>(
                 [&backend, id = call.number("id")] { return backend.administration.cancel_job(id); })));
  if (!job) return std::unexpected(Problem::from(job.error()));
  return ok(to_json(*job));
}

Response list_audit(Backend& backend, Call& call) {
  TRY_ASSIGN(const uint64_t before, before_of(call));
  // One more than asked for tells whether there is a next page.
  TRY_ASSIGN(auto entries, or_problem(backend.audit.newest(before, call.limit() + 1)));
  Json items = Json::array();
  for (const Json& entry : entries) {
    if (items.size() >= call.limit()) return ok(page_json(items, number_cursor(items.back()["sequence"])));
    Json& item = items.emplace_back(entry);
    item["summary"] = audit_summary(entry);
  }
  return ok(page_json(items, {}));
}

Response get_throughput(Backend& backend, Call& call) {
  Json samples = Json::array();
  for (const Sample& sample :
       backend.throughput.newest(call.query_number("after"), call.query_number("seconds")))
    samples.push_back(to_json(sample));
  return ok({{"samples", samples}});
}

}  // namespace pnfsrdma::console
