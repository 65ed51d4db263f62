// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/copy_stream.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace pnfsrdma::mds {
namespace {

namespace fs = std::filesystem;

class CopyStream : public ::testing::Test {
 protected:
  CopyStream() : folder_(fs::temp_directory_path() / ("copy-stream." + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "from");
    fs::create_directories(folder_ / "to");
  }
  ~CopyStream() override { fs::remove_all(folder_); }
  void file(const std::string& name, const std::string& content) {
    fs::create_directories((folder_ / "from" / name).parent_path());
    std::ofstream(folder_ / "from" / name, std::ios::binary) << content;
  }
  std::string stream() {
    auto writer = CopyWriter::open(folder_ / "from");
    EXPECT_TRUE(writer);
    std::string all;
    for (;;) {
      const auto piece = (*writer)->next();
      EXPECT_TRUE(piece);
      if (!piece || piece->empty()) return all;
      all += *piece;
    }
  }
  std::map<std::string, std::string> content(const std::string& of) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / of)) {
      if (!entry.is_regular_file()) continue;
      std::stringstream text;
      text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      files[entry.path().lexically_relative(folder_ / of)] = text.str();
    }
    return files;
  }
  // In pieces of that size.
  Result<> read(const std::string& stream, size_t piece = 7000) {
    fs::remove_all(folder_ / "to");
    fs::create_directories(folder_ / "to");
    CopyReader reader(folder_ / "to");
    for (size_t at = 0; at < stream.size(); at += piece) TRY(reader.take(stream.substr(at, piece)));
    return reader.end();
  }
  const fs::path folder_;
};

TEST_F(CopyStream, BringsAllFiles) {
  file("CURRENT", "MANIFEST-000004\n");
  file("empty", "");
  file("snapshots/3/000012.sst", std::string(2'500'000, 'x') + "end 1\nfile");
  file("snapshots/14/CURRENT", "y");
  const std::string all = stream();
  for (const size_t piece : {size_t{1000}, size_t{7919}, all.size()}) {
    ASSERT_TRUE(read(all, piece)) << piece;
    EXPECT_EQ(content("to"), content("from"));
  }
  ASSERT_TRUE(read(all.substr(0, 300) + all.substr(300), 1).has_value());
}

TEST_F(CopyStream, NothingIsACopyToo) {
  ASSERT_TRUE(read(stream()));
  EXPECT_TRUE(content("to").empty());
}

TEST_F(CopyStream, WhatIsCutShortIsNoCopy) {
  file("a", "one");
  file("b", "two");
  const std::string all = stream();
  for (size_t size = 0; size < all.size(); ++size) {
    const Result<> cut = read(all.substr(0, size));
    ASSERT_FALSE(cut) << size;
    EXPECT_EQ(cut.error().number(), EPROTO) << size;
  }
  EXPECT_EQ(read(all + "more\n").error().number(), EPROTO);
}

TEST_F(CopyStream, WhatWasChangedOnTheWayIsFound) {
  file("a", "some content");
  std::string all = stream();
  all[all.find("content")] = 'k';
  EXPECT_EQ(read(all).error().number(), EBADMSG);
}

TEST_F(CopyStream, NamesStayInTheDirectory) {
  for (const char* name : {"../x", "/x", ".x", "a//b", "a/../b", "a/", "", "a b", "a\\b"}) {
    const std::string text = std::string("pnfsrdma-metadata 1\nfile 1 ") + name + "\nz";
    EXPECT_EQ(read(text).error().number(), EPROTO) << name;
    EXPECT_TRUE(content("to").empty()) << name;
  }
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

TEST_F(CopyStream, AnythingElseIsRefused) {
  for (const std::string& text :
       {std::string("<html>\n"), std::string(10'000, 'x'), std::string("pnfsrdma-metadata 2\n"),
        std::string("pnfsrdma-metadata 1\nend 1\n"), std::string("pnfsrdma-metadata 1\nfile x a\n"),
        std::string("pnfsrdma-metadata 1\nfile 1 a\nzsha1 00\n")})
    EXPECT_EQ(read(text).error().number(), EPROTO) << text.substr(0, 60);
}

}  // namespace
}  // namespace pnfsrdma::mds
