// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/device.h"

#include <algorithm>

#include "shared/base/log.h"
#include "shared/brick/session_codec.h"
#include "shared/initiator/brick/device_path.h"

namespace pnfsrdma::initiator {

namespace {

// Work requests of all threads of the mount together; as many FUSE threads as batches of one fit.
constexpr uint32_t kSendDepth = 256;
constexpr uint32_t kReadDepth = 32;

FlushMethod choose_flush(const nfs4::DeviceAddress& address, const rdma::QueuePair& queue_pair) {
  if ((address.flush_methods & nfs4::kFlushNative) != 0 && queue_pair.limits().native_flush) {
    return FlushMethod::kNative;
  }
  if ((address.flush_methods & nfs4::kFlushCommitMessage) != 0) return FlushMethod::kCommitMessage;
  return FlushMethod::kLayoutCommit;
}

// A connection before its hello was answered. Its queue pair goes before the memory it receives into.
struct Unheard {
  std::unique_ptr<MessageArea> area;
  std::unique_ptr<rdma::QueuePair> queue_pair;
};

}  // namespace

const char* to_string(FlushMethod method) {
  switch (method) {
    case FlushMethod::kNative:
      return "native";
    case FlushMethod::kCommitMessage:
      return "commit-message";
    case FlushMethod::kLayoutCommit:
      return "layoutcommit";
  }
  return "?";
}

Connection::Lookup Connection::resolve(uint32_t generation, const nfs4::Target& target, uint64_t length,
                                       rdma::RemoteSlice& slice) const {
  if (generation == hello.connection) {
    slice = {target.address, length, target.handle};
    return Lookup::kFound;
  }
  if (generation > hello.connection) return Lookup::kNewer;
  const auto found = hello.grants.find(target.grant);
  // Generation 0: granted while the brick saw no connection of ours. If its grant is not in our hello either,
  // the brick has given up this connection and we have not noticed yet.
  if (found == hello.grants.end()) return generation == 0 ? Lookup::kNewer : Lookup::kDead;
  slice = {found->second.address, length, found->second.handle};
  return Lookup::kFound;
}

Device::Device(const DeviceId& id, Fabric& fabric) : id_(id), fabric_(fabric) {}

Result<std::shared_ptr<Connection>> Device::connect() {
  Lock lock(mutex_);
  if (connection_ && connection_->queue_pair.connected()) return connection_;
  const SteadyTime deadline = fabric_.now() + fabric_.options.connect_timeout;
  if (!changed_.wait_until(lock, deadline, [&] { return !connecting_; })) {
    return fail(ETIMEDOUT, "waiting for the connection to device " + to_hex(id_));
  }
  if (fabric_.aborted) return fail(ESHUTDOWN, "the mount ends");
  if (connection_ && connection_->queue_pair.connected()) return connection_;
  if (fabric_.now() < not_before_) return fail(ENOTCONN, "device " + to_hex(id_) + " rests");
  connection_.reset();
  connecting_ = true;
  lock.unlock();
  auto made = establish();
  if (made) {
    established(*made);
  } else {
    failed(made.error());
  }
  return made;
}

std::shared_ptr<Connection> Device::live() const {
  Lock lock(mutex_);
  return connection_ && connection_->queue_pair.connected() ? connection_ : nullptr;
}

Result<std::shared_ptr<Connection>> Device::establish() {
  // Twice: a refused ticket is asked for anew, once (the MDS may have restarted).
  for (bool again = true;; again = false) {
    TRY_ASSIGN(const nfs4::DeviceAddress device, address());
    auto made = connect_to(device, fabric_.now() + fabric_.options.connect_timeout);
    if (made || brick::reject_reason(made.error()) != brick::RejectReason::kTicket) return made;
    ticket_refused();
    if (!again) return made;
  }
}

Result<nfs4::DeviceAddress> Device::address() {
  {
    Lock lock(mutex_);
    if (address_) return *address_;
  }
  TRY_ASSIGN(nfs4::DeviceAddress asked, fabric_.address_of(id_));
  TRY(check_durability(asked));
  Lock lock(mutex_);
  address_ = std::move(asked);
  return *address_;
}

// A brick whose process, and perhaps memory, is another one refuses the ticket: then it is asked anew.
Result<> Device::check_durability(const nfs4::DeviceAddress& address) {
  const bool weak = fabric_.options.require_power && address.durability != Durability::kPower;
  const bool news = too_weak_.exchange(weak, std::memory_order_acq_rel) != weak;
  if (!weak) return {};
  if (news) {
    log_error(
        "initiator",
        "device-too-weak device={} durability={} cause=\"require_durability=persistent, and this brick's "
        "memory does not survive a loss of power: I/O to its files fails with EIO\" fix=\"remove the brick, "
        "put "
        "its pool on PMEM or a disk file, or mount without require_durability\"",
        to_hex(id_), to_string(address.durability));
  }
  return std::unexpected(weakness());
}

Error Device::weakness() const {
  return {EIO, "device " + to_hex(id_) + ": its memory does not survive a loss of power"};
}

Result<std::shared_ptr<Connection>> Device::connect_to(const nfs4::DeviceAddress& address,
                                                       SteadyTime deadline) {
  auto paths = usable_paths(address.paths, fabric_.transports);
  Error last(EAFNOSUPPORT, "device " + to_hex(id_) + ": no path that this mount's transports can use");
  rdma::ConnectOptions options;
  options.private_data = brick::encode_connect({.ticket = address.ticket});
  options.limits.send_depth = kSendDepth;
  options.limits.receive_depth = MessageArea::kReceives;
  options.limits.read_depth = kReadDepth;
  options.limits.message_size_max = brick::kSessionMessageMax;
  options.limits.native_flush = (address.flush_methods & nfs4::kFlushNative) != 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (fabric_.aborted) return fail(ESHUTDOWN, "the mount ends");
    const UsablePath& path = paths[i];
    const TransportDomain& on = fabric_.transports[path.transport];
    // An address that leads nowhere leaves time for those behind it.
    const SteadyTime now = fabric_.now();
    const size_t left = addresses_of(std::span(paths).subspan(i), fabric_.transports);
    options.deadline = now + (deadline - now) / static_cast<int64_t>(left);
    auto connected = on.transport->connect(path.address, on.domain, options);
    if (connected) {
      auto made = finish_connect(address, path.transport, std::move(*connected), options.deadline);
      if (made && on.transport->name() != fabric_.transports[paths.front().transport].transport->name()) {
        log_warning("initiator", "transport-fallback device={} wanted={} using={} error=\"{}\"", to_hex(id_),
                    fabric_.transports[paths.front().transport].transport->name(), on.transport->name(),
                    last.to_string());
      }
      if (made) (*made)->choice = why_chosen(paths, i, address.paths, fabric_.transports, last);
      if (made) return made;
      last = made.error();
    } else if (connected.error().number() != EXDEV || i == 0) {
      // "Not through this device" says nothing when another device was tried.
      last = connected.error();
    }
    // The device that leads to an address is the only one; the others say EXDEV.
    if (connected || connected.error().number() != EXDEV) drop_address(paths, i, fabric_.transports);
    // Whatever the path, the ticket stays refused.
    if (brick::reject_reason(last)) break;
  }
  return std::unexpected(std::move(last));
}

Result<std::shared_ptr<Connection>> Device::finish_connect(const nfs4::DeviceAddress& address,
                                                           size_t transport, rdma::Connected connected,
                                                           SteadyTime deadline) {
  // If nothing comes of it, it ends where a device may take its time.
  const auto unheard = fabric_.destruction.adopt(std::make_unique<Unheard>());
  unheard->queue_pair = std::move(connected.queue_pair);
  TRY_ASSIGN(unheard->area, MessageArea::allocate(fabric_.transports[transport]));
  auto hello = say_hello(*unheard->queue_pair, *unheard->area, deadline);
  if (!hello) {
    unheard->queue_pair->fail();  // the brick learns now
    return std::unexpected(hello.error());
  }
  auto connection = fabric_.destruction.adopt(std::make_unique<Connection>(
      std::move(unheard->queue_pair), std::move(unheard->area), std::move(*hello)));
  connection->transport = transport;
  connection->said = brick::decode_accept(connected.private_data);
  connection->flush = choose_flush(address, connection->queue_pair.queue_pair());
  connection->takes_commit_message = (address.flush_methods & nfs4::kFlushCommitMessage) != 0;
  return connection;
}

void Device::established(std::shared_ptr<Connection> connection) {
  Statistics& counters = fabric_.statistics;
  counters.connects.add();
  Lock lock(mutex_);
  if (ever_connected_) counters.reconnects.add();
  // Generations of a session only grow. One that does not is of another brick process: its grants are others.
  if (connection->hello.connection <= last_generation_) {
    ++incarnation_;
    counters.layouts_dropped.add();
  }
  connection->incarnation = incarnation_;
  last_generation_ = connection->hello.connection;
  log_info("initiator", "device-connected device={} peer={} transport={} connection={} flush={}", to_hex(id_),
           connection->queue_pair.queue_pair().peer(),
           fabric_.transports[connection->transport].transport->name(), connection->hello.connection,
           to_string(connection->flush));
  connection_ = std::move(connection);
  ever_connected_ = true;
  connecting_ = false;
  pause_ = Milliseconds(0);
  changed_.notify_all();
}

void Device::failed(const Error& error) {
  fabric_.statistics.connect_failures.add();
  Lock lock(mutex_);
  const DataPathOptions& options = fabric_.options;
  if (pause_.count() == 0) {
    pause_ = options.connect_pause_first;
    // Once per outage; the counter tells the rest.
    if (!too_weak())
      log_warning("initiator", "device-unreachable device={} error=\"{}\"", to_hex(id_), error.to_string());
  } else {
    pause_ = std::min(pause_ * 2, options.connect_pause_max);
  }
  not_before_ = fabric_.now() + pause_;
  connecting_ = false;
  // The MDS may know a new path or ticket by now.
  address_.reset();
  changed_.notify_all();
}

void Device::ticket_refused() {
  fabric_.statistics.tickets_refused.add();
  fabric_.statistics.layouts_dropped.add();
  log_warning("initiator", "ticket-refused device={} all its layouts are dropped", to_hex(id_));
  Lock lock(mutex_);
  address_.reset();
  ++incarnation_;
  last_generation_ = 0;
}

void Device::lost(const std::shared_ptr<Connection>& connection) {
  connection->queue_pair.fail();
  Lock lock(mutex_);
  if (connection_ == connection) connection_.reset();
}

bool Device::report_due() {
  const Milliseconds distance = fabric_.options.report_distance;
  Lock lock(mutex_);
  if (pause_.count() == 0 || distance.count() == 0 || fabric_.aborted || too_weak()) return false;
  const SteadyTime now = fabric_.now();
  if (reported_at_ && now - *reported_at_ < distance) return false;
  reported_at_ = now;
  return true;
}

bool Device::silent(Milliseconds patience) {
  Lock lock(mutex_);
  if (!connection_ || !connection_->queue_pair.connected()) return true;
  const SharedQueuePair::Progress now = connection_->queue_pair.progress();
  if (!now.waiting || now != seen_) {
    seen_ = now;
    seen_since_ = fabric_.now();
    return false;
  }
  return fabric_.now() - seen_since_ >= patience;
}

void Device::forget_address() {
  Lock lock(mutex_);
  address_.reset();
}

bool Device::rests() const {
  Lock lock(mutex_);
  return fabric_.now() < not_before_;
}

void Device::abort() {
  Lock lock(mutex_);
  if (connection_) connection_->queue_pair.fail();
}

Device::View Device::view() const {
  Lock lock(mutex_);
  return {connection_, address_};
}

}  // namespace pnfsrdma::initiator
