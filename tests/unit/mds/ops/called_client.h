// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds {

// A client that can be called back, over a socket pair. It remembers what it was asked, and answers as the test
// says.
class CalledClient : public TestClient {
 public:
  CalledClient(TestServer& server, const std::string& name);
  ~CalledClient();
  CalledClient(const CalledClient&) = delete;
  CalledClient& operator=(const CalledClient&) = delete;

  // EXCHANGE_ID, CREATE_SESSION and the backchannel.
  void join(bool reclaim_complete = true);
  void bind_callbacks();

  std::vector<nfs4::CallbackRecallArguments> recalls;
  std::vector<nfs4::CallbackRecallAnyArguments> any_recalls;
  std::vector<nfs4::CallbackGetAttributesArguments> questions;
  std::vector<nfs4::CallbackOffloadArguments> offloads;
  nfs4::Status offload_status = nfs4::Status::kOk;
  nfs4::Status recall_status = nfs4::Status::kOk;
  // What it says of a file that it is asked for (CB_GETATTR).
  nfs4::CallbackGetAttributesResponse attributes = nfs4::Status::kBadHandle;
  bool is_silent = false;  // it answers nothing
  // What it has not answered.
  void answer_at_last();

 private:
  void serve(const rpc::IncomingCall& call, rpc::Responder responder);

  rpc::ConnectionPointer server_end_;
  rpc::ConnectionPointer client_end_;
  std::vector<std::pair<rpc::Responder, Bytes>> unanswered_;
};

}  // namespace pnfsrdma::mds
