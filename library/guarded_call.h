// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>

#include "library/last_error.h"
#include "shared/base/result.h"

// What each C function does around its work: no exception leaves, and a forked child touches nothing of its parent's.
namespace pnfsrdma::library {

template <typename T>
int64_t number_of(const Result<T>& result) {
  if (!result) return failed(result.error());
  if constexpr (std::is_void_v<T>) {
    return 0;
  } else {
    return static_cast<int64_t>(*result);
  }
}

// What `call` returns as a number, or a negative errno.
template <typename Call>
int64_t without_exceptions(Call call) {
  try {
    return number_of(call());
  } catch (const std::bad_alloc&) {
    return failed({ENOMEM, "no memory"});
  } catch (const std::exception& error) {
    return failed({EIO, error.what()});
  }
}

// The same; `connection`: whose it is.
template <typename Connection, typename Call>
int64_t guarded(const Connection* connection, Call call) {
  if (connection == nullptr) return failed({EINVAL, "a null pointer"});
  if (!connection->is_ours())
    return failed({EPERM, "the connection belongs to the parent process; connect anew behind fork"});
  return without_exceptions(call);
}

inline int number(int64_t value) {
  return static_cast<int>(value);
}

}  // namespace pnfsrdma::library
