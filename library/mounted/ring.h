// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "library/mounted/door.h"
#include "shared/base/owned.h"
#include "shared/base/sync.h"
#include "shared/ring/rings.h"

namespace pnfsrdma::library::mounted {

// kLater: the mount may not see it before Ring::ring(), several with one doorbell.
enum class Doorbell : uint8_t { kNow, kLater };

// A connection's rings, and who waits for what is in them. Thread-safe. The door must outlive it.
class Ring {
 public:
  // Who waits for one operation at a time.
  class Waiter {
   public:
    explicit Waiter(Ring& ring) : ring_(ring), number_(ring.add(*this)) {}
    virtual ~Waiter() { ring_.remove(number_); }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

   protected:
    // False: the ring is full, or the mount gone; nothing has happened. `user_data` is the ring's.
    bool submit(const ring::Submission& submission, Doorbell doorbell) {
      return ring_.submit(*this, submission, doorbell);
    }

   private:
    friend class Ring;
    // By whoever polls: it takes no time, and does not come back to the ring. `result`: ring::Completion's; -EIO if the
    // mount is gone.
    virtual void completed(int64_t result) = 0;

    Ring& ring_;
    std::atomic<bool> waits_ = false;
    const uint32_t number_;
  };

  static Result<std::unique_ptr<Ring>> make(Door& door);

  // What was submitted with Doorbell::kLater goes out.
  void ring();
  // Tells the waiters of what has completed.
  void progress();
  // Readable when progress() may have something to do.
  int completion_fd() const { return watched_.get(); }

 private:
  Ring(Door& door, FileDescriptor watched);

  uint32_t add(Waiter& waiter);
  void remove(uint32_t number);
  bool submit(Waiter& waiter, ring::Submission submission, Doorbell doorbell);
  void publish();
  bool take();
  void give_up();

  Door& door_;
  const FileDescriptor watched_;  // the program's event, and the socket: it hangs up when the mount is gone

  Mutex reaping_;     // and the waiters; before submitting_
  Mutex submitting_;  // and gone_
  ring::ProgramRings rings_;
  std::vector<Waiter*> waiters_;
  std::vector<uint32_t> free_;
  uint64_t rings_owed_ = 0;  // the mount has said that it rings, and the event does not show it yet
  bool idle_ = false;        // the last progress() found nothing
  bool unpublished_ = false;
  bool gone_ = false;
};

}  // namespace pnfsrdma::library::mounted
