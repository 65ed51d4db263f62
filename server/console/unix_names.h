// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "shared/base/clock.h"
#include "shared/base/guarded.h"
#include "shared/base/result.h"

namespace pnfsrdma::console {

// The names of users and groups, as the host's name service has them (nsswitch.conf(5): files, LDAP). It may take
// seconds to answer: only for the console's own threads, never for the loop. Thread-safe.
class UnixNames {
 public:
  enum class Kind : uint8_t { kUser, kGroup };
  static constexpr Milliseconds kFresh{60'000};    // how long a name is kept, and that there is none
  static constexpr Milliseconds kSilence{10'000};  // how long a name service that has failed is not asked
  static constexpr size_t kNamesMax = 16'384;

  // None: nobody has that number. Errors: those of getpwuid_r(3).
  using Ask = std::function<Result<std::optional<std::string>>(Kind kind, uint32_t id)>;
  explicit UnixNames(const Clock& clock);
  UnixNames(const Clock& clock, Ask ask) : clock_(clock), ask_(std::move(ask)) {}

  // None: nobody has that number, or the name service fails: a name is only for the reader.
  std::optional<std::string> name_of(Kind kind, uint32_t id);
  // ENOENT: nobody is called so. EAGAIN: the name service fails.
  static Result<uint32_t> id_of(Kind kind, const std::string& name);

 private:
  struct Known {
    SteadyTime since;
    std::optional<std::string> name;
  };
  struct State {
    std::map<std::pair<Kind, uint32_t>, Known> names;
    SteadyTime silent_until;
  };

  const Clock& clock_;
  const Ask ask_;
  Guarded<State> state_;
};

}  // namespace pnfsrdma::console
