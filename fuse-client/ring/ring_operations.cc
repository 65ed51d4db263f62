// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fuse-client/ring/operation.h"
#include "fuse-client/ring/ring_server.h"

// The way of an operation: taken, looked at, started on the data path; completed by whoever polls the bricks; concluded
// here. What is written lies under the kernel's pages: where it may have some of the file, they go before the program
// hears of its write, so that whoever reads the file by read(2) behind it sees it.
namespace pnfsrdma::fuse_client {
namespace {

// Of one program, before the next one has its turn.
constexpr size_t kAtATime = 64;

bool is_operation(const ring::Submission& submission) {
  return submission.opcode <= static_cast<uint32_t>(ring::Opcode::kWrite) &&
         (submission.flags & ~ring::kDurable) == 0 && submission.length > 0 &&
         submission.length <= ring::kLengthMax && submission.offset <= INT64_MAX - submission.length;
}

}  // namespace

// False: there was nothing to do.
bool RingServer::turn() {
  if (at_bricks_ > 0) parts_.data_path.progress();
  bool any = settle();
  const size_t before = at_bricks_;
  any = take_turns() || any;
  if (at_bricks_ > before) parts_.data_path.ring();
  for (const auto& [id, program] : programs_) program->publish();
  return any;
}

// Who waits for room comes first. Then each program has its turn, and the next time another one is the first: whoever
// always has more than a connection takes leaves others their part of it.
bool RingServer::take_turns() {
  bool any = std::exchange(room_may_be_, false) && begin_held();
  const auto turn_of = [&](const auto& each) { any = take(each.second) || any; };
  // None of them goes meanwhile: that is for this thread.
  const auto first = programs_.upper_bound(last_first_);
  std::for_each(first, programs_.end(), turn_of);
  std::for_each(programs_.begin(), first, turn_of);
  last_first_ = first == programs_.end() ? 0 : first->first;
  return any;
}

// What the program has submitted so far goes out together: durable writes have one flush behind all of them.
bool RingServer::take(const std::shared_ptr<Program>& program) {
  size_t count = 0;
  initiator::FlushChains chains = parts_.data_path.flush_chains();
  for (; count < kAtATime && may_take(*program); ++count) {
    const auto submission = program->rings()->take();
    if (!submission) break;
    begin(program, *submission, chains);
  }
  return count > 0;
}

void RingServer::begin(const std::shared_ptr<Program>& program, const ring::Submission& submission,
                       initiator::FlushChains& chains) {
  Operation& operation = operation_for(program, submission);
  taken_.fetch_add(1, std::memory_order_relaxed);
  ++in_flight_;
  ++at_bricks_;
  operation.result = start(operation, &chains);
  if (operation.result == 0) return;  // it is under way
  --at_bricks_;
  waits_for_room(operation) ? hold(operation) : finish(operation);
}

// A connection takes so many work requests. What does not fit stays here, and all behind it in its program's ring: it
// would take longer through the descriptor.
bool RingServer::waits_for_room(const Operation& operation) const {
  return operation.started && operation.lacked_room() && at_bricks_ > 0;
}

void RingServer::hold(Operation& operation) {
  operation.program->waits_for_room = true;
  held_.push_back(&operation);
}

// False: there is no room for any of them, they have to wait.
bool RingServer::begin_held() {
  return std::erase_if(held_, [this](Operation* operation) {
           ++at_bricks_;
           operation->result = start(*operation, nullptr);
           if (operation->result != 0) --at_bricks_;
           if (operation->result != 0 && waits_for_room(*operation)) return false;
           operation->program->waits_for_room = false;
           if (operation->result != 0) finish(*operation);
           return true;
         }) > 0;
}

// The program has ended, and it has not begun.
void RingServer::drop_held_of(const Program& program) {
  std::erase_if(held_, [&](Operation* operation) {
    if (operation->program.get() != &program) return false;
    finish(*operation);
    return true;
  });
}

RingServer::Operation& RingServer::operation_for(const std::shared_ptr<Program>& program,
                                                 const ring::Submission& submission) {
  Operation* operation = free_;
  if (operation != nullptr) {
    free_ = operation->next;
  } else {
    operation = operations_.emplace_back(std::make_unique<Operation>(*this)).get();
  }
  operation->submission = submission;
  operation->program = program;
  operation->step = Operation::Step::kAtBricks;
  const std::lock_guard lock(mutex_);
  if (const auto file = program->files.find(submission.file); file != program->files.end()) {
    operation->file = file->second;
    ++operation->file->in_flight;
  }
  if (const auto memory = program->memories.find(submission.memory); memory != program->memories.end())
    operation->memory = memory->second;
  return *operation;
}

// 0: it is under way. Else what there is to say of it at once.
int64_t RingServer::start(Operation& operation, initiator::FlushChains* chains) {
  operation.started = false;
  const ring::Submission& wanted = operation.submission;
  if (!is_operation(wanted)) return -EINVAL;
  if (operation.file == nullptr) return -EBADF;
  const AttachedFile& file = *operation.file;
  if (!(operation.is_read() ? file.readable : file.writable)) return -EBADF;
  if (operation.memory == nullptr || wanted.memory_offset > operation.memory->size() ||
      wanted.length > operation.memory->size() - wanted.memory_offset)
    return -EFAULT;
  if (file.inode->locks().any_lost()) return -EIO;
  // Beyond the end: whoever reads asks the server, and the kernel is told of growth.
  if (wanted.offset + wanted.length > file.data->size()) return ring::kUseDescriptor;
  if (!operation.is_read()) {
    // Who may leave set-id bits alone only the kernel knows: the writer may have been root when he attached the file.
    if (file.inode->mode_without_privileges()) return ring::kUseDescriptor;
    file.inode->data_changes();
  }
  operation.losses = file.data->losses_from_now();
  operation.started = true;
  return operation.start(chains) ? 0 : ring::kUseDescriptor;
}

// From any thread, and perhaps before it has been started to the end.
void RingServer::completed(Operation& operation) {
  const std::lock_guard lock(completed_mutex_);
  operation.next = std::exchange(completed_, &operation);
  if (!std::exchange(sleeping_, false)) return;
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

// False: nothing was completed.
bool RingServer::settle() {
  Operation* next = nullptr;
  {
    const std::lock_guard lock(completed_mutex_);
    next = std::exchange(completed_, nullptr);
  }
  const bool any = next != nullptr;
  while (next != nullptr) {
    Operation& operation = *std::exchange(next, next->next);
    if (operation.step == Operation::Step::kAtBricks) {
      conclude(operation);
    } else {
      operation.dropping->pages_dropped();
      finish(operation);
    }
  }
  return any;
}

void RingServer::conclude(Operation& operation) {
  --at_bricks_;
  room_may_be_ = true;
  operation.result = operation.take_result();
  if (operation.is_read() || !operation.file->inode->drop_pages()) return finish(operation);
  operation.step = Operation::Step::kDropsPages;
  // The file may be closed meanwhile: a page may wait for a brick that is silent, and nothing ends that in time.
  operation.dropping = operation.file->inode;
  leave(operation);
  parts_.invalidator.pages(operation.dropping->node, [this, &operation] { completed(operation); });
}

void RingServer::finish(Operation& operation) {
  if (operation.result == ring::kUseDescriptor) handed_back_.fetch_add(1, std::memory_order_relaxed);
  Program& program = *operation.program;
  program.rings()->complete({.user_data = operation.submission.user_data, .result = operation.result});
  program.completed_any = true;
  --in_flight_;
  if (operation.file != nullptr) leave(operation);
  operation.clear();
  operation.next = std::exchange(free_, &operation);
}

// It has no business with the file any more. Whoever closes the file has the last of it, and not this thread, which
// must not wait for a server.
void RingServer::leave(Operation& operation) {
  const std::lock_guard lock(mutex_);
  AttachedFile& file = *operation.file;
  if (--file.in_flight == 0) {
    if (std::exchange(file.orphaned, false)) remove(file);
    idle_.notify_all();
  }
  operation.file.reset();
}

}  // namespace pnfsrdma::fuse_client
