// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/doctor/checks.h"
#include "tests/unit/cli/certificate_that_ends.h"
#include "tests/unit/cli/fake_host.h"

namespace pnfsrdma::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(DoctorOfBrickControl, SaysNothingWhereThereIsNone) {
  FakeHost host;
  EXPECT_THAT(check_control(host), IsEmpty());
  host.files["/etc/pnfsrdma/brickd.json"] = R"({"pool": {"path": "/p"}, "control": {"unix": "/run/b"}})";
  host.files["/etc/pnfsrdma/mdsd.json"] = "{}";
  EXPECT_THAT(check_control(host), IsEmpty());
}

TEST(DoctorOfBrickControl, AnOpenPortIsAWarning) {
  FakeHost host;
  host.files["/etc/pnfsrdma/brickd.json"] = R"({"control": {"tcp": "192.0.2.1:20050"}} // ours)";
  const Findings findings = check_control(host);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].verdict, Verdict::kWarning);
  EXPECT_THAT(findings[0].what, HasSubstr("whoever reaches 192.0.2.1:20050"));
  EXPECT_THAT(findings[0].fix, HasSubstr("--brick"));
}

TEST(DoctorOfBrickControl, CertificatesOfBothSidesAreLookedAt) {
  FakeHost host;
  host.files["/etc/pnfsrdma/brickd.json"] = R"({"control": {"tcp": "a:1", "tls": {"ca_file": "/etc/ca.pem",
    "certificate": "/etc/pnfsrdma/cluster/brick.pem", "key": "/k"}}})";
  host.files["/etc/pnfsrdma/mdsd.json"] =
      R"({"brick_tls": {"ca_file": "/etc/ca.pem", "certificate": "/etc/mds.pem", "plain": ["tcp:b:1"]}})";
  host.files["/etc/ca.pem"] = certificate_that_ends_in(1000);
  host.files["/etc/pnfsrdma/cluster/brick.pem"] = certificate_that_ends_in(5);
  host.files["/etc/mds.pem"] = certificate_that_ends_in(-2);
  int seen = 0;
  for (const Finding& finding : check_control(host)) {
    EXPECT_EQ(finding.fix.empty(), finding.verdict == Verdict::kOk) << finding.subject;
    if (finding.subject == "certificate /etc/ca.pem") {
      ++seen;
      EXPECT_EQ(finding.verdict, Verdict::kOk);
    } else if (finding.subject == "certificate /etc/pnfsrdma/cluster/brick.pem") {
      ++seen;
      EXPECT_EQ(finding.verdict, Verdict::kWarning);
      EXPECT_THAT(finding.fix, HasSubstr("invite --brick"));
    } else if (finding.subject == "certificate /etc/mds.pem") {
      ++seen;
      EXPECT_EQ(finding.verdict, Verdict::kProblem);
      EXPECT_THAT(finding.what, HasSubstr("not controlled"));
      EXPECT_THAT(finding.fix, HasSubstr("brick_tls in mdsd.json"));
    } else {
      ++seen;
      EXPECT_EQ(finding.subject, "brick control");
      EXPECT_THAT(finding.what, HasSubstr("tcp:b:1 is reached without TLS"));
    }
  }
  EXPECT_EQ(seen, 5) << "the authority is that of both";
}

}  // namespace
}  // namespace pnfsrdma::cli
