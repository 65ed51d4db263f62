// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/brick/recall_ignorer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "shared/rpc/universal_address.h"
#include "tests/bench/brick/device.h"
#include "tests/bench/brick/orders.h"

namespace pnfsrdma::bench {
namespace {

constexpr uint64_t kLength = uint64_t{256} << 10;
constexpr uint32_t kPiece = 4096;

template <typename T>
Result<T> known(initiator::MetadataResult<T> answer, const char* what) {
  if (answer) return *std::move(answer);
  return fail(answer.error().to_errno(), what);
}

}  // namespace

initiator::CallbackAnswer RecallIgnorer::layout_recall(const nfs4::CallbackLayoutRecallArguments&) {
  int64_t never = 0;
  recalled_ns_.compare_exchange_strong(never, now_ns());
  return {};  // NFS4_OK, and nothing follows
}

Result<> RecallIgnorer::open_session() {
  const size_t colon = mds_.rfind(':');
  initiator::SessionOptions options{.host = mds_.substr(0, colon),
                                    .port = static_cast<uint16_t>(std::stoul(mds_.substr(colon + 1))),
                                    .owner = "recall-ignorer-" + std::to_string(::getpid())};
  TRY_ASSIGN(session_, initiator::Session::start(options, this, nullptr));
  return {};
}

Result<> RecallIgnorer::open_file() {
  nfs4::OpenArguments open{.share_access = nfs4::kShareAccessBoth | nfs4::kShareAccessWantNoDelegation};
  open.owner.owner = nfs4::OwnerId(as_bytes("recall-ignorer"));
  nfs4::Attributes attributes;
  attributes.mode = 0600;
  open.how = nfs4::OpenHow::make<nfs4::OpenType::kCreate>(
      nfs4::CreateHow::make<nfs4::CreateMode::kUnchecked>(std::move(attributes)));
  open.claim = nfs4::OpenClaim::make<nfs4::ClaimType::kNull>(file_);
  TRY_ASSIGN(const auto reply, session_->call({nfs4::PutRootFileHandleArguments{}, std::move(open),
                                               nfs4::GetFileHandleArguments{}},
                                              {}, {.cache_reply = true}));
  const auto* opened = reply.result<nfs4::OpenResponse>(1);
  const auto* handle = reply.result<nfs4::GetFileHandleResponse>(2);
  if (opened == nullptr || handle == nullptr) return fail(EIO, "OPEN of " + file_);
  open_.handle = handle->object;
  stateid_ = opened->stateid;
  return {};
}

Result<nfs4::Segment> RecallIgnorer::take_layout() {
  initiator::SessionMds mds(*session_);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (;;) {
    auto granted = mds.layout_get(open_, {.layout_type = nfs4::kLayoutTypePmem,
                                          .io_mode = nfs4::IoMode::kReadWrite,
                                          .length = kLength,
                                          .min_length = kLength,
                                          .stateid = stateid_,
                                          .max_count = initiator::kLayoutReplyBytesMax});
    if (granted) {
      const auto body = initiator::pmem_body(granted->layouts.layouts.at(0));
      if (!body || body->segments.empty() || body->segments[0].write.grant == 0)
        return fail(EPROTO, "no writable segment");
      return body->segments[0];
    }
    // The brick is zeroing blocks, or is not there yet.
    if (std::chrono::steady_clock::now() > end) return fail(granted.error().to_errno(), "LAYOUTGET");
    ::usleep(50000);
  }
}

Result<brick::Grant> RecallIgnorer::connect(const nfs4::Segment& segment) {
  initiator::SessionMds mds(*session_);
  TRY_ASSIGN(const nfs4::DeviceAddress device, known(mds.get_device_info(segment.device), "GETDEVICEINFO"));
  const std::string wanted = transport_.name() == "verbs" ? "rdma" : "tcp";
  for (const nfs4::DevicePath& path : device.paths) {
    if (path.netid != wanted) continue;
    TRY_ASSIGN(const auto address, rpc::from_universal_address(path.address));
    TRY_ASSIGN(client_, brick::TestClient::connect(transport_, address.to_string(), device.ticket));
    const auto hello = client_->hello();
    if (!hello) return fail(EPROTO, "the brick does not answer the hello");
    for (const brick::HelloGrant& live : hello->grants) {
      if (live.grant != segment.write.grant) continue;
      return brick::Grant{live.grant, 0, segment.length, true, live.handle, live.address};
    }
    return fail(ENOENT, "the grant is not among the live ones");
  }
  return fail(EHOSTUNREACH, "the brick has no path for " + transport_.name());
}

Result<RecallIgnorer::Moments> RecallIgnorer::write_until_refused(const brick::Grant& grant) {
  Moments moments;
  const auto end = std::chrono::steady_clock::now() + 3 * session_->lease();
  for (uint64_t number = 0; std::chrono::steady_clock::now() < end; ++number) {
    const int64_t posted = now_ns();
    const rdma::Outcome outcome = client_->write(grant, number % (kLength / kPiece) * kPiece, kPiece);
    if (outcome != rdma::Outcome::kSuccess) {
      moments.refused_ns = now_ns();
      moments.recalled_ns = recalled_ns_;
      return moments;
    }
    moments.last_success_posted_ns = posted;
    if (number == 0) say(STDOUT_FILENO, "writing");
  }
  return fail(ETIMEDOUT, "still not refused after three leases");
}

Result<RecallIgnorer::Moments> RecallIgnorer::run() {
  TRY(open_session());
  TRY(open_file());
  TRY_ASSIGN(const nfs4::Segment segment, take_layout());
  TRY_ASSIGN(const brick::Grant grant, connect(segment));
  return write_until_refused(grant);
}

}  // namespace pnfsrdma::bench
