// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "library/watch.h"
#include "shared/initiator/file/watch.h"

namespace pnfsrdma::library::session {

// A watch of this connection's own.
class SessionWatch final : public Watch {
 public:
  SessionWatch(OpenFile& file, const pnfsrdma_range& range, std::shared_ptr<initiator::Watch> watch)
      : Watch(file), range_(range), watch_(std::move(watch)) {}

  int fd() const override { return watch_->fd(); }

 private:
  Result<std::optional<pnfsrdma_event>> take() override;

  const pnfsrdma_range range_;
  const std::shared_ptr<initiator::Watch> watch_;
};

}  // namespace pnfsrdma::library::session
