// SPDX-License-Identifier: Apache-2.0
#include "shared/base/sync.h"
#include "tests/sim/world.h"

namespace pnfsrdma::sim {

namespace {

constexpr SteadyTime::duration kLease = std::chrono::seconds(1);

}  // namespace

Faults::Faults(World& world) : world_(world), dice_(world.dice.next()), thread_([this] { work(); }) {}

void Faults::end() {
  ending_ = true;
  thread_.join();
  for (auto& thread : going_on_) thread.join();
  if (world_.server) world_.server->forget_orders();
  for (auto& brick : world_.bricks) brick->forget_orders();
}

void Faults::work() {
  while (!ending_) {
    const size_t next = world_.operations + dice_.between(10, 120);
    const SteadyTime latest = steady_now() + dice_.microseconds(1000, 2000000);
    while (!ending_ && world_.operations < next && steady_now() < latest)
      sleep_for(std::chrono::microseconds(200));
    if (ending_) break;
    if (world_.options.no_faults) continue;
    if (world_.real_mds) {
      one_real();
    } else {
      one();
    }
  }
}

void Faults::meanwhile(std::function<void()> body) {
  ++world_.disturbed;
  going_on_.emplace_back([this, body = std::move(body)] {
    body();
    world_.calm_since = steady_now();
    --world_.disturbed;
  });
}

void Faults::one() {
  ++world_.faults;
  const size_t client = dice_.below(world_.clients.size());
  switch (dice_.below(22)) {
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
      return partition_brick();
    case 4:
      return cut_mds();
    case 5:
      return restart_brick(false);
    case 6:
      return restart_brick(true);
    case 7:
      return restart_mds();
    case 8: {
      const size_t brick = dice_.below(kBricks);
      world_.trace("FAULT the next flush of brick {} fails", brick);
      world_.bricks[brick]->fail_next_flush();
      break;
    }
    case 9: {
      const size_t file = dice_.below(kFiles);
      if (!world_.server->up()) return;
      world_.trace("FAULT revoke client {} file {}", client, file);
      world_.mds->revoke(client, world_.mds->file(file));
      world_.calm_since = steady_now();
      break;
    }
    case 10:
      world_.trace("FAULT recall any of client {}", client);
      world_.server->recall_any(client, static_cast<uint32_t>(dice_.below(3)));
      break;
    case 11:
      world_.trace("FAULT slow answer for client {}", client);
      world_.mds_network.delay_next(client, dice_.microseconds(1000, 300000));
      break;
    case 12:
      return partition_mds();
    case 13:
      return recall();
    case 14:
      return recall_all();
    case 15:
    case 16:
      return crash_client();
    case 17:
    case 18:
      return recall();
    case 19:
      return cut_mds();
    default:
      return order_error();
  }
}

// It is there again under another verifier, or later than its lease has ended; or what it has sent comes late.
void Faults::crash_client() {
  const size_t client = dice_.below(world_.clients.size());
  const auto time = dice_.microseconds(100, dice_.one_in(3) ? 3000000 : 100000);
  if (!world_.alive(client) || leaving_.contains(client)) return;
  if (!dice_.one_in(4)) {
    for (size_t brick = 0; brick < kBricks; ++brick)
      partition_brick(client, brick, dice_.microseconds(20000, 1500000));
    // WRITEs are on their way then.
    sleep_for(dice_.microseconds(100, 5000));
  }
  // Its applications start again with it: not behind the end.
  if (world_.operations >= world_.options.operations) return;
  world_.trace("FAULT client {} dies for {} us", client, time.count());
  const uint64_t incarnation = world_.options.leases_end ? world_.real_mds->id_of(client) : 0;
  world_.crash(client);
  if (incarnation != 0) return leave_to_lease(client, incarnation, time);
  meanwhile([this, client, time] {
    sleep_for(std::min<SteadyTime::duration>(time, kLease));
    world_.expire(client);
    if (time > kLease) sleep_for(time - kLease);
    world_.wait_for_mds();
    world_.trace("FAULT client {} is back", client);
    world_.start(client);
  });
}

// Its lease ends by itself, or when it is back before that.
void Faults::leave_to_lease(size_t client, uint64_t incarnation, SteadyTime::duration time) {
  leaving_.insert(client);
  meanwhile([this, client, time] {
    sleep_for(time);
    world_.wait_for_mds();
    world_.trace("FAULT client {} is back", client);
    world_.start(client);
  });
  meanwhile([this, client, incarnation] {
    world_.wait_for_fence(client, incarnation);
    world_.trace("client {}: nothing of its last life comes any more", client);
    leaving_.erase(client);
  });
}

void Faults::partition_brick() {
  const size_t client = dice_.below(world_.clients.size()), brick = dice_.below(kBricks);
  partition_brick(client, brick,
                  dice_.one_in(2) ? dice_.microseconds(1000, 200000) : dice_.microseconds(200000, 4000000));
}

void Faults::partition_brick(size_t client, size_t brick, SteadyTime::duration time) {
  if (world_.network.apart(client, brick)) return;
  world_.trace("FAULT client {} and brick {} are apart for {} us", client, brick,
               std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  world_.network.partition(client, brick, true);
  meanwhile([this, client, brick, time] {
    sleep_for(time);
    world_.trace("FAULT client {} and brick {} are together", client, brick);
    world_.network.partition(client, brick, false);
  });
}

void Faults::cut_mds() {
  const size_t client = dice_.below(world_.clients.size());
  world_.trace("FAULT cut client {} from the MDS", client);
  world_.mds_network.cut(client);
  world_.calm_since = steady_now();
}

void Faults::partition_mds() {
  const size_t client = dice_.below(world_.clients.size());
  if (!world_.mds_network.reachable(client)) return;
  auto time = dice_.microseconds(1000, dice_.one_in(3) ? 4000000 : 200000);
  if (world_.options.leases_end && !dice_.one_in(3)) time = world_.lease * dice_.between(8, 25) / 10;
  world_.trace("FAULT client {} and the MDS are apart for {} us", client, time.count());
  world_.mds_network.set_reachable(client, false);
  meanwhile([this, client, time] {
    sleep_for(time);
    world_.trace("FAULT client {} and the MDS are together", client);
    world_.mds_network.set_reachable(client, true);
  });
}

void Faults::restart_brick(bool lose) {
  const size_t brick = dice_.below(kBricks);
  if (!world_.bricks[brick]->up()) return;
  const auto time = dice_.microseconds(100, dice_.one_in(3) ? 1500000 : 50000);
  world_.trace("FAULT brick {} stops for {} us{}", brick, time.count(), lose ? ", with its memory" : "");
  world_.stop_brick(brick, lose);
  meanwhile([this, brick, time] {
    sleep_for(time);
    world_.start_brick(brick);
    world_.trace("FAULT brick {} is back", brick);
    if (world_.server) world_.server->changed.ring();
  });
}

void Faults::restart_mds() {
  if (!world_.mds_up()) return;
  const auto time = dice_.microseconds(100, dice_.one_in(3) ? 1500000 : 50000);
  const bool host = world_.real_mds && dice_.one_in(2);
  world_.trace("FAULT the MDS stops for {} us{}", time.count(), host ? ", with its host" : "");
  world_.stop_mds(host);
  meanwhile([this, time] {
    sleep_for(time);
    world_.trace("FAULT the MDS is back");
    world_.start_mds();
    while (world_.real_mds && world_.real_mds->in_grace()) sleep_for(Milliseconds(20));
  });
}

void Faults::restart_mds_in(SteadyTime::duration time) {
  meanwhile([this, time] {
    sleep_for(time);
    if (!ending_) restart_mds();
  });
}

void Faults::recall() {
  const size_t client = dice_.below(world_.clients.size()), file = dice_.below(kFiles);
  const bool all = dice_.one_in(3);
  const uint64_t offset = all ? 0 : dice_.below(kBytesMax / 4);
  const uint64_t length = all ? UINT64_MAX : dice_.between(1, kBytesMax / 4);
  const IoMode iomode = dice_.one_in(4) ? IoMode::kReadWrite : IoMode::kAny;
  if (!world_.server->up()) return;
  world_.trace("FAULT recall client {} file {} at {}+{}", client, file, offset, length);
  world_.mds->recall(client, world_.mds->file(file), offset, length, iomode);
}

void Faults::recall_all() {
  const size_t client = dice_.below(world_.clients.size());
  if (world_.mds->recalls_all(client) || !world_.server->up()) return;
  world_.trace("FAULT recall of everything from client {}", client);
  // WRITEs may be on their way that have no answer.
  if (dice_.one_in(2)) world_.network.cut(client, dice_.below(kBricks));
  world_.mds->recall_all(client);
  meanwhile([this, client] {
    constexpr auto kPatience = std::chrono::seconds(3);
    const SteadyTime deadline = steady_now() + kPatience;
    while (world_.mds->recalls_all(client) && steady_now() < deadline) sleep_for(Milliseconds(10));
    if (world_.mds->recalls_all(client)) world_.mds->revoke_all(client);
  });
}

void Faults::order_error() {
  using Call = ModelServer::Call;
  constexpr std::pair<Call, Status> kErrors[] = {{Call::kLayoutGet, Status::kLayoutTryLater},
                                                 {Call::kLayoutGet, Status::kRecallConflict},
                                                 {Call::kLayoutGet, Status::kDelay},
                                                 {Call::kLayoutCommit, Status::kIo},
                                                 {Call::kLayoutCommit, Status::kNoSpc},
                                                 {Call::kWrite, Status::kNoSpc},
                                                 {Call::kWrite, Status::kIo},
                                                 {Call::kCommit, Status::kIo},
                                                 {Call::kSetSize, Status::kIo}};
  const size_t client = dice_.below(world_.clients.size());
  const auto [call, status] = kErrors[dice_.below(std::size(kErrors))];
  world_.trace("FAULT client {}: the next call {} answers {}", client, static_cast<int>(call),
               nfs4::to_string(status));
  world_.server->order_error(client, call, status);
  // A recall in its way.
  if (call == Call::kLayoutCommit && dice_.one_in(2)) recall();
}

}  // namespace pnfsrdma::sim
