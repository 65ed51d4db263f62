// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shared/base/sync.h"
#include "shared/initiator/asker.h"
#include "shared/initiator/file/parts.h"

// Whether a brick still has what it took: it has, as long as its verifier is that of the writes (DESIGN.md
// section 5).
namespace pnfsrdma::initiator {

bool FileIo::Parts::outdated(const Connection& connection, const std::optional<brick::PersistReply>& reply) {
  return !reply || reply->verifier != connection.hello.verifier;
}

Result<> FileIo::Parts::ask_the_others(Unflushed& unflushed, std::span<const Device* const> answered) {
  const auto devices = unflushed.devices;
  for (const Unflushed::Written& written : devices) {
    if (std::find(answered.begin(), answered.end(), written.device) != answered.end()) continue;
    TRY_ASSIGN(const auto verifier, ask_verifier(*written.device));
    (void)verifier_changed(unflushed, *written.device, verifier);
  }
  return {};
}

bool FileIo::Parts::verifier_changed(Unflushed& unflushed, const Device& device,
                                     const std::optional<BrickVerifier>& now) {
  const bool changed = std::erase_if(unflushed.devices, [&](const Unflushed::Written& written) {
                         return written.device == &device && written.verifier != now;
                       }) > 0;
  if (changed) doubt(unflushed.by_rdma.ranges(), true);
  return changed;
}

Result<std::optional<BrickVerifier>> FileIo::Parts::ask_verifier(Device& device) {
  const SteadyTime deadline = services.io_deadline();
  for (;;) {
    const auto connected = device.connect();
    if (connected) {
      const auto reply = (*connected)->queue_pair.persist({}, services.io_deadline());
      if (outdated(**connected, reply)) device.lost(*connected);
      if (reply) return reply->verifier;
    } else if (connected.error().number() == ENOENT) {
      return std::nullopt;  // of GETDEVICEINFO
    }
    if (device.too_weak()) return std::unexpected(device.weakness());
    TRY(rest_of_brick(deadline));
  }
}

// A brick whose connection has just died rests for a moment; that alone must not become the EIO of an fsync.
Result<std::shared_ptr<Connection>> FileIo::Parts::connect_patiently(Device& device) {
  const SteadyTime deadline = services.io_deadline();
  for (;;) {
    auto connection = device.connect();
    if (connection) return connection;
    if (device.too_weak()) return std::unexpected(device.weakness());
    TRY(rest_of_brick(deadline));
  }
}

Result<> FileIo::Parts::rest_of_brick(SteadyTime deadline) {
  constexpr Milliseconds kPause{10};
  if (services.aborted) return fail(ESHUTDOWN, "flush: the mount ends");
  if (AskerScope::asker_gone()) return fail(EINTR, "flush");
  if (services.now() >= deadline) return fail(kBrickSilent, "flush: the brick does not say its verifier");
  sleep_for(kPause);
  return {};
}

void FileIo::Parts::doubt(std::span<const FileRange> ranges, bool being_flushed) {
  // Doubted first: a commit that ends meanwhile takes what is kept away.
  const bool restorable = log.doubt_growth();
  const bool all_kept = std::all_of(ranges.begin(), ranges.end(), [&](const FileRange& range) {
    if (restorable && kept.covers(range.offset, range.length)) return true;
    // Asked last: it is replaced before it is kept no more.
    return being_flushed && log.was_replaced(range.offset, range.length);
  });
  if (!all_kept) lose_writes();
}

void FileIo::Parts::lose_writes() {
  services.statistics.lost_writes.add();
  log.lost();
}

}  // namespace pnfsrdma::initiator
