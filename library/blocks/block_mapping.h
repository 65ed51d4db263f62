// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "library/blocks/attachment.h"
#include "library/blocks/unflushed.h"
#include "library/word_change.h"
#include "shared/base/bytes.h"

namespace pnfsrdma::library::blocks {

class Owner;

// Where a mapping's memory is, for connections under one attachment.
struct Exposure {
  std::shared_ptr<Attachment> attachment;
  uint32_t connection = 0;           // whose handles the grants have
  std::vector<brick::Grant> grants;  // by address, without gaps
};

// Blocks that an owner has mapped, and the moving of their bytes: by RDMA, straight to the brick's memory, and
// once more where a connection was lost. Offsets are of the mapping. Everything waits for the brick for 30
// seconds at most (ETIMEDOUT); ESTALE: the mapping was taken away. Thread-safe.
class BlockMapping {
 public:
  struct Blocks {
    uint64_t address = 0;
    uint64_t count = 0;
    uint64_t block_size = 0;
    bool writable = false;
    bool shared = false;
  };
  BlockMapping(Owner& owner, uint64_t number, const Blocks& blocks)
      : owner_(owner), number_(number), blocks_(blocks) {}

  Owner& owner() const { return owner_; }
  uint64_t number() const { return number_; }
  const Blocks& blocks() const { return blocks_; }
  uint64_t size() const { return blocks_.count * blocks_.block_size; }

  // EINVAL: the mapping ends before that. EBADF: it is not for writing.
  Result<> read(MutableByteSpan to, uint64_t offset);
  Result<> write(ByteSpan from, uint64_t offset, bool durable);
  // EIO, once: something was lost before.
  Result<> flush(uint64_t offset, uint64_t length);
  // What it was. EIO: nobody knows whether it was changed.
  Result<uint64_t> change_word(const WordChange& change);

  // What the owner knows of it.
  void exposed(Exposure exposure);
  void wait_for_exposure();  // another one comes, or the end
  void ended(Error why);
  // Whether it has been exposed, and is not at its end.
  bool is_mapped();

 private:
  using ExposurePointer = std::shared_ptr<const Exposure>;
  using ConnectionPointer = std::shared_ptr<initiator::Connection>;
  // What became of one try: kLost: the connection is of no use any more. kNoHandle: it does not have the memory.
  enum class Outcome : uint8_t { kDone, kLost, kNoHandle };
  using Try = std::function<Result<Outcome>(const ExposurePointer&, const ConnectionPointer&)>;
  // A part of the mapping within one grant.
  struct Piece {
    brick::Grant grant;
    uint64_t skip = 0;
    uint64_t length = 0;
    rdma::RemoteSlice memory;
  };
  using Pieces = std::vector<Piece>;

  Result<> check(uint64_t offset, uint64_t length, bool writes) const;
  Result<ExposurePointer> exposure(SteadyTime deadline);
  Result<> until_done(const Try& attempt);
  // Has the brick expose it once more.
  Result<> expose_again(const ExposurePointer& old, SteadyTime deadline);
  Result<Outcome> find(const Exposure& exposure, const initiator::Connection& connection, uint64_t offset,
                       uint64_t length, Pieces& pieces) const;
  Result<Outcome> move(initiator::Connection& connection, const Pieces& pieces, rdma::Opcode opcode,
                       initiator::BufferSlice slice, bool flushes) const;
  Result<Outcome> flush(initiator::Connection& connection, std::span<const Piece> pieces) const;
  Result<Outcome> flush_all(initiator::Connection& connection, const Pieces& pieces) const;
  static Result<> check_message(const initiator::Connection& connection);
  static brick::PersistCall persist_call(std::span<const Piece> pieces);
  static Result<Outcome> take_persist(const std::optional<brick::PersistReply>& reply,
                                      const initiator::Connection& connection);

  Owner& owner_;
  const uint64_t number_;
  const Blocks blocks_;
  Unflushed unflushed_;

  struct State {
    ExposurePointer exposure;    // null: one is waited for
    std::optional<Error> ended;  // and why
  };
  Guarded<State> state_;
  Condition changed_;
};

}  // namespace pnfsrdma::library::blocks
