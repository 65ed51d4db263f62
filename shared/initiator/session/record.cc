// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/record.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "shared/rpc/message.h"
#include "shared/rpc/record.h"

namespace pnfsrdma::initiator {
namespace {

const std::string& machine_name() {
  static const std::string kName = [] {
    std::array<char, 256> name{};
    (void)::gethostname(name.data(), name.size() - 1);
    return std::string(name.data());
  }();
  return kName;
}

rpc::OpaqueAuth to_auth(const Credential& credential) {
  rpc::AuthSys auth;
  auth.machine_name = machine_name();
  auth.uid = credential.user;
  auth.gid = credential.group;
  const size_t count = std::min(credential.groups.size(), kCredentialGroupsMax);
  auth.gids.assign(credential.groups.begin(), credential.groups.begin() + static_cast<ptrdiff_t>(count));
  return rpc::to_opaque(auth);
}

}  // namespace

CallRecord::CallRecord(Bytes& out, uint32_t xid, const Credential& credential, uint32_t minor_version)
    : out_(out) {
  out_.clear();
  out_.resize(rpc::kMarkSize);
  xdr::Encoder encoder(out_);
  rpc::CallHeader header;
  header.xid = xid;
  header.program = nfs4::kProgram;
  header.version = nfs4::kVersion;
  header.procedure = nfs4::kProcedureCompound;
  header.credential = to_auth(credential);
  xdr::encode(encoder, header);
  compound_.emplace(out_, nfs4::CompoundHeader{{}, minor_version});
}

void CallRecord::finish() {
  std::byte mark[rpc::kMarkSize];
  rpc::write_record_mark(mark, out_.size() - rpc::kMarkSize);
  std::copy(std::begin(mark), std::end(mark), out_.begin());
}

Result<ByteSpan> results_of(ByteSpan record) {
  xdr::Decoder decoder(record);
  rpc::ReplyHeader header;
  if (!xdr::decode(decoder, header)) return fail(EPROTO, "the MDS sent something that is not an RPC reply");
  if (!header.successful()) return std::unexpected(header.to_error());
  return decoder.rest();
}

}  // namespace pnfsrdma::initiator
