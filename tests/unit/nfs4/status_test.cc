// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/status.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::nfs4 {
namespace {

TEST(Status, HasTheNumbersAndNamesOfTheRfc) {
  EXPECT_EQ(static_cast<uint32_t>(Status::kDelay), 10008u);
  EXPECT_EQ(static_cast<uint32_t>(Status::kXattr2Big), 10096u);
  EXPECT_STREQ(to_string(Status::kDelay), "NFS4ERR_DELAY");
  EXPECT_STREQ(to_string(Status::kOk), "NFS4_OK");
  EXPECT_STREQ(to_string(static_cast<Status>(9999)), "NFS4ERR_UNKNOWN");
  EXPECT_TRUE(xdr_known(Status::kConnNotBoundToSession));
  EXPECT_FALSE(xdr_known(static_cast<Status>(10073)));
  EXPECT_FALSE(xdr_known(static_cast<Status>(3)));
}

TEST(StatusErrno, ErrnosOfFilesSurviveTheTripToTheServerAndBack) {
  for (const int number :
       {EPERM,  ENOENT, EIO,    ENXIO,        EACCES,    EEXIST, EXDEV,  ENOTDIR, EISDIR, EINVAL,    EFBIG,
        ENOSPC, EROFS,  EMLINK, ENAMETOOLONG, ENOTEMPTY, EDQUOT, ESTALE, ENODATA, E2BIG,  EOPNOTSUPP}) {
    EXPECT_EQ(to_errno(from_errno(number)), number) << number;
  }
}

TEST(StatusErrno, EveryStatusButOkIsAnError) {
#define PNFSRDMA_STATUS(enumerator, name, number) \
  EXPECT_EQ(to_errno(Status::enumerator) == 0, Status::enumerator == Status::kOk) << name;
  PNFSRDMA_NFS4_STATUSES(PNFSRDMA_STATUS)
#undef PNFSRDMA_STATUS
  EXPECT_EQ(from_errno(0), Status::kOk);
  EXPECT_EQ(from_errno(ENOTTY), Status::kServerFault);
}

}  // namespace
}  // namespace pnfsrdma::nfs4
