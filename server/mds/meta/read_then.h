// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "server/mds/meta/request_reads.h"

namespace pnfsrdma::mds {

// What is left of a read_then() that waits for the medium. Owned by the store's answer.
template <typename Read, typename Then>
class WaitingRead : public std::enable_shared_from_this<WaitingRead<Read, Then>> {
 public:
  WaitingRead(KeyValueStore& store, std::weak_ptr<const void> alive, Read read, Then then)
      : alive_(std::move(alive)), reads_(store), read_(std::move(read)), then_(std::move(then)) {}

  void fetch(RequestReads& missed) {
    reads_.adopt(missed);
    fetch();
  }

 private:
  void fetch() {
    reads_.fetch([self = this->shared_from_this()] { self->run(); });
  }
  void run() {
    if (alive_.expired()) return;
    auto value = [this] {
      const RequestReads::Run run(reads_);
      return read_();
    }();
    if (reads_.missed()) return fetch();
    // What came for `read` is there for `then`, too.
    const RequestReads::Run run(reads_);
    reads_.end_reading();
    then_(std::move(value));
  }

  const std::weak_ptr<const void> alive_;
  RequestReads reads_;
  Read read_;
  Then then_;
};

// For work that no handler waits for with its own reads (request_reads.h): calls `then` with what `read`
// returns. `read` looks into memory and has no effect: where it misses something, it is called again when
// that has been fetched. At once, and without an allocation, where it misses nothing. Neither is called when
// `alive` has gone, or the store.
template <typename Read, typename Then>
void read_then(KeyValueStore& store, const std::weak_ptr<const void>& alive, Read read, Then then) {
  RequestReads reads(store);
  auto value = [&] {
    const RequestReads::Run run(reads);
    return read();
  }();
  if (!reads.missed()) return then(std::move(value));
  std::make_shared<WaitingRead<Read, Then>>(store, alive, std::move(read), std::move(then))->fetch(reads);
}

// The same where `then` looks at the rows again itself: `look` is what brings them.
template <typename Look, typename Then>
void look_then(KeyValueStore& store, const std::weak_ptr<const void>& alive, Look look, Then then) {
  struct Looked {};
  read_then(
      store, alive,
      [look = std::move(look)]() mutable {
        look();
        return Looked{};
      },
      [then = std::move(then)](Looked) mutable { then(); });
}

}  // namespace pnfsrdma::mds
