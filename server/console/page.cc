// SPDX-License-Identifier: Apache-2.0
#include "server/console/page.h"

#include <sodium.h>

#include <vector>

#include "server/console/secret.h"

namespace pnfsrdma::console {

namespace {

constexpr int kVariant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
// Tells a cursor from what somebody made up; it is no secret.
constexpr size_t kCheckDigits = 8;

std::string check_of(const std::string& place) {
  return digest_of("cursor " + place).substr(0, kCheckDigits);
}

}  // namespace

std::string seal_cursor(const std::string& place) {
  const std::string text = check_of(place) + place;
  std::string sealed(sodium_base64_encoded_len(text.size(), kVariant), '\0');
  sodium_bin2base64(sealed.data(), sealed.size(), reinterpret_cast<const unsigned char*>(text.data()),
                    text.size(), kVariant);
  sealed.resize(sealed.find('\0'));
  return sealed;
}

std::optional<std::string> unseal_cursor(const std::string& cursor) {
  std::vector<unsigned char> bytes(cursor.size() + 1);
  size_t size = 0;
  if (sodium_base642bin(bytes.data(), bytes.size(), cursor.data(), cursor.size(), nullptr, &size, nullptr,
                        kVariant) != 0)
    return std::nullopt;
  const std::string text(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
  if (text.size() <= kCheckDigits || text.substr(0, kCheckDigits) != check_of(text.substr(kCheckDigits)))
    return std::nullopt;
  return text.substr(kCheckDigits);
}

}  // namespace pnfsrdma::console
