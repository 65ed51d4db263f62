// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "shared/base/clock.h"
#include "shared/base/log.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/brick/protocol.h"

// Who called under which epoch and what it was answered, in the order of the answers: event `call`, level debug.
namespace pnfsrdma::brick {

// As in the protocol's description; "unknown-procedure" for a number it does not have.
std::string_view name_of(Procedure procedure);
std::string_view name_of(Status status);

struct JournalEntry {
  std::string peer;
  Procedure procedure = Procedure::kNull;
  uint64_t epoch = 0;
  SteadyTime came{};
};
void write_journal(const JournalEntry& entry, std::string_view status);

// `done`, and before it the call's line in the journal. Where the log has no such lines: `done` itself.
template <typename Answer>
std::function<void(Result<Answer>)> journalled(const std::string& peer, Procedure procedure, uint64_t epoch,
                                               std::function<void(Result<Answer>)> done) {
  if (!log_enabled(LogLevel::kDebug)) return done;
  return [entry = JournalEntry{peer, procedure, epoch, steady_now()},
          done = std::move(done)](Result<Answer> answer) {
    write_journal(entry, answer ? name_of(answer->status) : "failed");
    done(std::move(answer));
  };
}

}  // namespace pnfsrdma::brick
