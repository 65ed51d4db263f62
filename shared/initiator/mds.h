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
#include "shared/nfs4/file_operations.h"
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

// Which file, in whose name.
struct FileReference {
  nfs4::FileHandle handle;
  Credential credential;
};

// What was read and written by the layout of a file since it was last told.
struct LayoutReport {
  FileReference file;
  nfs4::LayoutStatisticsArguments activity;
};

// loga_maxcount: about 1,800 segments; the server gives a shorter range when they are more.
inline constexpr uint32_t kLayoutReplyBytesMax = uint32_t{128} << 10;

// What a LAYOUTGET brings, and the file's size, asked for behind the grant in the same COMPOUND. None: not
// said.
struct LayoutGetAnswer {
  nfs4::LayoutGetResult layouts;
  std::optional<uint64_t> size;
};

// The body of a layout of our type. None: it is malformed or of another type, and grants nothing (the stateid
// counts all the same).
std::optional<nfs4::LayoutBody> pmem_body(const nfs4::Layout& layout);
// What stands behind its body; 0: nothing does.
uint64_t end_token(const nfs4::Layout& layout);

using WriteVerifier = nfs4::Verifier;

// The metadata operations the data path needs, as calls that wait, in NFSv4's own arguments and results.
// SessionMds makes COMPOUNDs of them; tests script them. Thread-safe. DELAY and session recovery are dealt
// with below, but LAYOUTGET's LAYOUTTRYLATER, RECALLCONFLICT and DELAY come up at once: the data path then
// goes through the MDS.
class Mds {
 public:
  virtual ~Mds() = default;
  virtual MetadataResult<nfs4::DeviceAddress> get_device_info(const nfs4::DeviceId& device) = 0;
  virtual MetadataResult<LayoutGetAnswer> layout_get(const FileReference& file,
                                                     const nfs4::LayoutGetArguments& arguments) = 0;
  // The file's size behind the commit, whether the commit has changed it or not; none: the server did not
  // say.
  virtual MetadataResult<nfs4::LayoutCommitResult> layout_commit(
      const FileReference& file, const nfs4::LayoutCommitArguments& arguments) = 0;
  // Sends and does not wait; `done` is called once, from any thread, possibly before this returns.
  virtual void start_layout_commit(const FileReference& file, const nfs4::LayoutCommitArguments& arguments,
                                   std::function<void(MetadataResult<nfs4::LayoutCommitResult>)> done) = 0;
  // LAYOUTRETURN4_ALL looks at no file. `activity` (may be null) is told in front of it, in the same COMPOUND; if the
  // server refuses that, the layout is returned all the same.
  virtual MetadataResult<nfs4::LayoutReturnResult> layout_return(
      const FileReference& file, const nfs4::LayoutReturnArguments& arguments,
      const nfs4::LayoutStatisticsArguments* activity) = 0;

  // What TEST_STATEID says of it (RFC 8881, 18.48).
  virtual MetadataResult<nfs4::Status> test_stateid(const nfs4::Stateid& stateid) = 0;

  // Tells the server that a device is not reached; nobody waits for it, and it may be lost.
  virtual void start_layout_error(const FileReference&, const nfs4::LayoutErrorArguments&) {}
  // Tells the server what was done by layouts; likewise.
  virtual void start_layout_statistics(std::vector<LayoutReport>) {}

  // At most `sink` is read into, and the result's data is a view of it.
  virtual MetadataResult<nfs4::ReadResult> read(const FileReference& file, const nfs4::Stateid& stateid,
                                                uint64_t offset, MutableByteSpan sink) = 0;
  virtual MetadataResult<nfs4::WriteResult> write(const FileReference& file, const nfs4::Stateid& stateid,
                                                  uint64_t offset, ByteSpan source,
                                                  nfs4::StableHow stable) = 0;
  virtual MetadataResult<WriteVerifier> commit(const FileReference& file,
                                               const nfs4::CommitArguments& arguments) = 0;
  // Bytes one read or write may carry.
  virtual size_t io_size_max() const = 0;
  // Until then the server keeps what it has granted, unless it recalls it or says that it took it back.
  virtual SteadyTime lease_end() const { return SteadyTime::max(); }
  // The server does not know the stateid of an open, and the session lives: makes all opens good and waits for
  // that.
  virtual void renew_opens() {}
};

}  // namespace pnfsrdma::initiator
