// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "server/console/http.h"
#include "server/console/problem.h"
#include "shared/base/clock.h"
#include "shared/base/guarded.h"

namespace pnfsrdma::console {

// Requests that carried an Idempotency-Key, with their answers, for ten minutes; at most kKeptMax, in memory
// only. Thread-safe.
class RepeatedRequests {
 public:
  static constexpr Milliseconds kKept{600'000};
  static constexpr size_t kKeptMax = 1024;
  static constexpr size_t kKeyBytesMax = 1024;

  explicit RepeatedRequests(const Clock& clock) : clock_(clock) {}

  // None: it is the first of this key, and end() follows. Else the first one's answer. "invalid": the key is
  // too long, or was used for another body; "busy": the first one is not answered yet.
  Answer<std::optional<HttpResponse>> begin(const std::string& key, const std::string& body);
  // A failure that passes ("busy") is forgotten: the request may be tried again.
  void end(const std::string& key, const Answer<HttpResponse>& answer);

 private:
  struct Kept {
    std::string body_digest;
    std::optional<HttpResponse> answer;  // none: not yet
    SteadyTime seen;
  };

  const Clock& clock_;
  Guarded<std::map<std::string, Kept>> kept_;
};

}  // namespace pnfsrdma::console
