// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "server/console/http.h"
#include "shared/base/clock.h"
#include "shared/base/guarded.h"

namespace pnfsrdma::console {

// What was answered a moment ago, for whoever asks the same next: a dozen pages that look at one server, or a
// program that asks all the time, cost it what one does. An answer is good for 200 ms, and only while nothing
// has happened: any event and any change makes all of them old. Only for answers that are the same for
// everybody who may ask. Thread-safe.
class AnswerCache {
 public:
  static constexpr Milliseconds kFresh{200};
  static constexpr size_t kAnswersMax = 64;
  static constexpr size_t kBytesMax = 256 << 10;  // of one answer: larger ones are not kept

  // What must not have moved since an answer was begun.
  struct Moment {
    uint64_t events = 0;   // the newest one
    uint64_t changes = 0;  // made through the API
    bool operator==(const Moment&) const = default;
  };

  explicit AnswerCache(const Clock& clock) : clock_(clock) {}

  std::optional<HttpResponse> find(const std::string& question, const Moment& now);
  // `begun`: the moment before the answer was made.
  void keep(const std::string& question, const Moment& begun, const HttpResponse& answer);

 private:
  struct Kept {
    Moment begun;
    SteadyTime time;
    HttpResponse answer;
  };

  const Clock& clock_;
  Guarded<std::map<std::string, Kept>> kept_;
};

}  // namespace pnfsrdma::console
