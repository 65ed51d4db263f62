// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/file_copy.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/mds/meta/read_then.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {
// Extents that are looked at for one piece.
constexpr size_t kExtentsPerPiece = 64;
}  // namespace

struct FileCopy::Copying {
  What what;
  Done done;
  SteadyTime until;
  uint64_t copied = 0;
  // Written unstable: all with this verifier, or some are lost.
  std::optional<nfs4::Verifier> verifier;
  bool lost = false;
  bool ends_with_hole = false;  // the target may still have to grow

  uint64_t source_at() const { return what.source_offset + copied; }
  uint64_t target_at() const { return what.target_offset + copied; }
  uint64_t left() const { return what.count - copied; }
};

FileCopy::FileCopy(const Clock& clock, Namespace& names, FileSpace& space, FileIo& io, FileRanges& ranges)
    : clock_(clock), names_(names), space_(space), io_(io), ranges_(ranges) {}

void FileCopy::copy(const What& what, Done done) {
  auto work = std::make_shared<Copying>();
  work->what = what;
  work->what.count = std::min(what.count, kBytesMax);
  work->done = std::move(done);
  work->until = clock_.now() + kPatience;
  if (what.target_offset > kFileSizeMax - work->what.count)
    return finish(work, std::unexpected(Status::kFBig));
  next_piece(work);
}

void FileCopy::next_piece(const CopyingPointer& work) {
  const bool goes_on = !work->what.goes_on || work->what.goes_on(work->copied);
  if (!goes_on || work->left() == 0 || (work->copied > 0 && clock_.now() >= work->until))
    return end(work, Status::kOk);
  read_then(
      names_.store(), lifetime_.token(), [this, work] { return stretch(*work); },
      [this, work](const std::expected<Stretch, Status>& next) {
        if (!next) return end(work, next.error());
        if (next->length == 0) return end(work, Status::kOk);
        if (next->hole) return copy_hole(work, *next);
        read_piece(work, static_cast<uint32_t>(next->length));
      });
}

// Only reads.
std::expected<FileCopy::Stretch, Status> FileCopy::stretch(const Copying& work) {
  TRY_ASSIGN(const InodePointer source, names_.get(work.what.source));
  TRY_ASSIGN(const InodePointer target, names_.get(work.what.target));
  Stretch next{.target_size = target->size};
  const uint64_t at = work.source_at();
  if (at >= source->size) return next;
  const uint64_t left = std::min(work.left(), source->size - at);
  const auto extents = space_.extents().overlapping(work.what.source, at, left, kExtentsPerPiece);
  if (!extents) return std::unexpected(status_of(extents.error()));
  if (extents->empty() || extents->front().file_offset > at) {
    next.hole = true;
    next.length = extents->empty() ? left : extents->front().file_offset - at;
    return next;
  }
  uint64_t end = at;
  for (const Extent& extent : *extents) {
    if (extent.file_offset > end) break;
    end = extent.end();
  }
  next.length = std::min<uint64_t>({end - at, left, kPieceBytes});
  return next;
}

// Where the target has bytes they go; behind its end there are none.
void FileCopy::copy_hole(const CopyingPointer& work, const Stretch& stretch) {
  const ByteRange range{work->target_at(), work->target_at() + stretch.length};
  work->ends_with_hole = range.end > stretch.target_size;
  const ByteRange within{range.begin, std::min(range.end, stretch.target_size)};
  if (within.empty()) return advance(work, stretch.length);
  const What& what = work->what;
  ranges_.deallocate({what.client, what.target, what.clear_setid}, within,
                     lifetime_.guard([this, work, length = stretch.length](Status status) {
                       if (status != Status::kOk) return end(work, status);
                       advance(work, length);
                     }));
}

void FileCopy::read_piece(const CopyingPointer& work, uint32_t length) {
  io_.read(work->what.source, work->source_at(), length,
           lifetime_.guard([this, work](std::expected<FileIo::Read, Status> read) {
             if (!read) return end(work, read.error());
             // Cut meanwhile.
             if (read->data->empty()) return end(work, Status::kOk);
             write_piece(work, std::move(read->data));
           }));
}

void FileCopy::write_piece(const CopyingPointer& work, std::shared_ptr<const Bytes> data) {
  FileIo::Write write{.client = work->what.client, .inode = work->what.target, .offset = work->target_at()};
  write.data = std::move(data);
  write.clear_setid = work->what.clear_setid;
  io_.write(std::move(write), lifetime_.guard([this, work](std::expected<nfs4::WriteResult, Status> result) {
    if (!result) return end(work, result.error());
    wrote(work, *result);
  }));
}

void FileCopy::wrote(const CopyingPointer& work, const nfs4::WriteResult& result) {
  work->lost = work->lost || result.verifier != work->verifier.value_or(result.verifier);
  work->verifier = result.verifier;
  work->ends_with_hole = false;
  advance(work, result.count);
}

void FileCopy::advance(const CopyingPointer& work, uint64_t length) {
  work->copied += length;
  next_piece(work);
}

// What failed is the next request's to hear.
void FileCopy::end(const CopyingPointer& work, Status status) {
  if (work->copied == 0 && status != Status::kOk) return finish(work, std::unexpected(status));
  if (work->copied == 0) return finish(work, Copied{});
  if (work->ends_with_hole) return grow(work);
  commit(work);
}

// A grain at the end, of zeros: it makes the file as long, and never shorter.
void FileCopy::grow(const CopyingPointer& work) {
  const What& what = work->what;
  ranges_.allocate({what.client, what.target, what.clear_setid}, {work->target_at() - 1, work->target_at()},
                   lifetime_.guard([this, work](Status status) {
                     if (status != Status::kOk) return finish(work, std::unexpected(status));
                     commit(work);
                   }));
}

void FileCopy::commit(const CopyingPointer& work) {
  io_.commit(work->what.target, work->what.target_offset, static_cast<uint32_t>(work->copied),
             lifetime_.guard([work](std::expected<nfs4::Verifier, Status> verifier) {
               if (!verifier) return finish(work, std::unexpected(verifier.error()));
               // Lost on the way to the medium: the client asks again.
               if (work->lost || work->verifier.value_or(*verifier) != *verifier)
                 return finish(work, std::unexpected(Status::kDelay));
               finish(work, Copied{work->copied, *verifier});
             }));
}

void FileCopy::finish(const CopyingPointer& work, std::expected<Copied, Status> answer) {
  std::exchange(work->done, nullptr)(std::move(answer));
}

}  // namespace pnfsrdma::mds
