// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

#include "server/mds/layout/file_copy.h"
#include "server/mds/ops/file_handle.h"
#include "server/mds/state/client.h"
#include "server/mds/state/counters.h"
#include "server/mds/state/delegations.h"
#include "server/mds/state/stateid.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/nfs4/callback_operations.h"

namespace pnfsrdma::mds {

// Copies that go on when their COPY is answered (RFC 7862, 4): a FileCopy after the other, each in a turn of its own.
// None holds a slot, and each holds one piece in memory. They end with their client and with the daemon, which knows
// their stateids no more then: what is copied stays. Control loop only.
class OffloadedCopies {
 public:
  // At once: beyond that a COPY is synchronous, and short.
  static constexpr size_t kOfClientMax = 8;
  static constexpr size_t kMax = 64;
  // Of every copy's stateid.
  static constexpr uint32_t kSeqid = 1;

  // Whether it may write on, asked in front of each piece: what allowed its COPY may have ended.
  using MayWrite = std::function<nfs4::Status()>;
  // Tells the client by CB_OFFLOAD, once all that was copied is durable, and then says whether it has heard.
  using Tell = std::function<void(const nfs4::CallbackOffloadArguments& outcome,
                                  std::function<void(bool heard)> done)>;
  struct Wanted {
    std::shared_ptr<Client> client;
    StateidOther other{};    // what its stateid will be
    ObjectHandle target;     // by which the client knows the file
    nfs4::FileHandle named;  // the same, as it goes over the wire
    FileCopy::What what;     // of any count
    Delegations::Hold hold;  // of the target, until the copy has ended
    MayWrite may_write;
    Tell tell;
  };

  // `lease`: how long the end of a copy is known to who does not hear of it.
  OffloadedCopies(EventLoop& loop, FileCopy& copies, Counters& counters, Milliseconds lease);
  OffloadedCopies(const OffloadedCopies&) = delete;
  OffloadedCopies& operator=(const OffloadedCopies&) = delete;

  bool has_room(const Client& client);
  // Begins in a later turn. Its stateid is good until the client has heard of the end, or a lease longer than that.
  nfs4::Stateid start(Wanted wanted);

  // BAD_STATEID where the client has no such copy.
  nfs4::Status test(ClientId client, const nfs4::Stateid& stateid) const;
  // OFFLOAD_STATUS. While it goes on, what is counted need not be durable yet. BAD_STATEID.
  Outcome<nfs4::OffloadStatusResult> progress(ClientId client, const nfs4::Stateid& stateid) const;
  // OFFLOAD_CANCEL. `done` is called once, at once or when nothing of it is written any more: nobody is told of its
  // end. COMPLETE_ALREADY where it has ended, and the client is being told. BAD_STATEID.
  void cancel(ClientId client, const nfs4::Stateid& stateid, std::function<void(nfs4::Status)> done);

 private:
  struct Copy;
  using CopyPointer = std::shared_ptr<Copy>;

  CopyPointer find(ClientId client, const nfs4::Stateid& stateid) const;
  void go_on(const CopyPointer& copy);
  void copy_some(const CopyPointer& copy);
  void copied_some(const CopyPointer& copy, const std::expected<FileCopy::Copied, nfs4::Status>& answer);
  void count(const Copy& copy, uint64_t bytes);
  void fail(const CopyPointer& copy, nfs4::Status status);
  void end(const CopyPointer& copy, nfs4::Status status);
  void tell(const CopyPointer& copy);
  void forget(const CopyPointer& copy);

  EventLoop& loop_;
  FileCopy& copies_;
  Counters& counters_;
  const Milliseconds lease_;
  std::unordered_map<StateidOther, CopyPointer, StateidOtherHash> all_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
