// SPDX-License-Identifier: Apache-2.0
#include "server/service/service_manager.h"

#include <systemd/sd-daemon.h>

#include <algorithm>
#include <string>

namespace pnfsrdma {

ServiceManager::~ServiceManager() {
  if (period_ > Milliseconds(0)) loop_.cancel(timer_);
}

void ServiceManager::ready() {
  if (period_ > Milliseconds(0)) {
    set_patience(patience_);
    return;
  }
  sd_notify(0, "READY=1");
  if (sd_watchdog_enabled(0, &patience_) <= 0) return;
  period_ = std::max(Milliseconds(patience_ / 2000), Milliseconds(1));
  ping();
}

void ServiceManager::busy(Milliseconds longest) {
  if (period_ > Milliseconds(0)) set_patience(static_cast<uint64_t>(longest.count()) * 1000);
}

void ServiceManager::set_patience(uint64_t microseconds) {
  sd_notify(0, ("WATCHDOG_USEC=" + std::to_string(microseconds) + "\nWATCHDOG=1").c_str());
}

void ServiceManager::stopping() {
  sd_notify(0, "STOPPING=1");
}

void ServiceManager::status(const std::string& text) {
  sd_notify(0, ("STATUS=" + text).c_str());
}

void ServiceManager::ping() {
  sd_notify(0, "WATCHDOG=1");
  timer_ = loop_.after(period_, [this] { ping(); });
}

}  // namespace pnfsrdma
