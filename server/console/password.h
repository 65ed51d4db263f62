// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "shared/base/clock.h"
#include "shared/base/guarded.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

struct PasswordCost {
  unsigned long long operations = 2;  // crypto_pwhash_OPSLIMIT_INTERACTIVE
  size_t memory_bytes = 64 << 20;     // crypto_pwhash_MEMLIMIT_INTERACTIVE
  Milliseconds patience{3000};        // of a caller that waits for a free place
};

// Hashes passwords with Argon2id (libsodium): 64 MiB and about a tenth of a second each, so at most two at
// once; who would have to wait longer than its patience is told to come again. Thread-safe.
class PasswordHasher {
 public:
  explicit PasswordHasher(PasswordCost cost);

  // A string that holds its own salt and cost. nullopt: too many hash at the moment, or no memory.
  std::optional<std::string> hash(const std::string& password);
  enum class Verdict { kRight, kWrong, kBusy };
  // Takes as long for an empty `hash` (no such user) as for any other.
  Verdict verify(const std::string& hash, const std::string& password);

 private:
  static constexpr int kAtOnce = 2;
  // Of one of the two places; false when none comes free in time.
  bool enter();
  void leave();

  const PasswordCost cost_;
  std::string dummy_;
  Guarded<int> running_;
  Condition left_;
};

}  // namespace pnfsrdma::console
