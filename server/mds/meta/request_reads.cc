// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/request_reads.h"

#include <algorithm>

#include "server/mds/meta/key_value.h"

namespace pnfsrdma::mds {
namespace {

// A request whose rows others change again and again as they come does not go on for ever: it waits for the
// medium then, which is counted.
constexpr int kVoidedMax = 8;

}  // namespace

RequestReads::RequestReads(KeyValueStore& store) : store_(store) {}

RequestReads::~RequestReads() {
  clear();
}

RequestReads::Run::Run(RequestReads& reads) : reads_(reads), outer_(reads.store_.request_) {
  reads_.store_.request_ = &reads_;
  reads_.reading_ = true;
  reads_.wanted_.clear();
  if (!reads_.pinned_.empty()) reads_.drop_stale();
}

RequestReads::Run::~Run() {
  reads_.store_.request_ = outer_;
  reads_.reading_ = false;
}

void RequestReads::fetch(std::function<void()> arrived) {
  if (!self_) self_ = std::make_shared<RequestReads*>(this);
  under_way_.clear();
  for (const Wanted& wanted : wanted_) {
    Pinned& pinned = pinned_.emplace_back(Pinned{wanted, std::nullopt, false});
    store_.pinned_.add(pinned);
    under_way_.push_back(&pinned);
  }
  // `arrived` is the store's until then: it may be what keeps this object.
  store_.begin_fetch(std::exchange(wanted_, {}),
                     [self = std::weak_ptr(self_), round = ++round_,
                      arrived = std::move(arrived)](std::vector<Brought> brought) {
                       const auto live = self.lock();
                       if (live && (*live)->take(round, std::move(brought))) arrived();
                     });
}

// False: too late.
bool RequestReads::take(uint64_t round, std::vector<Brought> brought) {
  if (round != round_ || under_way_.size() != brought.size()) return false;
  for (size_t i = 0; i < brought.size(); ++i) {
    Pinned& pinned = *under_way_[i];
    pinned.brought = std::move(brought[i]);
    if (pinned.wanted.prefix) {
      pages_.push_back(&pinned);
    } else {
      rows_.erase(pinned.wanted.key);  // the view of the key belongs to the value
      rows_.emplace(pinned.wanted.key, &pinned);
    }
  }
  under_way_.clear();
  return true;
}

void RequestReads::clear() {
  wanted_.clear();
  if (pinned_.empty()) return;
  ++round_;  // what is under way comes too late
  for (Pinned& pinned : pinned_) store_.pinned_.remove(pinned);
  rows_.clear();
  pages_.clear();
  under_way_.clear();
  pinned_.clear();
  voided_ = 0;
}

void RequestReads::drop_stale() {
  for (auto at = pinned_.begin(); at != pinned_.end();) {
    Pinned& pinned = *at;
    if (!pinned.stale || !pinned.brought) {
      ++at;
      continue;
    }
    ++voided_;
    store_.pinned_.remove(pinned);
    std::erase(pages_, &pinned);
    const auto row = rows_.find(pinned.wanted.key);
    if (row != rows_.end() && row->second == &pinned) rows_.erase(row);
    at = pinned_.erase(at);
  }
}

const Brought* RequestReads::row(std::string_view key) const {
  if (rows_.empty()) return nullptr;
  const auto found = rows_.find(key);
  return found != rows_.end() && found->second->good() ? &*found->second->brought : nullptr;
}

const Brought* RequestReads::page(std::string_view prefix, std::string_view key) const {
  for (const Pinned* page : pages_) {
    if (page->covers(prefix, key)) return &*page->brought;
  }
  return nullptr;
}

bool RequestReads::want(std::string_view key, const std::string_view* prefix) {
  if (!reading_ || voided_ > kVoidedMax) return false;
  Wanted& wanted = wanted_.emplace_back(Wanted{std::string(key), std::nullopt});
  if (prefix != nullptr) wanted.prefix = std::string(*prefix);
  return true;
}

}  // namespace pnfsrdma::mds
