// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "shared/base/check.h"
#include "shared/xdr/types.h"

namespace pnfsrdma::xdr {

// One arm of a Union: `case Values: T`.
template <typename T, auto... Values>
struct Arm {
  using Type = T;
  template <typename Discriminant>
  static constexpr bool covers(Discriminant value) {
    return ((value == static_cast<Discriminant>(Values)) || ...);
  }
  template <typename Discriminant>
  static constexpr Discriminant first() {
    Discriminant all[] = {static_cast<Discriminant>(Values)...};
    return all[0];
  }
  static constexpr size_t kValues = sizeof...(Values);
  template <typename Discriminant>
  static constexpr Discriminant value(size_t index) {
    Discriminant all[] = {static_cast<Discriminant>(Values)...};
    return all[index];
  }
};

// `default: T`. Comes last.
template <typename T>
struct Default {
  using Type = T;
  template <typename Discriminant>
  static constexpr bool covers(Discriminant) {
    return true;
  }
  static constexpr size_t kValues = 0;
};

// A discriminated union (RFC 4506, 4.15):
//
//   using OpenHow = Union<OpenType, Arm<Void, OpenType::kNoCreate>, Arm<CreateHow, OpenType::kCreate>>;
//   how = OpenHow::make<OpenType::kCreate>(create);        how.discriminant()
//   if (const CreateHow* create = how.get_if<OpenType::kCreate>()) …
//
// Without a Default, decoding refuses a value that no arm covers. Starts as the first arm's first value.
template <typename D, typename FirstArm, typename... Arms>
class Union {
 public:
  using Discriminant = D;
  static constexpr bool kIsUnion = true;
  static constexpr size_t kArms = 1 + sizeof...(Arms);
  using Storage = std::variant<typename FirstArm::Type, typename Arms::Type...>;
  template <size_t Index>
  using ArmAt = std::tuple_element_t<Index, std::tuple<FirstArm, Arms...>>;

  // The index of the arm that covers `value`; kArms if none does.
  static constexpr size_t arm_of(D value) {
    const bool covered[] = {FirstArm::covers(value), Arms::covers(value)...};
    for (size_t index = 0; index < kArms; ++index) {
      if (covered[index]) return index;
    }
    return kArms;
  }
  template <D Value>
  using TypeOf = typename ArmAt<arm_of(Value)>::Type;

  Union() : discriminant_(FirstArm::template first<D>()) {}

  // The arm of a value known at compile time.
  template <D Value>
  static Union make(TypeOf<Value> body = {}) {
    Union made;
    made.discriminant_ = Value;
    made.storage_.template emplace<arm_of(Value)>(std::move(body));
    return made;
  }
  // The arm of a value known at run time, with an empty body. `value` must be covered.
  static Union of(D value) {
    Union made;
    made.select(value);
    return made;
  }
  void select(D value) { select_from<0>(value); }

  D discriminant() const { return discriminant_; }
  template <D Value>
  bool is() const {
    return discriminant_ == Value;
  }
  // The body if the discriminant is Value, else null.
  template <D Value>
  const TypeOf<Value>* get_if() const {
    return discriminant_ == Value ? std::get_if<arm_of(Value)>(&storage_) : nullptr;
  }
  template <D Value>
  TypeOf<Value>* get_if() {
    return discriminant_ == Value ? std::get_if<arm_of(Value)>(&storage_) : nullptr;
  }

  // Calls `visitor` with the body, whichever arm it is of.
  template <typename Visitor>
  decltype(auto) visit(Visitor&& visitor) const {
    return std::visit(std::forward<Visitor>(visitor), storage_);
  }
  template <typename Visitor>
  decltype(auto) visit(Visitor&& visitor) {
    return std::visit(std::forward<Visitor>(visitor), storage_);
  }
  size_t arm() const { return storage_.index(); }

 private:
  template <size_t Index>
  void select_from(D value) {
    if constexpr (Index == kArms) {
      CHECK(!"a discriminant without an arm");
    } else if (ArmAt<Index>::covers(value)) {
      discriminant_ = value;
      storage_.template emplace<Index>();
    } else {
      select_from<Index + 1>(value);
    }
  }

  D discriminant_;
  Storage storage_;
};

}  // namespace pnfsrdma::xdr
