// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/console/administration.h"
#include "server/console/password.h"
#include "server/console/record_store.h"
#include "shared/base/event_loop.h"
#include "shared/base/random.h"

namespace pnfsrdma::console {

struct ConsoleOptions {
  // Numeric "host:port", HTTPS. Those beyond loopback listen once a password is set.
  std::vector<std::string> listen{"127.0.0.1:8443"};
  std::string socket = "/run/pnfsrdma/console.sock";  // for root, plain HTTP; empty: none
  std::string directory;      // ours: certificate, audit log, set-up token; made if missing, mode 0700
  std::string certificate;    // PEM; empty: one of our own in `directory`
  std::string key;            // PEM
  std::string web_directory;  // the built web console; empty or not there: none
  std::string version;
  std::string configuration_file;
  PasswordCost password_cost;
};

// The administrator's face of a server: REST API, events, metrics, web console. Its threads speak HTTP; what
// they show and change they ask of the control loop. Built, started and destroyed in the loop's thread, while
// the loop does not run; everything handed in outlives it.
class Console {
 public:
  struct Parts {
    EventLoop& loop;
    const Clock& clock;
    Random& random;
    Administration& administration;
    RecordStore& records;
  };
  Console(const Parts& parts, ConsoleOptions options);
  // Closes what listens, ends streams, waits for requests that run.
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Loads users, makes what is missing (certificate, set-up token), listens; an address that cannot be had is
  // logged. An error: there is no console at all.
  Result<> start();
  // Where it listens now: "unix:/path", "https://127.0.0.1:8443".
  std::vector<std::string> addresses();

 private:
  struct Machinery;
  std::unique_ptr<Machinery> machinery_;
};

}  // namespace pnfsrdma::console
