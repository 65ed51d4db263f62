// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "shared/base/clock.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {

// What the server has said of a file, as far as the kernel's pages of it are concerned.
struct PageAnswer {
  uint64_t change = 0;
  uint64_t size = 0;      // as the kernel will be told it
  SteadyTime asked_at{};  // when the question was sent
  // The COMPOUND that brought it has changed the file itself, by one operation of which it is certain that it
  // moves the change attribute.
  bool of_own_change = false;
};

// What is known of the kernel's pages of one file: they miss no change of another host up to `change_`. Whether
// an answer of the server outdates them is decided here. A change is our own only when that is certain: the
// attribute moved by one from what was known before our operation was sent, and that operation moved it: each
// change moves it by one at least, so there was no other. In doubt it is another host's. Thread-safe.
class PageState {
 public:
  // Before the bytes of a page are fetched, or a page is taken from the kernel to be written. True: as far as
  // is known here the kernel had none before.
  bool hand_out() { return !handed_out_.load() && !handed_out_.exchange(true); }
  bool handed_out() const { return handed_out_.load(); }
  // The same, or the kernel is about to forget them.
  bool may_be_there() const;

  // Must the kernel forget its pages before it is told this?
  bool outdated_by(const PageAnswer& answer, SteadyTime now);
  // The kernel is told this size.
  void told(uint64_t size) { kernel_size_ = size; }
  // What it takes the file's size for, if nobody tells it another; UINT64_MAX: it was never told.
  uint64_t kernel_size() const { return kernel_size_; }
  // The kernel has written `offset` to `end`, and takes the file for that long. True: it has left out what lay
  // behind the end it knew, so that a page of it may have zeros in place of what is there.
  bool written(uint64_t offset, uint64_t end);

  // Around the kernel's forgetting of all pages. What is handed out meanwhile may be forgotten or not; what was
  // handed out before is.
  void begin_drop();
  // `answer`: what outdated them.
  void end_drop(const PageAnswer& answer, SteadyTime now);
  // The same where nobody knows what they are worth: until then any answer outdates them.
  void begin_drop_in_doubt();
  void end_drop_in_doubt(SteadyTime begun);

  // The pages were the file's, or were forgotten, then.
  SteadyTime checked_at() const;

 private:
  static constexpr uint64_t kUnknown = UINT64_MAX;

  bool overtaken(const PageAnswer& answer) const;
  void renew(const PageAnswer& answer, SteadyTime now);

  std::atomic<bool> handed_out_ = false;
  std::atomic<uint64_t> kernel_size_ = kUnknown;
  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::optional<uint64_t> change_;
  SteadyTime change_heard_at_{};
  SteadyTime checked_at_{};
  unsigned drops_ = 0, drops_in_doubt_ = 0;  // under way
};

}  // namespace pnfsrdma::fuse_client
