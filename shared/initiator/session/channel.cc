// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/channel.h"

#include <algorithm>
#include <cstring>

#include "shared/base/sync.h"
#include "shared/initiator/mds.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::initiator {

namespace {

// LAYOUTTRYLATER, DELAY and the like at LAYOUTGET are answered by going through the MDS, not by waiting.
constexpr CallOptions kAtOnce{.return_delay = true};
constexpr CallOptions kIdempotent{};
constexpr CallOptions kReserved{.urgency = Urgency::kReserved, .cache_reply = true};
constexpr uint32_t kDeviceAddressBytesMax = 8192;

MetadataError to_error(const Error& error) {
  return {nfs4::Status::kOk, error.number()};
}
MetadataError to_error(nfs4::Status status) {
  return {status == nfs4::Status::kOk ? nfs4::Status::kServerFault : status, 0};
}

Session::Operations on_file(const FileReference& file, nfs4::ArgumentOperation operation) {
  Session::Operations operations;
  operations.reserve(2);
  operations.emplace_back(nfs4::PutFileHandleArguments{file.handle});
  operations.push_back(std::move(operation));
  return operations;
}

// The result of the COMPOUND's last operation, or why there is none.
template <typename Response>
MetadataResult<const typename Response::Result*> last_result(const Result<CompoundReply>& reply,
                                                             size_t index) {
  if (!reply) return std::unexpected(to_error(reply.error()));
  const auto* result = reply->result<Response>(index);
  if (result == nullptr) return std::unexpected(to_error(reply->status));
  return result;
}

nfs4::LayoutCommitArguments commit_arguments(const LayoutCommitWanted& wanted) {
  nfs4::LayoutCommitArguments arguments;
  arguments.offset = wanted.offset;
  arguments.length = wanted.length;
  arguments.stateid = wanted.stateid;
  arguments.last_write_offset = wanted.last_write_offset;
  if (wanted.modified) arguments.time_modify = nfs4::Time::from(*wanted.modified);
  arguments.update.layout_type = nfs4::kLayoutTypePmem;
  nfs4::LayoutUpdate update;
  update.persist.assign(wanted.persist.begin(), wanted.persist.end());
  if (update.persist.size() > nfs4::kPersistRangesMax) {
    // More than the update holds: the whole range then, which is never less.
    update.persist = {nfs4::PersistRange{wanted.offset, wanted.length}};
  }
  arguments.update.body = xdr::encode_to_bytes(update);
  return arguments;
}

// The size as it is then: LAYOUTCOMMIT tells it only where it has changed it, the GETATTR behind it always.
MetadataResult<std::optional<uint64_t>> commit_result(const Result<CompoundReply>& reply) {
  TRY_ASSIGN(const nfs4::LayoutCommitResult* result, last_result<nfs4::LayoutCommitResponse>(reply, 1));
  const auto* after = reply->result<nfs4::GetAttributesResponse>(2);
  if (after != nullptr && after->attributes.size) return after->attributes.size;
  return result->new_size;
}

nfs4::LayoutReturnArguments bulk_return(nfs4::LayoutReturnWhat what) {
  nfs4::LayoutReturnArguments arguments;
  arguments.layout_type = nfs4::kLayoutTypePmem;
  arguments.io_mode = Iomode::kAny;
  arguments.what = std::move(what);
  return arguments;
}

}  // namespace

MetadataResult<nfs4::DeviceAddress> SessionChannel::get_device_info(const nfs4::DeviceId& device) {
  nfs4::GetDeviceInfoArguments arguments;
  arguments.device = device;
  arguments.layout_type = nfs4::kLayoutTypePmem;
  arguments.max_count = kDeviceAddressBytesMax;
  Session::Operations operations;
  operations.emplace_back(std::move(arguments));
  const auto reply = session_.call(std::move(operations), {}, kIdempotent);
  TRY_ASSIGN(const nfs4::GetDeviceInfoResult* result, last_result<nfs4::GetDeviceInfoResponse>(reply, 0));
  const auto address = xdr::decode_from<nfs4::DeviceAddress>(result->device_address.body);
  if (!address || result->device_address.layout_type != nfs4::kLayoutTypePmem) {
    return std::unexpected(MetadataError{nfs4::Status::kOk, EPROTO});
  }
  return *address;
}

MetadataResult<LayoutGranted> SessionChannel::layout_get(const FileReference& file,
                                                         const nfs4::Stateid& stateid,
                                                         const LayoutWanted& wanted) {
  nfs4::LayoutGetArguments arguments;
  arguments.layout_type = nfs4::kLayoutTypePmem;
  arguments.io_mode = wanted.iomode;
  arguments.offset = wanted.offset;
  arguments.length = wanted.length;
  arguments.min_length = wanted.minimum;
  arguments.stateid = stateid;
  arguments.max_count = kLayoutReplyBytesMax;
  Session::Operations operations = on_file(file, std::move(arguments));
  operations.emplace_back(nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kSize)});
  const auto reply = session_.call(std::move(operations), file.credential, kAtOnce);
  TRY_ASSIGN(const nfs4::LayoutGetResult* result, last_result<nfs4::LayoutGetResponse>(reply, 1));
  LayoutGranted granted = decode_layouts(*result);
  const auto* attributes = reply->result<nfs4::GetAttributesResponse>(2);
  if (attributes != nullptr) granted.size = attributes->attributes.size;
  return granted;
}

MetadataResult<std::optional<uint64_t>> SessionChannel::layout_commit(const FileReference& file,
                                                                      const LayoutCommitWanted& wanted) {
  const SteadyTime asked_at = steady_now();
  const auto reply =
      session_.call(and_attributes(on_file(file, commit_arguments(wanted))), file.credential, kReserved);
  take_attributes(file.handle, reply, 2, asked_at);
  return commit_result(reply);
}

Session::Operations SessionChannel::and_attributes(Session::Operations operations) const {
  if (attributes_known_) operations.emplace_back(nfs4::GetAttributesArguments{attributes_wanted_});
  return operations;
}

void SessionChannel::take_attributes(const nfs4::FileHandle& file, const Result<CompoundReply>& reply,
                                     size_t at, SteadyTime asked_at) const {
  if (!reply) return;
  const auto* result = reply->result<nfs4::GetAttributesResponse>(at);
  if (result != nullptr && attributes_known_) attributes_known_(file, result->attributes, asked_at);
}

void SessionChannel::start_layout_commit(const FileReference& file, const LayoutCommitWanted& wanted,
                                         std::function<void(MetadataResult<std::optional<uint64_t>>)> done) {
  session_.post(and_attributes(on_file(file, commit_arguments(wanted))), file.credential, kReserved,
                [this, done = std::move(done), handle = file.handle,
                 asked_at = steady_now()](const Result<CompoundReply>& reply) {
                  take_attributes(handle, reply, 2, asked_at);
                  done(commit_result(reply));
                });
}

MetadataResult<std::optional<nfs4::Stateid>> SessionChannel::layout_return(const FileReference& file,
                                                                           const LayoutReturnWanted& wanted) {
  nfs4::LayoutReturnArguments arguments =
      bulk_return(nfs4::LayoutReturnWhat::make<nfs4::LayoutReturnType::kFile>(nfs4::LayoutReturnFile{
          .offset = wanted.offset, .length = wanted.length, .stateid = wanted.stateid}));
  arguments.io_mode = wanted.iomode;
  const auto reply = session_.call(on_file(file, std::move(arguments)), file.credential, kReserved);
  TRY_ASSIGN(const nfs4::LayoutReturnResult* result, last_result<nfs4::LayoutReturnResponse>(reply, 1));
  return result->stateid;
}

MetadataResult<> SessionChannel::layout_return_all() {
  Session::Operations operations;
  operations.emplace_back(
      bulk_return(nfs4::LayoutReturnWhat::make<nfs4::LayoutReturnType::kAll>(xdr::Void{})));
  const auto reply = session_.call(std::move(operations), {}, kReserved);
  TRY(last_result<nfs4::LayoutReturnResponse>(reply, 0));
  return {};
}

MetadataResult<> SessionChannel::layout_return_filesystem(const FileReference& file) {
  const auto reply = session_.call(
      on_file(file, bulk_return(nfs4::LayoutReturnWhat::make<nfs4::LayoutReturnType::kFsid>(xdr::Void{}))),
      file.credential, kReserved);
  TRY(last_result<nfs4::LayoutReturnResponse>(reply, 1));
  return {};
}

MetadataResult<MdsRead> SessionChannel::read(const FileReference& file, const nfs4::Stateid& stateid,
                                             uint64_t offset, MutableByteSpan sink) {
  const nfs4::ReadArguments arguments{stateid, offset, static_cast<uint32_t>(sink.size())};
  const auto reply = session_.call(on_file(file, arguments), file.credential, kIdempotent);
  TRY_ASSIGN(const nfs4::ReadResult* result, last_result<nfs4::ReadResponse>(reply, 1));
  const ByteSpan data = result->data.span();
  if (data.size() > sink.size()) return std::unexpected(MetadataError{nfs4::Status::kOk, EPROTO});
  if (!data.empty()) std::memcpy(sink.data(), data.data(), data.size());
  return MdsRead{data.size(), result->end_of_file};
}

MetadataResult<MdsWritten> SessionChannel::write(const FileReference& file, const nfs4::Stateid& stateid,
                                                 uint64_t offset, ByteSpan source) {
  nfs4::WriteArguments arguments;
  arguments.stateid = stateid;
  arguments.offset = offset;
  arguments.stable = nfs4::StableHow::kUnstable;
  arguments.data = nfs4::Data::view_of(source);  // encoded straight from the request buffer
  const SteadyTime asked_at = steady_now();
  const auto reply =
      session_.call(and_attributes(on_file(file, std::move(arguments))), file.credential, kIdempotent);
  TRY_ASSIGN(const nfs4::WriteResult* result, last_result<nfs4::WriteResponse>(reply, 1));
  if (result->count > source.size()) return std::unexpected(MetadataError{nfs4::Status::kOk, EPROTO});
  take_attributes(file.handle, reply, 2, asked_at);
  return MdsWritten{result->count, result->committed != nfs4::StableHow::kUnstable, result->verifier};
}

MetadataResult<WriteVerifier> SessionChannel::commit(const FileReference& file, uint64_t offset,
                                                     uint64_t length) {
  // Count 0 is "to the end of the file": for what does not fit 32 bits.
  const nfs4::CommitArguments arguments{offset, length > UINT32_MAX ? 0 : static_cast<uint32_t>(length)};
  const auto reply = session_.call(on_file(file, arguments), file.credential, kIdempotent);
  TRY_ASSIGN(const nfs4::CommitResult* result, last_result<nfs4::CommitResponse>(reply, 1));
  return result->verifier;
}

}  // namespace pnfsrdma::initiator
