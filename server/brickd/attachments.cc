// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/attachments.h"

#include <algorithm>
#include <utility>

namespace pnfsrdma::brick {

Attachments::Attachments(EventLoop& loop, Random& random, Milliseconds lease,
                         std::function<void(uint64_t)> on_silent)
    : loop_(loop), random_(random), lease_(lease), on_silent_(std::move(on_silent)) {
  look_later();
}

Attachments::~Attachments() {
  loop_.cancel(timer_);
}

std::pair<uint64_t, Attachments::Ticket> Attachments::add() {
  uint64_t number = 0;
  while (number == 0 || all_.contains(number)) number = random_.next_u64();
  Attachment attachment{.heard = loop_.now()};
  random_.fill(attachment.ticket);
  all_.emplace(number, attachment);
  return {number, attachment.ticket};
}

const Attachments::Ticket* Attachments::hear(uint64_t attachment) {
  const auto found = all_.find(attachment);
  if (found == all_.end()) return nullptr;
  found->second.heard = loop_.now();
  return &found->second.ticket;
}

void Attachments::look_later() {
  timer_ = loop_.after(std::max(lease_ / 8, Milliseconds(1)), lifetime_.guard([this] {
    const SteadyTime before = loop_.now() - lease_;
    const bool any = std::ranges::any_of(all_, [&](const auto& one) { return one.second.heard < before; });
    if (any) loop_.at_next_turn(lifetime_.guard([this, before] { end_silent(before); }));
    look_later();
  }));
}

void Attachments::end_silent(SteadyTime before) {
  std::vector<uint64_t> silent;
  for (const auto& [number, attachment] : all_) {
    if (attachment.heard < before) silent.push_back(number);
  }
  for (const uint64_t number : silent) {
    all_.erase(number);
    on_silent_(number);
  }
}

}  // namespace pnfsrdma::brick
