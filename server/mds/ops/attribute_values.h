// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

#include "server/mds/ops/compound_context.h"
#include "shared/nfs4/attributes.h"

namespace pnfsrdma::mds {

// supported_attrs: the same for every object. Those of quotas once these are on.
const nfs4::Bitmap& supported_attributes(const Services& services);
// Those of them that can only be set (time_access_set …): asking for one is INVAL.
const nfs4::Bitmap& write_only_attributes();
// What SETATTR, CREATE and OPEN may set. suppattr_exclcreat is the same, but for times_of_holders(): the verifier of an
// exclusive create has its own place, no attribute is used to keep it.
const nfs4::Bitmap& settable_attributes();
// What only SETATTR by a delegation sets (RFC 9754, 5).
const nfs4::Bitmap& times_of_holders();

// What a request wants to know of objects, looked at once: of a READDIR it holds for each entry. Those that are
// not supported are left out without a word (RFC 8881, 5). Not thread-safe; belongs to one request.
class WantedAttributes {
 public:
  // Write-only attributes are left out, too: whether they are an error is the operation's to say.
  WantedAttributes(const Services& services, const nfs4::Bitmap& requested);

  // Of `inode` as seen through `handle`, by whoever asks.
  nfs4::Attributes of(const CompoundContext& context, const ObjectHandle& handle, const Inode& inode) const;
  // The same as XDR, straight from the inode: an Attributes, sixty optionals, is heavy for each entry of a READDIR.
  void encode(xdr::Encoder& encoder, const CompoundContext& context, const ObjectHandle& handle,
              const Inode& inode) const;
  // What they need beside the inode; for who asks for several before he waits for any.
  void read(const CompoundContext& context, const Inode& inode) const;
  // rdattr_error
  bool error_wanted() const { return wanted(nfs4::Attribute::kReadAttributeError); }
  // They depend on the groups of whoever asks.
  bool quotas_wanted() const { return quotas_wanted_; }

 private:
  bool wanted(nfs4::Attribute attribute) const {
    const auto number = static_cast<uint32_t>(attribute);
    return (words_[number / 32] >> number % 32 & 1) != 0;
  }

  nfs4::Bitmap wanted_;
  std::array<uint32_t, 3> words_{};  // of wanted_: a test of one bit is a constant's
  bool layouts_wanted_;
  bool acls_wanted_;
  bool quotas_wanted_;
  bool server_wanted_;
};

// owner and owner_group on the wire are decimal numbers (RFC 8881, 5.9): every host maps names by itself.
std::string owner_text(uint32_t id);
// "1000", "1000@anything", "root", "nobody"; nothing for another name.
std::optional<uint32_t> parse_owner(std::string_view text);

}  // namespace pnfsrdma::mds
