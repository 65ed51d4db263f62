// SPDX-License-Identifier: Apache-2.0
#include "cli/output/prompter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "cli/output/progress_bar.h"
#include "cli/output/text.h"

namespace pnfsrdma::cli {
namespace {

using testing::HasSubstr;

class Typist final : public Prompter {
 public:
  explicit Typist(std::deque<std::string> types, bool there = true)
      : types_(std::move(types)), there_(there) {}
  Outcome<std::string> ask(const std::string& question, bool hidden) override {
    asked = question;
    was_hidden = hidden;
    if (types_.empty()) return refuse(ExitCode::kInterrupted, "end");
    std::string line = types_.front();
    types_.pop_front();
    return line;
  }
  bool is_there() const override { return there_; }

  std::string asked;
  bool was_hidden = false;

 private:
  std::deque<std::string> types_;
  bool there_;
};

TEST(Confirm, OnlyTheNameItselfWillDo) {
  Typist right({"brick-1"});
  EXPECT_TRUE(confirm(right, "This erases it.", "brick-1", false));
  EXPECT_THAT(right.asked, HasSubstr("This erases it."));
  for (const char* typed : {"", "y", "yes", "Brick-1", "brick-1 "}) {
    Typist wrong({typed});
    const auto outcome = confirm(wrong, "This erases it.", "brick-1", false);
    ASSERT_FALSE(outcome) << typed;
    EXPECT_EQ(outcome.error().code, ExitCode::kFailed);
  }
  Typist gone({});
  EXPECT_EQ(confirm(gone, "x", "y", false).error().code, ExitCode::kInterrupted);
}

TEST(Confirm, WithoutATerminalYesMustBeSaid) {
  Typist pipe({"brick-1"}, false);
  EXPECT_EQ(confirm(pipe, "This erases it.", "brick-1", false).error().code, ExitCode::kUsage);
  EXPECT_TRUE(confirm(pipe, "This erases it.", "brick-1", true));
}

TEST(NewPassword, IsTypedTwiceAndHidden) {
  Typist same({"secret-secret", "secret-secret"});
  EXPECT_EQ(new_password(same, "admin").value(), "secret-secret");
  EXPECT_TRUE(same.was_hidden);
  Typist different({"secret-secret", "secret-secreT"});
  EXPECT_FALSE(new_password(different, "admin"));
  Typist pipe({"from-a-pipe"}, false);
  EXPECT_EQ(new_password(pipe, "admin").value(), "from-a-pipe");
}

TEST(NewPassword, TheRuleIsSaidBeforeAndAShortOneIsNotSent) {
  Typist brief({"123456789", "123456789"});
  const auto outcome = new_password(brief, "admin");
  EXPECT_THAT(brief.asked, HasSubstr("at least 10 characters"));
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().title, HasSubstr("too short"));
  Typist letters({"äöüäöüäöü"}, false);  // 18 bytes, 9 characters
  EXPECT_FALSE(new_password(letters, "admin"));
}

TEST(ProgressBar, FitsItsLine) {
  EXPECT_EQ(ProgressBar::line(0.5, "erasing", 80), "[#############.............]  50 %  erasing");
  EXPECT_EQ(ProgressBar::line(0, "", 80), "[..........................]   0 %  ");
  EXPECT_THAT(ProgressBar::line(7, "x", 80), HasSubstr("100 %"));
  EXPECT_LT(columns_of(ProgressBar::line(1, std::string(200, 'm'), 40)), 40u);
}

}  // namespace
}  // namespace pnfsrdma::cli
