// SPDX-License-Identifier: Apache-2.0
#include "server/console/static_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console {
namespace {

using testing::TemporaryFolder;

struct Files : ::testing::Test {
  HttpResponse get(const std::string& path, const std::string& etag = "") {
    HttpRequest request{.method = "GET", .path = path};
    if (!etag.empty()) request.headers.emplace("if-none-match", etag);
    return files.get(request);
  }
  TemporaryFolder folder;
  StaticFiles files = load();

 private:
  StaticFiles load() const {
    std::filesystem::create_directories(folder / "web/assets");
    std::ofstream(folder / "web/index.html") << "<!doctype html>";
    std::ofstream(folder / "web/assets/app-1a2b.js") << "code";
    std::ofstream(folder / "secret") << "not for you";
    return *StaticFiles::load(folder / "web");
  }
};

TEST_F(Files, AreServedWithTheirTypes) {
  EXPECT_EQ(get("/index.html").content_type, "text/html; charset=utf-8");
  const auto script = get("/assets/app-1a2b.js");
  EXPECT_EQ(script.body, "code");
  EXPECT_EQ(script.content_type, "text/javascript; charset=utf-8");
  EXPECT_NE(testing::ApiWorld::header_of(script, "Cache-Control").find("immutable"), std::string::npos);
  EXPECT_EQ(get("/assets/none.js").status, 404);
}

TEST_F(Files, PathsOfThePageItselfAreThePage) {
  for (const char* path : {"/", "/bricks", "/clients/0000000000000001"})
    EXPECT_EQ(get(path).body, "<!doctype html>");
}

TEST_F(Files, NoPathLeadsOut) {
  for (const char* path :
       {"/../secret", "/assets/../../secret", "//secret", "/./index.html", "/%2e%2e/secret"})
    EXPECT_EQ(get(path).body.find("not for you"), std::string::npos) << path;
}

TEST_F(Files, WhatTheReaderHasIsNotSentAgain) {
  const std::string etag = testing::ApiWorld::header_of(get("/index.html"), "ETag");
  EXPECT_EQ(get("/index.html", etag).status, 304);
  EXPECT_EQ(get("/index.html", "\"other\"").status, 200);
}

TEST(StaticFiles, WithoutThemAPageSaysSo) {
  const auto none = StaticFiles::load("/nonexistent");
  ASSERT_TRUE(none);
  HttpRequest request{.method = "GET", .path = "/"};
  EXPECT_NE(none->get(request).body.find("not installed"), std::string::npos);
}

}  // namespace
}  // namespace pnfsrdma::console
