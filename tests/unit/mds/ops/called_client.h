// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
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
  nfs4::Status recall_status = nfs4::Status::kOk;

 private:
  void serve(const rpc::IncomingCall& call, rpc::Responder responder);

  rpc::ConnectionPointer server_end_;
  rpc::ConnectionPointer client_end_;
};

}  // namespace pnfsrdma::mds
