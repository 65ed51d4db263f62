// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/compound.h"
#include "tests/values/random_value.h"

// Random values of the types that have codecs of their own (see tests/values/random_value.h), and of
// operations. For tests and fuzz seeds; compiles the codecs of every operation it is used with.
namespace pnfsrdma::nfs4 {

// A few attributes, not all: an all-or-nothing fattr4 would test little of the bitmap.
inline void xdr_random(Random& random, Attributes& attributes) {
  attributes = Attributes();
#define PNFSRDMA_ATTRIBUTE(number, enumerator, member, type) \
  if (random.next_u32() % 6 == 0) xdr::randomize(random, attributes.member.emplace());
  PNFSRDMA_NFS4_ATTRIBUTES(PNFSRDMA_ATTRIBUTE)
#undef PNFSRDMA_ATTRIBUTE
}

// kOk half of the time; of the errors, the one with a body often.
template <typename R, Status S, typename F>
void xdr_random(Random& random, Response<R, S, F>& response) {
  response = Response<R, S, F>();
  const uint32_t kind = random.next_u32() % 4;
  if (kind < 2) {
    xdr::randomize(random, response.result);
  } else if (kind == 2 && S != Status::kOk && S != kEveryError) {
    response.status = S;
  } else {
    xdr::randomize(random, response.status);
    if (response.ok()) xdr::randomize(random, response.result);
  }
  if (response.has_failure_body(response.status)) xdr::randomize(random, response.failure);
}

// Any operation of the variant with random contents.
template <typename... Types>
void randomize_operation(Random& random, std::variant<Types...>& operation) {
  using Fill = void (*)(Random&, std::variant<Types...>&);
  static constexpr Fill kFillers[] = {[](Random& from, std::variant<Types...>& to) {
    xdr::randomize(from, to.template emplace<Types>());
  }...};
  kFillers[random.next_u32() % sizeof...(Types)](random, operation);
}

}  // namespace pnfsrdma::nfs4
