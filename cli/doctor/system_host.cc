// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/system_host.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <link.h>
#include <net/if.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "cli/output/program.h"
#include "shared/base/owned.h"
#include "shared/rdma/verbs/transport.h"
#include "shared/rpc/dial.h"

namespace pnfsrdma::cli {
namespace {

using Interfaces = Owned<ifaddrs, ::freeifaddrs>;

struct CloseLibrary {
  void operator()(void* handle) const { ::dlclose(handle); }
};

std::optional<uint64_t> limit_of(rlim_t limit) {
  return limit == RLIM_INFINITY ? std::nullopt : std::optional<uint64_t>(limit);
}

// "192.0.2.1"; empty for what is no address of a peer's route: link-local, other families.
std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    const auto* const in = reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &in->sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    const auto* const in = reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&in->sin6_addr)) return {};
    ::inet_ntop(AF_INET6, &in->sin6_addr, text.data(), text.size());
  }
  return text.data();
}

}  // namespace

Result<std::string> SystemHost::read(const std::string& path) const {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::unexpected(Error::from_errno("open " + path));
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t count = ::read(file.get(), part.data(), part.size());
    if (count < 0) return std::unexpected(Error::from_errno("read " + path));
    if (count == 0) break;
    text.append(part.data(), static_cast<size_t>(count));
  }
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<std::string> SystemHost::list(const std::string& path) const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  std::ranges::sort(names);
  return names;
}

std::string SystemHost::link(const std::string& path) const {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(path, error);
  return error ? std::string() : target.string();
}

bool SystemHost::exists(const std::string& path) const {
  return ::access(path.c_str(), F_OK) == 0;
}

bool SystemHost::may_open(const std::string& path) const {
  return ::access(path.c_str(), R_OK | W_OK) == 0;
}

uint32_t SystemHost::mode(const std::string& path) const {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

uint32_t SystemHost::user() const {
  return ::geteuid();
}

std::string SystemHost::kernel_release() const {
  utsname name{};
  return ::uname(&name) == 0 ? name.release : "";
}

Limit SystemHost::locked_memory() const {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return {0, 0};
  return {limit_of(limit.rlim_cur), limit_of(limit.rlim_max)};
}

std::vector<InterfaceAddress> SystemHost::addresses() const {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const Interfaces owned(list);
  std::vector<InterfaceAddress> all;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    std::string text = text_of(entry->ifa_addr);
    if (!text.empty()) all.push_back({entry->ifa_name, std::move(text)});
  }
  return all;
}

ClockState SystemHost::clock() const {
  timex state{};
  const int answer = ::adjtimex(&state);
  const bool synchronised = answer >= 0 && answer != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
  return {synchronised, std::chrono::microseconds(state.maxerror)};
}

std::string SystemHost::program(std::string_view name) const {
  const char* const path = std::getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  folders += ":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin";
  while (!folders.empty()) {
    const size_t end = std::min(folders.find(':'), folders.size());
    const std::string candidate = folders.substr(0, end) + "/" + std::string(name);
    folders.erase(0, end + 1);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

std::string SystemHost::library(const std::string& name) const {
  const std::unique_ptr<void, CloseLibrary> handle(::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL));
  if (!handle) return {};
  link_map* map = nullptr;
  if (::dlinfo(handle.get(), RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return {};
  std::error_code error;
  return std::filesystem::canonical(map->l_name, error).string();
}

Result<std::vector<std::string>> SystemHost::open_rdma_devices() const {
  TRY_ASSIGN(const auto transports, rdma::verbs::make_transports());
  std::vector<std::string> names;
  for (const auto& transport : transports) names.push_back(transport->name());
  return names;
}

Result<std::string> SystemHost::run(const std::vector<std::string>& words) const {
  auto text = output_of(words);
  if (!text) return fail(EIO, text.error().title);
  return *std::move(text);
}

Result<> SystemHost::reach(const std::string& address, Milliseconds patience) const {
  TRY_ASSIGN(const auto where, rpc::SocketAddress::parse(address));
  TRY(rpc::dial_and_wait(where, patience));
  return {};
}

}  // namespace pnfsrdma::cli
