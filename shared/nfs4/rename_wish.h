// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// What a RENAME may ask of a server of ours beyond RFC 8881, 18.26 (docs/protocol.md): a word behind the new name
// and a '/', which no name contains. Every other server refuses such a name and does nothing.
namespace pnfsrdma::nfs4 {

enum class RenameHow {
  kReplace,    // as in the RFC
  kNoReplace,  // EXIST if the new name is there
  kExchange,   // each name gets the other's file
};

// In the name of a server's implementation (eir_server_impl_id): it knows these words.
inline constexpr std::string_view kRenameWords = " rename=noreplace+exchange";

inline constexpr std::string_view kNoReplaceWord = "/noreplace";
inline constexpr std::string_view kExchangeWord = "/exchange";

struct RenameWish {
  std::string_view new_name;
  RenameHow how = RenameHow::kReplace;
};

// What the new name of a RENAME says. Any other '/' stays part of the name, and makes it a bad one.
inline RenameWish rename_wish(std::string_view said) {
  const size_t end = said.find('/');
  if (end == std::string_view::npos) return {said};
  const std::string_view word = said.substr(end);
  if (word == kNoReplaceWord) return {said.substr(0, end), RenameHow::kNoReplace};
  if (word == kExchangeWord) return {said.substr(0, end), RenameHow::kExchange};
  return {said};
}

// The new name that says it.
inline std::string to_new_name(const RenameWish& wish) {
  std::string said(wish.new_name);
  if (wish.how == RenameHow::kNoReplace) said += kNoReplaceWord;
  if (wish.how == RenameHow::kExchange) said += kExchangeWord;
  return said;
}

}  // namespace pnfsrdma::nfs4
