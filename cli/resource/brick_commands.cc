// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "cli/output/json_member.h"
#include "cli/output/table.h"
#include "cli/output/units.h"
#include "cli/resource/follow_job.h"
#include "cli/resource/lookup.h"
#include "cli/resource/verbs.h"

// brick: list, show, add, rename, remove, drain, undrain, format, check, blocks. device: list, show, rename.
namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr const char* kBrickCalled = "name, id, the beginning of it, or address";

constexpr std::array kBrickColumns = {
    Field{"BRICK", "/id", Field::kText, true},         Field{"NAME", "/name", Field::kText, true},
    Field{"ADDRESS", "/address", Field::kText, true},  Field{"STATE", "/state", Field::kState},
    Field{"DURABILITY", "/durability", Field::kState}, Field{"CAPACITY", "/capacity_bytes", Field::kBytes},
    Field{"FREE", "/free_bytes", Field::kBytes},       Field{"CLIENTS", "/sessions", Field::kNumber},
    Field{"GRANTS", "/grants", Field::kNumber},        Field{"TLS", "/tls", Field::kFlag},
};
constexpr std::array kBrickFields = {
    Field{"brick", "/id"},
    Field{"name", "/name"},
    Field{"address", "/address"},
    Field{"TLS", "/tls", Field::kFlag},
    Field{"state", "/state", Field::kState},
    Field{"detail", "/detail"},
    Field{"since", "/since"},
    Field{"kind", "/kind"},
    Field{"durability", "/durability", Field::kState},
    Field{"flush methods", "/flush_methods", Field::kList},
    Field{"capacity", "/capacity_bytes", Field::kBytes},
    Field{"used", "/used_bytes", Field::kBytes},
    Field{"free", "/free_bytes", Field::kBytes},
    Field{"clients", "/sessions", Field::kNumber},
    Field{"grants", "/grants", Field::kNumber},
    Field{"grants at most", "/grants_max", Field::kNumber},
    Field{"read by iWARP", "/counters/rdma_read_bytes", Field::kBytes},
    Field{"written by iWARP", "/counters/rdma_write_bytes", Field::kBytes},
    Field{"native flushes", "/counters/rdma_flushes", Field::kNumber},
    Field{"commit messages", "/counters/commit_messages", Field::kNumber},
    Field{"flushes by the MDS", "/counters/mds_flushes", Field::kNumber},
};

// A brick's memory as clients reach it: a line per path.
constexpr std::array kDevices = {
    Field{"BRICK", "/brick", Field::kText, true},
    Field{"NAME", "/name", Field::kText, true},
    Field{"KIND", "/kind"},
    Field{"DURABILITY", "/durability", Field::kState},
    Field{"FLUSH", "/flush_methods", Field::kList},
    Field{"PATH", "/netid"},
    Field{"ADDRESS", "/endpoint", Field::kText, true},
    Field{"STATE", "/state", Field::kState},
};

json devices_of(const json& bricks) {
  json devices = json::array();
  for (const json& brick : bricks) {
    for (const json& path : brick.value("paths", json::array())) {
      json device = path;
      for (const char* key : {"name", "kind", "durability", "flush_methods", "state"})
        device[key] = brick.value(key, json());
      device["brick"] = brick.value("id", json());
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

constexpr std::array kRuns = {
    Field{"BLOCK", "/block", Field::kNumber},
    Field{"BLOCKS", "/count", Field::kNumber},
    Field{"STATE", "/state"},
    Field{"CLIENTS", "/clients", Field::kText, true},
    Field{"FILES", "/files", Field::kText, true},
};

// Who and what, each once.
json with_names(json run) {
  std::string clients;
  std::string files;
  const auto add = [](std::string& all, const std::string& one) {
    if (one.empty() || (", " + all + ",").find(", " + one + ",") != std::string::npos) return;
    all += (all.empty() ? "" : ", ") + one;
  };
  for (const json& grant : run.value("grants", json::array())) {
    add(clients, text_at(grant, "/client_name"));
    const std::string path = text_at(grant, "/path");
    add(files, path.empty() ? fmt::format("inode {}", number_at(grant, "/inode")) : path);
  }
  run["clients"] = clients;
  run["files"] = files;
  return run;
}

// The pages of a block map.
Outcome<json> runs_of(ApiClient& client, const std::string& brick) {
  json runs = json::array();
  std::string cursor;
  do {
    TRY_ASSIGN(const Answer answer,
               client.get("/bricks/" + brick + "/blocks", {{"limit", "10000"}, {"cursor", cursor}}));
    for (const json& run : answer.body.value("runs", json::array())) runs.push_back(run);
    cursor = text_at(answer.body, "/next_cursor");
  } while (!cursor.empty());
  return runs;
}

void add_job_verb(CLI::App* noun, Administration& admin, const char* verb, const char* description,
                  bool erases) {
  CLI::App* const command = noun->add_subcommand(verb, description);
  const auto called = required_word(command, "brick", kBrickCalled);
  const auto background = std::make_shared<bool>(false);
  command->add_flag("--background", *background, "do not wait for the job (pnfsrdma job follow ID waits)");
  admin.does(
      command,
      [&admin, called, background, verb = std::string(verb), erases](ApiClient& client) -> Outcome<> {
        TRY_ASSIGN(const json brick, find_brick(client, *called));
        const std::string id = text_at(brick, "/id");
        json body;
        if (erases) {
          TRY(admin.sure("This erases the brick " + id + " at " + text_at(brick, "/address") + ".", id));
          body = {{"confirm", id}};
        }
        TRY_ASSIGN(Answer started, client.post("/bricks/" + encoded(id) + "/" + verb, body));
        json job = std::move(started.body);
        if (!*background) {
          TRY_ASSIGN(job, follow_job(client, std::move(job), admin.output()));
        }
        admin.done(fmt::format("job {} {}: {}", number_at(job, "/id"), text_at(job, "/state"),
                               text_at(job, "/message")),
                   job);
        return {};
      });
}

// What people call it; an empty name: it is called by its address again.
void add_rename_verb(CLI::App* noun, Administration& admin) {
  CLI::App* const command = noun->add_subcommand("rename", "give a brick a name");
  const auto called = required_word(command, "brick", kBrickCalled);
  const auto name =
      required_word(command, "name", "letters, digits, spaces and ._-; \"\" takes the name away");
  admin.does(command, [&admin, called, name](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json brick, find_brick(client, *called));
    const std::string path = "/bricks/" + encoded(text_at(brick, "/id"));
    TRY_ASSIGN(const Answer now, client.get(path));
    TRY_ASSIGN(const Answer changed, client.patch(path, {{"name", *name}}, now.etag));
    admin.done("brick " + text_at(brick, "/id") + (name->empty() ? " has no name" : " is called " + *name),
               changed.body);
    return {};
  });
}

// No new files on it, so that it empties; or again.
void add_drain_verb(CLI::App* noun, Administration& admin, const char* verb, const char* description,
                    bool draining) {
  CLI::App* const command = noun->add_subcommand(verb, description);
  const auto called = required_word(command, "brick", kBrickCalled);
  admin.does(command, [&admin, called, draining](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json brick, find_brick(client, *called));
    const std::string path = "/bricks/" + encoded(text_at(brick, "/id"));
    TRY_ASSIGN(const Answer now, client.get(path));
    TRY_ASSIGN(const Answer changed, client.patch(path, {{"draining", draining}}, now.etag));
    admin.done(
        "brick " + text_at(brick, "/id") + (draining ? " takes no new files" : " takes new files again"),
        changed.body);
    return {};
  });
}

}  // namespace

void add_brick_commands(CLI::App& app, Administration& admin) {
  CLI::App* const brick = add_noun(app, "brick", "Bricks: the servers whose memory holds the files");
  add_list(brick, admin, "all bricks", "/bricks", kBrickColumns,
           "No bricks: pnfsrdma brick add unix:/run/pnfsrdma/brick.sock");
  add_show(brick, admin, "brick", kBrickCalled, find_brick, kBrickFields);

  CLI::App* const add = brick->add_subcommand("add", "add a running, formatted brick");
  const auto address =
      required_word(add, "address", "/path or host:port where a pnfsrdma-brickd has its control socket");
  admin.does(add, [&admin, address](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const Answer made, client.post("/bricks", {{"address", brick_address(*address)}}));
    admin.done("brick " + text_at(made.body, "/id") + " added", made.body);
    return {};
  });

  add_rename_verb(brick, admin);

  CLI::App* const remove = brick->add_subcommand("remove", "remove a brick that holds no data");
  const auto removed = required_word(remove, "brick", kBrickCalled);
  admin.does(remove, [&admin, removed](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json one, find_brick(client, *removed));
    const std::string id = text_at(one, "/id");
    TRY(admin.sure("This removes the brick " + id + " from the server.", text_at(one, "/address")));
    TRY(client.remove("/bricks/" + encoded(id)));
    admin.done("brick " + id + " removed", one);
    return {};
  });

  add_drain_verb(brick, admin, "drain", "stop putting new files on a brick", true);
  add_drain_verb(brick, admin, "undrain", "allow new files on a brick again", false);
  add_job_verb(brick, admin, "format", "erase a brick that no file uses", true);
  add_job_verb(brick, admin, "check", "compare the blocks of a brick with the metadata", false);

  CLI::App* const blocks =
      brick->add_subcommand("blocks", "show how its memory is used and which clients can reach it");
  const auto mapped = required_word(blocks, "brick", kBrickCalled);
  admin.does(blocks, [&admin, mapped](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json one, find_brick(client, *mapped));
    TRY_ASSIGN(json runs, runs_of(client, text_at(one, "/id")));
    if (!admin.output().json) {
      for (json& run : runs) run = with_names(std::move(run));
    }
    show_list(admin.output(), runs, kRuns, "No blocks.");
    return {};
  });

  CLI::App* const device = add_noun(app, "device", "Devices: the paths on which clients reach the bricks");
  admin.does(device->add_subcommand("list", "every path to every brick"),
             [&admin](ApiClient& client) -> Outcome<> {
               TRY_ASSIGN(const json all, client.list("/bricks"));
               show_list(admin.output(), devices_of(all), kDevices,
                         "No devices: no brick has reported its paths yet.");
               return {};
             });
  CLI::App* const show = device->add_subcommand("show", "every path to one brick");
  const auto shown = required_word(show, "brick", kBrickCalled);
  admin.does(show, [&admin, shown](ApiClient& client) -> Outcome<> {
    TRY_ASSIGN(const json one, find_brick(client, *shown));
    show_list(admin.output(), devices_of(json::array({one})), kDevices,
              "No devices: the brick has not reported its paths yet.");
    return {};
  });
  add_rename_verb(device, admin);
}

}  // namespace pnfsrdma::cli
