// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <limits>

#include "server/console/etag.h"
#include "server/console/inventory_json.h"
#include "server/console/inventory_names.h"
#include "server/console/page.h"
#include "server/console/resources.h"

namespace pnfsrdma::console {

namespace {

using QuotaPlace = Administration::QuotaPlace;

std::unexpected<Problem> wrong(const std::string& pointer, const std::string& detail, std::string fix) {
  return std::unexpected(Problem{.name = "invalid",
                                 .detail = pointer.empty() ? detail : pointer + " " + detail,
                                 .fix = std::move(fix),
                                 .errors = {{pointer, detail}}});
}

UnixNames::Kind name_kind(QuotaKind kind) {
  return kind == QuotaKind::kUser ? UnixNames::Kind::kUser : UnixNames::Kind::kGroup;
}

Json shown(Backend& backend, const Quota& quota) {
  std::optional<std::string> name;
  if (quota.kind != QuotaKind::kTree) {
    name = backend.names.name_of(name_kind(quota.kind), static_cast<uint32_t>(quota.id));
  } else if (!quota.path.empty()) {
    name = quota.path;
  }
  return to_json(quota, name, backend.clock.wall_now());
}

std::string etag_of(const Quota& quota) {
  return etag_of_text(to_text({to_json(quota.limits), to_string(quota.limits_from)}));
}
std::string etag_of(const QuotaSettings& settings) {
  return etag_of_text(
      to_text({settings.state != QuotaState::kOff, settings.space_grace_seconds, settings.inode_grace_seconds,
               to_json(settings.user_default), to_json(settings.group_default)}));
}

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

// What digits name is that number, as in chown(1) with a plus sign.
Answer<QuotaPlace> place_of(const Call& call) {
  const QuotaKind kind = *quota_kind_of(call.text("kind"));
  const std::string who = call.text("who");
  const auto number = number_of(who);
  if (kind == QuotaKind::kTree) {
    if (number) return QuotaPlace{kind, *number};
    return wrong("who", "must be the number of a quota tree", "GET /api/v1/quotas?kind=tree lists them.");
  }
  if (number && *number <= std::numeric_limits<uint32_t>::max()) return QuotaPlace{kind, *number};
  const bool digits = who.find_first_not_of("0123456789") == std::string::npos;
  if (digits) return wrong("who", "must be at most 4294967295", "Numbers of users and groups have 32 bits.");
  TRY_ASSIGN(const uint32_t id, or_problem(UnixNames::id_of(name_kind(kind), who)));
  return QuotaPlace{kind, id};
}

// The place of the last item before, as the cursor names it: "1-00000000000000001000".
std::string cursor_of(const Quota& quota) {
  return std::to_string(static_cast<int>(quota.kind)) + "-" + number_cursor(quota.id);
}
Answer<std::optional<QuotaPlace>> place_of_cursor(const std::string& cursor,
                                                  std::optional<QuotaKind> wanted) {
  if (cursor.empty()) return std::nullopt;
  if (cursor.size() < 3 || cursor[0] < '0' || cursor[0] > '2' || cursor[1] != '-') return strange_cursor();
  const auto kind = static_cast<QuotaKind>(cursor[0] - '0');
  if (wanted && *wanted != kind) return strange_cursor();
  TRY_ASSIGN(const uint64_t id, number_of_cursor(cursor.substr(2)));
  return QuotaPlace{kind, id};
}

Answer<QuotaPage> read_page(Backend& backend, std::optional<QuotaKind> kind, std::optional<QuotaPlace> after,
                            size_t most) {
  return or_problem(backend.loop.ask<QuotaPage>([&backend, kind, after, most](auto done) {
    backend.administration.quotas(kind, after, most, std::move(done));
  }));
}

Answer<Quota> find_quota(Backend& backend, const QuotaPlace& place) {
  return or_problem(backend.loop.ask<Quota>(
      [&backend, place](auto done) { backend.administration.quota(place, std::move(done)); }));
}

Answer<Quota> set_limits(Backend& backend, const QuotaPlace& place,
                         const std::optional<QuotaLimits>& limits) {
  return or_problem(backend.loop.ask<Quota>([&backend, place, limits](auto done) {
    backend.administration.limit_quota(place, limits, std::move(done));
  }));
}

// `at`: where in the body the limits are, "" or "/user_default".
Answer<> check_order(const QuotaLimit& limit, const std::string& at, const std::string& soft,
                     const std::string& hard) {
  if (limit.hard == 0 || limit.soft <= limit.hard) return {};
  return wrong(at + "/" + soft, "is above the hard limit, " + std::to_string(limit.hard),
               "Give " + hard + " too: at least the soft limit, or 0 for none.");
}

// What the body does not name stays.
Answer<QuotaLimits> changed(const QuotaLimits& before, const Json& body, const std::string& at = "") {
  if (body.empty())
    return wrong(at, "nothing to change",
                 "Give at least one of space_soft_bytes, space_hard_bytes, inodes_soft and inodes_hard.");
  const QuotaLimits limits{.space = {.soft = body.value("space_soft_bytes", before.space.soft),
                                     .hard = body.value("space_hard_bytes", before.space.hard)},
                           .inodes = {.soft = body.value("inodes_soft", before.inodes.soft),
                                      .hard = body.value("inodes_hard", before.inodes.hard)}};
  TRY(check_order(limits.space, at, "space_soft_bytes", "space_hard_bytes"));
  TRY(check_order(limits.inodes, at, "inodes_soft", "inodes_hard"));
  return limits;
}

Response answer(Backend& backend, const Quota& quota, int status = 200) {
  return ok(shown(backend, quota), status).with("ETag", etag_of(quota));
}

Answer<QuotaSettings> read_settings(Backend& backend) {
  TRY_ASSIGN(const QuotaPage page, read_page(backend, {}, {}, 1));
  return page.settings;
}

Response answer(const QuotaSettings& settings) {
  return ok(to_json(settings)).with("ETag", etag_of(settings));
}

}  // namespace

Response list_quotas(Backend& backend, Call& call) {
  const auto kind = quota_kind_of(call.query_text("kind"));
  TRY_ASSIGN(const auto after, place_of_cursor(call.cursor(), kind));
  // One more tells whether there is a next page.
  TRY_ASSIGN(const QuotaPage page, read_page(backend, kind, after, call.limit() + 1));
  Json json = make_page(page.all, "", call.limit(), cursor_of,
                        [&backend](const Quota& quota) { return shown(backend, quota); });
  json["settings"] = to_json(page.settings);
  return ok(json);
}

Response get_quota(Backend& backend, Call& call) {
  TRY_ASSIGN(const QuotaPlace place, place_of(call));
  TRY_ASSIGN(const Quota found, find_quota(backend, place));
  return answer(backend, found);
}

Response patch_quota(Backend& backend, Call& call) {
  TRY_ASSIGN(const QuotaPlace place, place_of(call));
  const std::lock_guard changing(backend.changing_quotas);
  TRY_ASSIGN(const Quota before, find_quota(backend, place));
  call.before = shown(backend, before);
  TRY(check_if_match(call.if_match(), etag_of(before), Precondition::kRequired));
  TRY_ASSIGN(const QuotaLimits limits, changed(before.limits, call.arguments.body));
  // Everybody's limits, asked for by one, become his own.
  if (limits == before.limits && before.limits_from != QuotaSource::kDefault) return answer(backend, before);
  TRY_ASSIGN(const Quota after, set_limits(backend, place, limits));
  return answer(backend, after);
}

Response delete_quota(Backend& backend, Call& call) {
  TRY_ASSIGN(const QuotaPlace place, place_of(call));
  const std::lock_guard changing(backend.changing_quotas);
  TRY_ASSIGN(const Quota before, find_quota(backend, place));
  call.before = shown(backend, before);
  TRY(check_if_match(call.if_match(), etag_of(before), Precondition::kOptional));
  if (place.kind == QuotaKind::kTree) {
    TRY(or_problem(backend.loop.ask<bool>([&backend, id = place.id](auto done) {
      backend.administration.remove_quota_tree(
          id, [done](Result<> outcome) { outcome ? done(true) : done(std::unexpected(outcome.error())); });
    })));
    return no_content();
  }
  if (before.limits_from != QuotaSource::kOwn)
    return refuse("not-found",
                  "The " + call.text("kind") + " " + call.text("who") + " has no limits of its own.");
  TRY(set_limits(backend, place, std::nullopt));
  return no_content();
}

Response post_quota_tree(Backend& backend, Call& call) {
  const std::string path = call.arguments.body["path"];
  const std::lock_guard changing(backend.changing_quotas);
  TRY_ASSIGN(const Quota made, or_problem(backend.loop.ask<Quota>([&backend, path](auto done) {
               backend.administration.add_quota_tree(path, std::move(done));
             })));
  TRY_ASSIGN(HttpResponse response, answer(backend, made, 201));
  return response.with("Location", "/api/v1/quotas/tree/" + std::to_string(made.id));
}

Response post_quota_recount(Backend& backend, Call& call) {
  return started(backend.loop.call<Result<Job>>(
      [&backend, user = call.caller.user] { return backend.administration.recount_quotas(user); }));
}

Response get_quota_settings(Backend& backend, Call&) {
  TRY_ASSIGN(const QuotaSettings settings, read_settings(backend));
  return answer(settings);
}

Response patch_quota_settings(Backend& backend, Call& call) {
  const Json& body = call.arguments.body;
  if (body.empty())
    return wrong("", "nothing to change",
                 "Give at least one of on, space_grace_seconds, inode_grace_seconds, user_default and "
                 "group_default.");
  if (!body.value("on", true))
    return wrong("/on", "must be true",
                 "Quotas that are on stay on; limits that are removed refuse nothing.");
  Administration::QuotaChanges changes{.on = body.contains("on")};
  if (body.contains("space_grace_seconds")) changes.space_grace_seconds = body["space_grace_seconds"];
  if (body.contains("inode_grace_seconds")) changes.inode_grace_seconds = body["inode_grace_seconds"];
  const std::lock_guard changing(backend.changing_quotas);
  TRY_ASSIGN(const QuotaSettings before, read_settings(backend));
  call.before = to_json(before);
  TRY(check_if_match(call.if_match(), etag_of(before), Precondition::kRequired));
  if (body.contains("user_default")) {
    TRY_ASSIGN(changes.user_default, changed(before.user_default, body["user_default"], "/user_default"));
  }
  if (body.contains("group_default")) {
    TRY_ASSIGN(changes.group_default, changed(before.group_default, body["group_default"], "/group_default"));
  }
  TRY_ASSIGN(const QuotaSettings after,
             or_problem(backend.loop.ask<QuotaSettings>([&backend, changes](auto done) {
               backend.administration.change_quotas(changes, std::move(done));
             })));
  return answer(after);
}

}  // namespace pnfsrdma::console
