// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/ring/ring_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fuse-client/ring/operation.h"
#include "shared/base/log.h"
#include "shared/ring/channel.h"

// Programs, their sockets, and what they may name. The way of an operation: ring_operations.cc.
namespace pnfsrdma::fuse_client {
namespace {

// What an event is of: these, or a program's socket (even) or doorbell (odd).
constexpr uint64_t kListening = 0, kWake = 1, kConnections = 2, kFirstProgram = 16;
constexpr size_t kEventsAtATime = 64;
// Between looks for room on a connection.
constexpr int kRoomPauseMs = 5;
// Turns among operations before the sockets are looked at, when there is always something to do.
constexpr size_t kTurnsAtATime = 64;
// Between lines of the log on who was refused: who connects decides how often that is.
constexpr Milliseconds kRefusalPause = std::chrono::seconds(10);

constexpr const char* kOtherVersion = "the mount and the library are of different versions";

template <size_t kSize>
void put(std::array<char, kSize>& field, std::string_view text) {
  const size_t count = std::min(text.size(), kSize - 1);
  std::copy_n(text.begin(), count, field.begin());
  field[count] = '\0';
}

// In a time that does not tell how much of it was right.
bool is_same(const ring::Secret& one, const ring::Secret& other) {
  unsigned difference = 0;
  for (size_t i = 0; i < one.size(); ++i) difference |= one[i] ^ other[i];
  return difference == 0;
}

ring::Answer refusal(const Error& error) {
  ring::Answer answer;
  answer.error = error.number();
  put(answer.text, error.what());
  return answer;
}

// A memory that its program cannot take away again: whoever touched a page of it that is not there any more would get
// a SIGBUS. It cannot be cut, and a hole that is punched in it is filled with a page of zeros by the next touch; of
// huge pages there may be none left for that. (Files and devices have no seals, or none that can be set.)
Result<size_t> size_of(int descriptor) {
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return fail(EINVAL, "only a memfd with F_SEAL_SHRINK can be shared");
  struct statfs system{};
  if (::fstatfs(descriptor, &system) != 0) return std::unexpected(Error::from_errno("fstatfs"));
  if (system.f_type != TMPFS_MAGIC) return fail(EINVAL, "a memfd of huge pages cannot be shared");
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return std::unexpected(Error::from_errno("fstat"));
  return static_cast<size_t>(status.st_size);
}

}  // namespace

RingServer::RingServer(Parts parts) : parts_(std::move(parts)) {}

RingServer::~RingServer() {
  stop();
}

Result<> RingServer::start() {
  wake_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!wake_ || !epoll_) return std::unexpected(Error::from_errno("eventfd"));
  const std::string name = fmt::format("pnfsrdma-ring-{:016x}", parts_.random.next_u64());
  TRY_ASSIGN(listening_, ring::listen_on(name));
  if (::fcntl(listening_.get(), F_SETFL, O_NONBLOCK) != 0) return std::unexpected(Error::from_errno("fcntl"));
  watch(listening_.get(), kListening, EPOLLIN | EPOLLET);
  watch(wake_.get(), kWake, EPOLLIN | EPOLLET);
  parts_.random.fill(std::as_writable_bytes(std::span(token_)));
  name_ = name;
  thread_ = Thread([this] { run(); });
  return {};
}

void RingServer::stop() {
  events_.stop();
  if (!thread_.joinable()) return;
  stopping_ = true;
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

void RingServer::watch(int descriptor, uint64_t what, uint32_t events) {
  epoll_event event{.events = events, .data = {.u64 = what}};
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event);
}

Result<ring::Find> RingServer::find() const {
  if (name_.empty()) return fail(ENOTSUP, "this mount serves no rings");
  ring::Find found;
  found.token = token_;
  put(found.socket, name_);
  put(found.transport, parts_.transport);
  put(found.durability, parts_.durability);
  return found;
}

std::shared_ptr<Program> RingServer::program_of(const ring::Secret& secret) {
  for (const auto& [id, program] : programs_) {
    if (is_same(program->secret, secret)) return program;
  }
  return nullptr;
}

Result<uint32_t> RingServer::attach(const ring::Secret& secret, AttachedFile file) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Program> program = program_of(secret);
  if (program == nullptr) return fail(EPERM, "the secret is no program's");
  if (program->files.size() >= Program::kFilesMax) return fail(ENFILE, "too many files");
  const uint32_t number = program->next_number++;
  const auto attached = std::make_shared<AttachedFile>(std::move(file));
  program->files.emplace(number, attached);
  attachments_.emplace(attached->open_file, Attachment{attached, program, number});
  return number;
}

void RingServer::detach(const OpenFile& file) {
  std::vector<std::shared_ptr<AttachedFile>> gone;
  std::unique_lock lock(mutex_);
  const auto [first, last] = attachments_.equal_range(&file);
  for (auto each = first; each != last; ++each) {
    gone.push_back(each->second.file);
    gone.back()->orphaned = false;
    if (const auto program = each->second.program.lock()) program->files.erase(each->second.number);
  }
  attachments_.erase(first, last);
  idle_.wait(
      lock, [&] { return std::ranges::all_of(gone, [](const auto& each) { return each->in_flight == 0; }); });
}

Result<RingServer::Part> RingServer::memory(const ring::Secret& secret, uint32_t number, uint64_t offset,
                                            uint64_t length) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Program> program = program_of(secret);
  if (program == nullptr) return fail(EPERM, "the secret is no program's");
  const auto found = program->memories.find(number);
  if (found == program->memories.end() || offset > found->second->size() ||
      length > found->second->size() - offset)
    return fail(EFAULT, "no such memory");
  return Part{found->second, found->second->slice(offset, length)};
}

RingServer::Counts RingServer::counts() {
  const std::lock_guard lock(mutex_);
  return {.programs = programs_.size(),
          .memory_bytes = memory_bytes_,
          .operations = taken_,
          .handed_back = handed_back_};
}

void RingServer::run() {
  while (!stopping_ || in_flight_ > 0) {
    if (!turn()) {
      rest();
    } else if (++turns_ % kTurnsAtATime == 0) {
      look();
    }
  }
}

// Whoever has something to do for this thread rings a doorbell or completes an operation: each is looked for once more
// behind the word that it sleeps.
void RingServer::rest() {
  bool anything = more_arrive_;
  for (const auto& [id, program] : programs_) {
    if (may_take(*program)) anything = !program->rings()->may_sleep() || anything;
  }
  // Only while something is under way there: the others' answers are none of our business.
  if (at_bricks_ > 0) parts_.data_path.arm();
  if (at_bricks_ > 0 && !std::exchange(watches_connections_, true))
    watch(parts_.data_path.completion_fd(), kConnections, EPOLLIN);
  {
    const std::lock_guard lock(completed_mutex_);
    anything = anything || completed_ != nullptr;
    sleeping_ = !anything;
  }
  std::array<epoll_event, kEventsAtATime> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), anything ? 0 : rest_ms());
  {
    const std::lock_guard lock(completed_mutex_);
    sleeping_ = false;
  }
  for (const auto& [id, program] : programs_) program->rings()->awake();
  serve(std::span(events).first(static_cast<size_t>(std::max(count, 0))));
}

// Negative: until somebody has something to do. Room on a connection comes of others' I/O, too, and that tells nobody
// here.
int RingServer::rest_ms() const {
  if (!held_.empty()) return kRoomPauseMs;
  const auto expiry = arrivals_.next_expiry();
  if (!expiry) return -1;
  const auto left = std::chrono::ceil<Milliseconds>(*expiry - steady_now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

void RingServer::look() {
  std::array<epoll_event, kEventsAtATime> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  serve(std::span(events).first(static_cast<size_t>(std::max(count, 0))));
}

void RingServer::serve(std::span<const epoll_event> events) {
  for (const epoll_event& event : events) {
    const uint64_t what = event.data.u64;
    if (what == kListening) {
      more_arrive_ = true;
    } else if (what == kConnections && at_bricks_ == 0) {
      watches_connections_ = false;
      (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, parts_.data_path.completion_fd(), nullptr);
    } else if (what >= kFirstProgram && what % 2 == 0) {
      hear((what - kFirstProgram) / 2);
    }
  }
  if (arrivals_.size() > 0 && arrivals_.expire(steady_now()) > 0) {
    refused("somebody", "connected and said nothing");
    more_arrive_ = true;
  }
  if (more_arrive_) accept_some();
  room_may_be_ = true;
}

// As many as they are, they are not this thread's only business.
void RingServer::accept_some() {
  more_arrive_ = true;
  for (size_t i = 0; i < kEventsAtATime && more_arrive_; ++i) more_arrive_ = accept_one();
}

// False: nobody waits, or cannot be taken in now; when somebody has gone, it is tried again.
bool RingServer::accept_one() {
  FileDescriptor socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    const Error why = Error::from_errno("accept");
    if (why.number() != EAGAIN && why.number() != ECONNABORTED) refused("somebody", why.to_string());
    return why.number() == ECONNABORTED;
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return true;
  make_room_for(peer.uid);
  const uint64_t id = next_id_++;
  watch(socket.get(), kFirstProgram + 2 * id, EPOLLIN | EPOLLRDHUP);
  arrivals_.add(id, std::move(socket), peer.uid, steady_now());
  return true;
}

// Many may come at once: nobody goes whose kHello is there and was not heard yet.
void RingServer::make_room_for(uid_t user) {
  while (const auto id = arrivals_.in_the_way_of(user)) {
    hear(*id);
    const Arrivals::Arrival* arrival = arrivals_.find(*id);
    if (arrival == nullptr) continue;
    refused(fmt::format("user {}", arrival->user), "connected too often without a word");
    (void)arrivals_.take(*id);
  }
}

void RingServer::refused(std::string_view who, std::string_view why) {
  ++refused_;
  if (steady_now() < refusals_told_until_) return;
  refusals_told_until_ = steady_now() + kRefusalPause;
  log_warning("fuse", "ring-program-refused count={} who=\"{}\" cause=\"{}\"", std::exchange(refused_, 0),
              who, why);
}

bool RingServer::may_connect(uid_t user) const {
  const auto own =
      std::ranges::count_if(programs_, [&](const auto& each) { return each.second->user == user; });
  return programs_.size() < kProgramsMax && (user == 0 || static_cast<size_t>(own) < kProgramsOfAUserMax);
}

void RingServer::hear(uint64_t id) {
  const Arrivals::Arrival* arrival = arrivals_.find(id);
  const auto found = programs_.find(id);
  if (arrival == nullptr && found == programs_.end()) return;
  const int socket = arrival != nullptr ? arrival->socket.get() : found->second->socket();
  ring::Request request;
  auto message = ring::receive_message(socket, std::as_writable_bytes(std::span(&request, 1)));
  if (!message && message.error().number() == EAGAIN) return;
  if (!message || message->size != sizeof request) return forget(id);
  if (arrival != nullptr) return introduce(id, request);
  const ring::Answer said = answer(*found->second, request, message->descriptors);
  if (!ring::send_message(socket, std::as_bytes(std::span(&said, 1)))) forget(id);
}

// Whoever is refused may try again, while it may be here.
void RingServer::introduce(uint64_t id, const ring::Request& request) {
  const auto program = let_in(id, request);
  if (!program) {
    const ring::Answer said = refusal(program.error());
    if (!ring::send_message(arrivals_.find(id)->socket.get(), std::as_bytes(std::span(&said, 1)))) forget(id);
    return;
  }
  ring::Answer said;
  said.number = (*program)->rings()->depth();
  said.secret = (*program)->secret;
  const auto descriptors = (*program)->descriptors();
  const auto sent = ring::send_message((*program)->socket(), std::as_bytes(std::span(&said, 1)), descriptors);
  (*program)->close_memory();
  if (!sent) forget(id);
}

Result<std::shared_ptr<Program>> RingServer::let_in(uint64_t id, const ring::Request& request) {
  if (request.version != ring::kVersion) return fail(EPROTONOSUPPORT, kOtherVersion);
  if (!is_same(request.token, token_)) return fail(EACCES, "the mount's token is missing");
  if (request.kind != static_cast<uint32_t>(ring::RequestKind::kHello)) return fail(EINVAL, "not a kHello");
  const uid_t user = arrivals_.find(id)->user;
  if (!may_connect(user)) {
    refused(fmt::format("user {}", user), "too many programs are connected");
    return fail(EUSERS, "too many programs are connected to the mount");
  }
  const auto program = std::make_shared<Program>(user);
  TRY(program->open_rings(request.value, parts_.random));
  program->connected(arrivals_.take(id).socket);
  watch(program->doorbell(), kFirstProgram + 2 * id + 1, EPOLLIN | EPOLLET);
  const std::lock_guard lock(mutex_);
  programs_.emplace(id, program);
  return program;
}

ring::Answer RingServer::answer(Program& program, const ring::Request& request,
                                std::vector<FileDescriptor>& descriptors) {
  if (request.version != ring::kVersion) return refusal(Error(EPROTONOSUPPORT, kOtherVersion));
  ring::Answer answer;
  switch (static_cast<ring::RequestKind>(request.kind)) {
    case ring::RequestKind::kAddMemory: {
      const auto added = add_memory(program, descriptors);
      if (!added) return refusal(added.error());
      answer.number = *added;
      return answer;
    }
    case ring::RequestKind::kRemoveMemory: {
      const auto removed = remove_memory(program, request.value);
      return removed ? answer : refusal(removed.error());
    }
    case ring::RequestKind::kAddChannel: {
      const auto added = add_channel(program, descriptors);
      if (!added) return refusal(added.error());
      answer.number = *added;
      return answer;
    }
    case ring::RequestKind::kHello:
      return refusal(Error(EALREADY, "the rings are there already"));
  }
  return refusal(Error(EINVAL, "not a request"));
}

Result<uint32_t> RingServer::add_memory(Program& program, std::vector<FileDescriptor>& descriptors) {
  if (descriptors.size() != 1) return fail(EINVAL, "one memfd is to be shared");
  TRY_ASSIGN(const size_t size, size_of(descriptors.front().get()));
  {
    const std::lock_guard lock(mutex_);
    if (program.memories.size() >= Program::kMemoriesMax) return fail(ENOMEM, "too many memories");
    if (size > parts_.memory_max - memory_bytes_)
      return fail(ENOMEM, fmt::format("ring_memory of the mount is {} MiB, and {} MiB are in use",
                                      parts_.memory_max >> 20, memory_bytes_ >> 20));
  }
  TRY_ASSIGN(std::shared_ptr<initiator::Buffer> memory,
             parts_.data_path.map_buffer(descriptors.front().get(), size));
  const std::lock_guard lock(mutex_);
  memory_bytes_ += size;
  program.memory_bytes += size;
  const uint32_t number = program.next_number++;
  program.memories.emplace(number, std::move(memory));
  return number;
}

Result<> RingServer::remove_memory(Program& program, uint64_t number) {
  std::shared_ptr<initiator::Buffer> gone;  // behind the lock; or by the last operation that uses it
  const std::lock_guard lock(mutex_);
  const auto found =
      number <= UINT32_MAX ? program.memories.find(static_cast<uint32_t>(number)) : program.memories.end();
  if (found == program.memories.end()) return fail(EINVAL, "no such memory");
  gone = std::move(found->second);
  program.memories.erase(found);
  memory_bytes_ -= gone->size();
  program.memory_bytes -= gone->size();
  return {};
}

Result<uint32_t> RingServer::add_channel(Program& program, std::vector<FileDescriptor>& descriptors) {
  if (descriptors.size() != 1) return fail(EINVAL, "one socket is to be a channel");
  const auto option = [&](int name) {
    int value = -1;
    socklen_t size = sizeof value;
    (void)::getsockopt(descriptors.front().get(), SOL_SOCKET, name, &value, &size);
    return value;
  };
  if (option(SO_DOMAIN) != AF_UNIX || option(SO_TYPE) != SOCK_SEQPACKET)
    return fail(EINVAL, "only a Unix socket with SOCK_SEQPACKET can be a channel");
  const std::lock_guard lock(mutex_);
  if (program.channels.size() >= Program::kChannelsMax) return fail(ENOSPC, "too many channels");
  const uint32_t number = program.next_number++;
  program.channels.emplace(number, std::move(descriptors.front()));
  return number;
}

Result<FileDescriptor> RingServer::take_channel(const ring::Secret& secret, uint32_t number) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Program> program = program_of(secret);
  if (program == nullptr) return fail(EPERM, "the secret is no program's");
  auto node = program->channels.extract(number);
  if (!node) return fail(EPERM, "no such channel");
  return std::move(node.mapped());
}

void RingServer::remove(const AttachedFile& file) {
  const auto [first, last] = attachments_.equal_range(file.open_file);
  const auto found =
      std::find_if(first, last, [&](const auto& each) { return each.second.file.get() == &file; });
  if (found != last) attachments_.erase(found);
}

// The program has ended. What it has under way goes on, and nobody hears of it.
void RingServer::forget(uint64_t id) {
  more_arrive_ = true;
  if (arrivals_.find(id) != nullptr) {
    (void)arrivals_.take(id);
  } else {
    drop_held_of(*take_out(id));
  }
}

std::shared_ptr<Program> RingServer::take_out(uint64_t id) {
  std::shared_ptr<Program> gone;
  const std::lock_guard lock(mutex_);
  const auto found = programs_.find(id);
  gone = std::move(found->second);
  programs_.erase(found);
  memory_bytes_ -= gone->memory_bytes;
  for (const auto& [number, file] : gone->files) {
    file->orphaned = file->in_flight > 0;
    if (!file->orphaned) remove(*file);
  }
  gone->files.clear();
  gone->memories.clear();
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, gone->socket(), nullptr);
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, gone->doorbell(), nullptr);
  return gone;
}

}  // namespace pnfsrdma::fuse_client
