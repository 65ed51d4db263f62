// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "library/blocks/block_mapping.h"
#include "library/process.h"
#include "shared/base/random.h"
#include "shared/client/transports.h"
#include "shared/initiator/brick/buffer.h"

namespace pnfsrdma::library::blocks {

// What pnfsrdma_blocks_open() makes: the owner of a partition, attached to its brick. Calls wait for the brick for 60
// seconds at most, over lost connections and restarts of the brick. Thread-safe; mappings are released before it ends.
class Owner final : private OwnerLink::Listener {
 public:
  // `address`: as in the brick's configuration ("host:port", a path). `options`: proto=, require_durability=. What an
  // Error says names cause and fix, for a user.
  static Result<std::unique_ptr<Owner>> open(const std::string& address, const std::string& partition,
                                             const std::string& key_file, std::string_view options);
  // Takes leave of the brick, which ends what is mapped.
  ~Owner();
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  const std::string& transport() const { return transport_; }
  const std::string& durability() const { return durability_; }
  // Not made by a parent of this process (fork(2)).
  bool is_ours() const { return forks_ == forks_before(); }

  // As the brick has it now.
  Result<AttachResult> look();
  // `address`: blocks::kAnyAddress, or where. `tag`: a call with that of an earlier one is answered as that was; 0:
  // one of its own. Where they are.
  Result<uint64_t> allocate(uint64_t count, uint64_t address, uint64_t tag);
  // ECONNRESET: the brick ended before it answered, and may have done it.
  Result<> free(uint64_t address, uint64_t count);
  Result<> unmap(uint64_t address, uint64_t count);
  // Allocated blocks from `from` on, at most `limit` runs.
  Result<std::vector<brick::blocks::AllocatedRun>> list(uint64_t from, size_t limit);

  // It lives until it is released.
  Result<BlockMapping*> map(uint64_t address, uint64_t count, bool writable, bool shared);
  Result<> release(BlockMapping& mapping);
  bool has_mappings() const;

  // For mappings. The handles as they are now, exposed again if they were withdrawn; none: the attachment is
  // another one by now. ESTALE: the mapping was taken away.
  Result<std::optional<Exposure>> expose_again(const BlockMapping& mapping, const Attachment& under,
                                               SteadyTime deadline);
  initiator::BufferPool& buffers() { return *buffers_; }
  SteadyTime io_deadline() const { return clock_.now() + options_.io_timeout; }

 private:
  Owner(std::unique_ptr<Random> random, const client::Transports& transports,
        const initiator::DataPathOptions& options);

  template <typename Answer>
  struct Answered {
    Answer answer;
    OwnerLink::Attached under;
  };
  // Whether a call may be repeated when the brick's process ended before it answered.
  enum class Repeats : uint8_t { kAlways, kInOneEpoch };
  template <typename Answer, typename Arguments>
  Result<Answered<Answer>> ask(Procedure procedure, const char* what, Arguments arguments,
                               SteadyTime deadline, Repeats repeats = Repeats::kAlways);
  Result<> take_back(Procedure procedure, const char* what, uint64_t address, uint64_t count);

  // In the link's thread.
  void attached(const OwnerLink::Attached& told, std::optional<uint64_t> reclaims) override;
  void look_after_mappings(const OwnerLink::Attached& told, std::function<void()> done) override;
  void reclaim(const std::shared_ptr<BlockMapping>& mapping, const std::shared_ptr<Attachment>& under,
               uint64_t epoch);

  const uint64_t forks_ = forks_before();
  const SystemClock clock_;
  const std::unique_ptr<Random> random_;  // the transports use it
  const std::vector<initiator::TransportDomain> transports_;
  const initiator::DataPathOptions options_;
  const std::string transport_;
  DeferredDestruction destruction_{"blocks-destroy"};
  const std::unique_ptr<initiator::BufferPool> buffers_;
  std::string durability_;

  mutable Mutex mutex_;
  std::shared_ptr<Attachment> attachment_;
  std::map<uint64_t, std::shared_ptr<BlockMapping>> mappings_;
  uint64_t next_number_ = 1;

  std::unique_ptr<OwnerLink> link_;  // last: its thread uses what is above
};

}  // namespace pnfsrdma::library::blocks
