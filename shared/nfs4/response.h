// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <utility>

#include "shared/nfs4/status.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::nfs4 {

// As FailureStatus of a Response: the failure body goes with every status but kOk (SETATTR's attrsset).
inline constexpr Status kEveryError = static_cast<Status>(UINT32_MAX - 1);

// What an operation answers (the RFC's XXX4res): a status; with kOk a result; with FailureStatus a body of
// its own. A handler returns its Result, a Status, or (TRY) the error of a std::expected:
//
//   CloseResponse close(Compound& compound, const CloseArguments& arguments) {
//     TRY_ASSIGN(Open& open, opens.find(arguments.open_stateid));
//     return CloseResult{…};
//   }
//
// Result types have every operation's own name, so no two Responses are the same type.
template <typename ResultType, Status FailureStatus = Status::kOk, typename FailureType = xdr::Void>
struct Response {
  using Result = ResultType;
  using Failure = FailureType;
  static constexpr Status kFailureStatus = FailureStatus;

  Status status = Status::kOk;
  Result result{};
  Failure failure{};

  Response() = default;
  Response(Result ok) : result(std::move(ok)) {}  // NOLINT(google-explicit-constructor)
  // An error, or kOk with an empty result.
  Response(Status outcome) : status(outcome) {}  // NOLINT(google-explicit-constructor)
  Response(std::unexpected<Status> error)        // NOLINT(google-explicit-constructor)
      : status(error.error()) {}
  Response(std::expected<Result, Status> outcome) {  // NOLINT(google-explicit-constructor)
    if (outcome) {
      result = *std::move(outcome);
    } else {
      status = outcome.error();
    }
  }
  // The error that carries a body.
  static Response failed(Failure body, Status error = FailureStatus) {
    Response response(error);
    response.failure = std::move(body);
    return response;
  }

  bool ok() const { return status == Status::kOk; }
  static constexpr bool has_failure_body(Status status) {
    if constexpr (FailureStatus == Status::kOk) {
      return false;
    } else {
      return status != Status::kOk && (FailureStatus == kEveryError || status == FailureStatus);
    }
  }
};

template <typename R, Status S, typename F>
void xdr_encode(xdr::Encoder& encoder, const Response<R, S, F>& response) {
  xdr::encode(encoder, response.status);
  if (response.ok()) {
    xdr::encode(encoder, response.result);
  } else if (response.has_failure_body(response.status)) {
    xdr::encode(encoder, response.failure);
  }
}

template <typename R, Status S, typename F>
bool xdr_decode(xdr::Decoder& decoder, Response<R, S, F>& response) {
  if (!xdr::decode(decoder, response.status)) return false;
  if (response.ok()) return xdr::decode(decoder, response.result);
  return !response.has_failure_body(response.status) || xdr::decode(decoder, response.failure);
}

}  // namespace pnfsrdma::nfs4
