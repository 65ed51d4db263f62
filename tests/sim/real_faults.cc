// SPDX-License-Identifier: Apache-2.0
#include "shared/base/sync.h"
#include "tests/sim/world.h"

// What breaks around the MDS itself.
namespace pnfsrdma::sim {

void Faults::one_real() {
  ++world_.faults;
  if (world_.options.leases_end && dice_.one_in(8)) return partition_mds();
  const size_t client = dice_.below(world_.clients.size());
  if (world_.options.disowned && dice_.one_in(4)) {
    const size_t file = dice_.below(kFiles);
    world_.trace("FAULT the open of client {} of file {} is forgotten", client, file);
    return world_.real_mds->disown(client, file);
  }
  if (world_.options.revoked && dice_.one_in(2)) {
    const size_t file = dice_.below(kFiles);
    world_.trace("FAULT the layout of client {} of file {} is revoked", client, file);
    return world_.real_mds->revoke(client, file);
  }
  if (world_.options.delegations && world_.options.leases_end && dice_.one_in(10))
    return withhold_callbacks();
  switch (dice_.below(20)) {
    case 0:
    case 1:
    case 2: {
      const size_t brick = dice_.below(kBricks);
      world_.trace("FAULT cut client {} from brick {}", client, brick);
      world_.network.cut(client, brick);
      world_.calm_since = steady_now();
      break;
    }
    case 3:
    case 4:
      return partition_brick();
    case 5:
    case 6:
      return cut_mds();
    case 7:
      return restart_brick(false);
    case 8:
      return restart_brick(true);
    case 9:
    case 10:
      return restart_mds();
    case 11: {
      const size_t brick = dice_.below(kBricks);
      world_.trace("FAULT the next flush of brick {} fails", brick);
      world_.bricks[brick]->fail_next_flush();
      break;
    }
    case 12:
      world_.trace("FAULT recall any of client {}", client);
      world_.real_mds->recall_any(client, static_cast<uint32_t>(dice_.below(3)));
      break;
    case 13:
      world_.trace("FAULT slow answer for client {}", client);
      world_.mds_network.delay_next(client, dice_.microseconds(1000, 300000));
      break;
    case 14:
      return partition_mds();
    case 15:
    case 16:
      return crash_client();
    default: {
      const size_t file = dice_.below(kFiles);
      const bool all = dice_.one_in(3);
      const uint64_t offset = all ? 0 : dice_.below(kBytesMax / 4);
      const uint64_t length = all ? UINT64_MAX : dice_.between(1, kBytesMax / 4);
      world_.trace("FAULT recall file {} at {}+{}", file, offset, length);
      world_.real_mds->recall(file, offset, length);
    }
  }
}

// So long that what is recalled meanwhile is revoked.
void Faults::withhold_callbacks() {
  const size_t client = dice_.below(world_.clients.size());
  const auto time = world_.lease * dice_.between(8, 25) / 10;
  world_.trace("FAULT no callback reaches client {} for {} ms", client, time.count());
  world_.mds_network.withhold_callbacks(client, steady_now() + time);
  meanwhile([this, client, time] {
    sleep_for(time);
    world_.trace("FAULT callbacks reach client {} again", client);
  });
}

}  // namespace pnfsrdma::sim
