// SPDX-License-Identifier: Apache-2.0
#include "server/console/etag.h"
#include "server/console/inventory_names.h"
#include "server/console/resources.h"

namespace pnfsrdma::console {

namespace {

Answer<Json> settings_json(Backend& backend) {
  TRY_ASSIGN(const auto settings, or_problem(backend.loop.call<std::vector<Setting>>(
                                      [&backend] { return backend.administration.settings(); })));
  Json json = Json::object();
  for (const Setting& setting : settings) {
    json[setting.name] = {{"value", Json::parse(setting.value, nullptr, false)},
                          {"source", to_string(setting.source)},
                          {"run_time", setting.run_time}};
  }
  return json;
}

Response answer(Backend& backend, const Json& settings) {
  return ok({{"settings", settings}, {"configuration_file", backend.configuration_file}})
      .with("ETag", etag_of_text(to_text(settings)));
}

}  // namespace

Response get_configuration(Backend& backend, Call&) {
  TRY_ASSIGN(const Json settings, settings_json(backend));
  return answer(backend, settings);
}

Response patch_configuration(Backend& backend, Call& call) {
  const std::lock_guard changing(backend.changing_settings);
  TRY_ASSIGN(const Json before, settings_json(backend));
  call.before = Json::object();
  TRY(check_if_match(call.if_match(), etag_of_text(to_text(before)), Precondition::kRequired));
  std::vector<std::pair<std::string, std::string>> changes;
  for (const auto& item : call.arguments.body.items()) {
    changes.emplace_back(item.key(), to_text(item.value()));
    call.before[item.key()] = before.value(item.key(), Json());
  }
  TRY(or_problem(backend.loop.ask<bool>([&backend, changes](auto done) {
    backend.administration.change_settings(
        changes, [done](Result<> outcome) { outcome ? done(true) : done(std::unexpected(outcome.error())); });
  })));
  TRY_ASSIGN(const Json after, settings_json(backend));
  return answer(backend, after);
}

}  // namespace pnfsrdma::console
