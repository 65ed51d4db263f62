// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/keys.h"

#include "shared/base/bytes.h"

namespace pnfsrdma::mds {
namespace {

constexpr size_t kNumberSize = sizeof(uint64_t);

void append_number(std::string& key, uint64_t number) {
  std::byte bytes[kNumberSize];
  store_big_endian(bytes, number);
  key.append(as_text(bytes));
}

uint64_t number_at(std::string_view key, size_t at) {
  return load_big_endian<uint64_t>(as_bytes(key).data() + at);
}

}  // namespace

std::string tag_prefix(char tag) {
  return std::string(1, tag);
}

std::string meta_key(std::string_view name) {
  return std::string(1, kMetaTag).append(name);
}

std::string number_key(char tag, uint64_t number) {
  std::string key(1, tag);
  append_number(key, number);
  return key;
}

std::string number_key(char tag, uint64_t first, uint64_t second) {
  std::string key;
  key.reserve(1 + 2 * kNumberSize);
  key += tag;
  append_number(key, first);
  append_number(key, second);
  return key;
}

std::string acl_key(InodeId inode, AclKind kind) {
  return number_key(kAclTag, inode, static_cast<uint64_t>(kind));
}

std::string quota_key(char tag, const QuotaId& id) {
  return number_key(tag, static_cast<uint64_t>(id.kind), id.number);
}

std::string name_key(InodeId directory, std::string_view name) {
  std::string key;
  key.reserve(1 + kNumberSize + name.size());
  key += kNameTag;
  append_number(key, directory);
  key += name;
  return key;
}

std::string record_key(uint8_t kind, std::string_view key) {
  std::string whole;
  whole.reserve(2 + key.size());
  whole += kRecordTag;
  whole += static_cast<char>(kind);
  whole += key;
  return whole;
}

std::optional<uint64_t> number_of_key(char tag, std::string_view key) {
  if (key.size() != 1 + kNumberSize || key[0] != tag) return std::nullopt;
  return number_at(key, 1);
}

std::optional<KeyNumbers> numbers_of_key(char tag, std::string_view key) {
  if (key.size() != 1 + 2 * kNumberSize || key[0] != tag) return std::nullopt;
  return KeyNumbers{number_at(key, 1), number_at(key, 1 + kNumberSize)};
}

std::optional<KeyName> name_of_key(std::string_view key) {
  if (key.size() <= 1 + kNumberSize || key[0] != kNameTag) return std::nullopt;
  return KeyName{number_at(key, 1), key.substr(1 + kNumberSize)};
}

}  // namespace pnfsrdma::mds
