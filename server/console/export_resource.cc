// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

#include "server/console/etag.h"
#include "server/console/inventory_json.h"
#include "server/console/page.h"
#include "server/console/resources.h"

namespace pnfsrdma::console {

namespace {

std::string etag_of(const Export& item) {
  Json json = to_json(item);
  json.erase("directory_exists");
  json.erase("source");
  json.erase("warning");
  return etag_of_text(to_text(json));
}

ExportRules rules_of(const Json& body) {
  const ExportRules defaults;
  return {.path = body["path"],
          .read_only = body.value("read_only", defaults.read_only),
          .root_squash = body.value("root_squash", defaults.root_squash),
          .all_squash = body.value("all_squash", defaults.all_squash),
          .anonuid = body.value("anonuid", defaults.anonuid),
          .anongid = body.value("anongid", defaults.anongid),
          .insecure = body.value("insecure", defaults.insecure),
          .manage_gids = body.value("manage_gids", defaults.manage_gids),
          .clients = body.value("clients", defaults.clients)};
}

Answer<std::vector<Export>> all_exports(Backend& backend) {
  return or_problem(
      backend.loop.call<std::vector<Export>>([&backend] { return backend.administration.exports(); }));
}

Answer<Export> find_export(Backend& backend, uint64_t id) {
  TRY_ASSIGN(const auto all, all_exports(backend));
  const auto found = std::ranges::find(all, id, &Export::id);
  if (found == all.end()) return refuse("not-found", "There is no export " + std::to_string(id) + ".");
  return *found;
}

}  // namespace

Response list_exports(Backend& backend, Call& call) {
  TRY_ASSIGN(const auto all, all_exports(backend));
  return ok(make_page(
      all, call.cursor(), call.limit(), [](const Export& item) { return number_cursor(item.id); },
      [](const Export& item) { return to_json(item); }));
}

Response get_export(Backend& backend, Call& call) {
  TRY_ASSIGN(const Export found, find_export(backend, call.number("id")));
  return ok(to_json(found)).with("ETag", etag_of(found));
}

Response get_export_effect(Backend& backend, Call& call) {
  ExportRules rules{.path = call.query_text("path")};
  std::istringstream networks(call.query_text("clients"));
  for (std::string network; std::getline(networks, network, ',');) rules.clients.push_back(network);
  TRY_ASSIGN(const ExportEffect effect,
             or_problem(backend.loop.ask<ExportEffect>([&backend, rules](auto done) {
               backend.administration.export_effect(rules, std::move(done));
             })));
  return ok({{"inside", effect.inside.empty() ? Json() : Json(effect.inside)},
             {"clients", effect.clients},
             {"losing", effect.losing},
             {"text", effect.text}});
}

Response post_export(Backend& backend, Call& call) {
  const std::lock_guard changing(backend.changing_exports);
  TRY_ASSIGN(
      const Export made,
      or_problem(backend.loop.ask<Export>([&backend, rules = rules_of(call.arguments.body)](auto done) {
        backend.administration.add_export(rules, done);
      })));
  return ok(to_json(made), 201)
      .with("ETag", etag_of(made))
      .with("Location", "/api/v1/exports/" + std::to_string(made.id));
}

Response put_export(Backend& backend, Call& call) {
  const std::lock_guard changing(backend.changing_exports);
  TRY_ASSIGN(const Export before, find_export(backend, call.number("id")));
  call.before = to_json(before);
  TRY(check_if_match(call.if_match(), etag_of(before), Precondition::kRequired));
  TRY_ASSIGN(const Export changed,
             or_problem(backend.loop.ask<Export>(
                 [&backend, id = before.id, rules = rules_of(call.arguments.body)](auto done) {
                   backend.administration.change_export(id, rules, done);
                 })));
  return ok(to_json(changed)).with("ETag", etag_of(changed));
}

Response delete_export(Backend& backend, Call& call) {
  const std::lock_guard changing(backend.changing_exports);
  TRY_ASSIGN(const Export before, find_export(backend, call.number("id")));
  call.before = to_json(before);
  TRY(check_if_match(call.if_match(), etag_of(before), Precondition::kOptional));
  TRY(or_problem(backend.loop.ask<bool>([&backend, id = before.id](auto done) {
    backend.administration.remove_export(
        id, [done](Result<> outcome) { outcome ? done(true) : done(std::unexpected(outcome.error())); });
  })));
  return no_content();
}

}  // namespace pnfsrdma::console
