// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "shared/initiator/session/session.h"
#include "shared/initiator/session/session_mds.h"
#include "tests/unit/brickd/test_client.h"

namespace pnfsrdma::bench {

// A client of the MDS that takes a read-write layout of a new file, answers CB_LAYOUTRECALL with NFS4_OK, and
// returns nothing: it writes on under the layout until the brick refuses, which the MDS brings about when
// the recall's time, one lease, is over.
class RecallIgnorer final : public initiator::CallbackHandler {
 public:
  struct Moments {  // CLOCK_MONOTONIC
    int64_t recalled_ns = 0;
    int64_t refused_ns = 0;
    int64_t last_success_posted_ns = 0;
  };
  // `mds`: "host:port".
  RecallIgnorer(rdma::Transport& transport, std::string mds, std::string file)
      : transport_(transport), mds_(std::move(mds)), file_(std::move(file)) {}

  // Opens, takes the layout, connects to the brick, says "writing" on stdout, and writes until it is
  // refused. ETIMEDOUT when that has not come after three leases.
  Result<Moments> run();

  initiator::CallbackAnswer layout_recall(const nfs4::CallbackLayoutRecallArguments& arguments) override;
  initiator::CallbackAnswer recall_any(const nfs4::CallbackRecallAnyArguments&) override { return {}; }
  initiator::CallbackAnswer notify_deviceid(const nfs4::CallbackNotifyDeviceIdArguments&) override {
    return {};
  }

 private:
  Result<> open_session();
  Result<> open_file();
  Result<nfs4::Segment> take_layout();
  Result<brick::Grant> connect(const nfs4::Segment& segment);
  Result<Moments> write_until_refused(const brick::Grant& grant);

  rdma::Transport& transport_;
  const std::string mds_, file_;
  std::atomic<int64_t> recalled_ns_ = 0;
  std::unique_ptr<initiator::Session> session_;
  initiator::FileReference open_;
  nfs4::Stateid stateid_;
  std::unique_ptr<brick::TestClient> client_;
};

}  // namespace pnfsrdma::bench
