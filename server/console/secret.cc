// SPDX-License-Identifier: Apache-2.0
#include "server/console/secret.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sodium.h>

#include <array>

#include "shared/base/bytes.h"

namespace pnfsrdma::console {

std::string new_secret(Random& random) {
  std::array<std::byte, 32> bytes;
  random.fill(bytes);
  constexpr size_t kSize = sodium_base64_ENCODED_LEN(sizeof bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  std::string text(kSize, '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  text.pop_back();  // its NUL
  return text;
}

std::string new_name(Random& random) {
  std::array<std::byte, 8> bytes;
  random.fill(bytes);
  return to_hex(bytes);
}

std::string digest_of(std::string_view secret) {
  std::array<std::byte, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return to_hex(digest);
}

bool same_secret(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace pnfsrdma::console
