// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace pnfsrdma {

// A callback that does nothing once the object it belongs to has ended: Lifetime::guard().
template <typename Callback>
class GuardedCallback {
 public:
  GuardedCallback(std::weak_ptr<const void> token, Callback callback)
      : token_(std::move(token)), callback_(std::move(callback)) {}

  template <typename... Arguments>
  void operator()(Arguments&&... arguments) {
    if (!token_.expired()) callback_(std::forward<Arguments>(arguments)...);
  }
  template <typename... Arguments>
  void operator()(Arguments&&... arguments) const {
    if (!token_.expired()) callback_(std::forward<Arguments>(arguments)...);
  }

 private:
  std::weak_ptr<const void> token_;
  Callback callback_;
};

// A member of an object whose callbacks may come after its end: they are wrapped by guard() and then do nothing.
// Callbacks and the object belong to one thread: between the look and the call nobody ends it.
class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  // Before the destructor of the owner runs into members that call back.
  void end() { token_.reset(); }

  template <typename Callback>
  GuardedCallback<Callback> guard(Callback callback) const {
    return {token(), std::move(callback)};
  }

  // For what must also know whether the owner is there.
  std::weak_ptr<const void> token() const { return token_; }

 private:
  std::shared_ptr<const char> token_ = std::make_shared<const char>();
};

}  // namespace pnfsrdma
