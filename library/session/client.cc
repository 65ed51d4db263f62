// SPDX-License-Identifier: Apache-2.0
#include "library/session/client.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "library/program_memory.h"
#include "library/session/session_directory.h"
#include "library/session/session_file.h"
#include "library/session/session_flight.h"
#include "shared/base/signals_blocked.h"
#include "shared/client/option.h"

namespace pnfsrdma::library::session {
namespace {

// How long a farewell may take for what has to reach the servers.
constexpr Milliseconds kFarewell = std::chrono::seconds(8);

Result<client::ConnectOptions> parse(std::string_view source, std::string_view text) {
  client::ConnectOptions options;
  TRY(client::parse_source(source, options));
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) {
      const client::Option option = client::split_option(text.substr(0, comma));
      TRY_ASSIGN(const bool taken, client::take_connect_option(option, options));
      if (!taken)
        return fail(EINVAL, fmt::format("option {}: not one of a connection; see pnfsrdma(3)", option.name));
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return options;
}

}  // namespace

struct Client::Made {
  std::unique_ptr<Random> random;
  client::ConnectOptions options;
  client::Transports transports;
  std::unique_ptr<initiator::Session> session;
  client::Root root;
  std::string durability;
};

Result<std::unique_ptr<Client>> Client::connect(std::string_view source, std::string_view text) {
  const SignalsBlocked blocked;
  Made made;
  made.random = std::make_unique<SystemRandom>();
  TRY_ASSIGN(made.options, parse(source, text));
  TRY_ASSIGN(made.transports, client::make_transports(made.options.data_transports, *made.random));
  auto reach = client::session_options(made.options, client::make_owner());
  if (made.options.calls_by_rdma) reach.rdma_transports = made.transports;
  TRY_ASSIGN(made.session, initiator::Session::start(reach, nullptr, nullptr));
  TRY_ASSIGN(made.root, client::find_root(*made.session, made.options.path));
  made.durability = client::durability_told(made.session->implementation());
  TRY(client::check_durability(made.options, made.durability));
  return std::unique_ptr<Client>(new Client(std::move(made)));
}

Client::Client(Made made)
    : Connection(made.root.layouts ? client::names_of(made.transports) : "through the server",
                 std::move(made.durability)),
      random_(std::move(made.random)),
      session_(std::move(made.session)),
      mds_(*session_),
      data_path_(mds_, clock_, std::move(made.transports),
                 {.persistence = made.options.persistence,
                  .activity_distance = std::chrono::seconds(made.options.layoutstats_timer_seconds),
                  .flush_after = std::chrono::seconds(made.options.flush_after_seconds),
                  .require_power = made.options.require_persistent,
                  .layouts = made.root.layouts}),
      files_(*session_, data_path_),
      recovery_(*session_, data_path_, files_),
      names_(*session_, made.root.handle, made.root.posix_acls) {
  // Delegations are never wanted, so the callbacks are the data path's.
  session_->set_handlers(&data_path_, &recovery_);
}

Client::~Client() {
  const SteadyTime farewell = steady_now() + kFarewell;
  data_path_.shut_down(farewell);
  (void)session_->drain_posts(farewell);
  session_->end();
}

Result<std::unique_ptr<OpenFile>> Client::open(std::string_view path, int flags, mode_t mode) {
  return SessionFile::open(*this, path, flags, mode);
}

Result<std::unique_ptr<Directory>> Client::open_directory(std::string_view path) {
  return SessionDirectory::open(*this, path);
}

Result<void*> Client::allocate(size_t size, void* wanted) {
  TRY_ASSIGN(const size_t whole, whole_pages(size));
  TRY_ASSIGN(const MutableByteSpan memory, map_pages(-1, whole, wanted));
  TRY_ASSIGN(auto made, SessionMemory::make(data_path_, memory, SessionMemory::Kind::kMappedHere));
  return memory_.add(std::move(made), MemoryOwner::kLibrary);
}

Result<> Client::free(void* memory) {
  TRY(memory_.remove(memory, MemoryOwner::kLibrary));
  return {};
}

Result<> Client::register_memory(MutableByteSpan memory) {
  TRY(check_memory(memory));
  TRY(memory_.check_free(memory));  // before children are kept from it, or given it back
  TRY_ASSIGN(auto made, SessionMemory::make(data_path_, memory, SessionMemory::Kind::kPrograms));
  TRY(memory_.add(std::move(made), MemoryOwner::kProgram));
  return {};
}

Result<void*> Client::register_file(int memfd, size_t size) {
  TRY(check_memfd(memfd, size));
  TRY_ASSIGN(const MutableByteSpan memory, map_pages(memfd, size, nullptr));
  TRY_ASSIGN(auto made, SessionMemory::make(data_path_, memory, SessionMemory::Kind::kMappedHere));
  return memory_.add(std::move(made), MemoryOwner::kProgram);
}

Result<> Client::unregister(void* memory) {
  TRY(memory_.remove(memory, MemoryOwner::kProgram));
  return {};
}

std::unique_ptr<Flight> Client::make_flight(FlightListener& listener) {
  return std::make_unique<SessionFlight>(*this, listener);
}

void Client::together(Starter& starter) {
  {
    SessionTogether together(data_path_);
    starter.start(together);
  }
  data_path_.ring();
}

initiator::Credential Client::caller() {
  initiator::Credential who{::geteuid(), ::getegid(), {}};
  const int count = ::getgroups(0, nullptr);
  if (count > 0) {
    std::vector<gid_t> groups(static_cast<size_t>(count));
    const int told = ::getgroups(count, groups.data());
    for (int i = 0; i < told; ++i) who.groups.push_back(groups[static_cast<size_t>(i)]);
  }
  return who;
}

}  // namespace pnfsrdma::library::session
