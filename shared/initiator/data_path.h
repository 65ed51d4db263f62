// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/result.h"
#include "shared/initiator/brick/buffer.h"
#include "shared/initiator/callbacks.h"
#include "shared/initiator/data_path_options.h"
#include "shared/initiator/file/file_io.h"
#include "shared/initiator/file/pending_layout.h"
#include "shared/initiator/mds.h"
#include "shared/initiator/statistics.h"

namespace pnfsrdma::initiator {

// What `pnfsrdma-fuse` shows of a device in the mount output.
struct DeviceView {
  std::string device;     // hex
  std::string transport;  // "iwarp", "" while not connected
  std::string address;
  std::string durability;    // "volatile", "process", "power"
  std::string flush_method;  // "native", "commit-message", "layoutcommit"
  std::string choice;        // why this transport, for people
  bool connected = false;
  size_t in_flight = 0;  // work requests posted and not complete
  // What the brick offers: "tcp 192.0.2.1:20051" by the server's order.
  std::vector<std::string> offered;
};

// What is granted to this mount now.
struct LayoutsView {
  size_t known = 0;  // files with any state here: open, or closed with a layout or something to flush
  size_t files = 0;  // with a layout
  size_t segments = 0;
  uint64_t readable_bytes = 0, writable_bytes = 0;
};

// The data path of one mount: devices, layouts, recalls. Built once, handed to the FUSE operations.
// Thread-safe. Owns three threads: one for prefetch and deferred LAYOUTCOMMITs, one that gives back closed
// files, one in which dead connections end; some for recalls when there are any, and one that looks after I/O
// that nobody waits for, from the first one on. None is on the way of an I/O.
class DataPath final : public CallbackHandler {
 public:
  // `transports` in order of preference, at most kTransportsMax. The MDS (SessionMds,
  // session/session_mds.h) and the clock must outlive the data path.
  DataPath(Mds& mds, const Clock& clock, std::vector<std::shared_ptr<rdma::Transport>> transports,
           DataPathOptions options);
  // Every FileIo is gone by now.
  ~DataPath() override;

  // The FileIo of an inode that is being opened. `opens` tells stateid and credential at each call; it must
  // live until FileIo::release(). The same object for the same file handle while somebody holds it.
  std::shared_ptr<FileIo> open(const nfs4::FileHandle& handle, OpenStateSource& opens, uint64_t size);

  // LAYOUTGET to append to an OPEN's COMPOUND (PUTFH, OPEN, GETFH, GETATTR, LAYOUTGET, GETATTR of the size;
  // it uses the current stateid). Hand the object to FileIo::take_layout(), or drop it when the OPEN has
  // failed: meanwhile a recall that names a layout we do not know yet is answered DELAY. Empty arguments when
  // layouts are off, or all are being returned. `known`: of the file, where there is one: for writing it forgets
  // its holes, for the answer may be lost.
  PendingLayout layout_at_open(bool for_write, FileIo* known = nullptr);

  // Callbacks of the server (callbacks.h). They answer at once; `then` hands the work to threads of the data
  // path's own: close the gate, drain posted RDMA, flush, LAYOUTCOMMIT, LAYOUTRETURN. No FUSE
  // lock, no notify_inval.
  CallbackAnswer layout_recall(const nfs4::CallbackLayoutRecallArguments& arguments) override;
  CallbackAnswer recall_any(const nfs4::CallbackRecallAnyArguments& arguments) override;
  CallbackAnswer notify_deviceid(const nfs4::CallbackNotifyDeviceIdArguments& arguments) override;

  // RecoveryHandler::layouts_lost(): a new clientid. Drops all layouts; does not block.
  void layouts_lost();

  // RecoveryHandler::session_renewed(): layouts stay; holes, and where a file ends, are asked for again. Does not
  // block.
  void session_renewed();

  // RecoveryHandler::state_revoked(): holes that were granted are not believed any more. Does not block.
  void layouts_in_doubt();

  // RecoveryHandler::stateids_in_doubt() and stateid_gone(), of layouts. Do not block.
  std::vector<nfs4::Stateid> layout_stateids() const;
  void layout_stateid_gone(const nfs4::Stateid& stateid);

  // For I/O that its caller does not wait for (FileIo::start_read()): takes what bricks have completed, on all
  // connections. Never blocks. Other threads of the data path poll, too, but seldom.
  void progress();
  // Sends what was started with Doorbell::kLater, on all connections.
  void ring();
  // For durable writes that go out together (FileIo::start_write()): as it goes, their flushes are posted. Then ring().
  FlushChains flush_chains();
  // To sleep on until progress() may have something to do, readable then: arm(), look once more whether what is
  // awaited is complete, poll(2), progress(). One thread at a time. The data path's; made when first asked for.
  // Negative: none is available (errno).
  int completion_fd();
  void arm();

  // Memory for I/O. The pool has memory of kNone: whoever takes it leaves it alone while it is being sent.
  BufferPool& buffers();
  Result<std::unique_ptr<Buffer>> make_buffer(size_t size = kBufferSize,
                                              Stores meanwhile = Stores::kPrograms);
  // Buffer::adopt(), Buffer::map().
  Result<std::unique_ptr<Buffer>> adopt_buffer(MutableByteSpan memory);
  Result<std::unique_ptr<Buffer>> map_buffer(int descriptor, size_t size);

  const Statistics& statistics() const;
  std::vector<DeviceView> devices() const;
  // Looks at every file that is open or kept: for people and scrapers, not per I/O.
  LayoutsView layouts() const;

  // Of the mount, before delegations are returned: sends what files hold, until `deadline`.
  void send_held(SteadyTime deadline);
  // End of the mount: sends what was deferred, returns all layouts, until `deadline`; then fails what waits.
  void shut_down(SteadyTime deadline);
  // Fails everything now with ESHUTDOWN: for a mount whose servers do not answer.
  void abort();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pnfsrdma::initiator
