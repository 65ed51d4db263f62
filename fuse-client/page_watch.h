// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "fuse-client/inode.h"
#include "shared/base/clock.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {

// Open files of which the kernel has pages. It reads those without a word to us, so the server is asked in its
// place: for each file before what is known of it is older than `patience` (acregmin), so that no read sees older
// bytes than attributes may be. A file is asked for from half of that time on, and when there is no answer up to
// three quarters its pages are forgotten. One thread; several files go in one COMPOUND; of more than kFilesMax
// files those whose pages began longest ago lose them, and are asked for again when the kernel comes for the
// next. So an idle mount costs no more than kFilesMax attributes in half of `patience`, however many files are
// open. Closed files are of no concern: the next open asks. Thread-safe.
class PageWatch {
 public:
  using Files = std::span<const std::shared_ptr<Inode>>;
  // Asks the server for their attributes and takes in what is answered, until `deadline`.
  using Ask = std::function<void(Files files, SteadyTime deadline)>;
  // Has the kernel forget the pages. Does not wait.
  using Drop = std::function<void(const std::shared_ptr<Inode>& file)>;

  PageWatch(const Clock& clock, Milliseconds patience, Ask ask, Drop drop);
  ~PageWatch() { stop(); }
  PageWatch(const PageWatch&) = delete;
  PageWatch& operator=(const PageWatch&) = delete;

  void start();
  void stop();

  // There are pages of it, or it has been opened and had some before.
  void add(const std::shared_ptr<Inode>& file);
  size_t size() const;
  // Nobody asks any more: all pages are forgotten, so that no read goes on with them. After stop().
  void drop_all();
  // What the thread does at each turn, kTurns of them in `patience`.
  void turn();

  static constexpr size_t kFilesMax = 2048;
  static constexpr size_t kFilesAtOnce = 7;  // two operations each, and a SEQUENCE: 16 are a common limit
  static constexpr int kTurns = 8;

 private:
  struct Entry {
    const Inode* address;
    std::weak_ptr<Inode> file;
  };
  using Entries = std::list<Entry>;

  std::vector<std::shared_ptr<Inode>> due();
  void run();

  const Clock& clock_;
  const Milliseconds patience_;
  const Ask ask_;
  const Drop drop_;
  mutable Mutex mutex_;
  Condition changed_;
  // Guarded by mutex_.
  Entries files_;  // the oldest first
  std::unordered_map<const Inode*, Entries::iterator> places_;
  bool stopping_ = false;
  Thread thread_;
};

}  // namespace pnfsrdma::fuse_client
