// SPDX-License-Identifier: Apache-2.0
#include "server/console/unix_names.h"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <vector>

#include "shared/base/log.h"

namespace pnfsrdma::console {

namespace {

// Calls one of the functions of getpwnam(3) and getgrnam(3) with as much memory as its answer needs. None: there is no
// such entry. `look`: what is wanted of it, while the memory is there.
template <typename Entry, typename Key, typename Value>
Result<std::optional<Value>> find_entry(int (*find)(Key, Entry*, char*, size_t, Entry**), Key key,
                                        Value (*look)(const Entry&), const std::string& what) {
  Entry entry{};
  Entry* found = nullptr;
  std::vector<char> text(1024);
  int failed = 0;
  while ((failed = find(key, &entry, text.data(), text.size(), &found)) == ERANGE)
    text.resize(text.size() * 2);
  // These too mean that there is none, says getpwnam(3).
  if (failed == ENOENT || failed == ESRCH || failed == EBADF || failed == EPERM) return std::nullopt;
  if (failed != 0) return fail(failed, "asking the name service for " + what);
  if (found == nullptr) return std::nullopt;
  return look(*found);
}

std::string user_name(const passwd& user) {
  return user.pw_name;
}
std::string group_name(const group& one) {
  return one.gr_name;
}
uint32_t user_id(const passwd& user) {
  return user.pw_uid;
}
uint32_t group_id(const group& one) {
  return one.gr_gid;
}

std::string words(UnixNames::Kind kind, const std::string& who) {
  return (kind == UnixNames::Kind::kUser ? "user " : "group ") + who;
}

Result<std::optional<std::string>> ask_host(UnixNames::Kind kind, uint32_t id) {
  const std::string what = words(kind, std::to_string(id));
  return kind == UnixNames::Kind::kUser ? find_entry(getpwuid_r, id, user_name, what)
                                        : find_entry(getgrgid_r, id, group_name, what);
}

}  // namespace

UnixNames::UnixNames(const Clock& clock) : UnixNames(clock, ask_host) {}

std::optional<std::string> UnixNames::name_of(Kind kind, uint32_t id) {
  {
    auto state = state_.lock();
    const SteadyTime now = clock_.now();
    const auto known = state->names.find({kind, id});
    if (known != state->names.end() && now < known->second.since + kFresh) return known->second.name;
    if (now < state->silent_until) return std::nullopt;
  }
  const auto name = ask_(kind, id);
  auto state = state_.lock();
  const SteadyTime now = clock_.now();
  if (!name) {
    state->silent_until = now + kSilence;
    log_warning("console", "name-service-failed error=\"{}\"", name.error().to_string());
    return std::nullopt;
  }
  if (state->names.size() >= kNamesMax) state->names.clear();
  state->names[{kind, id}] = {now, *name};
  return *name;
}

Result<uint32_t> UnixNames::id_of(Kind kind, const std::string& name) {
  const std::string what = words(kind, name);
  const auto id = kind == Kind::kUser ? find_entry(getpwnam_r, name.c_str(), user_id, what)
                                      : find_entry(getgrnam_r, name.c_str(), group_id, what);
  if (!id) return fail(EAGAIN, id.error().to_string());
  if (!*id) return fail(ENOENT, "the server's host knows no " + what);
  return **id;
}

}  // namespace pnfsrdma::console
