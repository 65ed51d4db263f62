// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/session_mds.h"

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
// Nobody misses it.
constexpr CallOptions kHint{.return_delay = true};
constexpr size_t kReportsMax = 16;
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

// The size as it is then: LAYOUTCOMMIT tells it only where it has changed it, the GETATTR behind it always.
MetadataResult<nfs4::LayoutCommitResult> commit_result(const Result<CompoundReply>& reply) {
  TRY_ASSIGN(const nfs4::LayoutCommitResult* result, last_result<nfs4::LayoutCommitResponse>(reply, 1));
  const auto* after = reply->result<nfs4::GetAttributesResponse>(2);
  if (after != nullptr && after->attributes.size) return nfs4::LayoutCommitResult{after->attributes.size};
  return *result;
}

// It tells a time or a size, which moves the file's change attribute.
bool changes_file(const nfs4::LayoutCommitArguments& arguments) {
  return arguments.time_modify || arguments.last_write_offset;
}

}  // namespace

MetadataResult<nfs4::DeviceAddress> SessionMds::get_device_info(const nfs4::DeviceId& device) {
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

MetadataResult<LayoutGetAnswer> SessionMds::layout_get(const FileReference& file,
                                                       const nfs4::LayoutGetArguments& arguments) {
  Session::Operations operations = on_file(file, arguments);
  operations.emplace_back(nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kSize)});
  const auto reply = session_.call(std::move(operations), file.credential, kAtOnce);
  TRY_ASSIGN(const nfs4::LayoutGetResult* result, last_result<nfs4::LayoutGetResponse>(reply, 1));
  LayoutGetAnswer answer{.layouts = *result};
  const auto* attributes = reply->result<nfs4::GetAttributesResponse>(2);
  if (attributes != nullptr) answer.size = attributes->attributes.size;
  return answer;
}

MetadataResult<nfs4::LayoutCommitResult> SessionMds::layout_commit(
    const FileReference& file, const nfs4::LayoutCommitArguments& arguments) {
  const SteadyTime asked_at = steady_now();
  const auto reply = session_.call(and_attributes(on_file(file, arguments)), file.credential, kReserved);
  take_attributes(file.handle, reply, 2, asked_at, changes_file(arguments));
  return commit_result(reply);
}

Session::Operations SessionMds::and_attributes(Session::Operations operations) const {
  if (attributes_known_) operations.emplace_back(nfs4::GetAttributesArguments{attributes_wanted_});
  return operations;
}

void SessionMds::take_attributes(const nfs4::FileHandle& file, const Result<CompoundReply>& reply, size_t at,
                                 SteadyTime asked_at, bool changed) const {
  if (!reply) return;
  const auto* result = reply->result<nfs4::GetAttributesResponse>(at);
  if (result != nullptr && attributes_known_) attributes_known_(file, result->attributes, asked_at, changed);
}

void SessionMds::start_layout_commit(const FileReference& file, const nfs4::LayoutCommitArguments& arguments,
                                     std::function<void(MetadataResult<nfs4::LayoutCommitResult>)> done) {
  session_.post(and_attributes(on_file(file, arguments)), file.credential, kReserved,
                [this, done = std::move(done), handle = file.handle, changed = changes_file(arguments),
                 asked_at = steady_now()](const Result<CompoundReply>& reply) {
                  take_attributes(handle, reply, 2, asked_at, changed);
                  done(commit_result(reply));
                });
}

MetadataResult<nfs4::LayoutReturnResult> SessionMds::layout_return(
    const FileReference& file, const nfs4::LayoutReturnArguments& arguments,
    const nfs4::LayoutStatisticsArguments* activity) {
  Session::Operations operations;
  if (!arguments.what.is<nfs4::LayoutReturnType::kAll>())
    operations.emplace_back(nfs4::PutFileHandleArguments{file.handle});
  const bool tells = activity != nullptr && takes_statistics();
  if (tells) operations.emplace_back(*activity);
  operations.emplace_back(arguments);
  const size_t last = operations.size() - 1;
  const auto reply = session_.call(std::move(operations), file.credential, kReserved);
  if (tells && reply && reply->results.size() == last) {
    note_refusal(reply->status);
    return layout_return(file, arguments, nullptr);
  }
  TRY_ASSIGN(const nfs4::LayoutReturnResult* result, last_result<nfs4::LayoutReturnResponse>(reply, last));
  return *result;
}

MetadataResult<nfs4::Status> SessionMds::test_stateid(const nfs4::Stateid& stateid) {
  nfs4::TestStateidArguments arguments;
  arguments.stateids.push_back(stateid);
  const auto reply = session_.call({std::move(arguments)}, {}, kReserved);
  TRY_ASSIGN(const nfs4::TestStateidResult* result, last_result<nfs4::TestStateidResponse>(reply, 0));
  if (result->statuses.size() != 1) return std::unexpected(MetadataError{nfs4::Status::kOk, EPROTO});
  return result->statuses[0];
}

void SessionMds::start_layout_statistics(std::vector<LayoutReport> reports) {
  const size_t most = std::max<size_t>(1, std::min<size_t>(kReportsMax, (session_.operations_max() - 1) / 2));
  for (auto next = reports.begin(); next != reports.end() && takes_statistics();) {
    // A COMPOUND speaks in the name of one user.
    auto end = next;
    Session::Operations operations;
    for (; end != reports.end() && end - next < static_cast<ptrdiff_t>(most) &&
           end->file.credential == next->file.credential;
         ++end) {
      operations.emplace_back(nfs4::PutFileHandleArguments{end->file.handle});
      operations.emplace_back(end->activity);
    }
    std::vector<LayoutReport> told(std::make_move_iterator(next), std::make_move_iterator(end));
    const Credential credential = told.front().file.credential;
    session_.post(std::move(operations), credential, kHint,
                  [this, told = std::move(told)](const Result<CompoundReply>& reply) mutable {
                    take_told(std::move(told), reply);
                  });
    next = end;
  }
}

void SessionMds::take_told(std::vector<LayoutReport> told, const Result<CompoundReply>& reply) {
  if (!reply || reply->ok() || reply->results.empty()) return;
  note_refusal(reply->status);
  // A layout that was returned meanwhile, or a file that is gone. If it is the first one, others may be gone, too.
  const size_t gone = (reply->results.size() + 1) / 2;
  if (gone == 1) return;
  told.erase(told.begin(), told.begin() + static_cast<ptrdiff_t>(std::min(gone, told.size())));
  start_layout_statistics(std::move(told));
}

void SessionMds::note_refusal(nfs4::Status status) {
  if (status == nfs4::Status::kNotSupp || status == nfs4::Status::kOpIllegal ||
      status == nfs4::Status::kUnknownLayoutType)
    statistics_refused_ = true;
}

void SessionMds::start_layout_error(const FileReference& file, const nfs4::LayoutErrorArguments& arguments) {
  session_.post(on_file(file, arguments), file.credential, kIdempotent, {});
}

MetadataResult<nfs4::ReadResult> SessionMds::read(const FileReference& file, const nfs4::Stateid& stateid,
                                                  uint64_t offset, MutableByteSpan sink) {
  const nfs4::ReadArguments arguments{stateid, offset, static_cast<uint32_t>(sink.size())};
  const auto reply = session_.call(on_file(file, arguments), file.credential, kIdempotent);
  TRY_ASSIGN(const nfs4::ReadResult* result, last_result<nfs4::ReadResponse>(reply, 1));
  const ByteSpan data = result->data.span();
  if (data.size() > sink.size()) return std::unexpected(MetadataError{nfs4::Status::kOk, EPROTO});
  if (!data.empty()) std::memcpy(sink.data(), data.data(), data.size());
  return nfs4::ReadResult{result->end_of_file, nfs4::Data::view_of(sink.first(data.size()))};
}

MetadataResult<nfs4::WriteResult> SessionMds::write(const FileReference& file, const nfs4::Stateid& stateid,
                                                    uint64_t offset, ByteSpan source,
                                                    nfs4::StableHow stable) {
  nfs4::WriteArguments arguments;
  arguments.stateid = stateid;
  arguments.offset = offset;
  arguments.stable = stable;
  arguments.data = nfs4::Data::view_of(source);  // encoded straight from the request buffer
  const SteadyTime asked_at = steady_now();
  const auto reply =
      session_.call(and_attributes(on_file(file, std::move(arguments))), file.credential, kIdempotent);
  TRY_ASSIGN(const nfs4::WriteResult* result, last_result<nfs4::WriteResponse>(reply, 1));
  if (result->count > source.size() || result->committed < stable)
    return std::unexpected(MetadataError{nfs4::Status::kOk, EPROTO});
  take_attributes(file.handle, reply, 2, asked_at, true);
  return *result;
}

MetadataResult<WriteVerifier> SessionMds::commit(const FileReference& file,
                                                 const nfs4::CommitArguments& arguments) {
  const auto reply = session_.call(on_file(file, arguments), file.credential, kIdempotent);
  TRY_ASSIGN(const nfs4::CommitResult* result, last_result<nfs4::CommitResponse>(reply, 1));
  return result->verifier;
}

}  // namespace pnfsrdma::initiator
