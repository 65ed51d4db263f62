// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/operations.h"

// The special members of the two big variants, compiled here and nowhere else.
namespace pnfsrdma::nfs4 {

ArgumentOperation::ArgumentOperation() = default;
ArgumentOperation::ArgumentOperation(const ArgumentOperation&) = default;
ArgumentOperation::ArgumentOperation(ArgumentOperation&&) noexcept = default;
ArgumentOperation& ArgumentOperation::operator=(const ArgumentOperation&) = default;
ArgumentOperation& ArgumentOperation::operator=(ArgumentOperation&&) noexcept = default;
ArgumentOperation::~ArgumentOperation() = default;

ResultOperation::ResultOperation() = default;
ResultOperation::ResultOperation(const ResultOperation&) = default;
ResultOperation::ResultOperation(ResultOperation&&) noexcept = default;
ResultOperation& ResultOperation::operator=(const ResultOperation&) = default;
ResultOperation& ResultOperation::operator=(ResultOperation&&) noexcept = default;
ResultOperation::~ResultOperation() = default;

Status status_of(const ResultOperation& result) {
  return std::visit([](const auto& response) { return response.status; }, result);
}

Status status_of(const CallbackResultOperation& result) {
  return std::visit([](const auto& response) { return response.status; }, result);
}

}  // namespace pnfsrdma::nfs4
