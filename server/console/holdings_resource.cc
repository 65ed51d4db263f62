// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "server/console/inventory_json.h"
#include "server/console/page.h"
#include "server/console/resources.h"

namespace pnfsrdma::console {

namespace {

Answer<File> ask_file(Backend& backend, const std::string& path) {
  return or_problem(backend.loop.ask<File>(
      [&backend, path](auto done) { backend.administration.file(path, std::move(done)); }));
}

// Sorts as (client, inode) do.
std::string key_of(const Layout& layout) {
  return id_text(layout.client) + number_cursor(layout.inode);
}

struct LayoutFilter {
  uint64_t client = 0;
  uint64_t inode = 0;
  std::string brick;
  bool wants(const Layout& layout) const {
    return (client == 0 || client == layout.client) && (inode == 0 || inode == layout.inode) &&
           (brick.empty() ||
            std::ranges::any_of(layout.grants, [this](const Grant& grant) { return grant.brick == brick; }));
  }
};

std::vector<Layout> wanted(const Holdings& holdings, const LayoutFilter& filter) {
  std::vector<Layout> found;
  std::ranges::copy_if(holdings.layouts, std::back_inserter(found),
                       [&](const Layout& layout) { return filter.wants(layout); });
  return found;
}

Answer<Layout> find_layout(Backend& backend, const std::string& id) {
  TRY_ASSIGN(const auto holdings, or_problem(backend.holdings.get()));
  const LayoutId wanted = layout_of(id);
  for (const Layout& layout : holdings->layouts) {
    if (layout.client == wanted.client && layout.inode == wanted.inode) return layout;
  }
  return refuse("not-found", "There is no layout " + id + " (any more).");
}

Response revoke(Backend& backend, uint64_t client, uint64_t inode) {
  const auto revoked = backend.loop.ask<Administration::Revoked>(
      [&backend, client, inode](auto done) { backend.administration.revoke(client, inode, done); },
      kSlowLoopDeadline);
  backend.holdings.outdate();
  backend.numbers.outdate();
  if (!revoked) return std::unexpected(Problem::from(revoked.error()));
  return ok({{"layouts", revoked->layouts}, {"grants", revoked->grants}});
}

}  // namespace

Response get_file(Backend& backend, Call& call) {
  TRY_ASSIGN(const File file, ask_file(backend, call.query_text("path")));
  TRY_ASSIGN(const auto holdings, or_problem(backend.holdings.get()));
  Json json = to_json(file);
  json["layouts"] = Json::array();
  for (const Layout& layout : wanted(*holdings, {.inode = file.inode, .brick = {}}))
    json["layouts"].push_back(to_json(layout));
  return ok(json);
}

Response list_layouts(Backend& backend, Call& call) {
  LayoutFilter filter{.client = id_of(call.query_text("client")),
                      .inode = call.query_number("inode"),
                      .brick = call.query_text("brick")};
  if (const std::string path = call.query_text("path"); !path.empty()) {
    TRY_ASSIGN(const File file, ask_file(backend, path));
    if (filter.inode != 0 && filter.inode != file.inode) return ok(page_json(Json::array(), {}));
    filter.inode = file.inode;
  }
  TRY_ASSIGN(const auto holdings, or_problem(backend.holdings.get()));
  return ok(make_page(wanted(*holdings, filter), call.cursor(), call.limit(), key_of,
                      [](const Layout& layout) { return to_json(layout); }));
}

Response delete_layouts(Backend& backend, Call& call) {
  const uint64_t client = id_of(call.query_text("client"));
  const uint64_t inode = call.query_number("inode");
  if (client == 0 && inode == 0)
    return std::unexpected(Problem{.name = "invalid",
                                   .detail = "Whose layouts? Give client, inode, or both.",
                                   .errors = {{"client", "is missing"}, {"inode", "is missing"}}});
  TRY_ASSIGN(const auto holdings, or_problem(backend.holdings.get()));
  const auto taken = wanted(*holdings, {.client = client, .inode = inode, .brick = {}});
  // A client may hold as many as fill the whole audit log.
  constexpr size_t kNamed = 20;
  call.before = {{"layouts", taken.size()}, {"first", Json::array()}};
  for (const Layout& layout : std::span(taken).first(std::min(taken.size(), kNamed)))
    call.before["first"].push_back(to_json(layout));
  return revoke(backend, client, inode);
}

Response get_layout(Backend& backend, Call& call) {
  TRY_ASSIGN(const Layout layout, find_layout(backend, call.text("id")));
  Json json{{"layout", to_json(layout)}};
  // By offset; a read-only and a read-write grant may begin at the same.
  const auto key = [](const Grant& grant) { return number_cursor(grant.offset) + id_text(grant.id); };
  std::vector<Grant> grants = layout.grants;
  std::ranges::sort(grants, {}, key);
  json.update(
      make_page(grants, call.cursor(), call.limit(), key, [](const Grant& grant) { return to_json(grant); }));
  return ok(json);
}

Response delete_layout(Backend& backend, Call& call) {
  backend.holdings.outdate();
  TRY_ASSIGN(const Layout layout, find_layout(backend, call.text("id")));
  call.before = to_json(layout);
  return revoke(backend, layout.client, layout.inode);
}

Response list_clients(Backend& backend, Call& call) {
  TRY_ASSIGN(const auto holdings, or_problem(backend.holdings.get()));
  return ok(make_page(
      holdings->clients, call.cursor(), call.limit(), [](const Client& client) { return id_text(client.id); },
      [](const Client& client) { return to_json(client); }));
}

Response get_client(Backend& backend, Call& call) {
  TRY_ASSIGN(const auto holdings, or_problem(backend.holdings.get()));
  const auto found = std::ranges::find(holdings->clients, id_of(call.text("id")), &Client::id);
  if (found == holdings->clients.end())
    return refuse("not-found", "There is no client " + call.text("id") + " (any more).");
  return ok(to_json(*found));
}

Response delete_client(Backend& backend, Call& call) {
  backend.holdings.outdate();
  TRY_ASSIGN(const auto holdings, or_problem(backend.holdings.get()));
  const uint64_t id = id_of(call.text("id"));
  const auto found = std::ranges::find(holdings->clients, id, &Client::id);
  if (found == holdings->clients.end())
    return refuse("not-found", "There is no client " + call.text("id") + " (any more).");
  call.before = to_json(*found);
  const auto expelled = backend.loop.ask<bool>(
      [&backend, id](auto done) {
        backend.administration.expel(
            id, [done](Result<> outcome) { outcome ? done(true) : done(std::unexpected(outcome.error())); });
      },
      kSlowLoopDeadline);
  backend.holdings.outdate();
  backend.numbers.outdate();
  if (!expelled) return std::unexpected(Problem::from(expelled.error()));
  return no_content();
}

}  // namespace pnfsrdma::console
