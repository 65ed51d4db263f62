// SPDX-License-Identifier: Apache-2.0
#include "server/console/password.h"

#include <sodium.h>

#include <chrono>

#include "shared/base/check.h"

namespace pnfsrdma::console {

namespace {
constexpr std::chrono::seconds kPatience{3};
}

PasswordHasher::PasswordHasher(PasswordCost cost) : cost_(cost), running_(0) {
  CHECK(sodium_init() >= 0);
  dummy_ = hash("nobody's password").value_or("");
}

bool PasswordHasher::enter() {
  auto running = running_.lock();
  if (!running.wait_until(left_, std::chrono::steady_clock::now() + kPatience,
                          [](int now) { return now < kAtOnce; }))
    return false;
  ++*running;
  return true;
}

void PasswordHasher::leave() {
  --*running_.lock();
  left_.notify_one();
}

std::optional<std::string> PasswordHasher::hash(const std::string& password) {
  if (!enter()) return std::nullopt;
  char text[crypto_pwhash_STRBYTES] = {};
  const int outcome = crypto_pwhash_str_alg(text, password.data(), password.size(), cost_.operations,
                                            cost_.memory_bytes, crypto_pwhash_ALG_ARGON2ID13);
  leave();
  if (outcome != 0) return std::nullopt;
  return std::string(text);
}

PasswordHasher::Verdict PasswordHasher::verify(const std::string& hash, const std::string& password) {
  if (!enter()) return Verdict::kBusy;
  const std::string& against = hash.empty() ? dummy_ : hash;
  const bool right = crypto_pwhash_str_verify(against.c_str(), password.data(), password.size()) == 0;
  leave();
  return right && !hash.empty() ? Verdict::kRight : Verdict::kWrong;
}

}  // namespace pnfsrdma::console
