// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/write_log.h"

#include <gtest/gtest.h>

namespace pnfsrdma::initiator {
namespace {

class WriteLogTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSize = uint64_t{1} << 20;

  template <typename Verifier>
  static Verifier verifier(uint8_t value) {
    Verifier made;
    made.fill(std::byte{value});
    return made;
  }
  auto wrote_rdma(uint64_t offset, uint8_t of_brick) {
    LayoutSegment piece;
    piece.offset = offset;
    piece.length = 4096;
    return log.wrote_rdma(piece, 1, verifier<BrickVerifier>(of_brick), {});
  }
  bool wrote_mds(uint64_t offset, uint8_t of_server) {
    return log.wrote_mds(offset, {4096, false, verifier<WriteVerifier>(of_server)});
  }

  WriteLog log{kSize};
};

TEST_F(WriteLogTest, APutBackOfRdmaWritesHasNoQuarrelWithTheVerifierOfTheMds) {
  wrote_rdma(0, 1);
  auto taken = log.take_unflushed();
  wrote_mds(4096, 5);
  log.put_back(std::move(taken));
  EXPECT_EQ(log.losses(), 0u);
  EXPECT_EQ(log.take_unflushed().mds_verifier, verifier<WriteVerifier>(5));
}

TEST_F(WriteLogTest, APutBackOfMdsWritesIsLostWhenTheServersVerifierHasChanged) {
  wrote_mds(0, 4);
  auto taken = log.take_unflushed();
  wrote_mds(4096, 5);
  log.put_back(std::move(taken));
  EXPECT_EQ(log.losses(), 1u);
  EXPECT_EQ(log.take_unflushed().mds_verifier, verifier<WriteVerifier>(5));
}

TEST_F(WriteLogTest, APutBackOfMdsWritesKeepsTheirVerifierWhileRdmaWritesCame) {
  wrote_mds(0, 4);
  auto taken = log.take_unflushed();
  wrote_rdma(4096, 1);
  log.put_back(std::move(taken));
  EXPECT_EQ(log.losses(), 0u);
  EXPECT_EQ(log.take_unflushed().mds_verifier, verifier<WriteVerifier>(4));
}

TEST_F(WriteLogTest, APutBackOfRdmaWritesIsInDoubtWhenTheBricksVerifierHasChanged) {
  wrote_rdma(0, 1);
  auto taken = log.take_unflushed();
  wrote_rdma(4096, 2);
  EXPECT_EQ(log.put_back(std::move(taken)), (std::vector<FileRange>{{0, 4096}}));
  const auto now = log.take_unflushed();
  ASSERT_EQ(now.devices.size(), 1u);
  EXPECT_EQ(now.devices.front().verifier, verifier<BrickVerifier>(2));
}

}  // namespace
}  // namespace pnfsrdma::initiator
