// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/session.h"

#include <fmt/format.h>

#include <cerrno>

#include "shared/base/sync.h"
#include "shared/initiator/session/state.h"

namespace pnfsrdma::initiator {

std::string hosts_text(const std::string& host, const std::vector<std::string>& others) {
  const auto shown = [](const std::string& one) {
    return one.find(':') == std::string::npos ? one : "[" + one + "]";
  };
  std::string text = shown(host);
  for (const std::string& other : others) text += "," + shown(other);
  return text;
}

namespace {

std::string name_of(const SessionOptions& options) {
  return fmt::format("{}:{}", hosts_text(options.host, options.other_hosts), options.port);
}

}  // namespace

Session::State::State(const SessionOptions& wanted)
    : options(wanted),
      server_name(name_of(wanted)),
      establishment_(options, aborted, [this](const auto& socket, Bytes record) {
        backchannel.push(socket, std::move(record));
      }) {}

Session::State::~State() {
  end();
}

void Session::State::start_threads() {
  background_ = Thread([this] { run_background(); });
  posts_ = Thread([this] { run_posts(); });
}

// Threads first, then the farewell on a connection that is ours alone.
void Session::State::end() {
  {
    Lock lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    // Without a session there is nobody to take leave of, and recovery must not hold up the end.
    if (standing_ != Standing::kLive) aborted = true;
    // Ends the receiving of whoever is at it; what the posts thread still finishes fails then.
    changed_.notify_all();
    posts_changed_.notify_all();
    poller_.wake();
  }
  if (background_.joinable()) background_.join();
  if (posts_.joinable()) posts_.join();
  backchannel.stop();
  if (standing_ == Standing::kLive && !aborted && socket_) establishment_.destroy(socket_);
}

Established Session::State::established() const {
  const std::lock_guard lock(mutex_);
  return established_;
}

std::string Session::State::host_in_use() const {
  const std::lock_guard lock(mutex_);
  return host_;
}

Result<CompoundReply> Session::State::finish_measured(Call& call) {
  auto reply = finish(call);
  if (reply) latency.add(steady_now() - call.began);
  return reply;
}

SessionStatistics Session::State::statistics() const {
  const std::lock_guard lock(mutex_);
  SessionStatistics copy = statistics_;
  copy.send_calls = socket_counters_.sends;
  copy.receive_calls = socket_counters_.receives;
  copy.latency = latency.snapshot();
  copy.slots = established_.slots;
  copy.slots_in_use = slots_.in_use();
  return copy;
}

Session::Session(std::shared_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() {
  state_->end();
}

Result<std::unique_ptr<Session>> Session::start(const SessionOptions& options, CallbackHandler* callbacks,
                                                RecoveryHandler* recovery) {
  auto state = std::make_shared<State>(options);
  if (auto established = state->establish_first(callbacks, recovery); !established) {
    return std::unexpected(established.error().in("connecting to the MDS at " + state->server_name));
  }
  state->start_threads();
  return std::unique_ptr<Session>(new Session(std::move(state)));
}

void Session::set_handlers(CallbackHandler* callbacks, RecoveryHandler* recovery) {
  state_->recovery_handler = recovery;
  state_->backchannel.set_handler(callbacks);
}

Result<CompoundReply> Session::call(Operations operations, const Credential& credential,
                                    const CallOptions& options) {
  InFlight::Call call;
  call.operations = std::move(operations);
  call.credential = credential;
  call.options = options;
  call.began = steady_now();
  return state_->finish_measured(call);
}

Session::InFlight Session::begin(Operations operations, const Credential& credential,
                                 const CallOptions& options) {
  auto call = std::make_unique<InFlight::Call>();
  call->operations = std::move(operations);
  call->credential = credential;
  call->options = options;
  call->began = steady_now();
  call->state = state_;
  (void)state_->begin(*call);
  return InFlight(std::move(call));
}

Result<CompoundReply> Session::finish(InFlight in_flight) {
  if (!in_flight.call_) return fail(EINVAL, "finish() of a call that was not begun");
  return state_->finish_measured(*in_flight.call_);
}

void Session::post(Operations operations, const Credential& credential, const CallOptions& options,
                   Completion completion) {
  auto call = std::make_unique<InFlight::Call>();
  call->operations = std::move(operations);
  call->credential = credential;
  call->options = options;
  call->completion = std::move(completion);
  state_->post(std::move(call));
}

void Session::renew_opens() {
  state_->renew_opens();
}

bool Session::drain_posts(SteadyTime deadline) {
  return state_->drain_posts(deadline);
}
void Session::end() {
  state_->end();
}
void Session::abort() {
  state_->abort();
}
bool Session::aborted() const {
  return state_->aborted;
}
uint64_t Session::generation() const {
  return state_->generation;
}
uint32_t Session::minor_version() const {
  return state_->established().minor_version;
}
uint64_t Session::clientid() const {
  return state_->established().clientid;
}
uint32_t Session::operations_max() const {
  return state_->operations_max;
}

uint32_t Session::io_size_max() const {
  return state_->io_size_max;
}
SteadyTime Session::lease_end() const {
  return state_->lease_end.load() - state_->options.slept();
}
Milliseconds Session::lease() const {
  return state_->established().lease;
}
std::string Session::implementation() const {
  return state_->established().implementation;
}
std::string Session::host_in_use() const {
  return state_->host_in_use();
}
const std::string& Session::server() const {
  return state_->server_name;
}
SessionStatistics Session::statistics() const {
  return state_->statistics();
}

Session::InFlight::InFlight() = default;
Session::InFlight::InFlight(std::unique_ptr<Call> call) : call_(std::move(call)) {}
Session::InFlight::InFlight(InFlight&&) noexcept = default;
Session::InFlight& Session::InFlight::operator=(InFlight&& other) noexcept {
  std::swap(call_, other.call_);  // what was here is given up with `other`
  return *this;
}
Session::InFlight::~InFlight() {
  if (!call_ || call_->slot == nullptr) return;
  if (const auto state = call_->state.lock()) state->give_up(*call_);
}

}  // namespace pnfsrdma::initiator
