// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shared/nfs4/compound.h"
#include "tests/crash/images/system.h"

namespace pnfsrdma::crash {

using Operations = std::vector<nfs4::ArgumentOperation>;

// The answer to a COMPOUND; data in it points into `record`.
struct Reply {
  std::shared_ptr<const Bytes> record;
  nfs4::CompoundResults results;  // SEQUENCE's left out

  nfs4::Status status() const { return results.status; }
  bool ok() const { return results.status == nfs4::Status::kOk; }
  // The result of the last operation of this kind; CHECKs that there is one.
  template <typename Response>
  const typename Response::Result& result() const {
    const Response* found = nullptr;
    for (const nfs4::ResultOperation& operation : results.operations) {
      if (const auto* response = std::get_if<Response>(&operation)) found = response;
    }
    CHECK(found != nullptr && found->ok());
    return found->result;
  }
};

// A client's session, entered where the network would enter the server.
class CompoundClient {
 public:
  CompoundClient(System& system, std::string name) : system_(system), name_(std::move(name)) {}

  // A new incarnation of the same client: the server forgets the old one. False: it did not come about.
  bool connect();

  // One COMPOUND on slot 0; SERVERFAULT if there is no answer at all. Whatever says "later" is sent again,
  // for a while; then it is the answer.
  Reply call(const Operations& operations);

  uint64_t id() const { return id_; }

 private:
  Reply send(const Operations& operations);
  Reply call_once(const Operations& operations);

  System& system_;
  const std::string name_;
  uint64_t id_ = 0;
  nfs4::SessionId session_{};
  uint32_t sequence_ = 0;
};

}  // namespace pnfsrdma::crash
