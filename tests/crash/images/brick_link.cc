// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/images/brick_link.h"

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "shared/base/check.h"
#include "shared/brick/session_codec.h"

namespace pnfsrdma::crash {
namespace {
constexpr Milliseconds kLinkPatience{20'000};
}

BrickLink::BrickLink(System& system)
    : system_(system), domain_{system.transport(), system.transport()->make_protection_domain()} {}

BrickLink::~BrickLink() = default;

std::unique_ptr<BrickLink> BrickLink::connect(System& system, const nfs4::DeviceAddress& device) {
  std::unique_ptr<BrickLink> link(new BrickLink(system));
  // Connecting waits for the brick, and that for its loop, which is turned here.
  std::atomic<bool> over = false;
  Result<> opened;
  std::thread thread([&] {
    opened = link->open(device);
    over = true;
  });
  const bool ended = system.until([&] { return over.load(); }, true);
  thread.join();
  return ended && opened ? std::move(link) : nullptr;
}

Result<> BrickLink::open(const nfs4::DeviceAddress& device) {
  const SteadyTime deadline = SystemClock().now() + kLinkPatience;
  TRY_ASSIGN(area_, initiator::MessageArea::allocate(domain_));
  TRY_ASSIGN(bounce_, initiator::Buffer::allocate({&domain_, 1}, kBounce));
  rdma::ConnectOptions options{.private_data = brick::encode_connect({brick::kSessionVersion, device.ticket}),
                               .deadline = deadline};
  options.limits.native_flush = true;
  TRY_ASSIGN(rdma::Connected connected,
             domain_.transport->connect(device.paths.at(0).address, domain_.domain, options));
  queue_pair_ = std::move(connected.queue_pair);
  TRY_ASSIGN(hello_, initiator::say_hello(*queue_pair_, *area_, deadline));
  return {};
}

bool BrickLink::wait(uint64_t id, brick::PersistReply* reply) {
  queue_pair_->submit();
  bool completed = false;
  bool answered = reply == nullptr;
  std::array<rdma::Completion, 8> completions;
  while (!completed || !answered) {
    const bool alive = queue_pair_->connected();
    const size_t count = queue_pair_->poll(completions);
    if (count == 0 && !alive) return false;
    if (count == 0 && !queue_pair_->wait(SystemClock().now() + kLinkPatience)) return false;
    for (const rdma::Completion& completion : std::span(completions).first(count)) {
      if (completion.outcome != rdma::Outcome::kSuccess) return false;
      completed = completed || completion.work_id == id;
      if (!initiator::is_receive_work_id(completion.work_id)) continue;
      const size_t slot = initiator::receive_slot(completion.work_id);
      const auto message = brick::decode_session_message(area_->receive_bytes(slot).first(completion.length));
      if (!message || !queue_pair_->post_receive(completion.work_id, area_->receive_slice(slot)))
        return false;
      const auto* persisted = std::get_if<brick::PersistReply>(&*message);
      if (reply == nullptr || persisted == nullptr || persisted->id != id) return false;
      *reply = *persisted;
      answered = true;
    }
  }
  return true;
}

bool BrickLink::write(ByteSpan source, rdma::RemoteSlice target) {
  CHECK(source.size() <= kBounce);
  std::memcpy(bounce_->data(), source.data(), source.size());
  const rdma::LocalSlice local =
      bounce_->slice(0, source.size()).local(0, 0, static_cast<uint32_t>(source.size()));
  const uint64_t id = next_id_ += 2;
  return queue_pair_->post_write(id, {&local, 1}, target) && wait(id);
}

bool BrickLink::read(MutableByteSpan sink, rdma::RemoteSlice source) {
  CHECK(sink.size() <= kBounce);
  const rdma::LocalSlice local =
      bounce_->slice(0, sink.size()).local(0, 0, static_cast<uint32_t>(sink.size()));
  const uint64_t id = next_id_ += 2;
  if (!queue_pair_->post_read(id, local, source) || !wait(id)) return false;
  std::memcpy(sink.data(), bounce_->data(), sink.size());
  return true;
}

bool BrickLink::flush(rdma::RemoteSlice target, const brick::PersistTarget& range) {
  if (!queue_pair_->limits().native_flush) return persist(range);
  const uint64_t id = next_id_ += 2;
  return queue_pair_->post_flush(id, target, rdma::FlushLevel::kPersistent) && wait(id);
}

bool BrickLink::persist(const brick::PersistTarget& range) {
  const uint64_t id = next_id_ += 2;
  const size_t length =
      brick::encode_session_message(brick::PersistCall{id, {{range}}}, area_->send_bytes(0));
  const rdma::LocalSlice message = area_->send_slice(0, length);
  brick::PersistReply reply;
  if (!queue_pair_->post_send(id, {&message, 1}) || !wait(id, &reply)) return false;
  // Another verifier: something written before may be gone. Never within one boot.
  return reply.status == brick::PersistStatus::kOk && reply.verifier == hello_.verifier;
}

}  // namespace pnfsrdma::crash
