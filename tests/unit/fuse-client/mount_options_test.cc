// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/mount_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fuse-client/known_names.h"

namespace pnfsrdma::fuse_client {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

MountOptions source(std::string_view text) {
  MountOptions options;
  EXPECT_TRUE(client::parse_source(text, options)) << text;
  return options;
}

std::string refusal(std::string_view text) {
  MountOptions options;
  const auto parsed = parse_options(text, options);
  EXPECT_FALSE(parsed) << text;
  return parsed ? "" : parsed.error().to_string();
}

TEST(Source, HostAndPath) {
  const MountOptions options = source("mds.example:/export/a");
  EXPECT_EQ(options.host, "mds.example");
  EXPECT_EQ(options.path, "/export/a");
  EXPECT_EQ(options.port, 2049);
}

TEST(Source, PortAndVersion6Address) {
  EXPECT_EQ(source("127.0.0.1:12049:/").port, 12049);
  EXPECT_EQ(source("[fe80::1]:/x").host, "fe80::1");
  EXPECT_EQ(source("[::1]:77:/x").port, 77);
}

TEST(Source, SeveralHosts) {
  const MountOptions options = source("a.example,[fe80::1],10.0.0.3:12049:/x");
  EXPECT_EQ(options.host, "a.example");
  EXPECT_EQ(options.other_hosts, (std::vector<std::string>{"fe80::1", "10.0.0.3"}));
  EXPECT_EQ(options.port, 12049);
  EXPECT_EQ(options.path, "/x");
  EXPECT_EQ(initiator::hosts_text(options.host, options.other_hosts), "a.example,[fe80::1],10.0.0.3");
}

TEST(Source, WhatIsMissingIsSaid) {
  for (const char* text : {"a,:/x", ",a:/x", "a,,b:/x", "a,b", "[::1],:/x", "", "host", ":/x",
                           "host:", "host:path", "[::1", "[::1]/x", "host:0:/x", "host:99999:/x"}) {
    MountOptions options;
    EXPECT_FALSE(client::parse_source(text, options)) << text;
  }
  MountOptions options;
  EXPECT_THAT(client::parse_source("host", options).error().to_string(), HasSubstr("server:/path"));
}

TEST(MountOptions, DefaultsAreThoseOfNfs) {
  const MountOptions options;
  EXPECT_EQ(options.attributes, (AttributeTimeouts{3s, 60s, 30s, 60s}));
  EXPECT_EQ(options.timeout_deciseconds, 600u);
  EXPECT_EQ(options.retransmissions, 2u);
  EXPECT_EQ(options.persistence, initiator::Persistence::kHard);
}

TEST(MountOptions, MetricsNeedsAnAddress) {
  MountOptions options;
  ASSERT_TRUE(parse_options("metrics=127.0.0.1:9105", options));
  EXPECT_EQ(options.metrics, "127.0.0.1:9105");
  ASSERT_TRUE(parse_options("metrics=unix:/run/x.sock", options));
  EXPECT_EQ(options.metrics, "unix:/run/x.sock");
  for (const char* text :
       {"metrics", "metrics=", "metrics=9105", "metrics=:9105", "metrics=host", "metrics=host:x"}) {
    EXPECT_THAT(refusal(text), HasSubstr("metrics")) << text;
  }
}

TEST(Options, RingsAreServedWithMemoryAndNotBesideTheKernelsCache) {
  MountOptions options;
  EXPECT_TRUE(options.serves_rings());
  EXPECT_EQ(options.ring_memory_mib, 1024u);
  ASSERT_TRUE(parse_options("ring_memory=64", options));
  EXPECT_EQ(options.ring_memory_mib, 64u);
  ASSERT_TRUE(parse_options("writeback", options));
  EXPECT_FALSE(options.serves_rings());
  options = {};
  ASSERT_TRUE(parse_options("ring_memory=0", options));
  EXPECT_FALSE(options.serves_rings());
  EXPECT_THAT(refusal("ring_memory=x"), HasSubstr("ring_memory"));
  EXPECT_THAT(refusal("ring_memory=1048577"), HasSubstr("ring_memory"));
}

TEST(MountOptions, NothingIsCachedWithCacheNone) {
  MountOptions options;
  ASSERT_TRUE(parse_options("cache=none", options));
  EXPECT_EQ(options.attributes, (AttributeTimeouts{{}, {}, {}, {}}));
  EXPECT_EQ(options.lookup_cache, LookupCache::kNone);
  EXPECT_TRUE(options.direct_only);
  EXPECT_THAT(refusal("cache=all"), HasSubstr("cache"));
}

TEST(MountOptions, MemoryForNamesIsGivenWhereTheyAreBelieved) {
  MountOptions options;
  EXPECT_EQ(options.name_memory_mib, 64u);
  ASSERT_TRUE(parse_options("name_memory=8", options));
  EXPECT_EQ(KnownNames::inode_bytes(options), size_t{6} << 20);
  EXPECT_EQ(KnownNames::listing_bytes(options), size_t{2} << 20);
  for (const char* text :
       {"lookupcache=none", "nodefault_permissions", "noac", "actimeo=0", "name_memory=0"}) {
    options = {};
    ASSERT_TRUE(parse_options(text, options)) << text;
    EXPECT_EQ(KnownNames::inode_bytes(options) + KnownNames::listing_bytes(options), 0u) << text;
  }
  EXPECT_THAT(refusal("name_memory=1048577"), HasSubstr("name_memory"));
}

TEST(MountOptions, TheLastWordCounts) {
  MountOptions options;
  ASSERT_TRUE(parse_options("soft,timeo=30,,retrans=5,hard,softerr,ro,rw,port=2050", options));
  EXPECT_EQ(options.persistence, initiator::Persistence::kSoftError);
  EXPECT_FALSE(options.read_only);
  EXPECT_EQ(options.port, 2050);
  const initiator::SessionOptions session = session_options(options, "me");
  EXPECT_EQ(session.timeout, 3000ms);
  EXPECT_EQ(session.retransmissions, 5u);
  EXPECT_EQ(session.owner, "me");
}

TEST(MountOptions, AttributeTimeouts) {
  MountOptions options;
  ASSERT_TRUE(parse_options("acregmin=1,acregmax=2,acdirmin=3,acdirmax=4", options));
  EXPECT_EQ(options.attributes, (AttributeTimeouts{1s, 2s, 3s, 4s}));
  ASSERT_TRUE(parse_options("actimeo=7", options));
  EXPECT_EQ(options.attributes, (AttributeTimeouts{7s, 7s, 7s, 7s}));
  ASSERT_TRUE(parse_options("noac", options));
  EXPECT_EQ(options.attributes, (AttributeTimeouts{0s, 0s, 0s, 0s}));
  EXPECT_THAT(refusal("acregmin=61"), HasSubstr("acregmax"));
}

TEST(MountOptions, WhichNamesAreCachedIsSaidInTheWordsOfNfs) {
  const auto parsed = [](std::string_view text) {
    MountOptions options;
    EXPECT_TRUE(parse_options(text, options)) << text;
    return options.lookup_cache;
  };
  EXPECT_EQ(MountOptions().lookup_cache, LookupCache::kAll);
  EXPECT_EQ(parsed("lookupcache=all"), LookupCache::kAll);
  EXPECT_EQ(parsed("lookupcache=pos"), LookupCache::kPositive);
  EXPECT_EQ(parsed("lookupcache=positive"), LookupCache::kPositive);
  EXPECT_EQ(parsed("lookupcache=none"), LookupCache::kNone);
  MountOptions options;
  EXPECT_FALSE(parse_options("lookupcache=negative", options));
}

TEST(MountOptions, AttributesWithNames) {
  MountOptions options;
  EXPECT_TRUE(options.attributes_with_names);
  ASSERT_TRUE(parse_options("nordirplus", options));
  EXPECT_FALSE(options.attributes_with_names);
  ASSERT_TRUE(parse_options("nordirplus,rdirplus", options));
  EXPECT_TRUE(options.attributes_with_names);
}

TEST(MountOptions, KernelOptionsAreHandedOn) {
  MountOptions options;
  ASSERT_TRUE(
      parse_options("nosuid,nodev,noatime,strictatime,_netdev,x-systemd.automount,defaults", options));
  EXPECT_THAT(options.kernel, testing::ElementsAre("nosuid", "nodev", "noatime"));
}

TEST(MountOptions, WhatCannotBeDoneIsRefusedWithTheReason) {
  EXPECT_THAT(refusal("sec=krb5"), HasSubstr("sec=sys"));
  EXPECT_THAT(refusal("xprtsec=tls"), HasSubstr("xprtsec=none"));
  EXPECT_THAT(refusal("proto=udp"), HasSubstr("rdma"));
  EXPECT_THAT(refusal("local_lock=some"), HasSubstr("none, flock, posix or all"));
  EXPECT_THAT(refusal("writeback,local_lock=flock"), HasSubstr("leave out writeback"));
  EXPECT_THAT(refusal("vers=3"), HasSubstr("4.1"));
  EXPECT_THAT(refusal("port=0"), HasSubstr("1 to 65535"));
  EXPECT_THAT(refusal("timeo=abc"), HasSubstr("a number"));
  EXPECT_THAT(refusal("frobnicate"), HasSubstr("not known"));
}

TEST(MountOptions, ProtoChoosesWhatTheDataTravelsOver) {
  MountOptions options;
  EXPECT_EQ(options.data_transports, client::DataTransports::kBest);
  ASSERT_TRUE(parse_options("proto=rdma", options));
  EXPECT_EQ(options.data_transports, client::DataTransports::kRdma);
  ASSERT_TRUE(parse_options("proto=tcp", options));
  EXPECT_EQ(options.data_transports, client::DataTransports::kTcp);
}

TEST(MountOptions, ProtoChoosesHowTheCallsReachTheServer) {
  const auto reach = [](const std::string& text) {
    MountOptions options;
    EXPECT_TRUE(parse_options(text, options));
    return std::pair(options.calls_by_rdma, session_options(options, "owner").port);
  };
  EXPECT_EQ(reach(""), std::pair(false, uint16_t{2049}));
  EXPECT_EQ(reach("proto=tcp"), std::pair(false, uint16_t{2049}));
  EXPECT_EQ(reach("proto=rdma"), std::pair(true, uint16_t{20049}));
  EXPECT_EQ(reach("proto=iwarp"), std::pair(true, uint16_t{20049}));
  EXPECT_EQ(reach("proto=rdma,port=12049"), std::pair(true, uint16_t{12049}));
  EXPECT_EQ(reach("port=2049,proto=rdma"), std::pair(true, uint16_t{2049}));
}

TEST(MountOptions, LocksAreTheServersButForThoseNamedAndWithWriteback) {
  const auto local = [](const std::string& text) {
    MountOptions options;
    EXPECT_TRUE(parse_options(text, options));
    return std::pair(options.posix_locks_local(), options.flocks_local());
  };
  EXPECT_EQ(local(""), std::pair(false, false));
  EXPECT_EQ(local("local_lock=none"), std::pair(false, false));
  EXPECT_EQ(local("local_lock=posix"), std::pair(true, false));
  EXPECT_EQ(local("local_lock=flock"), std::pair(false, true));
  EXPECT_EQ(local("local_lock=all"), std::pair(true, true));
  EXPECT_EQ(local("writeback"), std::pair(true, true));
  EXPECT_EQ(local("local_lock=all,writeback"), std::pair(true, true));
}

TEST(MountOptions, RequireDurability) {
  MountOptions options;
  ASSERT_TRUE(parse_options("require_durability=persistent,local_lock=all,sec=sys,vers=4.1", options));
  EXPECT_TRUE(options.require_persistent);
  EXPECT_EQ(options.minor_version, 1u);
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
