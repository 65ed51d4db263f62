// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/memory_budget.h"

#include <arpa/inet.h>
#include <malloc.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "shared/base/check.h"
#include "shared/base/log.h"

namespace pnfsrdma::rpc {
namespace {

constexpr Milliseconds kLookEvery{1000};
// Who waits is not asked after every byte that was freed.
constexpr Milliseconds kReliefDelay{10};
// A request on its way is not taken for a stalled one.
constexpr Milliseconds kVictimPatience{1000};
constexpr Milliseconds kLogEvery{5000};
constexpr int kLooksPerTrim = 5;
// A turn of the loop goes on with so many who waited, and frees what so many had: the next one does the rest.
constexpr size_t kReliefsPerTurn = 32;
constexpr size_t kEndsPerTurn = 8;

MemoryLimits filled_in(MemoryLimits limits) {
  if (limits.bytes_per_address == 0) limits.bytes_per_address = limits.bytes / 2;
  return limits;
}

// Where shares begin to count, and how far down victims bring it.
size_t near_end(size_t bytes) {
  return bytes / 4 * 3;
}

}  // namespace

std::string address_of_peer(const std::string& peer) {
  const size_t colon = peer.rfind(':');
  if (colon == std::string::npos) return peer;
  if (peer.front() != '[') return peer.substr(0, colon);
  const std::string host = peer.substr(1, peer.find(']') - 1);
  in6_addr address{};
  if (inet_pton(AF_INET6, host.c_str(), &address) != 1) return host;
  char text[INET6_ADDRSTRLEN] = {};
  if (IN6_IS_ADDR_V4MAPPED(&address))
    return inet_ntop(AF_INET, address.s6_addr + 12, text, sizeof text) ? text : host;
  // Any host has a whole /64 to itself (RFC 4291, 2.5.4).
  std::memset(address.s6_addr + 8, 0, 8);
  return inet_ntop(AF_INET6, &address, text, sizeof text) ? text : host;
}

// --- an account ---

MemoryAccount::~MemoryAccount() {
  budget_.close(*this);
}

void MemoryAccount::hold(size_t bytes, size_t releasable, bool half_record) {
  half_record_ = half_record;
  releasable_ = releasable;
  if (bytes != held_) budget_.changed(*this, bytes);
}

void MemoryAccount::moved() {
  moved_ = budget_.clock_.now();
}

void MemoryAccount::completed() {
  completed_ = moved_ = budget_.clock_.now();
}

bool MemoryAccount::may_read() {
  if (!budget_.over(*this, 0)) return true;
  budget_.waiting_.insert(this);
  return false;
}

bool MemoryAccount::has_room(size_t bytes) const {
  return !budget_.over(*this, bytes);
}

// --- the budget ---

MemoryBudget::MemoryBudget(const Clock& clock, MemoryLimits limits)
    : clock_(clock), limits_(filled_in(limits)) {}

void MemoryBudget::start(EventLoop& loop) {
  loop_ = &loop;
  look_later();
}

std::shared_ptr<MemoryAccount> MemoryBudget::open(const std::string& peer) {
  std::string name = address_of_peer(peer);
  const auto known = addresses_.find(name);
  const Address of = known != addresses_.end() ? known->second : Address();
  const bool too_many = of.connections >= limits_.connections_per_address;
  // Whoever has little is let in a little longer: it is not he who has used it up.
  const bool greedy = of.bytes > near_end(for_connections()) / std::max<size_t>(addresses_.size(), 1);
  const bool used_up = held_ >= (greedy ? for_connections() : for_connections() / 8 * 9);
  if (too_many || used_up) {
    ++refused_;
    if (clock_.now() - logged_ >= kLogEvery) {
      logged_ = clock_.now();
      log_warning("rpc", "connection-refused address={} why=\"{}\" refused={}", name,
                  too_many ? "too many connections from one address" : "the memory budget is used up",
                  refused_);
    }
    return nullptr;
  }
  auto account = std::make_shared<MemoryAccount>(*this, name);
  account->of_ = &addresses_[name];
  ++account->of_->connections;
  accounts_.insert(account.get());
  account->completed();
  changed(*account, kConnectionCost);
  return account;
}

void MemoryBudget::close(MemoryAccount& account) {
  changed(account, 0);
  accounts_.erase(&account);
  waiting_.erase(&account);
  if (--account.of_->connections == 0) addresses_.erase(account.address_);
}

size_t MemoryBudget::reservable() const {
  const size_t most =
      std::min(limits_.bytes / 2, near_end(limits_.bytes) - std::min(state_, limits_.bytes / 2));
  return most - std::min(most, reserved_);
}

size_t MemoryBudget::state_limit() const {
  return std::min(limits_.bytes / 2, near_end(limits_.bytes) - reserved_);
}

size_t MemoryBudget::kept() const {
  return std::min(reserved_ + state_, near_end(limits_.bytes));
}

void MemoryBudget::hold_state(size_t bytes) {
  state_ += bytes;
  peak_ = std::max(peak_, held());
}

void MemoryBudget::give_back_state(size_t bytes) {
  CHECK(bytes <= state_);
  state_ -= bytes;
}

bool MemoryBudget::reserve(size_t bytes) {
  if (bytes > reservable()) return false;
  reserved_ += bytes;
  peak_ = std::max(peak_, held());
  return true;
}

void MemoryBudget::give_back(size_t bytes) {
  CHECK(bytes <= reserved_);
  reserved_ -= bytes;
}

std::function<void(size_t left)> MemoryBudget::outlive(size_t bytes) {
  held_ += bytes;
  return lifetime_.guard([this, counted = std::make_shared<size_t>(bytes)](size_t left) {
    held_ -= *counted - left;
    *counted = left;
  });
}

std::function<void(size_t left)> MemoryAccount::outlive(size_t bytes) {
  return budget_.outlive(bytes);
}

bool MemoryBudget::over(const MemoryAccount& account, size_t more) const {
  const size_t own = account.held_ + more;
  if (own <= kAccountFloor) return false;
  const size_t of_address = account.of_->bytes + more;
  const size_t all = held_ + more;
  if (of_address > limits_.bytes_per_address || all > for_connections()) return true;
  return all > near_end(for_connections()) && of_address > near_end(for_connections()) / addresses_.size();
}

void MemoryBudget::changed(MemoryAccount& account, size_t bytes) {
  const bool less = bytes < account.held_;
  account.of_->bytes += bytes - account.held_;
  held_ += bytes - account.held_;
  account.held_ = bytes;
  peak_ = std::max(peak_, held());
  if (!less || waiting_.empty() || loop_ == nullptr || std::exchange(relief_scheduled_, true)) return;
  loop_->after(kReliefDelay, lifetime_.guard([this] {
    relief_scheduled_ = false;
    relieve_now();
  }));
}

void MemoryBudget::relieve_now() {
  if (std::exchange(relief_scheduled_, true)) return;
  loop_->at_own_turn(lifetime_.guard([this] { relieve(); }));
}

// Handlers may end connections, and with them accounts.
void MemoryBudget::relieve() {
  relief_scheduled_ = false;
  std::vector<MemoryAccount*> free;
  for (MemoryAccount* account : waiting_) {
    if (over(*account, 0)) continue;
    if (free.size() == kReliefsPerTurn) {
      relieve_now();
      break;
    }
    free.push_back(account);
  }
  for (MemoryAccount* account : free) {
    if (waiting_.erase(account) == 0) continue;
    if (const auto relief = account->handlers_.on_relief) relief();
  }
}

void MemoryBudget::look_later() {
  loop_->after(kLookEvery, lifetime_.guard([this] { look(); }));
}

void MemoryBudget::look() {
  const EventLoop::Step step(*loop_, "memory-budget");
  look_later();
  if (++looks_ % kLooksPerTrim == 0) trim_after_burst();
  if (!waiting_.empty()) relieve_now();
  end_some_now();
}

void MemoryBudget::trim_after_burst() {
  const size_t peak = std::exchange(peak_, held());
  const size_t before = std::exchange(peak_before_, peak);
  if (before > peak) freed_ += before - peak;
  if (!trimmer_.tick(freed_)) return;
  const EventLoop::Step step(*loop_, "malloc-trim");
  (void)::malloc_trim(0);
  ++trims_;
}

void MemoryBudget::end_some_now() {
  if (std::exchange(ending_, true)) return;
  loop_->at_own_turn(lifetime_.guard([this] {
    ending_ = false;
    size_t left = kEndsPerTurn;
    end_stalled(left);
    if (!waiting_.empty()) end_victims(left);
    // Who is to end is asked again then: much may have been given back meanwhile.
    if (left == 0) end_some_now();
  }));
}

void MemoryBudget::end_stalled(size_t& left) {
  const SteadyTime now = clock_.now();
  std::vector<MemoryAccount*> stalled;
  for (MemoryAccount* account : accounts_)
    if (!account->ended_ && account->half_record_ && now - account->moved_ >= limits_.stalled_record)
      stalled.push_back(account);
  for (MemoryAccount* account : stalled) {
    if (left == 0) return;
    if (accounts_.contains(account)) end(*account, "a partial record without progress"), --left;
  }
}

// Of the address that holds most, when all together are over the limit; else of each that is over its own.
void MemoryBudget::end_victims(size_t& left) {
  std::vector<std::pair<std::string, Address>> addresses(addresses_.begin(), addresses_.end());
  std::ranges::sort(addresses, std::greater(), [](const auto& item) { return item.second.bytes; });
  for (const auto& [name, address] : addresses) {
    // Those of the next address only when this one has no more of them.
    if (left == 0) return;
    const size_t own_aim = near_end(limits_.bytes_per_address);
    const size_t aim = near_end(for_connections());
    size_t excess = address.bytes > own_aim ? address.bytes - own_aim : 0;
    if (held_ > aim) excess = std::max(excess, held_ - aim);
    if (excess == 0) return;
    end_victims(name, excess, left);
  }
}

void MemoryBudget::end_victims(const std::string& address, size_t bytes, size_t& left) {
  const SteadyTime now = clock_.now();
  std::vector<MemoryAccount*> victims;
  for (MemoryAccount* account : accounts_) {
    if (!account->ended_ && account->address_ == address && account->releasable_ > kAccountFloor &&
        now - account->completed_ >= kVictimPatience)
      victims.push_back(account);
  }
  const size_t count = std::min(victims.size(), left);
  std::ranges::partial_sort(victims, victims.begin() + static_cast<ptrdiff_t>(count), {},
                            [](const MemoryAccount* account) { return account->completed_; });
  const size_t before = held_;
  for (MemoryAccount* account : std::span(victims).first(count)) {
    if (before - std::min(before, held_) >= bytes) return;
    if (!accounts_.contains(account)) continue;
    end(*account, "the memory budget is short, and its address holds most");
    --left;
  }
}

void MemoryBudget::end(MemoryAccount& account, const char* why) {
  ++ended_;
  account.ended_ = true;
  if (clock_.now() - logged_ >= kLogEvery) {
    logged_ = clock_.now();
    log_warning("rpc", "connection-ended address={} bytes={} why=\"{}\" ended={}", account.address_,
                account.held_, why, ended_);
  }
  if (const auto end = account.handlers_.on_victim) end();
}

}  // namespace pnfsrdma::rpc
