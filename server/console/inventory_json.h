// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "server/console/inventory.h"
#include "server/console/json.h"

// The inventory as openapi.json has it.
namespace pnfsrdma::console {

// 16 hexadecimal digits, and back; 0 for what is none (no client and no grant has it).
std::string id_text(uint64_t id);
uint64_t id_of(const std::string& text);
// "CLIENT-INODE", and back.
std::string layout_id(uint64_t client, uint64_t inode);
struct LayoutId {
  uint64_t client = 0;
  uint64_t inode = 0;
};
LayoutId layout_of(const std::string& id);

Json to_json(const Client& client);
Json to_json(const Layout& layout);
Json to_json(const Grant& grant);
Json to_json(const Brick& brick);
Json to_json(const BlockRun& run);
Json to_json(const Export& item);
Json to_json(const TreeSnapshot& snapshot);
Json to_json(const SnapshotSchedule& schedule);
// `name`: of the user or group, or the tree's path. `now`: whether a grace period is over.
Json to_json(const Quota& quota, const std::optional<std::string>& name, const WallTime& now);
Json to_json(const QuotaLimits& limits);
Json to_json(const QuotaSettings& settings);
Json to_json(const File& file);
Json to_json(const Job& job);
// nullopt: this server shares no log.
Json to_json(const std::optional<Cluster>& cluster);

}  // namespace pnfsrdma::console
