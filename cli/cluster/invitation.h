// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/cluster/certificates.h"
#include "cli/output/failure.h"
#include "shared/base/clock.h"

// How a host gets its certificates from a member: one that is invited shows a secret, once, over TLS whose authority it
// knows. The secret is in the memory of the program that invites and in the token, nowhere else.
namespace pnfsrdma::cli {

// What a host becomes.
enum class Guest {
  kServer,   // a member with a metadata server
  kWitness,  // a member without one
  kBrick     // no member: a host whose bricks are controlled by TLS
};

// Whom an administrator invites.
struct Invited {
  Guest guest = Guest::kServer;
  std::string address;  // of a host with bricks alone: its certificate is for no other one
};

// What an administrator carries from one host to the other.
struct InvitationToken {
  std::string door;       // "https://192.0.2.1:8444"
  std::string authority;  // fingerprint_of() its certificate
  std::string secret;
  Guest guest = Guest::kServer;

  std::string text() const;
  // kUsage: it is none.
  static Outcome<InvitationToken> parse(const std::string& text);
};

struct JoinRequest {
  std::string name;
  std::string address;
  std::vector<std::string> public_keys;
};
struct JoinAnswer {
  std::string authority_key;              // for a member with a metadata server
  std::vector<std::string> certificates;  // as the public keys
  // Of members:
  std::vector<std::string> endpoints;  // of etcd
  std::string prefix;                  // of the log's keys in etcd
};

// Both ask the member that invites, and block for some seconds. kUnreachable; kNotPermitted: it is somebody else, or
// the token is not (or no longer) what it knows; what that member refuses.
// Whom to trust: the certificate of the cluster's authority, PEM, that the token is of. Nothing secret is said.
Outcome<std::string> authority_of(const InvitationToken& token);
// `authority`: what authority_of() has said. It is on no disk yet: a host trusts it when it has its certificate.
Outcome<JoinAnswer> ask_to_join(const InvitationToken& token, const std::string& authority,
                                const JoinRequest& request);

struct Door {
  std::string address;
  uint16_t port = 0;        // 0: the kernel chooses
  std::string certificate;  // paths, of the member that invites
  std::string key;
};
// Serves one request with the secret of `token`, and no more, within `patience`. `opened` is called when hosts can
// come. `answer` makes the answer; what it refuses is told, and the door stays open. `authority`: its certificate. Who
// came. kFailed: nobody came in time, or the door cannot be opened.
Outcome<JoinRequest> receive_one(const Door& door, const InvitationToken& token, Milliseconds patience,
                                 const std::function<Outcome<JoinAnswer>(const JoinRequest&)>& answer,
                                 const std::function<void(uint16_t port)>& opened,
                                 const std::string& authority);

}  // namespace pnfsrdma::cli
