// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "shared/brick/session_messages.h"
#include "shared/initiator/brick/buffer.h"

namespace pnfsrdma::initiator {

// Registered memory for the session messages of one connection: slots to receive into and slots to send from.
class MessageArea {
 public:
  // A hello answer comes in parts, sent without waiting for us; more receives than the brick has parts in a
  // burst.
  static constexpr size_t kReceives = 32;
  static constexpr size_t kSends = brick::kSessionCredits;
  // Beside them the call for events has a place of its own to be sent from.
  static constexpr size_t kParkedSend = kSends;

  static Result<std::unique_ptr<MessageArea>> allocate(const TransportDomain& transport) {
    TRY_ASSIGN(auto buffer,
               Buffer::allocate({&transport, 1}, (kReceives + kSends + 1) * brick::kSessionMessageMax));
    return std::unique_ptr<MessageArea>(new MessageArea(std::move(buffer)));
  }

  MutableByteSpan receive_bytes(size_t slot) const { return slot_at(slot).bytes(); }
  rdma::LocalSlice receive_slice(size_t slot) const { return local(slot, brick::kSessionMessageMax); }
  MutableByteSpan send_bytes(size_t slot) const { return slot_at(kReceives + slot).bytes(); }
  rdma::LocalSlice send_slice(size_t slot, size_t length) const { return local(kReceives + slot, length); }

 private:
  explicit MessageArea(std::unique_ptr<Buffer> buffer) : buffer_(std::move(buffer)) {}
  BufferSlice slot_at(size_t index) const {
    return buffer_->slice(index * brick::kSessionMessageMax, brick::kSessionMessageMax);
  }
  rdma::LocalSlice local(size_t index, size_t length) const {
    return slot_at(index).local(0, 0, static_cast<uint32_t>(length));
  }

  std::unique_ptr<Buffer> buffer_;
};

}  // namespace pnfsrdma::initiator
