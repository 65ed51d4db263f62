// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/result.h"
#include "shared/initiator/buffer.h"
#include "shared/initiator/file_io.h"
#include "shared/initiator/metadata_channel.h"
#include "shared/initiator/pending_layout.h"
#include "shared/initiator/session_callbacks.h"
#include "shared/initiator/statistics.h"

namespace pnfsrdma::initiator {

struct DataPathOptions {
  // One RDMA operation; when it passes, the connection is given up and made anew.
  Milliseconds io_timeout = std::chrono::seconds(10);
  // Connecting to a device, hello included. Afterwards the I/O goes through the MDS and the device rests.
  Milliseconds connect_timeout = std::chrono::seconds(3);
  Milliseconds connect_pause_first = std::chrono::milliseconds(100);
  Milliseconds connect_pause_max = std::chrono::seconds(5);
  // After LAYOUTTRYLATER or LAYOUTUNAVAILABLE a file goes through the MDS this long.
  Milliseconds layout_pause = std::chrono::seconds(1);
  Milliseconds layout_unavailable_pause = std::chrono::seconds(30);
  // mtime-only LAYOUTCOMMITs of one file keep this distance.
  Milliseconds commit_distance = std::chrono::milliseconds(100);
  // mdsthreshold, where the server's attribute says nothing: smaller files are read and written through the
  // MDS.
  uint64_t threshold_read_size = 0;
  uint64_t threshold_write_size = 0;
  // LAYOUTGET asks for at least and at most this much.
  uint64_t layout_bytes_min = uint64_t{1} << 20;
  uint64_t layout_bytes_max = uint64_t{1} << 30;
  size_t buffers_kept = 32;
  bool layouts = true;  // false: everything through the MDS
};

// What `pnfsrdma-fuse` shows of a device in the mount output.
struct DeviceView {
  std::string device;     // hex
  std::string transport;  // "iwarp", "" while not connected
  std::string address;
  std::string durability;    // "volatile", "process", "power"
  std::string flush_method;  // "native", "commit-message", "layoutcommit"
  bool connected = false;
};

// The data path of one mount: devices, layouts, recalls. Built once, handed to the FUSE operations.
// Thread-safe. Owns two threads: one for recalls, one for prefetch and deferred LAYOUTCOMMITs; neither is on
// the way of an I/O.
class DataPath final : public CallbackHandler {
 public:
  // `transports` in order of preference, at most kTransportsMax. The channel (SessionChannel,
  // session_channel.h) and the clock must outlive the data path.
  DataPath(MetadataChannel& channel, const Clock& clock,
           std::vector<std::shared_ptr<rdma::Transport>> transports, DataPathOptions options);
  // Every FileIo is gone by now.
  ~DataPath() override;

  // The FileIo of an inode that is being opened. `opens` tells stateid and credential at each call; it must
  // live until FileIo::release(). The same object for the same file handle while somebody holds it.
  std::shared_ptr<FileIo> open(const nfs4::FileHandle& handle, OpenStateSource& opens, uint64_t size);

  // LAYOUTGET to append to an OPEN's COMPOUND (PUTFH, OPEN, GETFH, GETATTR, LAYOUTGET last; it uses the
  // current stateid). Hand the object to FileIo::take_layout(), or drop it when the OPEN has failed:
  // meanwhile a recall that names a layout we do not know yet is answered DELAY. Empty arguments when layouts
  // are off.
  PendingLayout layout_at_open(bool for_write);

  // Callbacks of the server (session_callbacks.h). They answer at once; the work runs in `then`, on the
  // session's recall thread: close the gate, drain posted RDMA, flush, LAYOUTCOMMIT, LAYOUTRETURN. No FUSE
  // lock, no notify_inval.
  CallbackAnswer layout_recall(const nfs4::CbLayoutRecallArguments& arguments) override;
  CallbackAnswer recall_any(const nfs4::CbRecallAnyArguments& arguments) override;
  CallbackAnswer notify_deviceid(const nfs4::CbNotifyDeviceidArguments& arguments) override;

  // RecoveryHandler::layouts_lost(): a new session or clientid. Drops all layouts; does not block.
  void layouts_lost();

  // Memory for FUSE workers.
  BufferPool& buffers();
  Result<std::unique_ptr<Buffer>> make_buffer(size_t size = kBufferSize);

  const Statistics& statistics() const;
  std::vector<DeviceView> devices() const;

  // End of the mount: sends what was deferred, returns all layouts, until `deadline`; then fails what waits.
  void shut_down(SteadyTime deadline);
  // Fails everything now with ESHUTDOWN: for a mount whose servers do not answer.
  void abort();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pnfsrdma::initiator
