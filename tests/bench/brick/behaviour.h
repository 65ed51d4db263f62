// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace pnfsrdma::bench {

// How a client behaves while the brick takes its grant away. All of them keep WRITEs in flight until then.
enum class Behaviour {
  kHealthy,      // stops at the first refusal
  kIgnores,      // hears nothing and stops at nothing: connects again and writes again, for ever
  kNoReceives,   // posts no receives: nothing that must be sent to it gets through
  kBroken,       // reaches out of bounds just before: its queue pair is in error
  kStopped,      // SIGSTOP with its WRITEs posted, SIGCONT after the quarantine
  kInvalidates,  // sends SEND with Invalidate, of its own key and of other clients'
};

struct NamedBehaviour {
  Behaviour behaviour;
  const char* name;
};
inline constexpr std::array kBehaviours{NamedBehaviour{Behaviour::kHealthy, "healthy"},
                                        NamedBehaviour{Behaviour::kIgnores, "ignores"},
                                        NamedBehaviour{Behaviour::kNoReceives, "no-receives"},
                                        NamedBehaviour{Behaviour::kBroken, "broken"},
                                        NamedBehaviour{Behaviour::kStopped, "stopped"},
                                        NamedBehaviour{Behaviour::kInvalidates, "invalidates"}};

constexpr const char* to_string(Behaviour behaviour) {
  for (const NamedBehaviour& entry : kBehaviours) {
    if (entry.behaviour == behaviour) return entry.name;
  }
  return "?";
}
constexpr std::optional<Behaviour> behaviour_of(std::string_view name) {
  for (const NamedBehaviour& entry : kBehaviours) {
    if (entry.name == name) return entry.behaviour;
  }
  return std::nullopt;
}

}  // namespace pnfsrdma::bench
