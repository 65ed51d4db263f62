// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "cli/command/application.h"
#include "cli/command/completion.h"

namespace pnfsrdma::cli {
namespace {

using testing::Contains;
using testing::Field;
using testing::Not;

class CommandLine : public ::testing::Test {
 protected:
  CommandLine() { build_application(*app, administration); }

  // 0: makes sense; else what CLI11 calls it.
  int parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app = std::make_unique<CLI::App>();        // a command line is read once
    build_application(*app, administration);
    try {
      app->parse(words);
      return 0;
    } catch (const CLI::ParseError& error) {
      return error.get_exit_code();
    }
  }
  std::vector<Candidate> complete(std::vector<std::string> words) {
    return candidates_for(*app, words, [this](const std::string& path) {
      asked.push_back(path);
      return server.value(path, nlohmann::json::array());
    });
  }
  static auto word(const std::string& text) { return Contains(Field(&Candidate::word, text)); }

  nlohmann::json server = {
      {"/bricks", {{{"id", "5e1f"}, {"address", "unix:/run/a"}}, {{"id", "77aa"}, {"address", "tcp:b:1"}}}},
      {"/users", {{{"name", "eve"}, {"role", "viewer"}}}},
      {"/cluster", {{{"name", "mds-b"}, {"address", "https://192.0.2.2:2379"}}}},
      {"/snapshots", {{{"id", 3}, {"name", "monday"}, {"created", "2026-03-01T09:30:00Z"}}}},
      {"/jobs", {{{"id", 12}, {"kind", "check"}}}},
      {"/clients", {{{"id", "00ff"}, {"name", "host-a"}}}},
      {"/configuration",
       {{{"name", "log_level"}, {"run_time", true}, {"value", "info"}},
        {{"name", "listen"}, {"run_time", false}}}}};
  std::vector<std::string> asked;
  Output output{stdout, stderr};
  Context context{output, {}};
  TerminalPrompter prompter;
  Administration administration{context, {}, prompter};
  std::unique_ptr<CLI::App> app = std::make_unique<CLI::App>();
};

TEST_F(CommandLine, JsonMayStandBehindTheCommand) {
  EXPECT_EQ(parse({"doctor", "--json"}), 0);
  EXPECT_TRUE(output.json);
  EXPECT_TRUE(context.action);
}

TEST_F(CommandLine, WhatMakesNoSenseIsRefused) {
  EXPECT_NE(parse({}), 0);
  EXPECT_NE(parse({"stat", "--count", "3"}), 0);  // without --watch
  EXPECT_NE(parse({"stat", "--prometheus", "--watch"}), 0);
  EXPECT_NE(parse({"stat", "--watch", "--interval", "0"}), 0);
  EXPECT_NE(parse({"stat", "--interval", "1"}), 0);
  EXPECT_NE(parse({"diff", "a"}), 0);
  EXPECT_EQ(parse({"diff", "a", "b", "--content"}), 0);
  EXPECT_NE(parse({"restore"}), 0);
  EXPECT_EQ(parse({"restore", "m/.snapshots/monday/home", "--dry-run"}), 0);
  EXPECT_EQ(parse({"restore", "m/.snapshots/monday/home", "m/copy", "--delete", "--content", "--yes"}), 0);
  EXPECT_NE(parse({"snapshot", "remove"}), 0);
  EXPECT_EQ(parse({"snapshot", "create"}), 0);
  EXPECT_EQ(parse({"snapshot", "create", "monday", "--force"}), 0);
  EXPECT_EQ(parse({"snapshot", "delete", "monday", "tuesday"}), 0);
  EXPECT_EQ(parse({"snapshot", "pin", "monday", "tuesday"}), 0);
  EXPECT_NE(parse({"snapshot", "unpin"}), 0);
  EXPECT_EQ(parse({"snapshot", "schedule"}), 0);
  EXPECT_EQ(parse({"snapshot", "schedule", "--hourly", "24", "--monthly", "0", "--at", "02:30"}), 0);
  EXPECT_EQ(parse({"snapshot", "schedule", "--off"}), 0);
  EXPECT_NE(parse({"snapshot", "schedule", "--off", "--daily", "7"}), 0);
  EXPECT_NE(parse({"snapshot", "schedule", "--daily", "-1"}), 0);
  for (const char* time : {"24:00", "2:60", "02:30:00", "0230", "-1:00", ""})
    EXPECT_NE(parse({"snapshot", "schedule", "--at", time}), 0) << time;
  EXPECT_NE(parse({"nonsense"}), 0);
  EXPECT_NE(parse({"doctor", "--unknown"}), 0);
}

// CLI11 from 2.4 on (Debian 13) takes an argument "count" beside an option --count for a mistake, and ends the program.
TEST_F(CommandLine, NoArgumentIsCalledAsAnOption) {
  std::vector<const CLI::App*> commands = {app.get()};
  for (size_t at = 0; at < commands.size(); ++at) {
    std::set<std::string> names;
    for (const CLI::Option* option : commands[at]->get_options()) {
      std::vector<std::string> own = option->get_lnames();
      if (option->get_positional()) own.push_back(option->get_name(true));
      for (const std::string& name : own)
        EXPECT_TRUE(names.insert(name).second) << commands[at]->get_name() << ": " << name;
    }
    for (const CLI::App* under : commands[at]->get_subcommands({})) commands.push_back(under);
  }
  EXPECT_GT(commands.size(), 20u);
}

TEST_F(CommandLine, AMountMayStandBehindWatch) {
  EXPECT_EQ(parse({"stat", "--watch", "/mnt", "--count", "1"}), 0);
}

TEST_F(CommandLine, SecondsAndCountStandWhereNfsiostatHasThem) {
  EXPECT_EQ(parse({"stat", "2", "/mnt"}), 0);
  EXPECT_EQ(parse({"stat", "/mnt", "0.5", "3"}), 0);
  EXPECT_EQ(parse({"stat", "--watch", "5", "/mnt"}), 0);
  EXPECT_NE(parse({"stat", "/mnt", "/other"}), 0);
  EXPECT_NE(parse({"stat", "0"}), 0);
  EXPECT_NE(parse({"stat", "2", "1.5"}), 0);
  EXPECT_NE(parse({"stat", "--prometheus", "2"}), 0);
}

TEST_F(CommandLine, TheFormOfTheOutputMayBeSaidAsKubectlDoes) {
  EXPECT_EQ(parse({"health", "-o", "json"}), 0);
  EXPECT_TRUE(output.json);
  EXPECT_EQ(parse({"health", "--output", "table"}), 0);
  EXPECT_FALSE(output.json);
  EXPECT_NE(parse({"health", "-o", "yaml"}), 0);
}

TEST_F(CommandLine, NamesOfCommandsMayBeNamesOfThings) {
  EXPECT_EQ(parse({"token", "create", "list", "--role", "viewer"}), 0);
  EXPECT_EQ(parse({"brick", "show", "export"}), 0);
  EXPECT_EQ(parse({"--yes", "export", "edit", "/a", "--read-write", "--clients", "10.0.0.0/8,::1"}), 0);
  EXPECT_TRUE(administration.yes);
  EXPECT_EQ(parse({"export", "create", "--clients", "10.0.0.0/8", "/a"}), 0);
}

TEST_F(CommandLine, AnEditSaysWhatToChange) {
  EXPECT_NE(parse({"export", "edit", "/a"}), 0);
  EXPECT_NE(parse({"--json", "export", "edit", "/a", "--yes"}), 0);
  EXPECT_EQ(parse({"export", "edit", "/a", "--no-all-squash"}), 0);
  EXPECT_EQ(parse({"export", "edit", "/a", "--secure"}), 0);
  EXPECT_EQ(parse({"export", "edit", "/a", "--anongid", "0"}), 0);
}

TEST_F(CommandLine, CompletionTakesTheLineAsItIs) {
  EXPECT_EQ(parse({"completion", "words", "--", "stat", "--js"}), 0);
  EXPECT_EQ(parse({"completion", "words", "--", "brick", ""}), 0);
  EXPECT_EQ(parse({"completion", "words", "--", ""}), 0);
  EXPECT_EQ(app->get_subcommand("completion")->get_subcommand("words")->get_option("word")->results(),
            std::vector<std::string>{""});
}

TEST_F(CommandLine, CompletionKnowsCommandsAndOptions) {
  EXPECT_THAT(complete({""}), word("stat"));
  EXPECT_THAT(complete({""}), word("doctor"));
  EXPECT_THAT(complete({"do"}), word("doctor"));
  EXPECT_THAT(complete({"do"}), Not(word("stat")));
  EXPECT_THAT(complete({"stat", "--"}), word("--watch"));
  EXPECT_THAT(complete({"stat", "--"}), word("--json"));
  EXPECT_THAT(complete({"doctor", "--m"}), word("--mds"));
  EXPECT_THAT(complete({"completion", ""}), word("zsh"));
  EXPECT_THAT(complete({"completion", ""}), word("fish"));
  EXPECT_THAT(complete({"completion", ""}), Not(word("words")));
  EXPECT_TRUE(complete({"doctor", "--mds", ""}).empty());
}

TEST_F(CommandLine, CompletionKnowsWhatTheServerHas) {
  EXPECT_THAT(complete({"brick", "show", ""}),
              testing::ElementsAre(Candidate{"5e1f", "unix:/run/a"}, Candidate{"77aa", "tcp:b:1"}));
  EXPECT_THAT(complete({"brick", "check", "7"}), testing::ElementsAre(Candidate{"77aa", "tcp:b:1"}));
  EXPECT_THAT(complete({"user", "edit", ""}), word("eve"));
  EXPECT_THAT(complete({"job", "follow", ""}), word("12"));
  EXPECT_THAT(complete({"snapshot", "remove", ""}), word("monday"));
  EXPECT_THAT(complete({"snapshot", "pin", ""}), word("monday"));
  EXPECT_THAT(complete({"cluster", "leave", ""}),
              testing::ElementsAre(Candidate{"mds-b", "https://192.0.2.2:2379"}));
  EXPECT_THAT(complete({"cluster", "join", ""}), testing::IsEmpty());  // a token
  EXPECT_THAT(complete({"snapshot", "schedule", "--"}), word("--hourly"));
  EXPECT_THAT(complete({"config", "set", ""}), word("log_level"));
  EXPECT_THAT(complete({"config", "set", ""}), Not(word("listen")));  // cannot be set
  EXPECT_THAT(complete({"layout", "list", "--client", ""}), word("00ff"));
  EXPECT_THAT(complete({"user", "edit", "eve", "--role", "o"}),
              testing::ElementsAre(Candidate{"operator", ""}));
}

TEST_F(CommandLine, BricksAreCompletedByTheNamesPeopleGaveThem) {
  server["/bricks"][0]["name"] = "rack1";
  server["/bricks"][1]["name"] = "";
  EXPECT_THAT(complete({"brick", "show", "r"}), testing::ElementsAre(Candidate{"rack1", "unix:/run/a"}));
  EXPECT_THAT(complete({"device", "rename", ""}), word("rack1"));
  EXPECT_THAT(complete({"device", "show", ""}), word("77aa"));
  EXPECT_THAT(complete({"device", "show", ""}), Not(word("")));
  EXPECT_THAT(complete({"device", "show", ""}), Not(word("0")));
}

TEST_F(CommandLine, AlertsAreCompletedByNumber) {
  server["/alerts"] = {{{"id", 7}, {"summary", "The brick rack1 is unreachable"}}};
  EXPECT_THAT(complete({"alert", "acknowledge", ""}),
              testing::ElementsAre(Candidate{"7", "The brick rack1 is unreachable"}));
  EXPECT_EQ(parse({"alert", "acknowledge", "7", "--comment", "seen", "--for", "2h"}), 0);
  EXPECT_NE(parse({"alert", "acknowledge"}), 0);
  EXPECT_NE(parse({"brick", "rename", "rack1"}), 0);
  EXPECT_EQ(parse({"brick", "rename", "rack1", ""}), 0);
}

TEST_F(CommandLine, QuotasAreCompletedByWhoHasSome) {
  server["/quotas?kind=user"] = {{{"name", "alice"}}, {{"name", nullptr}}};
  server["/quotas?kind=tree"] = {{{"name", "/projects"}}};
  EXPECT_THAT(complete({"quota", ""}), word("set"));
  EXPECT_THAT(complete({"quota", "set", "--sp"}), word("--space-hard"));
  EXPECT_THAT(complete({"quota", "set", "--user", ""}), testing::ElementsAre(Candidate{"alice", ""}));
  EXPECT_THAT(complete({"quota", "show", "--tree", "/p"}), word("/projects"));
  EXPECT_THAT(complete({"quota", "list", "--user", "--o"}), word("--over"));
}

TEST_F(CommandLine, CompletionAsksForNothingThatIsNew) {
  EXPECT_TRUE(complete({"user", "create", ""}).empty());
  EXPECT_TRUE(complete({"brick", "add", ""}).empty());
  EXPECT_TRUE(complete({"config", "set", "log_level", ""}).empty());
  EXPECT_TRUE(complete({"brick", "list", ""}).empty());
  EXPECT_THAT(asked, testing::IsEmpty());
}

TEST_F(CommandLine, CompletionAsksTheServerThatTheLineNames) {
  const ApiOptions options =
      api_options_of({"--server=https://a", "--token-file", "/t", "--insecure", "brick", ""});
  EXPECT_EQ(options.server, "https://a");
  EXPECT_EQ(options.token_file, "/t");
  EXPECT_TRUE(options.insecure);
  EXPECT_EQ(api_options_of({"brick", ""}).socket, ApiOptions{}.socket);
}

}  // namespace
}  // namespace pnfsrdma::cli
