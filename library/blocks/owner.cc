// SPDX-License-Identifier: Apache-2.0
#include "library/blocks/owner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "library/blocks/status_error.h"
#include "shared/base/signals_blocked.h"
#include "shared/brick/partition_key.h"
#include "shared/client/connect_options.h"
#include "shared/client/server.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::library::blocks {
namespace {

using namespace brick::blocks;

constexpr Milliseconds kOpenPatience{10'000};
constexpr Milliseconds kOwnerPatience{60'000};
// An owner whose brick is gone leaves all the same.
constexpr Milliseconds kReleasePatience{10'000};
constexpr Milliseconds kDetachPatience{2000};
constexpr Milliseconds kRepeatPause{20};
constexpr size_t kBuffersKept = 16;

Result<client::ConnectOptions> parse_options(std::string_view text) {
  client::ConnectOptions options;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const client::Option option = client::split_option(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (option.name != "proto" && option.name != "require_durability")
      return fail(EINVAL, fmt::format("option {}: an owner of blocks has proto= and require_durability= only",
                                      option.name));
    TRY(client::take_connect_option(option, options));
  }
  return options;
}

std::vector<initiator::TransportDomain> domains_of(const client::Transports& transports) {
  std::vector<initiator::TransportDomain> domains;
  for (const auto& transport : transports)
    domains.push_back({transport, transport->make_protection_domain()});
  return domains;
}

MapArguments map_arguments(const BlockMapping& mapping, How how) {
  const BlockMapping::Blocks& blocks = mapping.blocks();
  return {.mapping = mapping.number(),
          .address = blocks.address,
          .count = blocks.count,
          .writable = blocks.writable,
          .shared = blocks.shared,
          .how = how};
}

Exposure exposure_of(std::shared_ptr<Attachment> attachment, const MapResult& result) {
  Exposure exposure{std::move(attachment), result.connection, {result.grants.begin(), result.grants.end()}};
  std::ranges::sort(exposure.grants, {}, &brick::Grant::logical);
  return exposure;
}

Result<> check_status(Status status, std::string_view what) {
  if (status == Status::kOk) return {};
  return std::unexpected(to_error(status, what));
}

bool is_worth_repeating(const Error& error) {
  return error.number() == ECONNRESET || error.number() == ENOTCONN || error.number() == EAGAIN;
}

SteadyTime within(Milliseconds time) {
  return steady_now() + time;
}

}  // namespace

Result<std::unique_ptr<Owner>> Owner::open(const std::string& address, const std::string& partition,
                                           const std::string& key_file, std::string_view options) {
  TRY_ASSIGN(const client::ConnectOptions wanted, parse_options(options));
  if (!brick::is_partition_name(partition)) return fail(EINVAL, "no name of a partition: " + partition);
  TRY_ASSIGN(const auto key, brick::PartitionKey::read_file(key_file));
  TRY_ASSIGN(auto target, rpc::SocketAddress::parse(address, brick::kDefaultControlPort));
  const SignalsBlocked blocked;
  auto random = std::make_unique<SystemRandom>();
  TRY_ASSIGN(const auto transports, client::make_transports(wanted.data_transports, *random));
  initiator::DataPathOptions data_options;
  data_options.require_power = wanted.require_persistent;
  std::unique_ptr<Owner> owner(new Owner(std::move(random), transports, data_options));
  TRY_ASSIGN(owner->link_,
             OwnerLink::start({target, {.identity = partition, .secret = key.secret()}}, *owner));
  TRY(owner->link_->wait_for_first(within(kOpenPatience)));
  {
    const std::lock_guard lock(owner->mutex_);
    owner->durability_ = to_string(static_cast<Durability>(owner->attachment_->told->durability));
  }
  TRY(client::check_durability(wanted, owner->durability_));
  return owner;
}

Owner::Owner(std::unique_ptr<Random> random, const client::Transports& transports,
             const initiator::DataPathOptions& options)
    : random_(std::move(random)),
      transports_(domains_of(transports)),
      options_(options),
      transport_(client::names_of(transports)),
      buffers_(std::make_unique<initiator::BufferPool>(transports_, initiator::kBufferSize, kBuffersKept)) {}

Owner::~Owner() {
  if (!link_) return;
  if (const auto told = link_->attached(steady_now())) {
    (void)link_->call(Procedure::kDetach, xdr::encode_to_bytes(AttachmentArguments{(*told)->attachment}),
                      within(kDetachPatience));
  }
  link_.reset();
}

// --- calls ---

template <typename Answer, typename Arguments>
Result<Owner::Answered<Answer>> Owner::ask(Procedure procedure, const char* what, Arguments arguments,
                                           SteadyTime deadline, Repeats repeats) {
  std::optional<uint64_t> lost_in;  // the epoch in which an answer was lost
  for (;;) {
    TRY_ASSIGN(const OwnerLink::Attached under, link_->attached(deadline));
    if (repeats == Repeats::kInOneEpoch && lost_in && *lost_in != under->epoch)
      return fail(ECONNRESET, std::string(what) + ": the brick ended before it answered; list what there is");
    arguments.attachment = under->attachment;
    const auto reply = link_->call(procedure, xdr::encode_to_bytes(arguments), deadline);
    if (reply) {
      auto answer = xdr::decode_from<Answer>(*reply);
      if (!answer) return fail(EPROTO, std::string(what) + ": the brick's answer");
      if (answer->status == Status::kUnknown) {
        link_->disowned(under->attachment);
      } else if (answer->status != Status::kTryLater || steady_now() >= deadline) {
        return Answered<Answer>{*std::move(answer), under};
      }
    } else {
      if (!is_worth_repeating(reply.error()) || steady_now() >= deadline)
        return std::unexpected(reply.error().in(what));
      if (reply.error().number() == ECONNRESET) lost_in = under->epoch;
    }
    sleep_for(kRepeatPause);
  }
}

Result<AttachResult> Owner::look() {
  TRY_ASSIGN(auto answered,
             ask<AttachResult>(Procedure::kAttach, "attach", AttachArguments(), within(kOwnerPatience)));
  TRY(check_status(answered.answer.status, "attach"));
  return std::move(answered.answer);
}

Result<uint64_t> Owner::allocate(uint64_t count, uint64_t address, uint64_t tag) {
  SystemRandom random;
  while (tag == 0) tag = random.next_u64();
  const AllocArguments arguments{.address = address, .count = count, .tag = tag};
  TRY_ASSIGN(const auto answered,
             ask<AllocResult>(Procedure::kAlloc, "alloc", arguments, within(kOwnerPatience)));
  TRY(check_status(answered.answer.status, "alloc"));
  return answered.answer.address;
}

Result<> Owner::free(uint64_t address, uint64_t count) {
  return take_back(Procedure::kFree, "free", address, count);
}

Result<> Owner::unmap(uint64_t address, uint64_t count) {
  return take_back(Procedure::kUnmap, "unmap", address, count);
}

// Behind a restart of the brick it might meet what came later at these addresses.
Result<> Owner::take_back(Procedure procedure, const char* what, uint64_t address, uint64_t count) {
  const BlocksArguments arguments{.address = address, .count = count};
  TRY_ASSIGN(const auto answered,
             ask<StatusResult>(procedure, what, arguments, within(kOwnerPatience), Repeats::kInOneEpoch));
  return check_status(answered.answer.status, what);
}

Result<std::vector<AllocatedRun>> Owner::list(uint64_t from, size_t limit) {
  std::vector<AllocatedRun> runs;
  const SteadyTime deadline = within(kOwnerPatience);
  while (runs.size() < limit) {
    const ListArguments arguments{
        .from = from, .limit = static_cast<uint32_t>(std::min(limit - runs.size(), kRunsPerCallMax))};
    TRY_ASSIGN(const auto answered, ask<ListResult>(Procedure::kList, "list", arguments, deadline));
    TRY(check_status(answered.answer.status, "list"));
    for (const AllocatedRun& run : answered.answer.runs) {
      if (!runs.empty() && from == run.address) {
        runs.back().count += run.count;  // one that goes on in the next answer
      } else {
        runs.push_back(run);
      }
      from = run.address + run.count * answered.under->block_size;
    }
    if (answered.answer.end || answered.answer.runs.empty()) break;
  }
  return runs;
}

// --- mappings ---

Result<BlockMapping*> Owner::map(uint64_t address, uint64_t count, bool writable, bool shared) {
  const SteadyTime deadline = within(kOwnerPatience);
  TRY_ASSIGN(const OwnerLink::Attached told, link_->attached(deadline));
  std::shared_ptr<BlockMapping> mapping;
  {
    const std::lock_guard lock(mutex_);
    mapping = std::make_shared<BlockMapping>(
        *this, next_number_++, BlockMapping::Blocks{address, count, told->block_size, writable, shared});
  }
  for (;;) {
    TRY_ASSIGN(const auto answered,
               ask<MapResult>(Procedure::kMap, "map", map_arguments(*mapping, How::kBegin), deadline));
    TRY(check_status(answered.answer.status, "map"));
    const std::lock_guard lock(mutex_);
    // If not, it has ended with its attachment, unused.
    if (attachment_->told != answered.under) continue;
    mapping->exposed(exposure_of(attachment_, answered.answer));
    return mappings_.emplace(mapping->number(), mapping).first->second.get();
  }
}

Result<> Owner::release(BlockMapping& mapping) {
  std::shared_ptr<BlockMapping> last;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(mappings_.extract(mapping.number()).mapped());
  }
  if (!last->is_mapped()) return {};
  const MappingArguments arguments{.mapping = last->number()};
  TRY_ASSIGN(const auto answered,
             ask<StatusResult>(Procedure::kRelease, "release", arguments, within(kReleasePatience)));
  return check_status(answered.answer.status, "release");
}

bool Owner::has_mappings() const {
  const std::lock_guard lock(mutex_);
  return !mappings_.empty();
}

Result<std::optional<Exposure>> Owner::expose_again(const BlockMapping& mapping, const Attachment& under,
                                                    SteadyTime deadline) {
  TRY_ASSIGN(const auto answered,
             ask<MapResult>(Procedure::kMap, "map", map_arguments(mapping, How::kAgain), deadline));
  const std::lock_guard lock(mutex_);
  if (attachment_->told != answered.under || attachment_.get() != &under) return std::nullopt;
  TRY(check_status(answered.answer.status, "the mapping"));
  return exposure_of(attachment_, answered.answer);
}

// --- in the link's thread ---

void Owner::attached(const OwnerLink::Attached& told, std::optional<uint64_t> reclaims) {
  auto attachment = std::make_shared<Attachment>(told, clock_, options_, transports_, destruction_);
  std::vector<std::shared_ptr<BlockMapping>> mappings;
  {
    const std::lock_guard lock(mutex_);
    attachment_.swap(attachment);
    for (const auto& [number, mapping] : mappings_) mappings.push_back(mapping);
  }
  for (const auto& mapping : mappings) {
    // One that was not had again in the epoch before was not there in it.
    if (reclaims && mapping->is_mapped()) {
      mapping->wait_for_exposure();
      reclaim(mapping, attachment_, *reclaims);
    } else {
      mapping->ended(to_error(Status::kRevoked, "the mapping"));
    }
  }
}

// Those that were mapped before this was asked, and are not in the list, were taken away.
void Owner::look_after_mappings(const OwnerLink::Attached& told, std::function<void()> done) {
  std::vector<std::shared_ptr<BlockMapping>> mappings;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, mapping] : mappings_) {
      if (mapping->is_mapped()) mappings.push_back(mapping);
    }
  }
  link_->call_later(
      Procedure::kListMappings, xdr::encode_to_bytes(AttachmentArguments{told->attachment}),
      [told, mappings = std::move(mappings), done = std::move(done)](const Result<Bytes>& reply) {
        if (!reply) return;  // the next attach asks again
        const auto listed = xdr::decode_from<MappingsResult>(*reply);
        if (!listed || listed->status != Status::kOk) return;
        std::set<uint64_t> there;
        for (const MappingEntry& entry : listed->mappings) {
          if (entry.attachment == told->attachment) there.insert(entry.mapping);
        }
        for (const auto& mapping : mappings) {
          if (!there.contains(mapping->number())) mapping->ended(to_error(Status::kRevoked, "the mapping"));
        }
        done();
      });
}

void Owner::reclaim(const std::shared_ptr<BlockMapping>& mapping, const std::shared_ptr<Attachment>& under,
                    uint64_t epoch) {
  {
    const std::lock_guard lock(mutex_);
    if (attachment_ != under || !mappings_.contains(mapping->number())) return;
  }
  MapArguments arguments = map_arguments(*mapping, How::kReclaim);
  arguments.attachment = under->told->attachment;
  arguments.epoch = epoch;
  link_->call_later(
      Procedure::kMap, xdr::encode_to_bytes(arguments),
      [this, mapping, under, epoch](const Result<Bytes>& reply) {
        const auto result =
            reply ? xdr::decode_from<MapResult>(*reply).value_or(MapResult{.status = Status::kTryLater})
                  : MapResult{.status = Status::kTryLater};
        if (result.status == Status::kOk) {
          mapping->exposed(exposure_of(under, result));
        } else if (result.status == Status::kTryLater) {
          link_->after(kRepeatPause, [this, mapping, under, epoch] { reclaim(mapping, under, epoch); });
        } else {
          mapping->ended(to_error(Status::kRevoked, "the mapping"));
        }
      });
}

}  // namespace pnfsrdma::library::blocks
