// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "server/brickd/attachments.h"
#include "server/brickd/committer.h"
#include "server/brickd/control_service.h"
#include "server/brickd/data_operations.h"
#include "server/brickd/mapping_table.h"
#include "server/brickd/session_table.h"
#include "server/brickd/zeroer.h"
#include "shared/base/lifetime.h"
#include "shared/brick/blocks_protocol.h"

namespace pnfsrdma::brick {

// Answers the calls of a partition's owner (shared/brick/blocks_protocol.h). Nothing is answered before this
// start of the brick is counted on the medium. Owned by the Brick; control loop only.
class BlocksService {
 public:
  struct Parts {
    EventLoop& loop;
    Pool& pool;
    Committer& committer;
    Zeroer& zeroer;
    SessionTable& sessions;
    DataOperations& data;
    FlushGate& gate;
    Random& random;
    const ControlService::Advertised& advertised;
  };
  // Called once, never from inside.
  template <typename T>
  using Done = std::function<void(T)>;

  BlocksService(Parts parts, Milliseconds lease);

  void attach(const blocks::AttachArguments& arguments, Done<blocks::AttachResult> done);
  void detach(const blocks::AttachmentArguments& arguments, Done<blocks::StatusResult> done);
  void alloc(const blocks::AllocArguments& arguments, Done<blocks::AllocResult> done);
  void free(const blocks::BlocksArguments& arguments, Done<blocks::StatusResult> done);
  void unmap(const blocks::BlocksArguments& arguments, Done<blocks::StatusResult> done);
  void list(const blocks::ListArguments& arguments, Done<blocks::ListResult> done);
  void map(const blocks::MapArguments& arguments, Done<blocks::MapResult> done);
  void release(const blocks::MappingArguments& arguments, Done<blocks::StatusResult> done);
  void withdraw(const blocks::MappingArguments& arguments, Done<blocks::StatusResult> done);
  void list_mappings(const blocks::AttachmentArguments& arguments, Done<blocks::MappingsResult> done);
  void read(const blocks::ReadArguments& arguments, Done<blocks::ReadResult> done);
  void write(const blocks::WriteArguments& arguments, Done<blocks::CommitResult> done);
  void commit(const blocks::CommitArguments& arguments, Done<blocks::CommitResult> done);

  // A sign of life.
  void hear(uint64_t attachment) { attachments_.hear(attachment); }

 private:
  using Key = MappingTable::Key;
  using Grants = std::vector<uint64_t>;
  struct Blocks {
    uint64_t address = 0;
    uint64_t count = 0;
  };

  template <typename T>
  void answer(Done<T> done, T result);
  void raise_epoch(std::function<void(Status)> done);
  void end_attachment(uint64_t attachment, std::function<void()> done);
  blocks::Status check_blocks(uint64_t attachment, uint64_t address, uint64_t count);
  uint64_t choose_address(uint64_t count) const;
  Committer::Outcome allocate(const blocks::AllocArguments& arguments, blocks::AllocResult& result);
  blocks::Status begin_mapping(const blocks::MapArguments& arguments);
  blocks::MapResult expose(const Key& key, const MappingTable::Mapping& mapping);
  // `done` with what they are in closing_; the caller opens that again.
  void take_back(const Blocks& blocks, std::function<void(uint64_t closing)> done);
  // Ends it; nobody else gets its blocks before its handles are dead.
  void end_mapping(const Key& key, std::function<void()> done);
  void free_when_unpinned(const Blocks& blocks, uint64_t closing, Done<blocks::StatusResult> done);
  uint64_t close(const Blocks& blocks);
  // The memory behind bytes of a mapping.
  std::expected<std::vector<Piece>, blocks::Status> pieces_of(uint64_t attachment, uint64_t mapping,
                                                              uint64_t offset, uint64_t length, bool writes);
  bool is_closing(uint64_t address, uint64_t count) const;

  Parts parts_;
  Attachments attachments_;
  MappingTable mappings_;
  std::map<Key, Grants> exposed_;       // of mappings whose handles are not withdrawn
  std::map<uint64_t, Blocks> closing_;  // being taken back: not mapped meanwhile
  uint64_t next_closing_ = 1;
  // Addresses are not given twice by one process: a free() that is repeated never meets what came later.
  uint64_t next_address_ = 0;
  const uint64_t start_epoch_;  // the first one of this process
  bool started_ = false;
  EventLoop::TimerId reclaim_timer_ = 0;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::brick
