// SPDX-License-Identifier: Apache-2.0
#include "shared/brick/partition_key.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "shared/base/bytes.h"
#include "shared/base/owned.h"

namespace pnfsrdma::brick {
namespace {

constexpr std::string_view kPrefix = "pnfsrdma-partition-key-1:";
constexpr std::string_view kSecretOf = "pnfsrdma partition secret 1:";
constexpr std::string_view kSpace = " \t\r\n";
constexpr size_t kFileBytesMax = 4096;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

bool is_partition_name(std::string_view name) {
  return !name.empty() && name.size() <= kPartitionNameMax && is_plain(name.front()) &&
         std::ranges::all_of(name, [](char c) { return is_plain(c) || c == '.' || c == '_' || c == '-'; });
}

PartitionKey PartitionKey::make(Random& random) {
  Bytes bytes;
  random.fill(bytes);
  return PartitionKey(bytes);
}

Result<PartitionKey> PartitionKey::parse(std::string_view text) {
  const auto wrong = [] {
    return fail(EINVAL, "no key of a partition: it has the form pnfsrdma-partition-key-1:…");
  };
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return wrong();
  text = text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
  Bytes bytes;
  if (!text.starts_with(kPrefix) || text.size() != kPrefix.size() + 2 * bytes.size()) return wrong();
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char* const digits = text.data() + kPrefix.size() + 2 * i;
    uint8_t value = 0;
    const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
    if (error != std::errc() || end != digits + 2) return wrong();
    bytes[i] = static_cast<std::byte>(value);
  }
  return PartitionKey(bytes);
}

Result<PartitionKey> PartitionKey::read_file(const std::string& path) {
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!fd || fstat(fd.get(), &status) != 0) return std::unexpected(Error::from_errno("the key file " + path));
  if (S_ISREG(status.st_mode) && (status.st_mode & 077) != 0)
    return fail(EPERM, "others may read the key file " + path +
                           ": chmod 600 it, and make a new key if they had the time");
  std::string text(kFileBytesMax, '\0');
  const ssize_t got = read(fd.get(), text.data(), text.size());
  if (got < 0) return std::unexpected(Error::from_errno("the key file " + path));
  auto key = parse(std::string_view(text).substr(0, static_cast<size_t>(got)));
  if (!key) return std::unexpected(key.error().in(path));
  return key;
}

std::string PartitionKey::text() const {
  return std::string(kPrefix) + to_hex(bytes_);
}

PartitionKey::Bytes PartitionKey::secret() const {
  std::array<std::byte, kSecretOf.size() + sizeof bytes_> input;
  const ByteSpan front = as_bytes(kSecretOf);
  std::copy(bytes_.begin(), bytes_.end(), std::copy(front.begin(), front.end(), input.begin()));
  Bytes secret;
  static_assert(sizeof secret == SHA256_DIGEST_LENGTH);
  SHA256(reinterpret_cast<const unsigned char*>(input.data()), input.size(),
         reinterpret_cast<unsigned char*>(secret.data()));
  return secret;
}

}  // namespace pnfsrdma::brick
