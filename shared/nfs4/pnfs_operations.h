// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/response.h"

// Layouts and devices. Layout types are open-ended numbers (RFC 8881, 3.3.13); bodies stay opaque here, ours
// are in pmem_layout.h.
namespace pnfsrdma::nfs4 {

inline constexpr uint32_t kLayoutTypeFiles = 1;
inline constexpr uint32_t kLayoutTypeObjects = 2;
inline constexpr uint32_t kLayoutTypeBlock = 3;
inline constexpr uint32_t kLayoutTypeFlexFiles = 4;
inline constexpr uint32_t kLayoutTypeScsi = 5;

using LayoutOpaque = xdr::Opaque<kLayoutBodyMax>;

enum class IoMode : uint32_t { kRead = 1, kReadWrite = 2, kAny = 3 };
constexpr bool xdr_known(IoMode mode) {
  return mode >= IoMode::kRead && mode <= IoMode::kAny;
}

// device_addr4, layout_content4, layoutupdate4 in one shape: a layout type and its body.
struct TypedBody {
  uint32_t layout_type = 0;
  LayoutOpaque body;
};

// GETDEVICEINFO (18.40)
struct GetDeviceInfoArguments {
  DeviceId device{};
  uint32_t layout_type = 0;
  uint32_t max_count = 0;  // bytes of the device address; 0: only the notifications
  Bitmap notify_types;
};
struct GetDeviceInfoResult {
  TypedBody device_address;
  Bitmap notification;
};
struct DeviceInfoTooSmall {
  uint32_t min_count = 0;
};
using GetDeviceInfoResponse = Response<GetDeviceInfoResult, Status::kTooSmall, DeviceInfoTooSmall>;

// GETDEVICELIST (18.41); not in minor version 2.
struct GetDeviceListArguments {
  uint32_t layout_type = 0;
  uint32_t max_devices = 0;
  uint64_t cookie = 0;
  Verifier cookie_verifier{};
};
struct GetDeviceListResult {
  uint64_t cookie = 0;
  Verifier cookie_verifier{};
  xdr::List<DeviceId, kListMax> devices;
  bool end = false;
};
using GetDeviceListResponse = Response<GetDeviceListResult>;

// LAYOUTGET (18.43)
struct LayoutGetArguments {
  bool signal_when_available = false;
  uint32_t layout_type = 0;
  IoMode io_mode = IoMode::kRead;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t min_length = 0;
  Stateid stateid;
  uint32_t max_count = 0;  // bytes of the LayoutGetResult
};
struct Layout {
  uint64_t offset = 0;
  uint64_t length = 0;
  IoMode io_mode = IoMode::kRead;
  TypedBody content;
};
struct LayoutGetResult {
  bool return_on_close = false;
  Stateid stateid;
  xdr::List<Layout, kSmallListMax> layouts;
};
struct LayoutTryLater {
  bool will_signal = false;
};
using LayoutGetResponse = Response<LayoutGetResult, Status::kLayoutTryLater, LayoutTryLater>;

// LAYOUTCOMMIT (18.42). newoffset4, newtime4 and newsize4 are unions of a bool: std::optional has the same
// bytes.
struct LayoutCommitArguments {
  uint64_t offset = 0;
  uint64_t length = 0;
  bool reclaim = false;
  Stateid stateid;
  std::optional<uint64_t> last_write_offset;  // of the last byte written, so the size is at least one more
  std::optional<Time> time_modify;
  TypedBody update;
};
struct LayoutCommitResult {
  std::optional<uint64_t> new_size;
};
using LayoutCommitResponse = Response<LayoutCommitResult>;

// LAYOUTRETURN (18.44)
enum class LayoutReturnType : uint32_t { kFile = 1, kFsid = 2, kAll = 3 };
constexpr bool xdr_known(LayoutReturnType type) {
  return type >= LayoutReturnType::kFile && type <= LayoutReturnType::kAll;
}
struct LayoutReturnFile {
  uint64_t offset = 0;
  uint64_t length = 0;
  Stateid stateid;
  LayoutOpaque body;
};
using LayoutReturnWhat = xdr::Union<LayoutReturnType, xdr::Arm<LayoutReturnFile, LayoutReturnType::kFile>,
                                    xdr::Arm<xdr::Void, LayoutReturnType::kFsid, LayoutReturnType::kAll>>;
struct LayoutReturnArguments {
  bool reclaim = false;
  uint32_t layout_type = 0;
  IoMode io_mode = IoMode::kAny;
  LayoutReturnWhat what;
};
// Nothing: no layout of the file is left.
struct LayoutReturnResult {
  std::optional<Stateid> stateid;
};
using LayoutReturnResponse = Response<LayoutReturnResult>;

// LAYOUTERROR (RFC 7862, 15.6), LAYOUTSTATS (15.7)
struct DeviceError {
  DeviceId device{};
  Status status = Status::kOk;
  uint32_t operation = 0;  // nfs_opnum4
};
struct LayoutErrorArguments {
  uint64_t offset = 0;
  uint64_t length = 0;
  Stateid stateid;
  xdr::List<DeviceError, kListMax> errors;
};
struct LayoutErrorResult {};
using LayoutErrorResponse = Response<LayoutErrorResult>;

struct IoInfo {
  uint64_t count = 0;
  uint64_t bytes = 0;
};
struct LayoutStatisticsArguments {
  uint64_t offset = 0;
  uint64_t length = 0;
  Stateid stateid;
  IoInfo read;
  IoInfo write;
  DeviceId device{};
  TypedBody update;
};
struct LayoutStatisticsResult {};
using LayoutStatisticsResponse = Response<LayoutStatisticsResult>;

}  // namespace pnfsrdma::nfs4
