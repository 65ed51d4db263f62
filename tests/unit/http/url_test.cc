// SPDX-License-Identifier: Apache-2.0
#include "shared/http/url.h"

#include <gtest/gtest.h>

#include "shared/http/client.h"

namespace pnfsrdma::http {
namespace {

TEST(Url, HasSchemeHostAndPort) {
  EXPECT_EQ(parse_url("https://192.0.2.1:2379"), (Url{true, "192.0.2.1", 2379}));
  EXPECT_EQ(parse_url("http://localhost:1"), (Url{false, "localhost", 1}));
  EXPECT_EQ(parse_url("https://[2001:db8::a1]:8445"), (Url{true, "2001:db8::a1", 8445}));
  EXPECT_EQ(parse_url("https://[::1]"), (Url{true, "::1", 443}));
  EXPECT_EQ(parse_url("http://host"), (Url{false, "host", 80}));
}

TEST(Url, HasNothingElse) {
  for (const char* text :
       {"", "host:1", "ftp://host:1", "https://", "https://:1", "https://host:", "https://host:0",
        "https://host:65536", "https://host:1x", "https://host:1/", "https://[::1", "https://[::1]x",
        "https://[]:1", "https://::1:2379", "https://user@host:1", "https://ho st:1"})
    EXPECT_FALSE(parse_url(text)) << text;
}

TEST(Client, IsMadeForWhatIsAUrl) {
  for (const char* url : {"https://[2001:db8::a1]:8445", "http://127.0.0.1:1"}) {
    const auto client = make_client(url);
    ASSERT_TRUE(client) << url;
    EXPECT_TRUE((*client)->is_valid()) << url;
  }
  EXPECT_FALSE(make_client("2001:db8::a1"));
}

}  // namespace
}  // namespace pnfsrdma::http
