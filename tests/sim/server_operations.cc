// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shared/base/sync.h"
#include "tests/sim/model_server.h"

// What the operations of a COMPOUND do: most is ModelMds'.
namespace pnfsrdma::sim {

namespace {

constexpr uint32_t kLeaseSeconds = 1;

template <typename Response, typename Result>
Response response_of(MetadataResult<Result> result) {
  if (!result) return Response(result.error().status);
  return Response(*std::move(result));
}

}  // namespace

nfs4::ResultOperation ModelServer::answer(Compound& compound, const nfs4::ArgumentOperation& operation) {
  if (const auto status = not_now(operation))
    return nfs4::status_result(nfs4::operation_of(operation), *status);
  if (const auto* put = std::get_if<nfs4::PutFileHandleArguments>(&operation)) {
    compound.file = &mds_.file(put->object);
  } else if (std::holds_alternative<nfs4::GetAttributesArguments>(operation)) {
    return nfs4::GetAttributesResponse(attributes(compound));
  } else if (const auto* device = std::get_if<nfs4::GetDeviceInfoArguments>(&operation)) {
    const auto address = mds_.get_device_info(compound.client, device->device);
    if (!address) return nfs4::GetDeviceInfoResponse(address.error().status);
    nfs4::GetDeviceInfoResult result;
    result.device_address = {nfs4::kLayoutTypePmem, xdr::encode_to_bytes(*address)};
    return nfs4::GetDeviceInfoResponse(std::move(result));
  } else if (const auto* read_wish = std::get_if<nfs4::ReadArguments>(&operation)) {
    return read(compound, *read_wish);
  } else if (const auto* stateids = std::get_if<nfs4::TestStateidArguments>(&operation)) {
    return nfs4::TestStateidResponse(test(compound.client, *stateids));
  } else if (const auto* freed = std::get_if<nfs4::FreeStateidArguments>(&operation)) {
    mds_.free_stateid(compound.client, freed->stateid);
  } else if (const auto* given_back = std::get_if<nfs4::LayoutReturnArguments>(&operation);
             given_back != nullptr && !given_back->what.is<nfs4::LayoutReturnType::kFile>()) {
    mds_.layout_return_all(compound.client);
  } else if (compound.file != nullptr) {
    return answer_on_file(compound, operation);
  }
  return nfs4::status_result(nfs4::operation_of(operation), Status::kOk);
}

nfs4::ResultOperation ModelServer::answer_on_file(const Compound& compound,
                                                  const nfs4::ArgumentOperation& operation) {
  ModelMds::File& file = *compound.file;
  const size_t client = compound.client;
  if (const auto* wish = std::get_if<nfs4::LayoutGetArguments>(&operation)) {
    if (const auto status = ordered(client, Call::kLayoutGet, file)) return nfs4::LayoutGetResponse(*status);
    auto answer = mds_.layout_get(client, file, *wish);
    if (!answer) return nfs4::LayoutGetResponse(answer.error().status);
    return nfs4::LayoutGetResponse(std::move(answer->layouts));
  }
  if (const auto* given_back = std::get_if<nfs4::LayoutReturnArguments>(&operation)) {
    return response_of<nfs4::LayoutReturnResponse>(mds_.layout_return(
        client, file, given_back->io_mode, *given_back->what.get_if<nfs4::LayoutReturnType::kFile>()));
  }
  wait_for_brick(file);
  if (const auto* told = std::get_if<nfs4::LayoutCommitArguments>(&operation)) {
    if (const auto status = ordered(client, Call::kLayoutCommit, file))
      return nfs4::LayoutCommitResponse(*status);
    return response_of<nfs4::LayoutCommitResponse>(mds_.layout_commit(client, file, *told));
  }
  if (const auto* written = std::get_if<nfs4::WriteArguments>(&operation)) {
    if (const auto status = ordered(client, Call::kWrite, file)) return nfs4::WriteResponse(*status);
    return response_of<nfs4::WriteResponse>(
        mds_.write(client, file, written->offset, written->data.span(), written->stable));
  }
  if (const auto* range = std::get_if<nfs4::CommitArguments>(&operation)) {
    if (const auto status = ordered(client, Call::kCommit, file)) return nfs4::CommitResponse(*status);
    const auto verifier = mds_.commit(file, range->offset, range->count);
    if (!verifier) return nfs4::CommitResponse(verifier.error().status);
    return nfs4::CommitResponse(nfs4::CommitResult{*verifier});
  }
  if (const auto* wanted = std::get_if<nfs4::SetAttributesArguments>(&operation))
    return set_attributes(compound, *wanted);
  return nfs4::status_result(nfs4::operation_of(operation), Status::kNotSupp);
}

// A grace period, or a server that has no time.
std::optional<Status> ModelServer::not_now(const nfs4::ArgumentOperation& operation) {
  switch (nfs4::operation_of(operation)) {
    case nfs4::Operation::kLayoutGet:
    case nfs4::Operation::kRead:
    case nfs4::Operation::kWrite:
    case nfs4::Operation::kSetAttributes:
      if (steady_now() < grace_end_) return Status::kGrace;
      [[fallthrough]];
    case nfs4::Operation::kCommit:
    case nfs4::Operation::kLayoutCommit:
    case nfs4::Operation::kLayoutReturn:
      return dice_.one_in(100) ? std::optional(Status::kDelay) : std::nullopt;
    default:
      return std::nullopt;
  }
}

nfs4::GetAttributesResult ModelServer::attributes(const Compound& compound) const {
  nfs4::GetAttributesResult result;
  if (compound.file != nullptr) {
    result.attributes.size = compound.file->size;
  } else {
    result.attributes.lease_time = kLeaseSeconds;
  }
  return result;
}

nfs4::SetAttributesResponse ModelServer::set_attributes(const Compound& compound,
                                                        const nfs4::SetAttributesArguments& wanted) {
  if (const auto status = ordered(compound.client, Call::kSetSize, *compound.file)) return *status;
  const auto done = mds_.set_size(*compound.file, wanted.attributes.size.value());
  return done ? Status::kOk : done.error().status;
}

nfs4::ReadResponse ModelServer::read(Compound& compound, const nfs4::ReadArguments& wanted) {
  wait_for_brick(*compound.file);
  compound.data.resize(wanted.count);
  return response_of<nfs4::ReadResponse>(mds_.read(*compound.file, wanted.offset, compound.data));
}

nfs4::TestStateidResult ModelServer::test(size_t client, const nfs4::TestStateidArguments& wanted) {
  nfs4::TestStateidResult result;
  for (const nfs4::Stateid& stateid : wanted.stateids)
    result.statuses.push_back(mds_.test_stateid(client, stateid));
  return result;
}

std::optional<Status> ModelServer::ordered(size_t client, Call call, const ModelMds::File& file) {
  const auto found = std::find_if(ordered_.begin(), ordered_.end(), [&](const Order& order) {
    return order.client == client && order.call == call;
  });
  if (found == ordered_.end()) return std::nullopt;
  const Status status = found->status;
  ordered_.erase(found);
  on_error(client, call, file.number);
  return status;
}

void ModelServer::wait_for_brick(const ModelMds::File& file) {
  while (!mds_.bricks()[file.brick]->up()) (void)changed.wait(SteadyTime::max(), "the brick, at the MDS");
}

}  // namespace pnfsrdma::sim
