// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "cli/command/application.h"
#include "tests/unit/cli/api_server.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

json quota(const std::string& kind, uint64_t id, const json& name, const json& more = json::object()) {
  json one = {{"kind", kind},
              {"id", id},
              {"name", name},
              {"complete", true},
              {"space_used_bytes", 0},
              {"space_soft_bytes", 0},
              {"space_hard_bytes", 0},
              {"space_state", "ok"},
              {"space_grace_ends", nullptr},
              {"inodes_used", 0},
              {"inodes_soft", 0},
              {"inodes_hard", 0},
              {"inodes_state", "ok"},
              {"inodes_grace_ends", nullptr}};
  one.update(more);
  return one;
}

// The program against a server that has a user, a group and a tree.
class QuotaCommands : public ::testing::Test {
 protected:
  QuotaCommands() {
    server.http.Get("/api/v1/quotas", [this](const httplib::Request& request, httplib::Response& response) {
      json items = json::array();
      for (const json& one : all) {
        if (!request.has_param("kind") || one["kind"] == request.get_param_value("kind"))
          items.push_back(one);
      }
      response.set_content(json{{"items", items}, {"next_cursor", nullptr}}.dump(), "application/json");
    });
    server.answer("/quotas/user/alice", all[0].dump(), 200, "\"seen\"");
    server.answer("/quotas/tree/3", all[2].dump(), 200, "\"seen\"");
    server.answer("/quotas/tree/4", quota("tree", 4, "/new").dump(), 200, "\"seen\"");
    server.http.Get("/api/v1/quota-settings", [this](const httplib::Request&, httplib::Response& response) {
      response.set_header("ETag", "\"seen\"");
      response.set_content(settings.dump(), "application/json");
    });
    const auto remember = [this](const httplib::Request& request, httplib::Response& response) {
      const json body = request.body.empty() ? json() : json::parse(request.body);
      bodies.push_back({request.method + " " + request.path, body});
      json answer = request.method == "POST" ? quota("tree", 4, "/new") : all[0];
      if (request.path == "/api/v1/quota-settings") answer = settings;
      response.set_content(answer.dump(), "application/json");
    };
    server.http.Patch(".*", remember);
    server.http.Post(".*", remember);
    server.http.Delete(".*", [this](const httplib::Request& request, httplib::Response& response) {
      bodies.push_back({request.method + " " + request.path, json()});
      response.status = 204;
    });
    server.start();
  }
  ~QuotaCommands() override {
    std::fclose(results);
    std::fclose(complaints);
  }

  // What it ends with; `out` and `err` are what it printed.
  int run(std::vector<std::string> words) {
    std::rewind(results);
    std::rewind(complaints);
    static_cast<void>(ftruncate(fileno(results), 0));
    static_cast<void>(ftruncate(fileno(complaints), 0));
    Output output{results, complaints};
    Context context{output, {}};
    Administration administration{context, {.server = server.url()}, prompter};
    CLI::App app;
    build_application(app, administration);
    std::ranges::reverse(words);
    int code = static_cast<int>(ExitCode::kUsage);
    try {
      app.parse(words);
      code = static_cast<int>(context.action());
    } catch (const CLI::ParseError&) {
    }
    out = text_of(results);
    err = text_of(complaints);
    return code;
  }
  static std::string text_of(std::FILE* file) {
    std::fflush(file);
    std::rewind(file);
    std::string text(1 << 16, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file));
    return text;
  }

  const json all = {quota("user", 1000, "alice",
                          {{"space_used_bytes", 11ull << 30},
                           {"space_soft_bytes", 10ull << 30},
                           {"space_hard_bytes", 15ull << 30},
                           {"space_state", "grace-over"},
                           {"space_grace_ends", "2026-01-01T00:00:00Z"}}),
                    quota("group", 7, nullptr), quota("tree", 3, "/projects", {{"inodes_used", 12}})};
  json settings = {{"state", "on"},
                   {"counted_share", nullptr},
                   {"space_grace_seconds", 604800},
                   {"inode_grace_seconds", 604800}};
  struct Sent {
    std::string what;
    json body;
    bool operator==(const Sent&) const = default;
  };
  std::vector<Sent> bodies;
  std::FILE* results = std::tmpfile();
  std::FILE* complaints = std::tmpfile();
  TerminalPrompter prompter;
  std::string out, err;
  ApiServer server;  // the last: its thread ends first
};

TEST_F(QuotaCommands, AListMarksWhoIsOver) {
  EXPECT_EQ(run({"quota", "list"}), 0);
  EXPECT_THAT(out, HasSubstr("KIND   NAME           USED"));
  EXPECT_THAT(out, HasSubstr("11.0 GiB+  10.0 GiB  15.0 GiB  expired"));
  EXPECT_THAT(out, HasSubstr("group  7"));
  EXPECT_EQ(run({"quota", "list", "--over"}), 0);
  EXPECT_THAT(out, HasSubstr("alice"));
  EXPECT_THAT(out, Not(HasSubstr("/projects")));
  EXPECT_EQ(run({"quota", "list", "--tree", "--json"}), 0);
  EXPECT_EQ(json::parse(out), json::array({all[2]}));
  EXPECT_EQ(run({"quota", "list", "--tree", "--user"}), 2);
}

TEST_F(QuotaCommands, AListSaysThatItIsBeingCounted) {
  settings["state"] = "counting";
  settings["counted_share"] = 0.43;
  EXPECT_EQ(run({"quota", "list"}), 0);
  EXPECT_THAT(err, HasSubstr("43 %"));
  EXPECT_EQ(run({"quota", "status"}), 0);
  EXPECT_THAT(out, HasSubstr("counting"));
  EXPECT_THAT(out, HasSubstr("43 %"));
  EXPECT_THAT(out, HasSubstr("7 d 0 h"));
}

TEST_F(QuotaCommands, SizesAndNumbersAreAsPeopleWriteThem) {
  EXPECT_EQ(run({"quota", "set", "--user", "alice", "--space-soft", "10G", "--space-hard", "1T",
                 "--inodes-hard", "50K"}),
            0)
      << err;
  const json body = {
      {"space_soft_bytes", 10ull << 30}, {"space_hard_bytes", 1ull << 40}, {"inodes_hard", 50000}};
  EXPECT_THAT(bodies, testing::ElementsAre(Sent{"PATCH /api/v1/quotas/user/alice", body}));
  EXPECT_EQ(server.asked().back().if_match, "\"seen\"");
}

TEST_F(QuotaCommands, WhatMakesNoSenseIsAskedOfNobody) {
  EXPECT_EQ(run({"quota", "set", "--user", "alice"}), 2);
  EXPECT_EQ(run({"quota", "set", "--space-hard", "1G"}), 2);
  EXPECT_EQ(run({"quota", "set", "--user", "", "--space-hard", "1G"}), 2);
  EXPECT_EQ(run({"quota", "set", "--user", "alice", "--group", "x", "--space-hard", "1G"}), 2);
  EXPECT_EQ(run({"quota", "set", "--user", "alice", "--space-hard", "10X"}), 2);
  EXPECT_THAT(err, HasSubstr("--space-hard 10X is no size"));
  EXPECT_EQ(run({"quota", "set", "--tree", "/new", "--inodes-soft", "1G0"}), 2);
  EXPECT_EQ(run({"quota", "set", "--tree", "/new", "--space-soft", "2G", "--space-hard", "1G"}), 2);
  EXPECT_THAT(err, HasSubstr("--space-soft is above --space-hard"));
  EXPECT_EQ(run({"quota", "grace"}), 2);
  EXPECT_EQ(run({"quota", "grace", "--space", "seven"}), 2);
  EXPECT_EQ(run({"quota", "show"}), 2);
  EXPECT_EQ(run({"quota", "remove", "--yes"}), 2);
  EXPECT_TRUE(server.asked().empty());
}

TEST_F(QuotaCommands, ADirectoryBecomesATreeOnce) {
  EXPECT_EQ(run({"quota", "set", "--tree", "/new/", "--space-hard", "1G"}), 0) << err;
  EXPECT_THAT(bodies,
              testing::ElementsAre(Sent{"POST /api/v1/quota-trees", {{"path", "/new"}}},
                                   Sent{"PATCH /api/v1/quotas/tree/4", {{"space_hard_bytes", 1 << 30}}}));
  bodies.clear();
  EXPECT_EQ(run({"quota", "set", "--tree", "/projects", "--inodes-soft", "0"}), 0) << err;
  EXPECT_THAT(bodies, testing::ElementsAre(Sent{"PATCH /api/v1/quotas/tree/3", {{"inodes_soft", 0}}}));
  bodies.clear();
  EXPECT_EQ(run({"quota", "set", "--tree", "/new"}), 0) << err;
  EXPECT_THAT(bodies, testing::ElementsAre(Sent{"POST /api/v1/quota-trees", {{"path", "/new"}}}));
}

TEST_F(QuotaCommands, ATreeIsFoundByItsPathOrNumber) {
  EXPECT_EQ(run({"quota", "show", "--tree", "/projects"}), 0);
  EXPECT_THAT(out, HasSubstr("/projects"));
  EXPECT_EQ(run({"quota", "show", "--tree", "3"}), 0);
  EXPECT_EQ(run({"quota", "show", "--tree", "/none"}), 5);
  EXPECT_THAT(err, HasSubstr("/none is no quota tree"));
}

TEST_F(QuotaCommands, RemovingIsSure) {
  EXPECT_EQ(run({"quota", "remove", "--user", "alice", "--yes"}), 0) << err;
  EXPECT_EQ(run({"quota", "remove", "--tree", "/projects", "--yes"}), 0) << err;
  EXPECT_THAT(bodies, testing::ElementsAre(Sent{"DELETE /api/v1/quotas/user/alice", json()},
                                           Sent{"DELETE /api/v1/quotas/tree/3", json()}));
  EXPECT_EQ(run({"quota", "remove", "--tree", "/none", "--yes"}), 5);
}

TEST_F(QuotaCommands, EverybodysLimitsAreSettings) {
  const json none = {
      {"space_soft_bytes", 0}, {"space_hard_bytes", 0}, {"inodes_soft", 0}, {"inodes_hard", 0}};
  settings["user_default"] = none;
  settings["user_default"]["space_hard_bytes"] = 1 << 30;
  settings["group_default"] = none;
  EXPECT_EQ(run({"quota", "set", "--default-user", "--space-hard", "1G"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("every user without limits of its own: space soft none, hard 1.0 GiB"));
  EXPECT_EQ(run({"quota", "remove", "--default-group", "--yes"}), 0) << err;
  EXPECT_THAT(bodies, testing::ElementsAre(Sent{"PATCH /api/v1/quota-settings",
                                                {{"user_default", {{"space_hard_bytes", 1 << 30}}}}},
                                           Sent{"PATCH /api/v1/quota-settings", {{"group_default", none}}}));
  EXPECT_EQ(run({"quota", "show", "--default-user"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("1.0 GiB"));
  EXPECT_EQ(run({"quota", "list"}), 0);
  EXPECT_THAT(out, testing::ContainsRegex("user   \\(default\\) .* 1.0 GiB"));
  EXPECT_EQ(run({"quota", "list", "--group"}), 0);
  EXPECT_THAT(out, Not(HasSubstr("(default)")));
  EXPECT_EQ(run({"quota", "set", "--default-user"}), 2);
  EXPECT_EQ(run({"quota", "set", "--default-user", "--user", "alice", "--space-hard", "1G"}), 2);
}

TEST_F(QuotaCommands, ARecountIsAJob) {
  EXPECT_EQ(run({"quota", "recount", "--background"}), 0) << err;
  EXPECT_THAT(bodies, testing::ElementsAre(Sent{"POST /api/v1/quota-recount", json()}));
}

TEST_F(QuotaCommands, WhatIsInNoMountHasNoQuotaOfMine) {
  EXPECT_EQ(run({"quota", "mine", "/proc"}), 5);
  EXPECT_THAT(err, HasSubstr("/proc is not in a pnfsrdma mount"));
  EXPECT_EQ(run({"quota", "mine", "/none/at/all"}), 5);
  EXPECT_TRUE(server.asked().empty());
}

TEST_F(QuotaCommands, GraceAndOnAreSettings) {
  EXPECT_EQ(run({"quota", "on"}), 0) << err;
  EXPECT_EQ(run({"quota", "grace", "--space", "12h", "--inodes", "0"}), 0) << err;
  EXPECT_THAT(bodies,
              testing::ElementsAre(Sent{"PATCH /api/v1/quota-settings", {{"on", true}}},
                                   Sent{"PATCH /api/v1/quota-settings",
                                        {{"space_grace_seconds", 43200}, {"inode_grace_seconds", 0}}}));
}

}  // namespace
}  // namespace pnfsrdma::cli
