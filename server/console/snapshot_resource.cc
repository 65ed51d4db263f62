// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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
  // Everybody who writes has to answer before.
  TRY_ASSIGN(const TreeSnapshot taken,
             or_problem(backend.loop.ask<TreeSnapshot>(
                 [&backend, name](auto done) { backend.administration.take_snapshot(name, done); },
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

}  // namespace pnfsrdma::console
