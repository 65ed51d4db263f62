// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "server/console/accounts.h"
#include "server/console/administration.h"
#include "server/console/alert_keeper.h"
#include "server/console/api_document.h"
#include "server/console/audit_log.h"
#include "server/console/block_maps.h"
#include "server/console/control_loop.h"
#include "server/console/event_log.h"
#include "server/console/history.h"
#include "server/console/login_limit.h"
#include "server/console/login_sessions.h"
#include "server/console/password.h"
#include "server/console/setup_token.h"
#include "server/console/snapshot.h"
#include "server/console/throughput.h"
#include "server/console/unix_names.h"
#include "server/console/webhook.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

// What the resources answer from. Built once by Console; everything in it may be used by many threads.
struct Backend {
  ControlLoop& loop;
  Administration& administration;  // in the loop only
  Snapshot<Numbers>& numbers;
  Snapshot<Holdings>& holdings;
  BlockMaps& blocks;
  const ApiDocument& document;
  Accounts& accounts;
  LoginSessions& sessions;
  PasswordHasher& passwords;
  LoginLimit& attempts;
  SetupToken& setup;
  AuditLog& audit;
  EventLog& events;
  Throughput& throughput;
  History& history;
  AlertKeeper& alerts;
  Webhook& webhook;
  UnixNames& names;
  const Clock& clock;
  Random& random;
  std::string version;
  std::string run;  // random per process
  std::string configuration_file;
  std::function<void()> password_set;  // the first one: more addresses may listen now
  std::function<HealthCheck()> check_certificate;
  std::function<std::optional<double>()> certificate_seconds_left;

  std::atomic<uint64_t> requests = 0;
  std::atomic<uint64_t> refused = 0;
  std::atomic<uint64_t> streams = 0;
  // Of each kind of resource with ETags one change at a time, from its check to its end.
  Mutex changing_exports;
  Mutex changing_quotas;
  Mutex changing_settings;
  Mutex changing_webhook;
};

}  // namespace pnfsrdma::console
