// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/mds/log/key_server.h"
#include "server/mds/log/log.h"
#include "shared/base/event_loop.h"
#include "shared/base/guarded.h"
#include "shared/base/latency_histogram.h"
#include "shared/base/lifetime.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {

// The log in a key server. A thread of its own writes one value after the other, each by a transaction "the lead is
// still mine and there is no such value yet"; what is appended meanwhile goes into the next value (group commit).
// One at a time, because then the log never has a gap: several on the way could arrive in another order, and what a
// dead leader leaves behind a gap would have to be told from what was promised.
//
// A transaction whose outcome is unknown is sent again: it finds the value that it wrote, or the lead of somebody else.
class LogWriter final : public Log {
 public:
  struct Options {
    LogKeys keys;
    KeyRevision lead = 0;  // of the leader's key
    LogPoint end;          // the last value there is
    // Both are called by the thread: may it write, before each try; what it wrote, and how long that took from the
    // first try on.
    std::function<bool()> leads;
    std::function<void(LogPosition, size_t bytes, LatencyHistogram::Duration took)> wrote;
    // A value that is not taken for so long, while the lead is renewed, ends the log (ETIMEDOUT).
    Milliseconds patience{15'000};
  };
  LogWriter(EventLoop& loop, std::unique_ptr<KeyServer> server, Options options);
  // What is not logged by then may be so or not.
  ~LogWriter() override;
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  void start(Hooks hooks) override;
  void append(std::string record) override;
  Result<Logged> wait() override;

 private:
  struct Queue {
    std::deque<std::string> records;
    uint64_t appended = 0;
    Logged logged;
    std::optional<Error> lost;
    bool stopping = false;
  };
  // The values that the next records need.
  struct Group {
    std::vector<std::string> values;
    uint64_t records = 0;
  };

  void run();
  std::optional<Group> next_group();
  Result<> write(std::string value);
  // nullopt: ask again, `problem` says why.
  std::optional<Result<>> try_write(const std::string& key, const std::string& value, std::string& problem);
  void end(const Error& error);

  EventLoop& loop_;
  const std::unique_ptr<KeyServer> server_;
  const Options options_;
  Hooks hooks_;
  LogPoint end_;  // the thread's own
  Guarded<Queue> queue_;
  Condition wake_;
  Condition progress_;
  Lifetime lifetime_;
  Thread thread_;
};

}  // namespace pnfsrdma::mds
