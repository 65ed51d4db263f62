// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <variant>

#include "shared/nfs4/attribute_operations.h"
#include "shared/nfs4/callback_operations.h"
#include "shared/nfs4/delegation_operations.h"
#include "shared/nfs4/directory_operations.h"
#include "shared/nfs4/file_operations.h"
#include "shared/nfs4/handle_operations.h"
#include "shared/nfs4/lock_operations.h"
#include "shared/nfs4/minor2_operations.h"
#include "shared/nfs4/obsolete_operations.h"
#include "shared/nfs4/open_operations.h"
#include "shared/nfs4/operation_table.h"
#include "shared/nfs4/pnfs_operations.h"
#include "shared/nfs4/security_operations.h"
#include "shared/nfs4/session_operations.h"
#include "shared/nfs4/xattr_operations.h"

// The table of operations with its types: variants over all of them, and from each type to the others.
namespace pnfsrdma::nfs4 {

// std::variant of a pack whose first item is there only for the comma.
template <typename, typename... Types>
using VariantOf = std::variant<Types...>;

#define PNFSRDMA_OPERATION(Name, number, text, first, last) , Name##Arguments
using ArgumentVariant = VariantOf<void PNFSRDMA_NFS4_OPERATIONS(PNFSRDMA_OPERATION)>;
using CallbackArgumentOperation = VariantOf<void PNFSRDMA_NFS4_CALLBACKS(PNFSRDMA_OPERATION)>;
#undef PNFSRDMA_OPERATION
#define PNFSRDMA_OPERATION(Name, number, text, first, last) , Name##Response
using ResultVariant = VariantOf<void PNFSRDMA_NFS4_OPERATIONS(PNFSRDMA_OPERATION)>;
using CallbackResultOperation = VariantOf<void PNFSRDMA_NFS4_CALLBACKS(PNFSRDMA_OPERATION)>;
#undef PNFSRDMA_OPERATION

// A variant whose copies, moves and destruction are compiled once (operations.cc): for 70 types they
// cost the compiler half a minute wherever they are inlined. std::get, std::visit and their like work on it.
#define PNFSRDMA_OPERATION_VARIANT(Name, Variant) \
  struct Name : Variant {                         \
    using Base = Variant;                         \
    using Variant::Variant;                       \
    Name();                                       \
    Name(const Name&);                            \
    Name(Name&&) noexcept;                        \
    Name& operator=(const Name&);                 \
    Name& operator=(Name&&) noexcept;             \
    ~Name();                                      \
  }
// nfs_argop4
PNFSRDMA_OPERATION_VARIANT(ArgumentOperation, ArgumentVariant);
// nfs_resop4
PNFSRDMA_OPERATION_VARIANT(ResultOperation, ResultVariant);
#undef PNFSRDMA_OPERATION_VARIANT

namespace detail {

template <typename Arguments>
struct RowOf;
template <typename Response>
struct RowOfResponse;
#define PNFSRDMA_OPERATION(Name, number, text, first, last) \
  template <>                                               \
  struct RowOf<Name##Arguments> {                           \
    using Response = Name##Response;                        \
    static constexpr Enum kOperation = Enum::k##Name;       \
  };                                                        \
  template <>                                               \
  struct RowOfResponse<Name##Response> {                    \
    using Arguments = Name##Arguments;                      \
    static constexpr Enum kOperation = Enum::k##Name;       \
  };
#define Enum Operation
PNFSRDMA_NFS4_OPERATIONS(PNFSRDMA_OPERATION)
#undef Enum
#define Enum CallbackOperation
PNFSRDMA_NFS4_CALLBACKS(PNFSRDMA_OPERATION)
#undef Enum
#undef PNFSRDMA_OPERATION

}  // namespace detail

// ResponseTo<OpenArguments> is OpenResponse; works for callbacks too.
template <typename Arguments>
using ResponseTo = typename detail::RowOf<Arguments>::Response;
template <typename Response>
using ArgumentsOf = typename detail::RowOfResponse<Response>::Arguments;

// kOperationOf<OpenArguments> and kOperationOf<OpenResponse> are Operation::kOpen.
template <typename T>
inline constexpr auto kOperationOf = [] {
  if constexpr (requires { detail::RowOf<T>::kOperation; }) {
    return detail::RowOf<T>::kOperation;
  } else {
    return detail::RowOfResponse<T>::kOperation;
  }
}();

// Which operation a value of the variants is.
inline Operation operation_of(const ArgumentOperation& arguments) {
  return static_cast<Operation>(kOperationTable[arguments.index()].number);
}
inline Operation operation_of(const ResultOperation& result) {
  return static_cast<Operation>(kOperationTable[result.index()].number);
}
inline CallbackOperation operation_of(const CallbackArgumentOperation& arguments) {
  return static_cast<CallbackOperation>(kCallbackTable[arguments.index()].number);
}
inline CallbackOperation operation_of(const CallbackResultOperation& result) {
  return static_cast<CallbackOperation>(kCallbackTable[result.index()].number);
}

namespace detail {

template <typename Handler, typename Arguments, typename... Context>
concept HandlesOne = requires(Handler& handler, Context&... context, const Arguments& arguments) {
  { handler(context..., arguments) } -> std::convertible_to<ResponseTo<Arguments>>;
};
template <typename Handler, typename Variant, typename... Context>
inline constexpr bool kHandlesAll = false;
template <typename Handler, typename... Arguments, typename... Context>
inline constexpr bool kHandlesAll<Handler, std::variant<Arguments...>, Context...> =
    (HandlesOne<Handler, Arguments, Context...> && ...);

}  // namespace detail

// A handler has `XxxResponse operator()(Context&..., const XxxArguments&)` for every operation: an overload
// set, one function each. A server says static_assert(HandlesEveryOperation<Handlers, Compound>), and
//   std::visit([&](const auto& arguments) -> ResultOperation { return ResponseTo<…>(handlers(compound,
//   arguments)); }, …)
// does not compile when one is missing.
template <typename Handler, typename... Context>
concept HandlesEveryOperation = detail::kHandlesAll<Handler, ArgumentVariant, Context...>;
template <typename Handler, typename... Context>
concept HandlesEveryCallback = detail::kHandlesAll<Handler, CallbackArgumentOperation, Context...>;

// Runs the handler of `arguments` and wraps its answer.
template <typename Handler, typename... Context>
ResultOperation dispatch(Handler& handler, const ArgumentOperation& arguments, Context&... context) {
  return std::visit(
      [&]<typename Arguments>(const Arguments& each) {
        return ResultOperation(std::in_place_type<ResponseTo<Arguments>>, handler(context..., each));
      },
      arguments);
}
template <typename Handler, typename... Context>
CallbackResultOperation dispatch(Handler& handler, const CallbackArgumentOperation& arguments,
                                 Context&... context) {
  return std::visit(
      [&]<typename Arguments>(const Arguments& each) {
        return CallbackResultOperation(std::in_place_type<ResponseTo<Arguments>>, handler(context..., each));
      },
      arguments);
}

// The status of a result of any operation.
Status status_of(const ResultOperation& result);
Status status_of(const CallbackResultOperation& result);

// A result of `operation` (a number of its table) that is only a status.
ResultOperation status_result(Operation operation, Status status);
CallbackResultOperation status_result(CallbackOperation operation, Status status);

}  // namespace pnfsrdma::nfs4
