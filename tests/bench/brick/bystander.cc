// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/brick/bystander.h"

#include <chrono>

#include "tests/bench/brick/device.h"

namespace pnfsrdma::bench {
namespace {

constexpr uint64_t kLength = uint64_t{64} << 10;
constexpr uint32_t kPiece = 4096;
constexpr std::chrono::milliseconds kPause{1};
constexpr std::chrono::milliseconds kPauseAfterError{100};

}  // namespace

Result<std::unique_ptr<Bystander>> Bystander::start(BrickOwner& owner, rdma::Transport& transport,
                                                    const std::string& address, uint64_t client,
                                                    uint64_t logical, bool writes) {
  TRY_ASSIGN(const Ticket ticket, owner.open_session(client));
  TRY_ASSIGN(auto connection, brick::TestClient::connect(transport, address, ticket));
  TRY_ASSIGN(const brick::Grant grant, owner.expose(client, logical, kLength, writes));
  std::unique_ptr<Bystander> bystander(new Bystander(std::move(connection), grant, writes));
  bystander->thread_ = std::thread([self = bystander.get()] { self->run(); });
  return bystander;
}

void Bystander::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void Bystander::run() {
  for (uint64_t number = 0; !stopping_; ++number) {
    const uint64_t offset = number % (kLength / kPiece) * kPiece;
    const int64_t began = now_ns();
    const rdma::Outcome outcome =
        writes_ ? client_->write(grant_, offset, kPiece) : client_->read(grant_, offset, kPiece);
    operations_.push_back({began, now_ns() - began});
    if (outcome != rdma::Outcome::kSuccess) ++errors_;
    std::this_thread::sleep_for(outcome == rdma::Outcome::kSuccess ? kPause : kPauseAfterError);
  }
}

}  // namespace pnfsrdma::bench
