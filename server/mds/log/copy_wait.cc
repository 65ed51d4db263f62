// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/copy_wait.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "shared/base/log.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {
namespace {

constexpr Milliseconds kWaitTurn{100};

// Another server is given one; who leads begins or ends, or is out of reach; a disk is full; bytes were changed.
bool may_pass(const Error& error) {
  constexpr std::array kPassing{EBUSY, EIO, ENOTCONN, ENOSPC, EDQUOT, EBADMSG};
  return std::ranges::find(kPassing, error.number()) != kPassing.end();
}

}  // namespace

void CopyWait::wait(EventLoop& loop) const {
  const SteadyTime until = steady_now() + pause;
  while (steady_now() < until && !stopping()) loop.run_once(std::min(kWaitTurn, pause));
}

Result<bool> CopyWait::run(EventLoop& loop, LogMember& member, const Error& why) const {
  log_warning("mds", "copy-wanted why=\"{}\"", why.to_string());
  if (pause_first) wait(loop);
  std::string told;
  while (!stopping()) {
    const auto from = member.find_copy(stopping);
    if (!from) return std::unexpected(from.error().number() == ENOENT ? why : from.error());
    if (stopping()) break;
    const Result<> taken = *from ? take(**from) : fail(ENOTCONN, "nobody leads, or etcd does not answer");
    if (taken) return true;
    if (stopping()) break;
    if (!may_pass(taken.error())) return std::unexpected(taken.error().in("a copy of the metadata"));
    const std::string text = taken.error().to_string();
    if (text != told) log_warning("mds", "copy-waits error=\"{}\"", text);
    told = text;
    status("standby: waits for a copy of the metadata: " + text);
    wait(loop);
  }
  return false;
}

}  // namespace pnfsrdma::mds
