// SPDX-License-Identifier: Apache-2.0
#include "server/console/inventory_names.h"

namespace pnfsrdma::console {

const char* to_string(SessionTransport value) {
  switch (value) {
    case SessionTransport::kNone:
      return "none";
    case SessionTransport::kTcp:
      return "tcp";
    case SessionTransport::kRdmaVerbs:
      return "rdma-verbs";
    case SessionTransport::kRdmaIwarp:
      return "rdma-iwarp";
  }
  return "";
}

const char* to_string(CallbackState value) {
  switch (value) {
    case CallbackState::kNone:
      return "none";
    case CallbackState::kDown:
      return "down";
    case CallbackState::kUp:
      return "up";
  }
  return "";
}

const char* to_string(DataTransport value) {
  switch (value) {
    case DataTransport::kNone:
      return "";
    case DataTransport::kVerbs:
      return "verbs";
    case DataTransport::kIwarp:
      return "iwarp";
    case DataTransport::kOther:
      return "other";
  }
  return "";
}

const char* to_string(LayoutState value) {
  switch (value) {
    case LayoutState::kHeld:
      return "held";
    case LayoutState::kRecalling:
      return "recalling";
    case LayoutState::kRevoking:
      return "revoking";
  }
  return "";
}

const char* to_string(BrickState value) {
  switch (value) {
    case BrickState::kConnecting:
      return "connecting";
    case BrickState::kReconciling:
      return "reconciling";
    case BrickState::kReady:
      return "ready";
    case BrickState::kDraining:
      return "draining";
    case BrickState::kAway:
      return "away";
    case BrickState::kFenced:
      return "fenced";
    case BrickState::kForeign:
      return "foreign";
  }
  return "";
}

const char* to_string(PoolKind value) {
  switch (value) {
    case PoolKind::kUnknown:
      return "";
    case PoolKind::kDeviceDax:
      return "devdax";
    case PoolKind::kFilesystemDax:
      return "fsdax";
    case PoolKind::kFile:
      return "file";
    case PoolKind::kTmpfs:
      return "tmpfs";
  }
  return "";
}

const char* to_string(std::optional<Durability> value) {
  return value ? pnfsrdma::to_string(*value) : "unknown";
}

const char* to_string(FlushMethod value) {
  switch (value) {
    case FlushMethod::kNative:
      return "native";
    case FlushMethod::kCommit:
      return "commit";
    case FlushMethod::kLayoutCommit:
      return "layoutcommit";
  }
  return "";
}

const char* to_string(BlockState value) {
  switch (value) {
    case BlockState::kFree:
      return "free";
    case BlockState::kData:
      return "data";
    case BlockState::kGrantedRead:
      return "granted-read";
    case BlockState::kGrantedWrite:
      return "granted-write";
  }
  return "";
}

const char* to_string(FileType value) {
  switch (value) {
    case FileType::kRegular:
      return "file";
    case FileType::kDirectory:
      return "directory";
    case FileType::kSymlink:
      return "symlink";
    case FileType::kBlockDevice:
      return "block-device";
    case FileType::kCharacterDevice:
      return "character-device";
    case FileType::kSocket:
      return "socket";
    case FileType::kFifo:
      return "fifo";
  }
  return "";
}

const char* to_string(SnapshotState value) {
  switch (value) {
    case SnapshotState::kMaking:
      return "making";
    case SnapshotState::kReady:
      return "ready";
    case SnapshotState::kDeleting:
      return "deleting";
  }
  return "";
}

const char* to_string(SnapshotClass value) {
  switch (value) {
    case SnapshotClass::kHourly:
      return "hourly";
    case SnapshotClass::kDaily:
      return "daily";
    case SnapshotClass::kWeekly:
      return "weekly";
    case SnapshotClass::kMonthly:
      return "monthly";
  }
  return "";
}

const char* to_string(QuotaKind value) {
  switch (value) {
    case QuotaKind::kUser:
      return "user";
    case QuotaKind::kGroup:
      return "group";
    case QuotaKind::kTree:
      return "tree";
  }
  return "";
}

const char* to_string(QuotaSource value) {
  switch (value) {
    case QuotaSource::kNone:
      return "none";
    case QuotaSource::kOwn:
      return "own";
    case QuotaSource::kDefault:
      return "default";
  }
  return "";
}

const char* to_string(QuotaState value) {
  switch (value) {
    case QuotaState::kOff:
      return "off";
    case QuotaState::kCounting:
      return "counting";
    case QuotaState::kOn:
      return "on";
  }
  return "";
}

const char* to_string(QuotaStanding value) {
  switch (value) {
    case QuotaStanding::kWithin:
      return "ok";
    case QuotaStanding::kOverSoft:
      return "over-soft";
    case QuotaStanding::kGraceOver:
      return "grace-over";
    case QuotaStanding::kFull:
      return "full";
  }
  return "";
}

const char* to_string(HealthStatus value) {
  switch (value) {
    case HealthStatus::kOk:
      return "ok";
    case HealthStatus::kWarning:
      return "warning";
    case HealthStatus::kFailed:
      return "failed";
  }
  return "";
}

const char* to_string(ClusterServerState value) {
  switch (value) {
    case ClusterServerState::kLeads:
      return "leads";
    case ClusterServerState::kFollows:
      return "follows";
    case ClusterServerState::kAway:
      return "away";
  }
  return "";
}

const char* to_string(JobKind value) {
  switch (value) {
    case JobKind::kFormat:
      return "format";
    case JobKind::kCheck:
      return "check";
    case JobKind::kRecount:
      return "recount";
  }
  return "";
}

const char* to_string(JobState value) {
  switch (value) {
    case JobState::kRunning:
      return "running";
    case JobState::kDone:
      return "done";
    case JobState::kFailed:
      return "failed";
    case JobState::kCancelled:
      return "cancelled";
  }
  return "";
}

const char* to_string(SettingSource value) {
  switch (value) {
    case SettingSource::kDefault:
      return "default";
    case SettingSource::kFile:
      return "file";
    case SettingSource::kStore:
      return "store";
  }
  return "";
}

SessionTransport session_transport_of(const std::string& word) {
  for (const auto known :
       {SessionTransport::kTcp, SessionTransport::kRdmaVerbs, SessionTransport::kRdmaIwarp}) {
    if (word == to_string(known)) return known;
  }
  return SessionTransport::kNone;
}

DataTransport data_transport_of(const std::string& word) {
  for (const auto known : {DataTransport::kNone, DataTransport::kVerbs, DataTransport::kIwarp}) {
    if (word == to_string(known)) return known;
  }
  return DataTransport::kOther;
}

std::optional<QuotaKind> quota_kind_of(const std::string& word) {
  for (const QuotaKind kind : {QuotaKind::kUser, QuotaKind::kGroup, QuotaKind::kTree}) {
    if (word == to_string(kind)) return kind;
  }
  return std::nullopt;
}

PoolKind pool_kind_of(const std::string& word) {
  for (const auto known :
       {PoolKind::kDeviceDax, PoolKind::kFilesystemDax, PoolKind::kFile, PoolKind::kTmpfs}) {
    if (word == to_string(known)) return known;
  }
  return PoolKind::kUnknown;
}

}  // namespace pnfsrdma::console
