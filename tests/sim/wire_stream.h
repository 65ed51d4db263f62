// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "shared/base/event_loop.h"
#include "shared/rpc/message_stream.h"
#include "tests/sim/mds_network.h"

namespace pnfsrdma::sim {

// The MDS's end of a wire, as its RPC connection knows it. What the network tells is told in the loop's thread.
class WireStream final : public rpc::MessageStream, public std::enable_shared_from_this<WireStream> {
 public:
  WireStream(EventLoop& loop, std::shared_ptr<Wire> wire)
      : loop_(loop), wire_(std::move(wire)), peer_("127.0.0." + std::to_string(wire_->client + 1) + ":900") {}

  // For a trace; may be empty.
  std::function<void(ByteSpan)> on_send;

  // --- by the network
  void arrived(Bytes record);
  void closed();

  // --- MessageStream
  void start(Handlers handlers) override { handlers_ = std::move(handlers); }
  void send(Bytes head, std::shared_ptr<const Bytes> body) override;
  void pause() override { paused_ = true; }
  void resume() override;
  void close() override;
  size_t unsent_bytes() const override { return 0; }
  const std::string& peer() const override { return peer_; }
  std::string transport() const override { return "tcp"; }

 private:
  void deliver();

  EventLoop& loop_;
  const std::shared_ptr<Wire> wire_;
  const std::string peer_;
  std::optional<Handlers> handlers_;
  std::deque<Bytes> waiting_;
  bool paused_ = false;
};

}  // namespace pnfsrdma::sim
