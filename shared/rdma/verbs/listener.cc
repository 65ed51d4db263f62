// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/listener.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <cerrno>

#include "shared/base/log.h"
#include "shared/base/sync.h"
#include "shared/rdma/verbs/address.h"
#include "shared/rdma/verbs/connection_request.h"

namespace pnfsrdma::rdma::verbs {
namespace {

constexpr int kBacklog = 128;

}  // namespace

Result<std::unique_ptr<Listener>> VerbsListener::make(std::shared_ptr<Device> device,
                                                      const std::string& address, OnRequest on_request) {
  TRY_ASSIGN(Address wanted, Address::parse(address));
  TRY_ASSIGN(ConnectionEvents events, ConnectionEvents::make());
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id(events.get(), &raw, nullptr, RDMA_PS_TCP) != 0) {
    return std::unexpected(Error::from_errno("rdma_create_id"));
  }
  Identifier identifier(raw);
  if (rdma_bind_addr(identifier.get(), wanted.get()) != 0) {
    const int reason = errno == ENODEV ? EADDRNOTAVAIL : errno;
    return fail(reason,
                "listening by RDMA on " + address +
                    (reason == EADDRNOTAVAIL ? ": no RDMA device has this address (see `rdma link`)" : ""));
  }
  if (!wanted.wildcard() && identifier->verbs != device->context()) {
    return fail(EADDRNOTAVAIL, address + " is not an address of " + device->name());
  }
  if (rdma_listen(identifier.get(), kBacklog) != 0) {
    return std::unexpected(Error::from_errno("listening by RDMA on " + address));
  }
  TRY_ASSIGN(const Address bound, Address::from(rdma_get_local_addr(identifier.get())));
  FileDescriptor stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop) return std::unexpected(Error::from_errno("eventfd"));
  return std::unique_ptr<Listener>(new VerbsListener(std::move(device), std::move(events),
                                                     std::move(identifier), bound.to_string(),
                                                     std::move(stop), std::move(on_request)));
}

VerbsListener::VerbsListener(std::shared_ptr<Device> device, ConnectionEvents events, Identifier identifier,
                             std::string address, FileDescriptor stop, OnRequest on_request)
    : device_(std::move(device)),
      on_request_(std::move(on_request)),
      address_(std::move(address)),
      events_(std::move(events)),
      identifier_(std::move(identifier)),
      stop_(std::move(stop)) {
  thread_ = Thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "verbs-listen");
}

VerbsListener::~VerbsListener() {
  const uint64_t one = 1;
  static_cast<void>(!::write(stop_.get(), &one, sizeof(one)));
  thread_.join();
  // Requests nobody has taken are rejected with the identifiers they brought.
  while (auto event = events_.take()) {
    if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) Identifier dropped(event->identifier);
  }
}

void VerbsListener::run() {
  for (;;) {
    pollfd entries[2] = {{events_.fd(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (::poll(entries, 2, -1) < 0 && errno != EINTR) return;
    if (entries[1].revents != 0) return;
    if (auto event = events_.take()) take(*event);
  }
}

void VerbsListener::take(const ConnectionEvent& event) {
  if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
    log_error("verbs", "device-removed listener={} no longer accepts connections", address_);
    return;
  }
  if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) return;
  Identifier identifier(event.identifier);
  if (identifier->verbs != device_->context()) {
    rdma_reject(identifier.get(), nullptr, 0);
    return;
  }
  // From here on its events are its own: nobody else's connection waits for them.
  auto events = ConnectionEvents::make();
  if (!events || rdma_migrate_id(identifier.get(), events->get()) != 0) {
    log_warning("verbs", "connection-refused listener={} errno={}", address_, errno);
    rdma_reject(identifier.get(), nullptr, 0);
    return;
  }
  on_request_(
      std::make_unique<VerbsConnectionRequest>(device_, *std::move(events), std::move(identifier), event));
}

}  // namespace pnfsrdma::rdma::verbs
