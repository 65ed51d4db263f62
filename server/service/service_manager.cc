// SPDX-License-Identifier: Apache-2.0
#include "server/service/service_manager.h"

#include <systemd/sd-daemon.h>

#include <algorithm>

namespace pnfsrdma {

ServiceManager::~ServiceManager() {
  if (period_ > Milliseconds(0)) loop_.cancel(timer_);
}

void ServiceManager::ready() {
  sd_notify(0, "READY=1");
  uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return;
  period_ = std::max(Milliseconds(microseconds / 2000), Milliseconds(1));
  ping();
}

void ServiceManager::stopping() {
  sd_notify(0, "STOPPING=1");
}

void ServiceManager::ping() {
  sd_notify(0, "WATCHDOG=1");
  timer_ = loop_.after(period_, [this] { ping(); });
}

}  // namespace pnfsrdma
