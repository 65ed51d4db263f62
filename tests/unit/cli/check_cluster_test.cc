// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/doctor/checks.h"
#include "tests/unit/cli/certificate_that_ends.h"
#include "tests/unit/cli/fake_host.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A metadata server with two others, all well.
class DoctorOfACluster : public ::testing::Test {
 protected:
  DoctorOfACluster() {
    host.files["/etc/pnfsrdma/mdsd.json"] =
        R"({ // of the site
        "metadata_log": {"endpoints": ["https://a:1"], "ca_file": "/etc/ca.pem", "certificate": "/etc/mds.pem"}})";
    host.files["/etc/ca.pem"] = host.files["/etc/mds.pem"] = certificate_that_ends_in(1000);
    for (const char* name : {"a", "b", "c"})
      cluster["members"].push_back({{"name", name}, {"state", "answers"}, {"version", "3.4.23"}});
  }
  Finding find(const std::string& subject) {
    host.output = cluster.dump();
    for (Finding& finding : check_cluster(host)) {
      EXPECT_EQ(finding.fix.empty(), finding.verdict == Verdict::kOk) << finding.subject;
      if (finding.subject == subject) return std::move(finding);
    }
    ADD_FAILURE() << "no finding about " << subject;
    return {};
  }
  void expect(const std::string& subject, Verdict verdict, const char* what) {
    const Finding finding = find(subject);
    EXPECT_EQ(finding.verdict, verdict) << subject << ": " << finding.what;
    EXPECT_THAT(finding.what, HasSubstr(what));
  }
  FakeHost host;
  json cluster = {{"members", json::array()}, {"problems", json::array()}};
};

TEST_F(DoctorOfACluster, LooksAtNothingElsewhere) {
  host.files["/etc/pnfsrdma/mdsd.json"] = "{}";
  EXPECT_TRUE(check_cluster(host).empty());
  host.files.erase("/etc/pnfsrdma/mdsd.json");
  EXPECT_TRUE(check_cluster(host).empty());
  EXPECT_TRUE(host.asked_program.empty());
}

TEST_F(DoctorOfACluster, MembersAndVersions) {
  expect("etcd", Verdict::kOk, "3 of 3 members answer, version 3.4.23");
  EXPECT_THAT(host.asked_program, testing::Contains("--cluster-status"));
  cluster["members"][0] = {{"name", "a"}, {"state", "away"}};
  cluster["members"][1]["version"] = "3.5.9";
  expect("etcd", Verdict::kOk, "2 of 3 members answer, version 3.4.23 and 3.5.9");
  cluster["members"][1]["state"] = "away";
  expect("etcd", Verdict::kProblem, "1 of 3 members answer");
  cluster["members"] = json::array();
  expect("etcd", Verdict::kProblem, "no member answers");
}

TEST_F(DoctorOfACluster, WhatTheServerFindsWrongIsShown) {
  cluster["problems"].push_back(
      {{"detail", "etcd has two members: when one is lost, nobody serves."}, {"fix", "Have three."}});
  expect("cluster", Verdict::kWarning, "two members");
}

TEST_F(DoctorOfACluster, AServerThatCannotAskIsAProblem) {
  host.output = fail(EIO, "pnfsrdma-mdsd has failed");
  const Findings findings = check_cluster(host);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].verdict, Verdict::kProblem);
  EXPECT_THAT(findings[0].what, HasSubstr("has failed"));
}

TEST_F(DoctorOfACluster, CertificatesLastForThirtyDays) {
  expect("certificate /etc/mds.pem", Verdict::kOk, "good for 1000 days");
  host.files["/etc/mds.pem"] = certificate_that_ends_in(30);
  expect("certificate /etc/mds.pem", Verdict::kOk, "good for 30 days");
  host.files["/etc/mds.pem"] = certificate_that_ends_in(29);
  expect("certificate /etc/mds.pem", Verdict::kWarning, "ends in 29 days");
  host.files["/etc/mds.pem"] = certificate_that_ends_in(-1);
  expect("certificate /etc/mds.pem", Verdict::kProblem, "has ended");
  host.files["/etc/mds.pem"] = "nonsense";
  expect("certificate /etc/mds.pem", Verdict::kProblem, "no certificate");
  host.files.erase("/etc/ca.pem");
  expect("certificate /etc/ca.pem", Verdict::kProblem, "open");
}

TEST_F(DoctorOfACluster, TheMembersOwnCertificateIsLookedAtToo) {
  host.files["/etc/pnfsrdma/cluster/etcd.pem"] = certificate_that_ends_in(1);
  expect("certificate /etc/pnfsrdma/cluster/etcd.pem", Verdict::kWarning, "ends in 1 days");
}

TEST_F(DoctorOfACluster, CopiesAreGivenSomewhere) {
  expect("copies", Verdict::kWarning, "metadata_log.copies is not set");
  host.files["/etc/pnfsrdma/mdsd.json"] =
      R"({"metadata_log": {"endpoints": ["https://a:1"], "copies": "192.0.2.1:8445"}})";
  expect("copies", Verdict::kOk, "192.0.2.1:8445");
}

TEST_F(DoctorOfACluster, AnElectionIsShorterThanALead) {
  expect("etcd election", Verdict::kOk, "1000 ms");
  host.files["/etc/default/etcd"] = "# ETCD_ELECTION_TIMEOUT=9000\nETCD_ELECTION_TIMEOUT=\"1900\"";
  expect("etcd election", Verdict::kOk, "1900 ms");
  host.files["/etc/default/etcd"] = "ETCD_NAME=a\nETCD_ELECTION_TIMEOUT=2000\n";
  expect("etcd election", Verdict::kWarning, "2000 ms");
}

}  // namespace
}  // namespace pnfsrdma::cli
