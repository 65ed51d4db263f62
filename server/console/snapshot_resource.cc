// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/console/etag.h"
#include "server/console/inventory_json.h"
#include "server/console/page.h"
#include "server/console/resources.h"

namespace pnfsrdma::console {

namespace {

Answer<TreeSnapshots> all_snapshots(Backend& backend) {
  return or_problem(
      backend.loop.call<TreeSnapshots>([&backend] { return backend.administration.snapshots(); }));
}

Answer<TreeSnapshot> find_snapshot(Backend& backend, uint64_t id) {
  TRY_ASSIGN(const TreeSnapshots snapshots, all_snapshots(backend));
  const auto found = std::ranges::find(snapshots.all, id, &TreeSnapshot::id);
  if (found == snapshots.all.end())
    return refuse("not-found", "There is no snapshot " + std::to_string(id) + ".");
  return *found;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

Answer<SnapshotSchedule> current_schedule(Backend& backend) {
  return or_problem(
      backend.loop.call<SnapshotSchedule>([&backend] { return backend.administration.snapshot_schedule(); }));
}

// What of it an administrator has chosen; what a body leaves out is 0.
constexpr const char* kChoices[] = {"hourly", "daily", "weekly", "monthly", "hour", "minute"};
Json choices_of(const Json& schedule) {
  Json chosen;
  for (const char* each : kChoices) chosen[each] = schedule.value(each, 0);
  return chosen;
}

Response answer(const SnapshotSchedule& schedule) {
  const Json json = to_json(schedule);
  return ok(json).with("ETag", etag_of_text(to_text(choices_of(json))));
}

}  // namespace

Response list_snapshots(Backend& backend, Call& call) {
  TRY_ASSIGN(const TreeSnapshots snapshots, all_snapshots(backend));
  Json page = make_page(
      snapshots.all, call.cursor(), call.limit(),
      [](const TreeSnapshot& one) { return number_cursor(one.id); },
      [](const TreeSnapshot& one) { return to_json(one); });
  page["held_bytes"] = snapshots.held_bytes;
  return ok(page);
}

Response get_snapshot(Backend& backend, Call& call) {
  TRY_ASSIGN(const TreeSnapshot found, find_snapshot(backend, call.number("id")));
  return ok(to_json(found));
}

Response post_snapshot(Backend& backend, Call& call) {
  const std::string name = call.arguments.body.value("name", "");
  if (std::ranges::any_of(name, is_control))
    return std::unexpected(Problem{.name = "invalid",
                                   .detail = "The name has control characters.",
                                   .fix = {},
                                   .errors = {{"/name", "has control characters"}}});
  const bool force = call.arguments.body.value("force", false);
  // Everybody who writes has to answer before, or is forced.
  TRY_ASSIGN(
      const TreeSnapshot taken,
      or_problem(backend.loop.ask<TreeSnapshot>(
          [&backend, name, force](auto done) { backend.administration.take_snapshot(name, force, done); },
          kSlowLoopDeadline)));
  return ok(to_json(taken), 201).with("Location", "/api/v1/snapshots/" + std::to_string(taken.id));
}

Response delete_snapshot(Backend& backend, Call& call) {
  TRY_ASSIGN(const TreeSnapshot before, find_snapshot(backend, call.number("id")));
  call.before = to_json(before);
  TRY(or_problem(backend.loop.ask<bool>([&backend, id = before.id](auto done) {
    backend.administration.remove_snapshot(
        id, [done](Result<> outcome) { outcome ? done(true) : done(std::unexpected(outcome.error())); });
  })));
  return no_content();
}

Response patch_snapshot(Backend& backend, Call& call) {
  TRY_ASSIGN(const TreeSnapshot before, find_snapshot(backend, call.number("id")));
  call.before = to_json(before);
  const bool pinned = call.arguments.body.value("pinned", before.pinned);
  TRY_ASSIGN(const TreeSnapshot after,
             or_problem(backend.loop.ask<TreeSnapshot>([&backend, id = before.id, pinned](auto done) {
               backend.administration.pin_snapshot(id, pinned, std::move(done));
             })));
  return ok(to_json(after));
}

Response get_snapshot_schedule(Backend& backend, Call&) {
  TRY_ASSIGN(const SnapshotSchedule schedule, current_schedule(backend));
  return answer(schedule);
}

Response put_snapshot_schedule(Backend& backend, Call& call) {
  const std::lock_guard changing(backend.changing_settings);
  TRY_ASSIGN(const SnapshotSchedule before, current_schedule(backend));
  call.before = choices_of(to_json(before));
  TRY(check_if_match(call.if_match(), etag_of_text(to_text(call.before)), Precondition::kRequired));
  TRY(or_problem(
      backend.loop.ask<bool>([&backend, wanted = to_text(choices_of(call.arguments.body))](auto done) {
        backend.administration.change_settings({{"snapshot_schedule", wanted}}, [done](Result<> outcome) {
          outcome ? done(true) : done(std::unexpected(outcome.error()));
        });
      })));
  TRY_ASSIGN(const SnapshotSchedule after, current_schedule(backend));
  return answer(after);
}

}  // namespace pnfsrdma::console
