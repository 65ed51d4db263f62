// SPDX-License-Identifier: Apache-2.0
#include "server/console/answer_cache.h"

namespace pnfsrdma::console {

std::optional<HttpResponse> AnswerCache::find(const std::string& question, const Moment& now) {
  const SteadyTime time = clock_.now();
  auto kept = kept_.lock();
  const auto found = kept->find(question);
  if (found == kept->end()) return std::nullopt;
  if (found->second.begun == now && time - found->second.time < kFresh) return found->second.answer;
  kept->erase(found);
  return std::nullopt;
}

void AnswerCache::keep(const std::string& question, const Moment& begun, const HttpResponse& answer) {
  if (answer.body.size() > kBytesMax) return;
  const SteadyTime time = clock_.now();
  auto kept = kept_.lock();
  if (kept->size() >= kAnswersMax)
    std::erase_if(*kept, [&](const auto& entry) { return time - entry.second.time >= kFresh; });
  if (kept->size() >= kAnswersMax) kept->clear();
  kept->insert_or_assign(question, Kept{.begun = begun, .time = time, .answer = answer});
}

}  // namespace pnfsrdma::console
