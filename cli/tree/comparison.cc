// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/comparison.h"

#include <array>
#include <utility>

#include "cli/tree/content.h"
#include "cli/tree/extended_attributes.h"

namespace pnfsrdma::cli {
namespace {

constexpr std::array<std::pair<Aspect, const char*>, 10> kWords = {{{Aspect::kType, "type"},
                                                                    {Aspect::kData, "data"},
                                                                    {Aspect::kTarget, "target"},
                                                                    {Aspect::kDevice, "device"},
                                                                    {Aspect::kMode, "mode"},
                                                                    {Aspect::kOwner, "owner"},
                                                                    {Aspect::kTimes, "times"},
                                                                    {Aspect::kAttributes, "attributes"},
                                                                    {Aspect::kAcl, "acl"},
                                                                    {Aspect::kLinks, "links"}}};

Result<bool> same_content(const Entry& before, const Entry& after, bool content) {
  if (before.status.size != after.status.size) return false;
  if (content) return same_bytes(before, after);
  return before.status.modified == after.status.modified;
}

Result<> compare_content(const Entry& before, const Entry& after, bool content, Aspects& found) {
  switch (before.status.type()) {
    case S_IFREG: {
      TRY_ASSIGN(const bool same, same_content(before, after, content));
      if (!same) found.add(Aspect::kData);
      return {};
    }
    case S_IFLNK: {
      TRY_ASSIGN(const std::string target, target_of(before));
      TRY_ASSIGN(const std::string other, target_of(after));
      if (target != other) found.add(Aspect::kTarget);
      return {};
    }
    case S_IFCHR:
    case S_IFBLK:
      if (before.status.special != after.status.special) found.add(Aspect::kDevice);
      return {};
    default:
      return {};
  }
}

Result<> compare_extended_attributes(const Entry& before, const Entry& after, Aspects& found) {
  TRY_ASSIGN(const ExtendedAttributes first, extended_attributes_of(before));
  TRY_ASSIGN(const ExtendedAttributes second, extended_attributes_of(after));
  for (const auto& [one, other] : {std::pair{&first, &second}, std::pair{&second, &first}}) {
    for (const auto& [name, value] : *one) {
      const auto same = other->find(name);
      if (same == other->end() || same->second != value)
        found.add(is_acl(name) ? Aspect::kAcl : Aspect::kAttributes);
    }
  }
  return {};
}

}  // namespace

bool Aspects::are_of_content() const {
  return has(Aspect::kType) || has(Aspect::kData) || has(Aspect::kTarget) || has(Aspect::kDevice);
}

std::vector<std::string> Aspects::words() const {
  std::vector<std::string> words;
  for (const auto& [aspect, word] : kWords) {
    if (has(aspect) && !(aspect == Aspect::kTimes && are_of_content())) words.emplace_back(word);
  }
  return words;
}

Result<Aspects> differences(const Entry& before, const Entry& after, bool content) {
  Aspects found;
  const Status& one = before.status;
  const Status& other = after.status;
  if (one.is_same_as(other) && one.changed == other.changed) return found;
  if (one.type() != other.type()) {
    found.add(Aspect::kType);
    return found;
  }
  TRY(compare_content(before, after, content, found));
  if (one.permissions() != other.permissions()) found.add(Aspect::kMode);
  if (one.user != other.user || one.group != other.group) found.add(Aspect::kOwner);
  if (one.modified != other.modified) found.add(Aspect::kTimes);
  if (one.type() != S_IFLNK) TRY(compare_extended_attributes(before, after, found));
  return found;
}

bool LinkedFiles::match(const Status& before, const Status& after) {
  if (!before.is_file() || !after.is_file() || (before.links < 2 && after.links < 2)) return true;
  const auto [later, first] = after_of_.try_emplace(before.inode, after.inode);
  const auto [earlier, also_first] = before_of_.try_emplace(after.inode, before.inode);
  return later->second == after.inode && earlier->second == before.inode;
}

}  // namespace pnfsrdma::cli
