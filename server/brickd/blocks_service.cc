// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/blocks_service.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "shared/base/log.h"

namespace pnfsrdma::brick {
namespace {

using BlocksStatus = blocks::Status;

// Addresses of blocks end here: nothing wraps.
constexpr uint64_t kAddressEnd = uint64_t{1} << 56;
// A commit of the same blocks may be under way.
constexpr Milliseconds kUnpinnedLookedApart{5};

BlocksStatus blocks_status(Status status) {
  switch (status) {
    case Status::kOk:
      return BlocksStatus::kOk;
    case Status::kExists:
      return BlocksStatus::kExists;
    case Status::kNotFound:
      return BlocksStatus::kNotFound;
    case Status::kNoSpace:
      return BlocksStatus::kNoSpace;
    case Status::kLimit:
      return BlocksStatus::kLimit;
    case Status::kIo:
      return BlocksStatus::kIo;
    case Status::kBusy:
    case Status::kTryLater:
      return BlocksStatus::kTryLater;
    case Status::kStaleEpoch:
    case Status::kInvalid:
    case Status::kLapsed:
      return BlocksStatus::kInvalid;
  }
  return BlocksStatus::kIo;
}

MappingTable::Mapping wanted_mapping(const blocks::MapArguments& arguments) {
  return {arguments.address, arguments.count, arguments.writable, arguments.shared};
}

}  // namespace

// The start is counted before anybody is served: what was mapped in the one before can be told from what is older.
BlocksService::BlocksService(Parts parts, Milliseconds lease)
    : parts_(parts),
      attachments_(parts.loop, parts.random, lease,
                   [this](uint64_t attachment) {
                     log_warning("brick", "attachment-silent attachment={:x}: its mappings end", attachment);
                     end_attachment(attachment, [] {});
                   }),
      mappings_(parts.pool.block_size()),
      start_epoch_(parts.pool.superblock().epoch() + 1) {
  raise_epoch(lifetime_.guard([this](Status status) { started_ = status == Status::kOk; }));
  // Whoever has not come back by then has been silent for its lease.
  reclaim_timer_ = parts_.loop.after(lease, lifetime_.guard([this] { mappings_.end_reclaims(); }));
}

void BlocksService::raise_epoch(std::function<void(Status)> done) {
  parts_.committer.submit(
      [this]() -> Committer::Outcome {
        Superblock& superblock = parts_.pool.superblock();
        const auto& name = superblock.content().ownership.name;
        return {Status::kOk, superblock.set_claim(superblock.epoch() + 1, name.data())};
      },
      std::move(done));
}

template <typename T>
void BlocksService::answer(Done<T> done, T result) {
  parts_.loop.at_turn_end([done = std::move(done), result = std::move(result)] { done(result); });
}

// --- attachments ---

void BlocksService::attach(const blocks::AttachArguments& arguments, Done<blocks::AttachResult> done) {
  blocks::AttachResult result;
  if (!started_) {
    result.status = parts_.committer.failed() ? BlocksStatus::kIo : BlocksStatus::kTryLater;
    return answer(std::move(done), std::move(result));
  }
  result.attachment = arguments.attachment;
  if (arguments.attachment != 0) {
    const Attachments::Ticket* const ticket = attachments_.hear(arguments.attachment);
    if (ticket == nullptr)
      return answer(std::move(done), blocks::AttachResult{.status = BlocksStatus::kUnknown});
    result.ticket = *ticket;
  } else {
    std::tie(result.attachment, result.ticket) = attachments_.add();
    if (const Status status = parts_.sessions.open(result.attachment, result.ticket); status != Status::kOk) {
      attachments_.remove(result.attachment);
      return answer(std::move(done), blocks::AttachResult{.status = blocks_status(status)});
    }
    log_info("brick", "attached attachment={:x}", result.attachment);
  }
  const format::Superblock& content = parts_.pool.superblock().content();
  result.epoch = content.epoch;
  result.uuid = content.uuid;
  result.verifier = parts_.gate.verifier();
  result.block_size = content.block_size;
  result.block_count = content.block_count;
  result.quota_blocks = content.ownership.quota_blocks;
  result.allocated_blocks = parts_.pool.table().counts().allocated;
  result.lease_ms = static_cast<uint32_t>(attachments_.lease().count());
  result.flush_methods = parts_.advertised.flush_methods;
  result.durability = static_cast<uint32_t>(parts_.pool.persistence().durability());
  result.kind = std::string(to_string(parts_.pool.mapping().medium().kind));
  result.paths = parts_.advertised.paths;
  answer(std::move(done), std::move(result));
}

void BlocksService::detach(const blocks::AttachmentArguments& arguments, Done<blocks::StatusResult> done) {
  if (attachments_.hear(arguments.attachment) == nullptr)
    return answer(std::move(done), blocks::StatusResult{});
  attachments_.remove(arguments.attachment);
  log_info("brick", "detached attachment={:x}", arguments.attachment);
  end_attachment(arguments.attachment, [this, done] { answer(done, blocks::StatusResult{}); });
}

void BlocksService::end_attachment(uint64_t attachment, std::function<void()> done) {
  std::vector<uint64_t> closing;
  for (const Key& key : mappings_.of(attachment)) {
    const auto mapping = mappings_.find(key);
    closing.push_back(close({mapping->address, mapping->count}));
    mappings_.remove(key);
    exposed_.erase(key);
  }
  const auto ended = [this, closing = std::move(closing), done = std::move(done)] {
    for (const uint64_t number : closing) closing_.erase(number);
    done();
  };
  if (parts_.sessions.close(attachment, ended) != Status::kOk) ended();
}

// --- blocks ---

BlocksStatus BlocksService::check_blocks(uint64_t attachment, uint64_t address, uint64_t count) {
  const uint64_t size = parts_.pool.block_size();
  if (attachments_.hear(attachment) == nullptr) return BlocksStatus::kUnknown;
  const bool fits = address % size == 0 && address < kAddressEnd && count > 0 &&
                    count <= parts_.pool.block_count() && count * size <= kAddressEnd - address;
  return fits ? BlocksStatus::kOk : BlocksStatus::kInvalid;
}

void BlocksService::alloc(const blocks::AllocArguments& arguments, Done<blocks::AllocResult> done) {
  const bool anywhere = arguments.address == blocks::kAnyAddress;
  BlocksStatus status = check_blocks(arguments.attachment, anywhere ? 0 : arguments.address, arguments.count);
  if (status == BlocksStatus::kInvalid && arguments.count > parts_.pool.block_count())
    status = BlocksStatus::kNoSpace;
  if (status == BlocksStatus::kOk && arguments.tag == 0) status = BlocksStatus::kInvalid;
  if (status != BlocksStatus::kOk) return answer(std::move(done), blocks::AllocResult{.status = status});
  const auto result = std::make_shared<blocks::AllocResult>();
  parts_.committer.submit([this, arguments, result] { return allocate(arguments, *result); },
                          [result, done = std::move(done)](Status flushed) {
                            if (flushed != Status::kOk) result->status = BlocksStatus::kIo;
                            done(*result);
                          });
}

uint64_t BlocksService::choose_address(uint64_t count) const {
  const uint64_t address = std::max(next_address_, parts_.pool.table().end_address());
  const bool fits = address < kAddressEnd && count * parts_.pool.block_size() <= kAddressEnd - address;
  return fits ? address : parts_.pool.table().free_address(count);
}

// What a call of this tag has left that was cut short, it or an earlier process of the brick, nobody was told of.
Committer::Outcome BlocksService::allocate(const blocks::AllocArguments& arguments,
                                           blocks::AllocResult& result) {
  BlockTable& table = parts_.pool.table();
  const std::vector<Run> earlier = table.allocated_by(arguments.tag);
  if (earlier.size() == 1 && earlier.front().count == arguments.count) {
    result.address = earlier.front().logical;
    return {Status::kOk};
  }
  if (!earlier.empty()) {
    const Status freed = table.free(earlier, parts_.loop.now());
    if (freed == Status::kOk) parts_.zeroer.wake();
    result.status = freed == Status::kOk ? BlocksStatus::kTryLater : blocks_status(freed);
    return {Status::kOk};
  }
  const uint64_t quota = parts_.pool.superblock().content().ownership.quota_blocks;
  if (quota > 0 && table.counts().allocated + arguments.count > quota) {
    result.status = BlocksStatus::kQuota;
    return {Status::kOk};
  }
  const bool anywhere = arguments.address == blocks::kAnyAddress;
  const uint64_t address = anywhere ? choose_address(arguments.count) : arguments.address;
  if (check_blocks(arguments.attachment, address, arguments.count) != BlocksStatus::kOk) {
    result.status = BlocksStatus::kUnknown;
    return {Status::kOk};
  }
  const auto runs =
      table.alloc({.epoch = arguments.tag, .logical = address, .count = arguments.count, .contiguous = true});
  result.address = address;
  if (runs) {
    next_address_ = std::max(next_address_, address + arguments.count * parts_.pool.block_size());
  } else {
    result.status = blocks_status(runs.error());
  }
  return {Status::kOk};
}

void BlocksService::list(const blocks::ListArguments& arguments, Done<blocks::ListResult> done) {
  blocks::ListResult result;
  if (attachments_.hear(arguments.attachment) == nullptr) {
    result.status = BlocksStatus::kUnknown;
    return answer(std::move(done), std::move(result));
  }
  const uint64_t size = parts_.pool.block_size();
  const auto limit = static_cast<uint32_t>(std::min<size_t>(arguments.limit, blocks::kRunsPerCallMax));
  const brick::ListResult listed = parts_.pool.table().list(arguments.from, limit);
  for (const ListedRun& one : listed.runs) {
    const bool joins = !result.runs.empty() &&
                       result.runs.back().address + result.runs.back().count * size == one.run.logical;
    joins ? static_cast<void>(result.runs.back().count += one.run.count)
          : result.runs.push_back({one.run.logical, one.run.count});
  }
  result.end = listed.end;
  answer(std::move(done), std::move(result));
}

void BlocksService::unmap(const blocks::BlocksArguments& arguments, Done<blocks::StatusResult> done) {
  const BlocksStatus status = check_blocks(arguments.attachment, arguments.address, arguments.count);
  if (status != BlocksStatus::kOk) return answer(std::move(done), blocks::StatusResult{status});
  take_back({arguments.address, arguments.count}, [this, done = std::move(done)](uint64_t closing) {
    closing_.erase(closing);
    answer(done, blocks::StatusResult{parts_.committer.failed() ? BlocksStatus::kIo : BlocksStatus::kOk});
  });
}

void BlocksService::free(const blocks::BlocksArguments& arguments, Done<blocks::StatusResult> done) {
  BlocksStatus status = check_blocks(arguments.attachment, arguments.address, arguments.count);
  const uint64_t length = arguments.count * parts_.pool.block_size();
  if (status == BlocksStatus::kOk && !parts_.pool.table().resolve(arguments.address, length))
    status = BlocksStatus::kNotFound;
  if (status != BlocksStatus::kOk) return answer(std::move(done), blocks::StatusResult{status});
  const Blocks taken{arguments.address, arguments.count};
  take_back(taken, [this, taken, done = std::move(done)](uint64_t closing) {
    free_when_unpinned(taken, closing, done);
  });
}

void BlocksService::free_when_unpinned(const Blocks& taken, uint64_t closing,
                                       Done<blocks::StatusResult> done) {
  const auto freed = std::make_shared<Status>();
  parts_.committer.submit(
      [this, taken, freed]() -> Committer::Outcome {
        *freed = parts_.pool.table().free({{taken.address, taken.count}}, parts_.loop.now());
        if (*freed == Status::kOk) parts_.zeroer.wake();
        return {Status::kOk};
      },
      [this, taken, closing, freed, done = std::move(done)](Status flushed) {
        if (flushed == Status::kOk && *freed == Status::kBusy) {
          parts_.loop.after(kUnpinnedLookedApart, lifetime_.guard([this, taken, closing, done] {
            free_when_unpinned(taken, closing, done);
          }));
          return;
        }
        closing_.erase(closing);
        done({flushed == Status::kOk ? blocks_status(*freed) : BlocksStatus::kIo});
      });
}

void BlocksService::take_back(const Blocks& taken, std::function<void(uint64_t closing)> done) {
  const uint64_t closing = close(taken);
  mappings_.taken_back(taken.address, taken.count);
  const std::vector<Key> keys = mappings_.overlapping(taken.address, taken.count);
  if (!keys.empty())
    log_info("brick", "taken-back address={:#x} blocks={} mappings={}", taken.address, taken.count,
             keys.size());
  const auto left = std::make_shared<size_t>(keys.size() + 1);
  const auto one_done = [left, closing, done = std::move(done)] {
    if (--*left == 0) done(closing);
  };
  // Whoever had them may not know it before this process has ended: what he mapped in this epoch he does not get again.
  // First, for their blocks can be mapped anew as soon as the mappings have ended.
  if (!keys.empty()) {
    raise_epoch(lifetime_.guard([this, keys, one_done](Status) {
      for (const Key& key : keys) end_mapping(key, one_done);
    }));
  }
  // Handles of whoever was silent for its lease may still be dying.
  parts_.sessions.when_ended_are_dead(one_done);
}

uint64_t BlocksService::close(const Blocks& taken) {
  closing_.emplace(next_closing_, taken);
  return next_closing_++;
}

bool BlocksService::is_closing(uint64_t address, uint64_t count) const {
  const uint64_t size = parts_.pool.block_size();
  return std::ranges::any_of(closing_, [&](const auto& entry) {
    const Blocks& one = entry.second;
    return one.address < address + count * size && address < one.address + one.count * size;
  });
}

// --- mappings ---

void BlocksService::map(const blocks::MapArguments& arguments, Done<blocks::MapResult> done) {
  const BlocksStatus status = begin_mapping(arguments);
  if (status != BlocksStatus::kOk) return answer(std::move(done), blocks::MapResult{.status = status});
  const Key key{arguments.attachment, arguments.mapping};
  blocks::MapResult result = expose(key, wanted_mapping(arguments));
  // One that was there already goes through the brick for as long as it has no handles.
  // Another one ends, and excludes until the handles of its first pieces are dead.
  if (result.status != BlocksStatus::kOk && arguments.how != blocks::How::kAgain) end_mapping(key, [] {});
  answer(std::move(done), std::move(result));
}

BlocksStatus BlocksService::begin_mapping(const blocks::MapArguments& arguments) {
  const BlocksStatus status = check_blocks(arguments.attachment, arguments.address, arguments.count);
  if (status != BlocksStatus::kOk) return status;
  const Key key{arguments.attachment, arguments.mapping};
  const MappingTable::Mapping wanted = wanted_mapping(arguments);
  if (const auto held = mappings_.find(key))
    return *held == wanted ? BlocksStatus::kOk : BlocksStatus::kInvalid;
  if (arguments.how == blocks::How::kAgain) return BlocksStatus::kRevoked;
  const uint64_t length = arguments.count * parts_.pool.block_size();
  const bool there = parts_.pool.table().resolve(arguments.address, length).has_value();
  if (arguments.how == blocks::How::kReclaim) {
    const bool last = arguments.epoch + 1 == start_epoch_;
    if (!last || !there || is_closing(arguments.address, arguments.count)) return BlocksStatus::kRevoked;
    return mappings_.reclaim(key, wanted);
  }
  if (!there) return BlocksStatus::kNotFound;
  if (is_closing(arguments.address, arguments.count)) return BlocksStatus::kTryLater;
  return mappings_.add(key, wanted);
}

blocks::MapResult BlocksService::expose(const Key& key, const MappingTable::Mapping& mapping) {
  ExposeResult exposed;
  if (const auto held = exposed_.find(key); held != exposed_.end()) {
    exposed = parts_.sessions.describe(key.attachment, held->second);
  } else {
    exposed = parts_.sessions.expose({.client = key.attachment,
                                      .logical = mapping.address,
                                      .length = mapping.count * parts_.pool.block_size(),
                                      .writable = mapping.writable});
    if (exposed.status != Status::kOk) return {.status = blocks_status(exposed.status)};
    Grants& grants = exposed_[key];
    for (const Grant& grant : exposed.grants) grants.push_back(grant.grant);
  }
  blocks::MapResult result{.connection = exposed.connection};
  result.grants = std::move(exposed.grants);
  return result;
}

void BlocksService::release(const blocks::MappingArguments& arguments, Done<blocks::StatusResult> done) {
  if (attachments_.hear(arguments.attachment) == nullptr)
    return answer(std::move(done), blocks::StatusResult{BlocksStatus::kUnknown});
  end_mapping({arguments.attachment, arguments.mapping},
              [this, done = std::move(done)] { answer(done, blocks::StatusResult{}); });
}

void BlocksService::withdraw(const blocks::MappingArguments& arguments, Done<blocks::StatusResult> done) {
  if (attachments_.hear(arguments.attachment) == nullptr)
    return answer(std::move(done), blocks::StatusResult{BlocksStatus::kUnknown});
  const auto grants = exposed_.extract({arguments.attachment, arguments.mapping});
  parts_.sessions.withdraw(arguments.attachment, grants.empty() ? Grants() : grants.mapped(),
                           [this, done = std::move(done)] { answer(done, blocks::StatusResult{}); });
}

void BlocksService::end_mapping(const Key& key, std::function<void()> done) {
  const auto mapping = mappings_.find(key);
  if (!mapping) return parts_.sessions.when_ended_are_dead(std::move(done));
  const uint64_t closing = close({mapping->address, mapping->count});
  mappings_.remove(key);
  const auto grants = exposed_.extract(key);
  parts_.sessions.withdraw(key.attachment, grants.empty() ? Grants() : grants.mapped(),
                           [this, closing, done = std::move(done)] {
                             closing_.erase(closing);
                             done();
                           });
}

void BlocksService::list_mappings(const blocks::AttachmentArguments& arguments,
                                  Done<blocks::MappingsResult> done) {
  blocks::MappingsResult result;
  if (attachments_.hear(arguments.attachment) == nullptr) {
    result.status = BlocksStatus::kUnknown;
    return answer(std::move(done), std::move(result));
  }
  for (const auto& [key, mapping] : mappings_.all())
    result.mappings.push_back(
        {key.attachment, key.number, mapping.address, mapping.count, mapping.writable, mapping.shared});
  answer(std::move(done), std::move(result));
}

// --- bytes ---

std::expected<std::vector<Piece>, BlocksStatus> BlocksService::pieces_of(uint64_t attachment, uint64_t number,
                                                                         uint64_t offset, uint64_t length,
                                                                         bool writes) {
  if (attachments_.hear(attachment) == nullptr) return std::unexpected(BlocksStatus::kUnknown);
  const auto mapping = mappings_.find({attachment, number});
  if (!mapping) return std::unexpected(BlocksStatus::kRevoked);
  if (writes && !mapping->writable) return std::unexpected(BlocksStatus::kReadOnly);
  const uint64_t size = mapping->count * parts_.pool.block_size();
  if (length == 0 || offset > size || length > size - offset) return std::unexpected(BlocksStatus::kInvalid);
  auto pieces = parts_.pool.table().resolve(mapping->address + offset, length);
  if (!pieces) return std::unexpected(blocks_status(pieces.error()));
  return *std::move(pieces);
}

void BlocksService::read(const blocks::ReadArguments& arguments, Done<blocks::ReadResult> done) {
  const uint64_t count = std::min<uint64_t>(arguments.count, blocks::kIoBytesMax);
  const auto pieces = pieces_of(arguments.attachment, arguments.mapping, arguments.offset, count, false);
  blocks::ReadResult result;
  if (!pieces) {
    result.status = pieces.error();
    return answer(std::move(done), std::move(result));
  }
  for (const Piece& piece : *pieces) {
    const ByteSpan memory = parts_.pool.memory(piece);
    result.data.insert(result.data.end(), memory.begin(), memory.end());
  }
  answer(std::move(done), std::move(result));
}

void BlocksService::write(const blocks::WriteArguments& arguments, Done<blocks::CommitResult> done) {
  const auto pieces =
      pieces_of(arguments.attachment, arguments.mapping, arguments.offset, arguments.data.size(), true);
  if (!pieces) return answer(std::move(done), blocks::CommitResult{.status = pieces.error()});
  ByteSpan left = arguments.data;
  for (const Piece& piece : *pieces) {
    parts_.pool.persistence().copy(parts_.pool.memory(piece).data(), left.first(piece.length));
    left = left.subspan(piece.length);
  }
  if (!arguments.durable)
    return answer(std::move(done), blocks::CommitResult{.verifier = parts_.gate.verifier()});
  commit({arguments.attachment, arguments.mapping, arguments.offset, arguments.data.size()}, std::move(done));
}

void BlocksService::commit(const blocks::CommitArguments& arguments, Done<blocks::CommitResult> done) {
  const auto pieces =
      pieces_of(arguments.attachment, arguments.mapping, arguments.offset, arguments.length, true);
  if (!pieces) return answer(std::move(done), blocks::CommitResult{.status = pieces.error()});
  const uint64_t address = mappings_.find({arguments.attachment, arguments.mapping})->address;
  RangesArguments ranges{.epoch = parts_.pool.superblock().epoch()};
  ranges.ranges.push_back({address + arguments.offset, arguments.length});
  parts_.data.persist(ranges, [this, done = std::move(done)](Status status) {
    answer(done, blocks::CommitResult{blocks_status(status), parts_.gate.verifier()});
  });
}

}  // namespace pnfsrdma::brick
