// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>

#include "server/console/etag.h"
#include "server/console/inventory_json.h"
#include "server/console/page.h"
#include "server/console/resources.h"

namespace pnfsrdma::console {

namespace {

// Those whose pool is not known yet have no id; their address says which they are.
std::string key_of(const Brick& brick) {
  return brick.id + " " + brick.address;
}

std::string etag_of(const Brick& brick) {
  return etag_of_text(brick.id + "\n" + brick.address +
                      (brick.state == BrickState::kDraining ? "\ndraining" : "") + "\n" + brick.name);
}

Answer<Brick> find_brick(Backend& backend, const std::string& id) {
  TRY_ASSIGN(const auto numbers, or_problem(backend.numbers.get()));
  const auto found = std::ranges::find_if(
      numbers->bricks, [&](const Brick& brick) { return brick.id == id || brick.first_id == id; });
  if (found == numbers->bricks.end()) return refuse("not-found", "There is no brick " + id + ".");
  return *found;
}

Answer<> change_name(Backend& backend, const std::string& id, const std::string& name) {
  TRY(or_problem(backend.loop.ask<bool>([&backend, id, name](auto done) {
    backend.administration.name_brick(id, name, [done](Result<> outcome) {
      outcome ? done(true) : done(std::unexpected(outcome.error()));
    });
  })));
  return {};
}

Answer<> change_draining(Backend& backend, const std::string& id, bool draining) {
  TRY(or_problem(backend.loop.ask<bool>([&backend, id, draining](auto done) {
    backend.administration.drain_brick(id, draining, [done](Result<> outcome) {
      outcome ? done(true) : done(std::unexpected(outcome.error()));
    });
  })));
  return {};
}

// Before a brick is added, so that a name that is taken adds nothing.
Answer<> check_free(Backend& backend, const std::string& name) {
  TRY_ASSIGN(const auto numbers, or_problem(backend.numbers.get()));
  if (name.empty() || std::ranges::find(numbers->bricks, name, &Brick::name) == numbers->bricks.end())
    return {};
  return refuse("conflict", "Another brick is called " + name + " already.");
}

}  // namespace

Response list_bricks(Backend& backend, Call& call) {
  TRY_ASSIGN(const auto numbers, or_problem(backend.numbers.get()));
  std::vector<Brick> bricks = numbers->bricks;
  std::ranges::sort(bricks, {}, key_of);
  return ok(make_page(bricks, call.cursor(), call.limit(), key_of,
                      [](const Brick& brick) { return to_json(brick); }));
}

Response get_brick(Backend& backend, Call& call) {
  TRY_ASSIGN(const Brick brick, find_brick(backend, call.text("brick")));
  return ok(to_json(brick)).with("ETag", etag_of(brick));
}

Response post_brick(Backend& backend, Call& call) {
  const std::string address = call.arguments.body["address"];
  const std::string name = call.arguments.body.value("name", "");
  TRY(check_free(backend, name));
  TRY_ASSIGN(Brick brick,
             or_problem(backend.loop.ask<Brick>(
                 [&backend, address](auto done) { backend.administration.add_brick(address, done); },
                 kSlowLoopDeadline)));
  if (!name.empty()) TRY(change_name(backend, brick.id, name));
  brick.name = name;
  backend.numbers.outdate();
  return ok(to_json(brick), 201).with("Location", "/api/v1/bricks/" + brick.id);
}

Response patch_brick(Backend& backend, Call& call) {
  TRY_ASSIGN(const Brick before, find_brick(backend, call.text("brick")));
  call.before = to_json(before);
  TRY(check_if_match(call.if_match(), etag_of(before), Precondition::kRequired));
  const Json& body = call.arguments.body;
  if (body.contains("name")) TRY(change_name(backend, before.id, body["name"]));
  if (body.contains("draining")) TRY(change_draining(backend, before.id, body["draining"]));
  backend.numbers.outdate();
  TRY_ASSIGN(const Brick after, find_brick(backend, before.id));
  return ok(to_json(after)).with("ETag", etag_of(after));
}

Response delete_brick(Backend& backend, Call& call) {
  TRY_ASSIGN(const Brick brick, find_brick(backend, call.text("brick")));
  call.before = to_json(brick);
  TRY(check_if_match(call.if_match(), etag_of(brick), Precondition::kOptional));
  const auto removed = backend.loop.ask<bool>(
      [&backend, id = brick.id](auto done) {
        backend.administration.remove_brick(
            id, [done](Result<> outcome) { outcome ? done(true) : done(std::unexpected(outcome.error())); });
      },
      kSlowLoopDeadline);
  backend.numbers.outdate();
  if (removed) return no_content();
  if (removed.error().number() != EBUSY) return std::unexpected(Problem::from(removed.error()));
  // Counting them may take longer than anybody waits: the refusal stands without.
  auto holders = backend.loop.ask<Holders>(
      [&backend, id = brick.id](auto done) { backend.administration.holders(id, done); }, kSlowLoopDeadline);
  Problem problem{.name = "brick-in-use",
                  .detail = removed.error().what(),
                  .fix = "Remove or move its files first.",
                  .errors = {}};
  if (holders) problem.holders = *std::move(holders);
  return std::unexpected(std::move(problem));
}

Response get_blocks(Backend& backend, Call& call) {
  TRY_ASSIGN(const uint64_t first,
             call.cursor().empty() ? Answer<uint64_t>(0) : number_of_cursor(call.cursor()));
  TRY_ASSIGN(const Brick brick, find_brick(backend, call.text("brick")));
  TRY_ASSIGN(const auto map, or_problem(backend.blocks.get(brick.id)));
  Json runs = Json::array();
  Json next;
  for (const BlockRun& run : map->runs) {
    if (run.block < first) continue;
    if (runs.size() >= call.limit()) {
      next = seal_cursor(number_cursor(run.block));
      break;
    }
    runs.push_back(to_json(run));
  }
  return ok({{"brick", map->brick},
             {"block_bytes", map->block_bytes},
             {"blocks", map->blocks},
             {"runs", runs},
             {"next_cursor", next}});
}

Response post_brick_format(Backend& backend, Call& call) {
  TRY_ASSIGN(const Brick brick, find_brick(backend, call.text("brick")));
  if (call.arguments.body["confirm"] != brick.id)
    return std::unexpected(Problem{.name = "invalid",
                                   .detail = "confirm is not the brick's id.",
                                   .fix = "Repeat the id of the brick whose content is to be erased.",
                                   .errors = {{"/confirm", "is not the brick's id"}}});
  return started(backend.loop.call<Result<Job>>([&backend, id = brick.id, user = call.caller.user] {
    return backend.administration.format_brick(id, user);
  }));
}

Response post_brick_check(Backend& backend, Call& call) {
  TRY_ASSIGN(const Brick brick, find_brick(backend, call.text("brick")));
  return started(backend.loop.call<Result<Job>>([&backend, id = brick.id, user = call.caller.user] {
    return backend.administration.check_brick(id, user);
  }));
}

}  // namespace pnfsrdma::console
