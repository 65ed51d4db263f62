// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "server/console/inventory.h"

// The enumerators of the inventory in the words of openapi.json: the only place that has both. The words also
// stand in metrics, in the log and in texts for people. Any thread.
namespace pnfsrdma::console {

const char* to_string(SessionTransport value);
const char* to_string(CallbackState value);
const char* to_string(DataTransport value);
const char* to_string(LayoutState value);
const char* to_string(BrickState value);
const char* to_string(PoolKind value);
const char* to_string(std::optional<Durability> value);
const char* to_string(FlushMethod value);
const char* to_string(BlockState value);
const char* to_string(FileType value);
const char* to_string(SnapshotState value);
const char* to_string(SnapshotClass value);
const char* to_string(QuotaKind value);
const char* to_string(QuotaSource value);
const char* to_string(QuotaState value);
const char* to_string(QuotaStanding value);
const char* to_string(HealthStatus value);
const char* to_string(JobKind value);
const char* to_string(ClusterServerState value);
const char* to_string(JobState value);
const char* to_string(SettingSource value);

// Back, from what others say; kNone, kOther and kUnknown for a word that is not known here.
SessionTransport session_transport_of(const std::string& word);
DataTransport data_transport_of(const std::string& word);
PoolKind pool_kind_of(const std::string& word);
// None: a word that is not known here.
std::optional<QuotaKind> quota_kind_of(const std::string& word);

}  // namespace pnfsrdma::console
