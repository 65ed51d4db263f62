// SPDX-License-Identifier: Apache-2.0
#include "server/console/repeated_requests.h"

#include <algorithm>

#include "server/console/secret.h"

namespace pnfsrdma::console {

Answer<std::optional<HttpResponse>> RepeatedRequests::begin(const std::string& key, const std::string& body) {
  if (key.size() > kKeyBytesMax) return refuse("invalid", "The Idempotency-Key is too long.");
  auto kept = kept_.lock();
  const SteadyTime now = clock_.now();
  std::erase_if(*kept, [&](const auto& entry) { return now - entry.second.seen > kKept; });
  const std::string digest = digest_of(body);
  if (const auto found = kept->find(key); found != kept->end()) {
    if (found->second.body_digest != digest)
      return refuse("invalid", "This Idempotency-Key was used for another request.",
                    "Use a new key for each request.");
    if (!found->second.answer)
      return refuse("busy", "The first request with this Idempotency-Key is not answered yet.");
    return found->second.answer;
  }
  if (kept->size() >= kKeptMax)
    kept->erase(std::ranges::min_element(*kept, {}, [](const auto& entry) { return entry.second.seen; }));
  kept->emplace(key, Kept{.body_digest = digest, .answer = {}, .seen = now});
  return std::nullopt;
}

void RepeatedRequests::end(const std::string& key, const Answer<HttpResponse>& answer) {
  auto kept = kept_.lock();
  const auto found = kept->find(key);
  if (found == kept->end()) return;
  if (!answer && answer.error().name == "busy") {
    kept->erase(found);
    return;
  }
  found->second.answer = answer ? *answer : to_response(answer.error());
}

}  // namespace pnfsrdma::console
