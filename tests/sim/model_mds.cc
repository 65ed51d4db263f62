// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/model_mds.h"

#include <algorithm>
#include <cstring>

#include "shared/base/check.h"
#include "shared/base/sync.h"

namespace pnfsrdma::sim {

namespace {

// A client that does not give back what is recalled loses it.
constexpr auto kRecallPatience = std::chrono::seconds(3);
// As long as that nobody gets a layout while a truncation waits for them.
constexpr auto kTruncationPause = std::chrono::milliseconds(200);
constexpr uint64_t kBlocksPerLayout = 8, kBlocksAhead = 4;

uint64_t end_of(uint64_t offset, uint64_t length) {
  return length > UINT64_MAX - offset ? UINT64_MAX : offset + length;
}

std::unexpected<MetadataError> refuse(Status status) {
  return std::unexpected(MetadataError{status, 0});
}

bool matches(IoMode wanted, IoMode held) {
  return wanted == IoMode::kAny || wanted == held;
}

}  // namespace

ModelMds::ModelMds(std::vector<ModelBrick*> bricks, uint64_t seed)
    : bricks_(std::move(bricks)), dice_(seed) {}

void ModelMds::add_files(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    auto file = std::make_unique<File>();
    file->number = files_.size();
    file->handle = nfs4::FileHandle{Bytes(16, static_cast<std::byte>(file->number + 1))};
    file->brick = file->number % bricks_.size();
    files_.push_back(std::move(file));
  }
}

ModelMds::File& ModelMds::file(const nfs4::FileHandle& handle) {
  for (auto& file : files_) {
    if (file->handle == handle) return *file;
  }
  CHECK(false);
}

nfs4::DeviceId ModelMds::device_of(size_t brick) {
  nfs4::DeviceId device{};
  device.fill(static_cast<std::byte>(brick + 1));
  return device;
}

MetadataResult<nfs4::DeviceAddress> ModelMds::get_device_info(size_t client, const nfs4::DeviceId& device) {
  for (size_t i = 0; i < bricks_.size(); ++i) {
    if (device_of(i) == device) return bricks_[i]->device_address(client);
  }
  return refuse(Status::kNoEnt);
}

MetadataResult<ModelMds::FileLayout*> ModelMds::check(size_t client, File& file,
                                                      const nfs4::Stateid& stateid) {
  const auto found = file.layouts.find(client);
  if (found == file.layouts.end() || found->second.stateid.other != stateid.other)
    return refuse(Status::kBadStateid);
  if (stateid.seqid < found->second.stateid.seqid) return refuse(Status::kOldStateid);
  return &found->second;
}

ModelMds::FileLayout& ModelMds::layout_of(size_t client, File& file) {
  FileLayout& layout = file.layouts[client];
  if (layout.stateid.seqid == 0) {
    const uint64_t number = next_stateid_++;
    std::memcpy(layout.stateid.other.data(), &number, sizeof number);
  }
  return layout;
}

bool ModelMds::allocate(File& file, uint64_t index) {
  if (file.blocks.contains(index)) return true;
  const auto block = brick_of(file).allocate();
  if (block) file.blocks[index] = *block;
  return block.has_value();
}

MetadataResult<initiator::LayoutGetAnswer> ModelMds::layout_get(size_t client, File& file,
                                                                const nfs4::LayoutGetArguments& wanted) {
  // An open stateid, which these tests do not look at, or that of the layout.
  const bool first = wanted.stateid.seqid == 0;
  if (!first) {
    const auto known = check(client, file, wanted.stateid);
    if (!known) return std::unexpected(known.error());
  }
  if (steady_now() < file.no_layouts_until || recalls_all(client)) return refuse(Status::kRecallConflict);
  if (!brick_of(file).up()) return refuse(Status::kLayoutTryLater);
  const bool writing = wanted.io_mode == IoMode::kReadWrite;
  if (!writing && wanted.offset >= file.size) return refuse(Status::kBadLayout);
  const uint64_t from = wanted.offset / kBlock;
  const uint64_t wish =
      std::min(end_of(wanted.offset, wanted.length), writing ? UINT64_MAX : std::max<uint64_t>(file.size, 1));
  const uint64_t to = std::min(end_block(wish), from + dice_.between(1, kBlocksPerLayout));
  // Memory comes for more than the answer tells, or than is granted at all.
  const uint64_t filled = to + (writing && dice_.one_in(2) ? dice_.below(kBlocksAhead + 1) : 0);
  if (writing) {
    // Readers that were told of a hole have to learn that there is memory; the writer learns it by the answer.
    recall_and_wait(file, from * kBlock, (filled - from) * kBlock, true, client);
    if (steady_now() < file.no_layouts_until || recalls_all(client)) return refuse(Status::kRecallConflict);
    if (!brick_of(file).up()) return refuse(Status::kLayoutTryLater);
    for (uint64_t filling = from; filling < filled && allocate(file, filling);) ++filling;
    if (dice_.one_in(10)) {
      recall_holes(client, file, from, filled);
      return refuse(Status::kLayoutTryLater);
    }
  }
  nfs4::Layout answer{.offset = from * kBlock, .io_mode = wanted.io_mode};
  nfs4::LayoutBody body;
  FileLayout& layout = layout_of(client, file);
  for (uint64_t index = from; index < to; ++index) {
    if (writing && !file.blocks.contains(index)) break;
    nfs4::Segment segment{.device = device_of(file.brick), .file_offset = index * kBlock, .length = kBlock};
    Held held{.index = index, .iomode = wanted.io_mode};
    if (file.blocks.contains(index)) {
      segment.read = brick_of(file).expose(client, file.blocks[index], writing);
      if (writing) segment.write = segment.read;
      held.grant = segment.read.grant;
    }
    std::erase_if(layout.held, [&](const Held& one) { return one.index == index && one.grant == 0; });
    layout.held.push_back(held);
    body.segments.push_back(segment);
    answer.length += kBlock;
  }
  if (body.segments.empty()) {
    if (layout.held.empty()) file.layouts.erase(client);
    return refuse(Status::kNoSpc);
  }
  body.connection = brick_of(file).connection(client);
  ++layout.stateid.seqid;
  tell("client {} file {} LAYOUTGET {} blocks {} to {} -> seqid {}", client, file.number,
       writing ? "rw" : "r", from, to, layout.stateid.seqid);
  answer.content = {nfs4::kLayoutTypePmem, xdr::encode_to_bytes(body)};
  const initiator::LayoutGetAnswer granted{{.stateid = layout.stateid, .layouts = {answer}}, file.size};
  if (writing) recall_holes(client, file, to, filled);
  return granted;
}

MetadataResult<nfs4::LayoutCommitResult> ModelMds::layout_commit(size_t client, File& file,
                                                                 const nfs4::LayoutCommitArguments& wanted) {
  const auto update = xdr::decode_from<nfs4::LayoutUpdate>(wanted.update.body);
  if (!update) return refuse(Status::kBadXdr);
  const auto layout = check(client, file, wanted.stateid);
  tell("client {} file {} LAYOUTCOMMIT size {} persist {}: {}", client, file.number,
       wanted.last_write_offset ? static_cast<int64_t>(*wanted.last_write_offset + 1) : -1,
       update->persist.size(), nfs4::to_string(layout ? Status::kOk : layout.error().status));
  if (!layout) return std::unexpected(layout.error());
  const auto writable = [&](uint64_t offset) {
    return std::any_of((*layout)->held.begin(), (*layout)->held.end(), [&](const Held& held) {
      return held.iomode == IoMode::kReadWrite && held.index == offset / kBlock;
    });
  };
  if (wanted.last_write_offset && *wanted.last_write_offset >= file.size &&
      !writable(*wanted.last_write_offset))
    return refuse(Status::kBadLayout);
  for (const nfs4::PersistRange& range : update->persist) {
    for (const auto& [index, block] : file.blocks) {
      const uint64_t from = std::max(range.offset, index * kBlock),
                     to = std::min(range.offset + range.length, (index + 1) * kBlock);
      if (from < to && !brick_of(file).persist(block, from - index * kBlock, to - index * kBlock))
        return refuse(Status::kIo);
    }
  }
  if (wanted.last_write_offset) file.size = std::max(file.size, *wanted.last_write_offset + 1);
  return nfs4::LayoutCommitResult{file.size};
}

bool ModelMds::is_written(const File& file, uint64_t offset, uint64_t length) {
  return std::ranges::any_of(file.layouts, [&](const auto& entry) {
    return std::ranges::any_of(entry.second.held, [&](const Held& held) {
      return held.iomode == IoMode::kReadWrite && held.index * kBlock < offset + length &&
             offset < (held.index + 1) * kBlock;
    });
  });
}

bool ModelMds::others_write(const File& file, uint64_t index, size_t client) const {
  return std::any_of(file.layouts.begin(), file.layouts.end(), [&](const auto& entry) {
    return entry.first != client &&
           std::any_of(entry.second.held.begin(), entry.second.held.end(), [&](const Held& held) {
             return held.index == index && held.iomode == IoMode::kReadWrite;
           });
  });
}

// Takes away what the client holds in the range; the handles are dead then, and what lies behind the end of
// file is zero or free.
bool ModelMds::drop(size_t client, File& file, IoMode iomode, uint64_t offset, uint64_t length) {
  const auto found = file.layouts.find(client);
  if (found == file.layouts.end()) return false;
  std::set<uint64_t> ended;
  auto& held = found->second.held;
  std::vector<Held> left;
  for (const Held& one : held) {
    const bool inside = one.index * kBlock < end_of(offset, length) && offset < (one.index + 1) * kBlock;
    if (!inside || !matches(iomode, one.iomode)) {
      left.push_back(one);
    } else if (one.iomode == IoMode::kReadWrite) {
      ended.insert(one.index);
    }
  }
  for (const Held& one : held) {
    const auto same = [&](const Held& other) { return other.grant == one.grant; };
    if (one.grant != 0 && std::none_of(left.begin(), left.end(), same))
      brick_of(file).withdraw(client, one.grant);
  }
  held = std::move(left);
  ended_writing(file, std::move(ended));
  if (held.empty()) {
    file.layouts.erase(client);
    return false;
  }
  return true;
}

void ModelMds::ended_writing(File& file, std::set<uint64_t> blocks) {
  std::erase_if(blocks, [&](uint64_t index) { return others_write(file, index, SIZE_MAX); });
  clean_tails(file, blocks);
  returned_.ring();
}

void ModelMds::expire(size_t client) {
  tell("client {} expires", client);
  // Fence first: what it has held may be used again when nothing that it has sent can land there.
  for (ModelBrick* brick : bricks_) brick->close_session(client);
  for (auto& file : files_) {
    const auto layout = file->layouts.extract(client);
    if (layout.empty()) continue;
    std::set<uint64_t> written;
    for (const Held& held : layout.mapped().held) {
      if (held.iomode == IoMode::kReadWrite) written.insert(held.index);
    }
    ended_writing(*file, std::move(written));
  }
  revoked_.erase(client);
  bulk_recalls_.erase(client);
}

void ModelMds::clean_tails(File& file, const std::set<uint64_t>& ended) {
  for (const uint64_t index : ended) {
    const auto block = file.blocks.find(index);
    if (block == file.blocks.end() || (index + 1) * kBlock <= file.size) continue;
    if (index * kBlock < file.size) {
      brick_of(file).zero(block->second, file.size - index * kBlock);
      continue;
    }
    const bool read = std::any_of(file.layouts.begin(), file.layouts.end(), [&](const auto& entry) {
      return held_in(entry.second, index * kBlock, kBlock, false);
    });
    brick_of(file).zero(block->second, 0);
    if (read) continue;
    brick_of(file).free(block->second);
    file.blocks.erase(block);
  }
}

MetadataResult<nfs4::LayoutReturnResult> ModelMds::layout_return(size_t client, File& file, IoMode iomode,
                                                                 const nfs4::LayoutReturnFile& wanted) {
  const auto layout = check(client, file, wanted.stateid);
  tell("client {} file {} LAYOUTRETURN {}+{} seqid {}: {}", client, file.number, wanted.offset, wanted.length,
       wanted.stateid.seqid, nfs4::to_string(layout ? Status::kOk : layout.error().status));
  if (!layout) return std::unexpected(layout.error());
  if (!drop(client, file, iomode, wanted.offset, wanted.length)) return nfs4::LayoutReturnResult{};
  nfs4::Stateid& stateid = file.layouts[client].stateid;
  ++stateid.seqid;
  return nfs4::LayoutReturnResult{stateid};
}

void ModelMds::layout_return_all(size_t client) {
  tell("client {} LAYOUTRETURN of all", client);
  bulk_recalls_.erase(client);
  for (auto& file : files_) (void)drop(client, *file, IoMode::kAny, 0, UINT64_MAX);
}

MetadataResult<nfs4::ReadResult> ModelMds::read(File& file, uint64_t offset, MutableByteSpan sink) {
  const uint64_t end = std::min(file.size, offset + sink.size());
  for (uint64_t at = offset; at < end;) {
    const uint64_t index = at / kBlock, inside = at % kBlock;
    const uint64_t count = std::min(end - at, kBlock - inside);
    const auto block = file.blocks.find(index);
    if (block == file.blocks.end()) {
      std::memset(sink.data() + (at - offset), 0, count);
    } else {
      std::memcpy(sink.data() + (at - offset), brick_of(file).bytes(block->second) + inside, count);
    }
    at += count;
  }
  const size_t count = end > offset ? end - offset : 0;
  return nfs4::ReadResult{offset + count >= file.size, nfs4::Data::view_of(sink.first(count))};
}

MetadataResult<nfs4::WriteResult> ModelMds::write(size_t client, File& file, uint64_t offset, ByteSpan source,
                                                  nfs4::StableHow stable) {
  tell("client {} file {} WRITE unit {}+{}", client, file.number, offset / 32, source.size() / 32);
  // With memory or without: who believes in a hole there would read zeros behind this.
  recall_and_wait(file, offset, source.size(), true);
  for (size_t done = 0; done < source.size();) {
    const uint64_t index = (offset + done) / kBlock, inside = (offset + done) % kBlock;
    const uint64_t count = std::min<uint64_t>(source.size() - done, kBlock - inside);
    if (!allocate(file, index)) return refuse(Status::kNoSpc);
    std::memcpy(brick_of(file).bytes(file.blocks[index]) + inside, source.data() + done, count);
    if (stable != nfs4::StableHow::kUnstable &&
        !brick_of(file).persist(file.blocks[index], inside, inside + count))
      return refuse(Status::kIo);
    done += count;
  }
  file.size = std::max(file.size, offset + source.size());
  return nfs4::WriteResult{
      .count = static_cast<uint32_t>(source.size()), .committed = stable, .verifier = write_verifier(file)};
}

MetadataResult<initiator::WriteVerifier> ModelMds::commit(File& file, uint64_t offset, uint64_t length) {
  tell("file {} COMMIT {}+{}, size {}", file.number, offset, length, file.size);
  // Behind the end of the file, too: what was written there under a layout is told later.
  const uint64_t end = end_of(offset, length == 0 ? UINT64_MAX : length);
  for (const auto& [index, block] : file.blocks) {
    const uint64_t from = std::max(offset, index * kBlock), to = std::min(end, (index + 1) * kBlock);
    if (from < to && !brick_of(file).persist(block, from - index * kBlock, to - index * kBlock))
      return refuse(Status::kIo);
  }
  return write_verifier(file);
}

// Of the server's start and of what the brick has lost.
WriteVerifier ModelMds::write_verifier(const File& file) {
  WriteVerifier verifier = brick_of(file).verifier();
  verifier.back() ^= static_cast<std::byte>(starts_);
  return verifier;
}

bool ModelMds::held_in(const FileLayout& layout, uint64_t offset, uint64_t length, bool holes_only) const {
  return std::any_of(layout.held.begin(), layout.held.end(), [&](const Held& held) {
    return held.index * kBlock < end_of(offset, length) && offset < (held.index + 1) * kBlock &&
           (!holes_only || held.grant == 0);
  });
}

void ModelMds::recall(size_t client, File& file, uint64_t offset, uint64_t length, IoMode iomode) {
  const auto found = file.layouts.find(client);
  if (found == file.layouts.end()) return;
  // Whole blocks: what the client gets beside it must not go with it.
  length = length == UINT64_MAX ? length : end_block(offset + length) * kBlock - offset / kBlock * kBlock;
  offset = offset / kBlock * kBlock;
  ++found->second.stateid.seqid;
  tell("client {} file {} recall {}+{} seqid {}", client, file.number, offset, length,
       found->second.stateid.seqid);
  nfs4::CallbackLayoutRecallArguments arguments;
  arguments.layout_type = nfs4::kLayoutTypePmem;
  arguments.io_mode = iomode;
  arguments.what = nfs4::LayoutRecallWhat::make<nfs4::LayoutRecallType::kFile>(nfs4::LayoutRecallFile{
      .file_handle = file.handle, .offset = offset, .length = length, .stateid = found->second.stateid});
  clients_.at(client)->recall(arguments);
}

// What the client takes for a hole in these blocks, where there is memory now. Nobody waits for it.
void ModelMds::recall_holes(size_t client, File& file, uint64_t from, uint64_t to) {
  const auto found = file.layouts.find(client);
  if (found == file.layouts.end() || from >= to) return;
  if (held_in(found->second, from * kBlock, (to - from) * kBlock, true))
    recall(client, file, from * kBlock, (to - from) * kBlock, IoMode::kRead);
}

void ModelMds::recall_all(size_t client) {
  tell("client {} recall of all", client);
  bulk_recalls_.insert(client);
  nfs4::CallbackLayoutRecallArguments arguments;
  arguments.layout_type = nfs4::kLayoutTypePmem;
  arguments.io_mode = IoMode::kAny;
  arguments.what = nfs4::LayoutRecallWhat::make<nfs4::LayoutRecallType::kAll>(xdr::Void{});
  clients_.at(client)->recall(arguments);
}

void ModelMds::not_held(size_t client, IoMode iomode, const nfs4::LayoutRecallFile& what) {
  File& recalled = file(what.file_handle);
  const auto found = recalled.layouts.find(client);
  // An answer to a recall of before: what has been granted since is another layout.
  if (found == recalled.layouts.end() || found->second.stateid.other != what.stateid.other) return;
  (void)drop(client, recalled, iomode, what.offset, what.length);
}

void ModelMds::recall_and_wait(File& file, uint64_t offset, uint64_t length, bool holes_only,
                               std::optional<size_t> except) {
  const SteadyTime deadline = steady_now() + kRecallPatience;
  std::set<size_t> asked;
  for (;;) {
    std::vector<size_t> holders;
    for (const auto& [client, layout] : file.layouts) {
      if (client != except && held_in(layout, offset, length, holes_only)) holders.push_back(client);
    }
    if (holders.empty()) return;
    for (const size_t client : holders) {
      if (asked.insert(client).second) recall(client, file, offset, length, IoMode::kAny);
    }
    if (returned_.wait(deadline, "a layout to be returned")) continue;
    for (const size_t client : holders) revoke(client, file);
  }
}

bool ModelMds::recall_behind(File& file, uint64_t offset) {
  const SteadyTime patience = steady_now() + dice_.microseconds(0, 30000);
  for (;;) {
    std::vector<size_t> holders;
    for (const auto& [client, layout] : file.layouts) {
      if (held_in(layout, offset, UINT64_MAX, false)) holders.push_back(client);
    }
    std::erase_if(file.asked, [&](const auto& entry) {
      return std::find(holders.begin(), holders.end(), entry.first) == holders.end();
    });
    if (holders.empty()) return true;
    for (const size_t client : holders) {
      const auto [asked, first] = file.asked.try_emplace(client, steady_now() + kRecallPatience);
      if (first) {
        recall(client, file, offset, UINT64_MAX, IoMode::kAny);
      } else if (steady_now() >= asked->second) {
        revoke(client, file);
      }
    }
    if (steady_now() >= patience) return false;
    (void)returned_.wait(patience, "layouts to be returned");
  }
}

void ModelMds::revoke(size_t client, File& file) {
  const auto found = file.layouts.find(client);
  if (found == file.layouts.end()) return;
  const nfs4::Stateid stateid = found->second.stateid;
  tell("client {} file {} revoked", client, file.number);
  ++revocations_;
  (void)drop(client, file, IoMode::kAny, 0, UINT64_MAX);
  revoked_[client].push_back(stateid);
}

void ModelMds::revoke_all(size_t client) {
  for (auto& file : files_) revoke(client, *file);
  bulk_recalls_.erase(client);
}

void ModelMds::free_stateid(size_t client, const nfs4::Stateid& stateid) {
  std::erase_if(revoked_[client], [&](const nfs4::Stateid& one) { return one.other == stateid.other; });
}

Status ModelMds::test_stateid(size_t client, const nfs4::Stateid& stateid) {
  const auto same = [&](const nfs4::Stateid& one) { return one.other == stateid.other; };
  const auto& revoked = revoked_[client];
  if (std::any_of(revoked.begin(), revoked.end(), same)) return Status::kAdminRevoked;
  const bool held = std::any_of(files_.begin(), files_.end(), [&](const auto& file) {
    const auto found = file->layouts.find(client);
    return found != file->layouts.end() && same(found->second.stateid);
  });
  return held ? Status::kOk : Status::kBadStateid;
}

MetadataResult<> ModelMds::set_size(File& file, uint64_t size) {
  tell("file {} set size {} from {}", file.number, size, file.size);
  file.no_layouts_until = steady_now() + kTruncationPause;
  if (!recall_behind(file, std::min(size, file.size))) return refuse(Status::kDelay);
  file.no_layouts_until = {};
  const uint64_t clean = std::min(size, file.size);
  file.size = size;
  for (auto block = file.blocks.begin(); block != file.blocks.end();) {
    if ((block->first + 1) * kBlock <= clean) {
      ++block;
    } else if (block->first * kBlock < clean) {
      brick_of(file).zero(block->second, clean - block->first * kBlock);
      ++block;
    } else {
      brick_of(file).free(block->second);
      block = file.blocks.erase(block);
    }
  }
  return {};
}

void ModelMds::restart_layouts() {
  ++starts_;
  revoked_.clear();
  bulk_recalls_.clear();
  for (auto& file : files_) {
    while (!file->layouts.empty())
      (void)drop(file->layouts.begin()->first, *file, IoMode::kAny, 0, UINT64_MAX);
    file->no_layouts_until = {};
    file->asked.clear();
  }
  for (ModelBrick* brick : bricks_) brick->withdraw_all();
}

void ModelMds::brick_lost(size_t brick) {
  for (auto& file : files_) {
    while (file->brick == brick && !file->layouts.empty()) revoke(file->layouts.begin()->first, *file);
  }
}

}  // namespace pnfsrdma::sim
