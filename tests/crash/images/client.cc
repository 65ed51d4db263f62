// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/images/client.h"

#include <algorithm>

#include "shared/base/check.h"
#include "shared/initiator/mds.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::crash {
namespace {

constexpr int kAttempts = 3;
constexpr int kLayoutGets = 20;

nfs4::ArgumentOperation put(const nfs4::FileHandle& handle) {
  return nfs4::PutFileHandleArguments{handle};
}
nfs4::TypedBody update_body(const nfs4::LayoutUpdate& update) {
  nfs4::TypedBody body{.layout_type = nfs4::kLayoutTypePmem};
  xdr::Encoder encoder(body.body);
  xdr::encode(encoder, update);
  return body;
}

// Neighbouring grains as ranges of bytes.
std::vector<nfs4::PersistRange> ranges_of(const std::map<uint64_t, uint32_t>& grains) {
  std::vector<nfs4::PersistRange> ranges;
  for (const auto& [grain, generation] : grains) {
    if (!ranges.empty() && ranges.back().offset + ranges.back().length == grain * kGrain) {
      ranges.back().length += kGrain;
    } else {
      ranges.push_back({grain * kGrain, kGrain});
    }
  }
  return ranges;
}

void forget_from(OpenFile& file, uint64_t size) {
  std::erase_if(file.unsynced, [&](const auto& entry) { return (entry.first + 1) * kGrain > size; });
  file.written_end = std::min(file.written_end, size);
}

}  // namespace

bool Client::finished(const Reply& reply) {
  ++(reply.ok() ? done : refused);
  return reply.ok();
}

bool Client::journalled(bool success, const std::function<void()>& note) {
  const Power::Lock lock(system_.power.mutex());
  if (success) note();
  return success;
}

// --- layouts ---

void Client::drop_layout(OpenFile& file) {
  file.layout.reset();
  file.pieces.clear();
}

bool Client::connect(const nfs4::DeviceId& device) {
  if (link_) return true;
  const Reply reply = compounds_.call({nfs4::GetDeviceInfoArguments{
      .device = device, .layout_type = nfs4::kLayoutTypePmem, .max_count = 65536, .notify_types = {}}});
  if (!reply.ok()) return false;
  const auto& body = reply.result<nfs4::GetDeviceInfoResponse>().device_address.body;
  const auto address = xdr::decode_from<nfs4::DeviceAddress>(body);
  CHECK(address);
  for (int attempt = 0; attempt < kAttempts && !link_; ++attempt)
    link_ = BrickLink::connect(system_, *address);
  return link_ != nullptr;
}

bool Client::get_layout(OpenFile& file, uint64_t offset, uint64_t length, uint64_t wished, bool write) {
  const Reply reply =
      compounds_.call({put(file.handle), nfs4::LayoutGetArguments{.layout_type = nfs4::kLayoutTypePmem,
                                                                  .io_mode = write ? nfs4::IoMode::kReadWrite
                                                                                   : nfs4::IoMode::kRead,
                                                                  .offset = offset,
                                                                  .length = std::max(length, wished),
                                                                  .min_length = length,
                                                                  .stateid = file.layout.value_or(file.open),
                                                                  .max_count = 65536}});
  if (!finished(reply)) return false;
  const auto& granted = reply.result<nfs4::LayoutGetResponse>();
  file.layout = granted.stateid;
  for (const nfs4::Layout& layout : granted.layouts) {
    const auto body = initiator::pmem_body(layout);
    if (!body) continue;
    for (const nfs4::Segment& segment : body->segments) {
      const uint64_t end = segment.file_offset + segment.length;
      std::erase_if(file.pieces, [&](const auto& entry) {
        return entry.second.begin < end && entry.second.end > segment.file_offset;
      });
      file.pieces[segment.file_offset] = {.begin = segment.file_offset,
                                          .end = end,
                                          .hole = segment.read.grant == 0,
                                          .writable = segment.write.grant != 0,
                                          .connection = body->connection,
                                          .target = segment.read};
      if (segment.read.grant != 0 && !connect(segment.device)) return false;
    }
  }
  return true;
}

// Asks for layouts until the range is covered.
bool Client::cover(OpenFile& file, uint64_t offset, uint64_t length, uint64_t wished, bool write) {
  const uint64_t end = offset + length;
  int asked = 0;
  for (uint64_t at = offset; at < end;) {
    const auto next = file.pieces.upper_bound(at);
    const OpenFile::Piece* piece = next == file.pieces.begin() ? nullptr : &std::prev(next)->second;
    if (piece != nullptr && piece->end > at && (!write || piece->writable)) {
      at = piece->end;
      continue;
    }
    if (++asked > kLayoutGets || !get_layout(file, at, end - at, wished, write)) return false;
    at = offset;  // what came may have taken the place of what was there
  }
  return true;
}

std::optional<rdma::RemoteSlice> Client::remote(const OpenFile::Piece& piece, uint64_t offset,
                                                uint64_t length) {
  if (!link_) return std::nullopt;
  const initiator::Hello& hello = link_->hello();
  rdma::RemoteSlice whole{piece.target.address, piece.end - piece.begin, piece.target.handle};
  if (piece.connection != hello.connection) {
    const auto found = hello.grants.find(piece.target.grant);
    if (found == hello.grants.end()) return std::nullopt;
    whole.address = found->second.address;
    whole.key = found->second.handle;
  }
  return whole.slice(offset - piece.begin, length);
}

bool Client::each_piece(OpenFile& file, uint64_t offset, uint64_t length, const Each& each) {
  const uint64_t end = offset + length;
  while (offset < end) {
    const OpenFile::Piece& piece = std::prev(file.pieces.upper_bound(offset))->second;
    const uint64_t part = std::min(end, piece.end) - offset;
    if (!each(piece, offset, part)) {
      link_.reset();
      return false;
    }
    offset += part;
  }
  return true;
}

// --- data ---

bool Client::write(OpenFile& file, uint64_t offset, uint64_t length, uint64_t wished) {
  if (!cover(file, offset, length, wished, true)) return false;
  uint32_t generation = 0;
  journalled(true, [&] { generation = journal_.begin_write(file.serial, offset + length); });
  Bytes data(length);
  fill(data, file.serial, offset, generation);
  const bool written = each_piece(file, offset, length, [&](const auto& piece, uint64_t at, uint64_t part) {
    const auto target = remote(piece, at, part);
    return target && link_->write(ByteSpan(data).subspan(at - offset, part), *target);
  });
  if (!written) return false;
  for (uint64_t at = offset; at < offset + length; at += kGrain) file.unsynced[at / kGrain] = generation;
  file.written_end = std::max(file.written_end, offset + length);
  return true;
}

bool Client::flush(OpenFile& file, Flush method) {
  if (faults_.skipped_flush == method) return true;
  for (const nfs4::PersistRange& range : ranges_of(file.unsynced)) {
    if (!cover(file, range.offset, range.length, 0, true)) return false;
    const bool flushed =
        method == Flush::kLayoutCommit ||
        each_piece(file, range.offset, range.length, [&](const auto& piece, uint64_t at, uint64_t part) {
          const auto target = remote(piece, at, part);
          const brick::PersistTarget place{piece.target.grant, at - piece.begin, part};
          return target && (method == Flush::kNative ? link_->flush(*target, place) : link_->persist(place));
        });
    if (!flushed) return false;
  }
  return true;
}

// LAYOUTCOMMIT, if there is anything to say by it.
bool Client::commit(OpenFile& file, Flush method) {
  const bool grows = file.written_end > file.size;
  const bool persists =
      method == Flush::kLayoutCommit && faults_.skipped_flush != method && !file.unsynced.empty();
  if (!grows && !persists) return true;
  if (!file.layout) return false;
  const auto ranges = ranges_of(file.unsynced);
  const uint64_t begin = ranges.empty() ? (file.written_end - 1) / kGrain * kGrain : ranges.front().offset;
  uint64_t end = ranges.empty() ? file.written_end : ranges.back().offset + ranges.back().length;
  end = std::max(end, file.written_end);
  nfs4::LayoutCommitArguments arguments{.offset = begin, .length = end - begin, .stateid = *file.layout};
  if (grows) arguments.last_write_offset = file.written_end - 1;
  nfs4::LayoutUpdate update;
  if (persists) update.persist = {ranges};
  arguments.update = update_body(update);
  const Reply reply = compounds_.call({put(file.handle), arguments});
  if (!finished(reply)) return false;
  if (grows) file.size = file.written_end;
  return true;
}

bool Client::sync(OpenFile& file, Flush method) {
  const bool commit_first = faults_.commit_before_flush;
  if (commit_first && !commit(file, Flush::kNative)) return false;
  // Between the two is where the fault shows: the size is durable, the bytes are not.
  if (commit_first) journalled(true, [&] { journal_.synced(file.serial, file.unsynced, file.size); });
  if (!flush(file, method) || !commit(file, method)) return false;
  return journalled(true, [&] {
    journal_.synced(file.serial, file.unsynced, file.size);
    file.unsynced.clear();
  });
}

bool Client::write_through_server(OpenFile& file, uint64_t offset, uint64_t length, bool stable) {
  uint32_t generation = 0;
  journalled(true, [&] { generation = journal_.begin_write(file.serial, offset + length); });
  Bytes data(length);
  fill(data, file.serial, offset, generation);
  nfs4::WriteArguments arguments{.stateid = file.open, .offset = offset};
  arguments.stable = stable ? nfs4::StableHow::kFileSync : nfs4::StableHow::kUnstable;
  arguments.data = data;
  const Reply written = compounds_.call({put(file.handle), arguments});
  if (!finished(written)) return false;
  const nfs4::WriteResult& result = written.result<nfs4::WriteResponse>();
  const uint64_t end = offset + result.count;
  file.size = std::max(file.size, end);
  std::map<uint64_t, uint32_t> grains;
  for (uint64_t at = offset; at + kGrain <= end; at += kGrain) grains[at / kGrain] = generation;
  for (const auto& [grain, ignored] : grains) file.unsynced.erase(grain);
  if (result.committed == nfs4::StableHow::kUnstable) {
    const Reply committed = compounds_.call({put(file.handle), nfs4::CommitArguments{}});
    if (!finished(committed)) return false;
    if (committed.result<nfs4::CommitResponse>().verifier != result.verifier) return false;
  }
  return journalled(true, [&] { journal_.synced(file.serial, grains, file.size); });
}

// --- the end of layouts and files ---

Operations Client::layout_return(const OpenFile& file) const {
  if (!file.layout) return {put(file.handle)};
  nfs4::LayoutReturnFile all{.offset = 0, .length = nfs4::kLengthToEnd, .stateid = *file.layout, .body = {}};
  nfs4::LayoutReturnArguments arguments{.layout_type = nfs4::kLayoutTypePmem};
  arguments.what = nfs4::LayoutReturnWhat::make<nfs4::LayoutReturnType::kFile>(all);
  return {put(file.handle), arguments};
}

bool Client::give_back(OpenFile& file) {
  if (!file.layout) return true;
  if (!finished(compounds_.call(layout_return(file)))) return false;
  drop_layout(file);
  forget_from(file, file.size);
  return journalled(true, [&] { journal_.ends_at(file.serial, file.size); });
}

bool Client::truncate(OpenFile& file, uint64_t size) {
  const bool had_layout = file.layout.has_value();
  journalled(true, [&] { journal_.begin_truncate(file.serial, size); });
  Operations operations = layout_return(file);
  nfs4::SetAttributesArguments arguments{.stateid = file.open, .attributes = {}};
  arguments.attributes.size = size;
  operations.push_back(arguments);
  const bool cut = finished(compounds_.call(operations));
  if (had_layout) forget_from(file, file.size);
  drop_layout(file);
  journalled(true, [&] {
    const auto cutting = std::exchange(journal_.files[file.serial].cutting, std::nullopt);
    if (had_layout) journal_.ends_at(file.serial, file.size);
    journal_.files[file.serial].cutting = cutting;
    cut ? journal_.truncated(file.serial) : journal_.files[file.serial].cutting.reset();
  });
  if (!cut) return false;
  std::erase_if(file.unsynced, [&](const auto& entry) { return entry.first * kGrain >= size; });
  file.written_end = std::min(file.written_end, size);
  file.size = size;
  return true;
}

}  // namespace pnfsrdma::crash
