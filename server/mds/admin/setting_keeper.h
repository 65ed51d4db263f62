// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/console/inventory.h"
#include "server/mds/admin/config.h"
#include "server/mds/meta/records.h"
#include "server/mds/state/server_limits.h"

namespace pnfsrdma::mds {

// The configuration as it is in force: the file's, and over it what was changed at run time and stored. Only
// what can change without a restart can be changed: log_level, small_file_bytes and snapshot_schedule. Control loop
// only.
class SettingKeeper {
 public:
  // Puts what is stored in force. `limits` outlive this object.
  SettingKeeper(KeyValueStore& store, const Config& config, ServerLimits& limits);

  std::vector<console::Setting> all() const;
  // By name, with JSON text; "null" gives it back to the file. All or none. EINVAL.
  using Changes = std::vector<std::pair<std::string, std::string>>;
  void change(const Changes& changes, std::function<void(Result<>)> done);
  // The file has been read again: what it says now is in force where nothing is stored. Returns the other
  // keys that have changed in it: they count after a restart.
  std::vector<std::string> reload(const Config& fresh);
  // In force.
  const SnapshotSchedule& snapshot_schedule() const { return schedule_; }

 private:
  // EINVAL.
  static Result<> check(const std::string& name, const std::string& value);
  // Of the file, or the default.
  std::string configured(const std::string& name) const;
  void apply(const std::string& name, const std::string& value);

  KeyValueStore& store_;
  Config config_;  // as read at start, but for what can change at run time
  ServerLimits& limits_;
  SnapshotSchedule schedule_;
  std::map<std::string, std::string> stored_;  // JSON text by name
};

}  // namespace pnfsrdma::mds
