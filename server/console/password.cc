// SPDX-License-Identifier: Apache-2.0
#include "server/console/password.h"

#include <fmt/format.h>
#include <sodium.h>

#include <array>
#include <chrono>
#include <span>

#include "shared/base/check.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

namespace {
constexpr size_t kSaltBytes = 16, kDigestBytes = 32;  // libsodium's of Argon2id

std::string base64(std::span<const unsigned char> bytes) {
  constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL_NO_PADDING;
  std::string text(sodium_base64_encoded_len(bytes.size(), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(), kVariant);
  text.pop_back();  // the terminating zero
  return text;
}

// A hash that no password is known for, of the same cost as any other to verify. Made of random bytes:
// hashing something would keep every start of the server waiting for as long as a login takes.
std::string hash_of_nothing(const PasswordCost& cost) {
  std::array<unsigned char, kSaltBytes> salt;
  std::array<unsigned char, kDigestBytes> digest;
  randombytes_buf(salt.data(), salt.size());
  randombytes_buf(digest.data(), digest.size());
  return fmt::format("$argon2id$v=19$m={},t={},p=1${}${}", cost.memory_bytes / 1024, cost.operations,
                     base64(salt), base64(digest));
}

}  // namespace

PasswordHasher::PasswordHasher(PasswordCost cost) : cost_(cost), running_(0) {
  CHECK(sodium_init() >= 0);
  dummy_ = hash_of_nothing(cost_);
  CHECK(crypto_pwhash_str_needs_rehash(dummy_.c_str(), cost_.operations, cost_.memory_bytes) == 0);
}

bool PasswordHasher::enter() {
  auto running = running_.lock();
  if (!running.wait_until(left_, steady_now() + cost_.patience, [](int now) { return now < kAtOnce; }))
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
