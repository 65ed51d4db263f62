// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>

#include "server/mds/layout/file_io.h"
#include "server/mds/layout/file_ranges.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// The bytes of a file copied to another one, or to another place of the same one, without the client (RFC 7862, 15.2).
// Control loop only.
//
// A piece is read and then written as READ and WRITE through the server are, each with its own turn of its file: nobody
// waits for a whole copy, and two copies in opposite directions do not wait for each other. Who writes to the source
// meanwhile may find either bytes in the copy, as with a copy by read(2) and write(2). A hole of the source becomes a
// hole of the target.
//
// Cost of a piece: one RDMA READ and one RDMA WRITE per extent, no copy by the processor but for the transport's own.
class FileCopy {
 public:
  struct What {
    uint64_t client = 0;  // who asks
    uint64_t source = 0;
    uint64_t source_offset = 0;
    uint64_t target = 0;
    uint64_t target_offset = 0;
    uint64_t count = 0;
    bool clear_setid = false;  // of the target: the writer is not privileged
    // Asked before each piece, with how many bytes are written: whether to go on. Null: yes.
    std::function<bool(uint64_t copied)> goes_on;
  };
  // So many bytes from the front are in the target, durably: less than asked at the end of the source, after
  // kBytesMax or kPatience, where it does not go on, and where the rest has failed.
  struct Copied {
    uint64_t count = 0;
    nfs4::Verifier verifier{};
  };
  using Done = std::function<void(std::expected<Copied, nfs4::Status>)>;

  FileCopy(const Clock& clock, Namespace& names, FileSpace& space, FileIo& io, FileRanges& ranges);
  FileCopy(const FileCopy&) = delete;
  FileCopy& operator=(const FileCopy&) = delete;

  // The ranges do not overlap. FBIG, NOSPC, DELAY, IO, STALE.
  void copy(const What& what, Done done);

  static constexpr uint32_t kPieceBytes = uint32_t{1} << 20;
  static constexpr uint64_t kBytesMax = uint64_t{64} << 20;
  static constexpr Milliseconds kPatience{1000};

 private:
  struct Copying;
  using CopyingPointer = std::shared_ptr<Copying>;
  // What comes next of the source: data or a hole, in one stretch. Empty: nothing more.
  struct Stretch {
    uint64_t length = 0;
    bool hole = false;
    uint64_t target_size = 0;
  };

  void next_piece(const CopyingPointer& work);
  std::expected<Stretch, nfs4::Status> stretch(const Copying& work);
  void copy_hole(const CopyingPointer& work, const Stretch& stretch);
  void read_piece(const CopyingPointer& work, uint32_t length);
  void write_piece(const CopyingPointer& work, std::shared_ptr<const Bytes> data);
  void wrote(const CopyingPointer& work, const nfs4::WriteResult& result);
  void advance(const CopyingPointer& work, uint64_t length);
  void end(const CopyingPointer& work, nfs4::Status status);
  void grow(const CopyingPointer& work);
  void commit(const CopyingPointer& work);
  static void finish(const CopyingPointer& work, std::expected<Copied, nfs4::Status> answer);

  const Clock& clock_;
  Namespace& names_;
  FileSpace& space_;
  FileIo& io_;
  FileRanges& ranges_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
