// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/member_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

MemberSettings second() {
  return {.name = "b",
          .address = "192.0.2.2",
          .data_directory = "/var/lib/etcd/pnfsrdma-1",
          .contacts = {"https://192.0.2.1:2379"}};
}

TEST(MemberSettings, AreReadAsTheyWereWritten) {
  const auto read = member_settings_from(to_json(second()));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(second()));
  for (const char* name : {"name", "address", "client_port", "data_directory", "prefix"}) {
    json damaged = to_json(second());
    damaged.erase(name);
    EXPECT_FALSE(member_settings_from(damaged)) << name;
  }
}

TEST(MemberSettings, AnAddressIsTheSameHoweverItIsWritten) {
  EXPECT_TRUE(same_address("192.0.2.1", "192.0.2.1"));
  EXPECT_TRUE(same_address("2001:db8::1", "2001:DB8:0:0::1"));
  EXPECT_FALSE(same_address("192.0.2.1", "192.0.2.10"));
  EXPECT_FALSE(same_address("192.0.2.1", "::ffff:192.0.2.1"));
  EXPECT_FALSE(same_address("", ""));
  EXPECT_FALSE(same_address("host", "host"));
}

TEST(MemberSettings, NamesAndAddressesAreCheckedBeforeTheyGetIntoFiles) {
  for (const char* name : {"", "a b", "a=b", "a,b", "a/b", "a\nETCD_X=1"}) {
    MemberSettings wrong = second();
    wrong.name = name;
    EXPECT_FALSE(check(wrong)) << name;
  }
  for (const char* address : {"", "https://a", "a b", "a\nb", "[::1]", "a.example"}) {
    MemberSettings wrong = second();
    wrong.address = address;
    EXPECT_FALSE(check(wrong)) << address;
  }
  EXPECT_TRUE(check(second()));
}

TEST(MemberSettings, OfTheFirstMakeANewEtcd) {
  const std::string text = etcd_environment(second(), {}, {});
  EXPECT_THAT(text, HasSubstr("\nETCD_INITIAL_CLUSTER=b=https://192.0.2.2:2380\n"));
  EXPECT_THAT(text, HasSubstr("\nETCD_INITIAL_CLUSTER_STATE=new\n"));
  EXPECT_THAT(text, HasSubstr("\nETCD_CLIENT_CERT_AUTH=true\n"));
  EXPECT_THAT(text, HasSubstr("\nETCD_PEER_CLIENT_CERT_AUTH=true\n"));
}

TEST(MemberSettings, OfOthersNameAllMembers) {
  const std::string text = etcd_environment(
      second(), {},
      {{.name = "a", .peer_url = "https://192.0.2.1:2380"}, {.peer_url = "https://192.0.2.2:2380"}});
  EXPECT_THAT(text, HasSubstr("\nETCD_INITIAL_CLUSTER=b=https://192.0.2.2:2380,a=https://192.0.2.1:2380\n"));
  EXPECT_THAT(text, HasSubstr("\nETCD_INITIAL_CLUSTER_STATE=existing\n"));
}

TEST(MemberSettings, AnotherEtcdsSettingsAreNotReplaced) {
  EXPECT_TRUE(may_replace_etcd_config(""));
  EXPECT_TRUE(may_replace_etcd_config("## comment\n  # ETCD_NAME=x\n\n"));
  EXPECT_TRUE(may_replace_etcd_config(etcd_environment(second(), {}, {})));
  EXPECT_FALSE(may_replace_etcd_config("# comment\nETCD_NAME=x\n"));
}

TEST(MemberSettings, TheServerAsksItsOwnHostFirstAndKeepsWhatItHas) {
  const json log = metadata_log_of(second(), {}, {{"prefix", "/old"}, {"other", 1}});
  EXPECT_EQ(log["endpoints"], json({"https://192.0.2.2:2379", "https://192.0.2.1:2379"}));
  EXPECT_EQ(log["key"], "/etc/pnfsrdma/cluster/mds.key");
  EXPECT_EQ(log["prefix"], "/pnfsrdma");
  EXPECT_EQ(log["other"], 1);
  EXPECT_EQ(log["copies"], "192.0.2.2:8445");
  EXPECT_EQ(metadata_log_of(second(), {}, {{"copies", "192.0.2.9:1"}})["copies"], "192.0.2.9:1");
}

TEST(MemberSettings, ABrickGetsTlsAndKeepsWhatItHas) {
  const json fresh = control_of("192.0.2.7", {}, json());
  EXPECT_EQ(fresh["tcp"], "192.0.2.7:20050");
  EXPECT_EQ(fresh["tls"]["certificate"], "/etc/pnfsrdma/cluster/brick.pem");
  const json kept =
      control_of("2001:db8::7", {},
                 {{"unix", "/run/b"}, {"tcp", "[::]:7"}, {"tls", {{"peers", {"alpha"}}, {"key", "/old"}}}});
  EXPECT_EQ(kept["tcp"], "[::]:7");
  EXPECT_EQ(kept["unix"], "/run/b");
  EXPECT_EQ(kept["tls"]["peers"], json({"alpha"}));
  EXPECT_EQ(kept["tls"]["key"], "/etc/pnfsrdma/cluster/brick.key");
  EXPECT_EQ(control_of("2001:db8::7", {}, json())["tcp"], "[2001:db8::7]:20050");
}

TEST(MemberSettings, AddressesOfIpv6HaveBrackets) {
  EXPECT_EQ(https_url("2001:db8::1", 2379), "https://[2001:db8::1]:2379");
}

}  // namespace
}  // namespace pnfsrdma::cli
