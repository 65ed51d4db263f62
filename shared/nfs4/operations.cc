// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/operations.h"

#include <memory>
#include <utility>

// The special members of the two big variants, compiled here and nowhere else. Assignment is by destruction
// and construction: that of std::variant costs the compiler more than all the rest of this folder.
namespace pnfsrdma::nfs4 {
namespace {

template <typename Operation>
Operation& replace(Operation& target, Operation&& source) noexcept {
  if (&target != &source) {
    std::destroy_at(&target);
    std::construct_at(&target, std::move(source));
  }
  return target;
}

}  // namespace

ArgumentOperation::ArgumentOperation() = default;
ArgumentOperation::ArgumentOperation(const ArgumentOperation&) = default;
ArgumentOperation::ArgumentOperation(ArgumentOperation&&) noexcept = default;
ArgumentOperation& ArgumentOperation::operator=(const ArgumentOperation& other) {
  return replace(*this, ArgumentOperation(other));
}
ArgumentOperation& ArgumentOperation::operator=(ArgumentOperation&& other) noexcept {
  return replace(*this, std::move(other));
}
ArgumentOperation::~ArgumentOperation() = default;

ResultOperation::ResultOperation() = default;
ResultOperation::ResultOperation(const ResultOperation&) = default;
ResultOperation::ResultOperation(ResultOperation&&) noexcept = default;
ResultOperation& ResultOperation::operator=(const ResultOperation& other) {
  return replace(*this, ResultOperation(other));
}
ResultOperation& ResultOperation::operator=(ResultOperation&& other) noexcept {
  return replace(*this, std::move(other));
}
ResultOperation::~ResultOperation() = default;

Status status_of(const ResultOperation& result) {
  return std::visit([](const auto& response) { return response.status; }, result);
}

Status status_of(const CallbackResultOperation& result) {
  return std::visit([](const auto& response) { return response.status; }, result);
}

}  // namespace pnfsrdma::nfs4
