// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/overlay.h"

#include <algorithm>

namespace pnfsrdma::mds {
namespace {

// Of a scan's part: what the reader brings is not much more.
constexpr size_t kRowsTaken = 512;

}  // namespace

void Overlay::add(const Batch& batch, Sequence sequence) {
  batch.for_each([&](std::string_view key, std::string_view value) { put(key, value, sequence); },
                 [&](std::string_view key) { put(key, std::nullopt, sequence); });
}

void Overlay::put(std::string_view key, std::optional<std::string_view> value, Sequence sequence) {
  auto at = rows_.lower_bound(key);
  if (at == rows_.end() || at->first != key) at = rows_.emplace_hint(at, key, Row{});
  at->second.value = value;
  at->second.changed = sequence;
}

void Overlay::drop(const Batch& batch, Sequence sequence) {
  batch.for_each([&](std::string_view key, std::string_view) { drop_row(key, sequence); },
                 [&](std::string_view key) { drop_row(key, sequence); });
}

void Overlay::drop_row(std::string_view key, Sequence sequence) {
  const auto at = rows_.find(key);
  if (at != rows_.end() && at->second.changed <= sequence) rows_.erase(at);
}

const Overlay::Row* Overlay::find(std::string_view key) const {
  const auto at = rows_.find(key);
  return at == rows_.end() ? nullptr : &at->second;
}

MergedWalk::MergedWalk(const Overlay& overlay, std::string_view prefix, std::string_view from,
                       const KeyValueStore::Visitor& visitor)
    : rows_(overlay.rows()),
      prefix_(prefix),
      visitor_(visitor),
      next_(rows_.lower_bound(std::max(prefix, from))) {}

bool MergedWalk::at_prefix() const {
  return next_ != rows_.end() && next_->first.starts_with(prefix_);
}

// Copies: the visitor may commit to the very row.
bool MergedWalk::visit_next() {
  const std::string key = next_->first;
  const std::optional<std::string> value = next_->second.value;
  ++next_;
  if (value) enough_ = !visitor_(key, *value);
  return !enough_;
}

bool MergedWalk::base_row(std::string_view key, std::string_view value) {
  while (at_prefix() && next_->first < key) {
    if (!visit_next()) return false;
  }
  if (at_prefix() && next_->first == key) return visit_next();
  enough_ = !visitor_(key, value);
  return !enough_;
}

bool MergedWalk::rest(std::string_view end) {
  while (!enough_ && at_prefix() && (end.empty() || next_->first < end)) visit_next();
  return !enough_;
}

OverlayPart::OverlayPart(const Overlay& overlay, const Wanted& wanted) {
  if (!wanted.prefix) {
    if (const Overlay::Row* row = overlay.find(wanted.key)) rows_.push_back({wanted.key, row->value});
    return;
  }
  for (auto at = overlay.rows().lower_bound(wanted.key);
       at != overlay.rows().end() && at->first.starts_with(*wanted.prefix); ++at) {
    if (rows_.size() == kRowsTaken) {
      next_ = at->first;
      return;
    }
    rows_.push_back({at->first, at->second.value});
  }
}

Brought OverlayPart::over(Brought brought) const {
  if (!brought.outcome || (rows_.empty() && next_.empty())) return brought;
  Brought merged;
  merged.next = brought.next.empty() || (!next_.empty() && next_ < brought.next) ? next_ : brought.next;
  const auto known = [&](const std::string& key) { return merged.next.empty() || key < merged.next; };
  auto base = brought.rows.begin();
  for (const Row& row : rows_) {
    if (!known(row.key)) break;
    for (; base != brought.rows.end() && base->first < row.key; ++base)
      merged.rows.push_back(std::move(*base));
    if (base != brought.rows.end() && base->first == row.key) ++base;
    if (row.value) merged.rows.emplace_back(row.key, *row.value);
  }
  for (; base != brought.rows.end() && known(base->first); ++base) merged.rows.push_back(std::move(*base));
  return merged;
}

}  // namespace pnfsrdma::mds
