// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fuse-client/invalidator.h"
#include "fuse-client/ring/arrivals.h"
#include "fuse-client/ring/event_relay.h"
#include "fuse-client/ring/program.h"
#include "shared/base/owned.h"
#include "shared/base/random.h"
#include "shared/base/sync.h"
#include "shared/initiator/data_path.h"

namespace pnfsrdma::fuse_client {

// Serves the rings of the host's programs (shared/ring). One thread takes what they submit, starts it on the data path
// and completes it; it never waits for a server: what would have to, the program does through its descriptor. An
// operation in steady state: no allocation, no system call but the transport's while programs keep it busy (one look at
// the sockets in 64 turns); else one to wake it and one to wake the program.
//
// What a program may do with a file is what the kernel has opened it for. attach() and detach() are called by FUSE
// workers, with that open file in hand. Thread-safe. Owned by the mount; the others outlive it.
class RingServer {
 public:
  static constexpr size_t kProgramsMax = 256;
  static constexpr size_t kProgramsOfAUserMax = 64;

  struct Parts {
    initiator::DataPath& data_path;
    Invalidator& invalidator;
    Random& random;
    size_t memory_max = 0;  // bytes that programs may have registered, all together
    std::string transport, durability;
  };
  explicit RingServer(Parts parts);
  ~RingServer();
  RingServer(const RingServer&) = delete;
  RingServer& operator=(const RingServer&) = delete;

  // Listens, on an abstract socket with a name of its own. Until then, and without it, find() is refused.
  Result<> start();
  // Takes nothing more, and ends when nothing is under way: at once behind DataPath::abort().
  void stop();

  // For programs. ENOTSUP: it was not started.
  Result<ring::Find> find() const;
  // The file's number in the rings of the program of that secret. Errors: EPERM (it is nobody's), ENFILE.
  Result<uint32_t> attach(const ring::Secret& secret, AttachedFile file);
  // Before the open file goes: waits for what bricks do in its name, as long as the data path's deadlines let it. Not
  // for the kernel's pages behind that.
  void detach(const OpenFile& file);
  // `length` bytes of a memory of that program; it lives as long as `owner`. Errors: EPERM, EFAULT.
  struct Part {
    std::shared_ptr<initiator::Buffer> owner;
    initiator::BufferSlice slice;
  };
  Result<Part> memory(const ring::Secret& secret, uint32_t number, uint64_t offset, uint64_t length);

  // A channel of that program, which is the caller's from here on. Errors: EPERM.
  Result<FileDescriptor> take_channel(const ring::Secret& secret, uint32_t number);
  EventRelay& events() { return events_; }

  struct Counts {
    uint64_t programs = 0;  // connected now
    uint64_t memory_bytes = 0;
    uint64_t operations = 0;
    uint64_t handed_back = 0;  // of them: to be done through the descriptor
  };
  Counts counts();

 private:
  class Operation;
  using Programs = std::map<uint64_t, std::shared_ptr<Program>>;
  struct Attachment {
    std::shared_ptr<AttachedFile> file;
    std::weak_ptr<Program> program;
    uint32_t number = 0;
  };
  using Attachments = std::unordered_multimap<const OpenFile*, Attachment>;

  void run();
  bool turn();
  void rest();
  int rest_ms() const;
  bool may_take(const Program& program) const { return !stopping_ && !program.waits_for_room; }
  // Of the sockets.
  void look();
  void serve(std::span<const epoll_event> events);
  void accept_some();
  bool accept_one();
  void make_room_for(uid_t user);
  void refused(std::string_view who, std::string_view why);
  void hear(uint64_t id);
  void introduce(uint64_t id, const ring::Request& request);
  Result<std::shared_ptr<Program>> let_in(uint64_t id, const ring::Request& request);
  ring::Answer answer(Program& program, const ring::Request& request,
                      std::vector<FileDescriptor>& descriptors);
  Result<uint32_t> add_memory(Program& program, std::vector<FileDescriptor>& descriptors);
  Result<> remove_memory(Program& program, uint64_t number);
  Result<uint32_t> add_channel(Program& program, std::vector<FileDescriptor>& descriptors);
  void forget(uint64_t id);
  std::shared_ptr<Program> take_out(uint64_t id);
  // Under mutex_.
  bool may_connect(uid_t user) const;
  std::shared_ptr<Program> program_of(const ring::Secret& secret);
  void remove(const AttachedFile& file);

  // Of operations.
  bool take_turns();
  bool take(const std::shared_ptr<Program>& program);
  void begin(const std::shared_ptr<Program>& program, const ring::Submission& submission,
             initiator::FlushChains& chains);
  // `chains`: of what it goes out with.
  int64_t start(Operation& operation, initiator::FlushChains* chains);
  bool waits_for_room(const Operation& operation) const;
  bool begin_held();
  void hold(Operation& operation);
  void drop_held_of(const Program& program);
  bool settle();
  void conclude(Operation& operation);
  void finish(Operation& operation);
  void leave(Operation& operation);
  void completed(Operation& operation);
  Operation& operation_for(const std::shared_ptr<Program>& program, const ring::Submission& submission);
  void watch(int descriptor, uint64_t what, uint32_t events);

  const Parts parts_;
  EventRelay events_;
  std::string name_;
  ring::Secret token_{};
  FileDescriptor listening_, wake_, epoll_;
  Thread thread_;

  Mutex mutex_;  // files and memories of the programs, in_flight of files
  Condition idle_;
  Programs programs_;
  Attachments attachments_;  // those of programs that have ended, too, while something is under way
  std::atomic<bool> stopping_ = false;
  size_t memory_bytes_ = 0;

  Mutex completed_mutex_;
  Operation* completed_ = nullptr;
  bool sleeping_ = false;

  // The thread's.
  Arrivals arrivals_;
  bool more_arrive_ = false;  // perhaps
  size_t turns_ = 0;
  uint64_t refused_ = 0;  // that nothing was logged of
  SteadyTime refusals_told_until_;
  std::vector<std::unique_ptr<Operation>> operations_;
  Operation* free_ = nullptr;
  // What waits for room on a connection, one of a program, who has waited longest first; and whether there may be some
  // since they were looked at.
  std::vector<Operation*> held_;
  bool room_may_be_ = false;
  uint64_t last_first_ = 0;  // id of the program whose turn was first
  uint64_t next_id_ = 0;
  size_t in_flight_ = 0;  // of all programs, by now or to be settled
  size_t at_bricks_ = 0;  // of these
  bool watches_connections_ = false;
  std::atomic<uint64_t> taken_ = 0, handed_back_ = 0;
};

}  // namespace pnfsrdma::fuse_client
