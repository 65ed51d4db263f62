// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace pnfsrdma {

// A failure of the environment: the errno and what was being attempted, as a sentence a user can act on.
class Error {
 public:
  // `number` is a positive errno; `what` names the call or the cause, e.g. "open /srv/pool.img".
  Error(int number, std::string what) : number_(number), what_(std::move(what)) {}

  // The calling thread's errno. Call it directly behind the failing system call.
  static Error from_errno(std::string what);

  int number() const { return number_; }
  const std::string& what() const { return what_; }
  // "open /srv/pool.img: No such file or directory"
  std::string to_string() const;
  // The same error with a prefix: "opening the pool: open /srv/pool.img: …"
  Error in(std::string_view where) const;

 private:
  int number_;
  std::string what_;
};

template <typename T = void>
using Result = std::expected<T, Error>;

// fail(EINVAL, "…") where a Result is returned.
inline std::unexpected<Error> fail(int number, std::string what) {
  return std::unexpected<Error>(Error(number, std::move(what)));
}

}  // namespace pnfsrdma

// TRY(expression): returns the error of a std::expected to the caller; else the statement has no value.
// TRY_ASSIGN(declaration, expression): the same, and the value moves into the declaration.
// Works for any std::expected whose error type converts to the caller's.
#define PNFSRDMA_JOIN2(a, b) a##b
#define PNFSRDMA_JOIN(a, b) PNFSRDMA_JOIN2(a, b)
#define TRY(expression)                                                     \
  do {                                                                      \
    auto&& try_result = (expression);                                       \
    if (!try_result) return std::unexpected(std::move(try_result).error()); \
  } while (false)
#define TRY_ASSIGN(declaration, expression) \
  PNFSRDMA_TRY_ASSIGN(PNFSRDMA_JOIN(try_value_, __LINE__), declaration, expression)
#define PNFSRDMA_TRY_ASSIGN(value, declaration, expression)     \
  auto&& value = (expression);                                  \
  if (!value) return std::unexpected(std::move(value).error()); \
  declaration = *std::move(value)
