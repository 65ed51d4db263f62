// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/log_presence.h"

#include <cerrno>
#include <utility>

namespace pnfsrdma::mds {
namespace {

// Whoever is there puts its row in such a time, and whoever has died not for so many of them: requests that it has left
// behind arrive late, but not that late.
constexpr Milliseconds kLookFor{2000};
constexpr int kOthersMax = 5;

}  // namespace

LogPresence::LogPresence(KeyServer& server, std::string key, std::string place)
    : server_(server), key_(std::move(key)), place_(std::move(place)) {}

Result<> LogPresence::say(SteadyTime now, LogPosition durable) {
  next_ = now + kSayEvery;
  const auto outcome = server_.commit({.if_all = {{key_, revision_}},
                                       .puts = {{key_, PositionRow{durable, place_}.text()}},
                                       .erases = {},
                                       .otherwise_read = {key_}});
  if (!outcome) return {};
  if (outcome->done) {
    revision_ = outcome->revision;
    is_said_ = true;
    said_ = durable;
    others_ = 0;
    return {};
  }
  // Of an earlier start, of a try whose answer was lost, or of somebody else.
  const KeyRow found = outcome->found.empty() ? KeyRow{} : outcome->found.front();
  revision_ = found.revision;
  next_ = now;
  if (revision_ == 0 || PositionRow::parse(found.value).rest == place_) return {};
  if (++others_ > kOthersMax) {
    return fail(EINVAL, "another server has the name of this one in the log (" + key_ +
                            "): each needs one of its own in metadata_log");
  }
  next_ = now + kLookFor;
  return {};
}

}  // namespace pnfsrdma::mds
