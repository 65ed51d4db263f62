// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/result.h"
#include "shared/initiator/credential.h"
#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/pmem_layout.h"
#include "shared/nfs4/pnfs_operations.h"
#include "shared/nfs4/status.h"

namespace pnfsrdma::initiator {

// Why a metadata call failed: the server's status, or (status kOk) the errno of a call that got no answer.
struct MetadataError {
  nfs4::Status status = nfs4::Status::kOk;
  int number = 0;
  // For the application: `number`, or the errno that stands for `status`.
  int to_errno() const;
};
// The stateid is void: the open or the layout it names is not there any more, or never was.
bool is_lost_state(nfs4::Status status);
template <typename T = void>
using MetadataResult = std::expected<T, MetadataError>;

// Which file, in whose name. The stateid is an open stateid, or for layout operations the layout's.
struct FileReference {
  nfs4::FileHandle handle;
  Credential credential;
};

using Iomode = nfs4::IoMode;

// loga_maxcount: about 1,800 segments; the server gives a shorter range when they are more.
inline constexpr uint32_t kLayoutReplyBytesMax = uint32_t{128} << 10;

struct LayoutWanted {
  Iomode iomode = Iomode::kRead;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t minimum = 0;
};
// One layout4 of the answer. `body` covers [offset, offset + length).
struct LayoutPiece {
  uint64_t offset = 0;
  uint64_t length = 0;
  Iomode iomode = Iomode::kRead;
  nfs4::LayoutBody body;
};
struct LayoutGranted {
  nfs4::Stateid stateid;
  bool return_on_close = false;
  std::vector<LayoutPiece> pieces;
  // Of the file, asked for behind the grant in the same COMPOUND. None: not said.
  std::optional<uint64_t> size;
};

struct LayoutCommitWanted {
  uint64_t offset = 0;
  uint64_t length = 0;
  nfs4::Stateid stateid;
  std::optional<uint64_t> last_write_offset;  // size - 1
  std::optional<WallTime> modified;
  std::vector<nfs4::PersistRange> persist;
};

struct LayoutReturnWanted {
  Iomode iomode = Iomode::kAny;
  uint64_t offset = 0;
  uint64_t length = 0;
  nfs4::Stateid stateid;
};

// The layouts of an answer with their bodies decoded. A body that is malformed or of another type grants
// nothing: its layout is left out (the stateid counts all the same).
LayoutGranted decode_layouts(const nfs4::LayoutGetResult& result);

using WriteVerifier = nfs4::Verifier;
struct MdsRead {
  size_t length = 0;
  bool end_of_file = false;
};
struct MdsWritten {
  size_t length = 0;
  bool stable = false;  // FILE_SYNC or DATA_SYNC
  WriteVerifier verifier{};
};

// The metadata operations the data path needs, as calls that wait. SessionChannel makes COMPOUNDs of them;
// tests script them. Thread-safe. DELAY and session recovery are dealt with below, but LAYOUTGET's
// LAYOUTTRYLATER, RECALLCONFLICT and DELAY come up at once: the data path then goes through the MDS.
class MetadataChannel {
 public:
  virtual ~MetadataChannel() = default;
  virtual MetadataResult<nfs4::DeviceAddress> get_device_info(const nfs4::DeviceId& device) = 0;
  virtual MetadataResult<LayoutGranted> layout_get(const FileReference& file, const nfs4::Stateid& stateid,
                                                   const LayoutWanted& wanted) = 0;
  // The file's size behind the commit; none: the server did not say.
  virtual MetadataResult<std::optional<uint64_t>> layout_commit(const FileReference& file,
                                                                const LayoutCommitWanted& wanted) = 0;
  // Sends and does not wait; `done` is called once, from any thread, possibly before this returns.
  virtual void start_layout_commit(const FileReference& file, const LayoutCommitWanted& wanted,
                                   std::function<void(MetadataResult<std::optional<uint64_t>>)> done) = 0;
  // The layout stateid that goes on, or none when nothing is held any more.
  virtual MetadataResult<std::optional<nfs4::Stateid>> layout_return(const FileReference& file,
                                                                     const LayoutReturnWanted& wanted) = 0;
  // Bulk: all layouts of the client (LAYOUTRETURN4_ALL) or of the file system of `file` (LAYOUTRETURN4_FSID).
  virtual MetadataResult<> layout_return_all() = 0;
  virtual MetadataResult<> layout_return_filesystem(const FileReference& file) = 0;

  virtual MetadataResult<MdsRead> read(const FileReference& file, const nfs4::Stateid& stateid,
                                       uint64_t offset, MutableByteSpan sink) = 0;
  virtual MetadataResult<MdsWritten> write(const FileReference& file, const nfs4::Stateid& stateid,
                                           uint64_t offset,
                                           ByteSpan source) = 0;  // UNSTABLE4
  virtual MetadataResult<WriteVerifier> commit(const FileReference& file, uint64_t offset,
                                               uint64_t length) = 0;
  // Bytes one read or write may carry.
  virtual size_t io_size_max() const = 0;
  // Until then the server keeps what it has granted, unless it recalls it or says that it took it back.
  virtual SteadyTime lease_end() const { return SteadyTime::max(); }
};

}  // namespace pnfsrdma::initiator
