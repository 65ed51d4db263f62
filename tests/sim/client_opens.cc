// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/client_opens.h"

#include "shared/base/check.h"

namespace pnfsrdma::sim {

struct ClientOpens::File final : initiator::OpenStateSource {
  nfs4::FileHandle handle;
  int opens = 0;
  std::optional<nfs4::Stateid> stateid;

  std::optional<initiator::OpenState> open_state(bool) override {
    if (!stateid) return std::nullopt;
    return initiator::OpenState{.stateid = *stateid, .credential = {}};
  }
};

ClientOpens::ClientOpens() = default;
ClientOpens::~ClientOpens() = default;

nfs4::OpenArguments ClientOpens::arguments(nfs4::OpenClaim claim) {
  nfs4::OpenArguments open;
  open.share_access = nfs4::kShareAccessBoth | nfs4::kShareAccessWantNoDelegation;
  open.owner.owner = nfs4::OwnerId(as_bytes("sim"));
  open.claim = std::move(claim);
  return open;
}

void ClientOpens::open(initiator::Session& session, size_t number, const nfs4::FileHandle& handle) {
  auto& file = files_[number];
  if (!file) file = std::make_unique<File>();
  file->handle = handle;
  ++file->opens;
  const auto reply = session.call({nfs4::PutFileHandleArguments{handle},
                                   arguments(nfs4::OpenClaim::make<nfs4::ClaimType::kFileHandle>())},
                                  {}, {.cache_reply = true});
  const auto* opened = reply ? reply->result<nfs4::OpenResponse>(1) : nullptr;
  CHECK(opened != nullptr);
  // Answers overtake each other.
  const auto& known = file->stateid;
  if (!known || known->other != opened->stateid.other || known->seqid < opened->stateid.seqid)
    file->stateid = opened->stateid;
}

void ClientOpens::close(initiator::Session& session, size_t number) {
  File& file = *files_.at(number);
  if (--file.opens > 0 || !file.stateid) return;
  nfs4::CloseArguments close;
  close.open_stateid = *std::exchange(file.stateid, std::nullopt);
  close.open_stateid.seqid = 0;
  (void)session.call({nfs4::PutFileHandleArguments{file.handle}, close}, {}, {.cache_reply = true});
}

initiator::OpenStateSource& ClientOpens::source(size_t number) {
  return *files_.at(number);
}

// None: the connection is lost again, and all of it will be repeated. False: it is not open there.
std::optional<bool> ClientOpens::open_again(initiator::Session& session, File& file, nfs4::OpenClaim claim) {
  const auto reply = session.call({nfs4::PutFileHandleArguments{file.handle}, arguments(std::move(claim))},
                                  {}, {.cache_reply = true, .recovery = true});
  if (!reply) return std::nullopt;
  const auto* opened = reply->result<nfs4::OpenResponse>(1);
  if (opened != nullptr) file.stateid = opened->stateid;
  return opened != nullptr;
}

void ClientOpens::reclaim(initiator::Session& session) {
  refused_.clear();
  for (auto& [number, file] : files_) {
    if (!file->stateid) continue;
    const auto done = open_again(
        session, *file, nfs4::OpenClaim::make<nfs4::ClaimType::kPrevious>(nfs4::DelegationType::kNone));
    if (!done) return;
    if (!*done) refused_.push_back(file.get());
  }
}

void ClientOpens::reopen(initiator::Session& session) {
  for (File* file : refused_) {
    if (file->stateid && !open_again(session, *file, nfs4::OpenClaim::make<nfs4::ClaimType::kFileHandle>()))
      return;
  }
  refused_.clear();
}

}  // namespace pnfsrdma::sim
