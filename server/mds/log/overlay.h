// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/mds/meta/key_value.h"

namespace pnfsrdma::mds {

// What was committed and is not in the store below yet: rows that hide those of the store, and erasures of them.
// Control loop only.
class Overlay {
 public:
  struct Row {
    std::optional<std::string> value;  // nullopt: erased
    Sequence changed = 0;
  };
  using Rows = std::map<std::string, Row, std::less<>>;

  void add(const Batch& batch, Sequence sequence);
  // The store has all up to `sequence` now, `batch` with it.
  void drop(const Batch& batch, Sequence sequence);
  // Null: the store knows.
  const Row* find(std::string_view key) const;
  const Rows& rows() const { return rows_; }

 private:
  void put(std::string_view key, std::optional<std::string_view> value, Sequence sequence);
  void drop_row(std::string_view key, Sequence sequence);

  Rows rows_;
};

// A walk over both: the rows of the store are handed in one by one, and those of the overlay come between them. The
// visitor may commit.
class MergedWalk {
 public:
  MergedWalk(const Overlay& overlay, std::string_view prefix, std::string_view from,
             const KeyValueStore::Visitor& visitor);

  // A row of the store, and what comes before it. False: the visitor has enough.
  bool base_row(std::string_view key, std::string_view value);
  // What comes behind the store's last row; below `end`, if it is not empty.
  bool rest(std::string_view end);
  bool enough() const { return enough_; }

 private:
  bool at_prefix() const;
  bool visit_next();

  const Overlay::Rows& rows_;
  const std::string prefix_;
  const KeyValueStore::Visitor& visitor_;
  Overlay::Rows::const_iterator next_;
  bool enough_ = false;
};

// What the overlay has of a read that goes to the medium, taken when that begins: later the rows may have moved on into
// the store, before or behind the reader.
class OverlayPart {
 public:
  OverlayPart(const Overlay& overlay, const Wanted& wanted);
  // What the store had, and this above it.
  Brought over(Brought brought) const;

 private:
  struct Row {
    std::string key;
    std::optional<std::string> value;
  };
  std::vector<Row> rows_;
  std::string next_;  // from here on the overlay was not looked at; empty: it was, to its end
};

}  // namespace pnfsrdma::mds
