// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/device.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "shared/base/log.h"

namespace pnfsrdma::rdma::verbs {
namespace {

// Bits of ibv_device_attr_ex::device_cap_flags_ex that verbs.h has no names for (the kernel's uapi has).
constexpr uint64_t kDeviceFlushGlobal = uint64_t{1} << 38;
constexpr uint64_t kDeviceFlushPersistent = uint64_t{1} << 39;
constexpr uint64_t kDeviceAtomicWrite = uint64_t{1} << 40;

#ifdef PNFSRDMA_VERBS_HAVE_FLUSH
constexpr bool kBuiltWithFlush = true;
#else
constexpr bool kBuiltWithFlush = false;
#endif
#ifdef PNFSRDMA_VERBS_HAVE_ATOMIC_WRITE
constexpr bool kBuiltWithAtomicWrite = true;
#else
constexpr bool kBuiltWithAtomicWrite = false;
#endif

bool has(const ibv_device_attr_ex& attributes, uint64_t capabilities) {
  return (attributes.device_cap_flags_ex & capabilities) == capabilities;
}

Result<DeviceLimits> query(ibv_context* context) {
  ibv_device_attr_ex attributes{};
  if (const int code = ibv_query_device_ex(context, nullptr, &attributes); code != 0) {
    return fail(code, std::string("querying the device ") + ibv_get_device_name(context->device));
  }
  const ibv_device_attr& plain = attributes.orig_attr;
  DeviceLimits limits;
  limits.work_requests_max = static_cast<uint32_t>(std::max(plain.max_qp_wr, 1));
  limits.completions_max = static_cast<uint32_t>(std::max(plain.max_cqe, 1));
  limits.slices_max = static_cast<uint32_t>(std::max(plain.max_sge, 1));
  limits.read_depth_max =
      static_cast<uint32_t>(std::max(1, std::min(plain.max_qp_rd_atom, plain.max_qp_init_rd_atom)));
  limits.region_size_max = plain.max_mr_size;
  limits.native_flush = kBuiltWithFlush && has(attributes, kDeviceFlushGlobal | kDeviceFlushPersistent);
  limits.atomic_write = kBuiltWithAtomicWrite && has(attributes, kDeviceAtomicWrite);
  limits.iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
  return limits;
}

// Asked before librdmacm, which complains on stderr where the kernel has no RDMA at all.
Result<> look_for_devices() {
  int count = 0;
  const DeviceNames names(ibv_get_device_list(&count));
  if (names == nullptr || count == 0) return fail(ENODEV, "no RDMA device");
  constexpr const char* kDoor = "/dev/infiniband/rdma_cm";
  if (::access(kDoor, R_OK | W_OK) == 0) return {};
  const int reason = errno;
  if (reason == EACCES || reason == EPERM) {
    return fail(reason, std::string("no permission to use ") + kDoor +
                            ": let the user in by its group or a udev rule, mode 0666 is the usual one");
  }
  return fail(ENODEV, std::string(kDoor) + " is missing: load the module rdma_ucm");
}

}  // namespace

Device::Device(std::shared_ptr<DeviceContexts> contexts, ibv_context* context, const DeviceLimits& limits)
    : contexts_(std::move(contexts)),
      context_(context),
      name_(ibv_get_device_name(context->device)),
      limits_(limits),
      events_(context, name_) {}

Result<std::vector<std::shared_ptr<Device>>> Device::open_all() {
  if (auto there = look_for_devices(); !there) return std::unexpected(there.error());
  int count = 0;
  auto contexts = std::make_shared<DeviceContexts>(rdma_get_devices(&count));
  if (*contexts == nullptr || count == 0) {
    return fail(errno == 0 ? ENODEV : errno,
                "no RDMA device could be opened (is /dev/infiniband/uverbs* readable and writable?)");
  }
  std::vector<std::shared_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    ibv_context* context = contexts->get()[i];
    auto limits = query(context);
    if (limits) {
      devices.push_back(std::make_shared<Device>(contexts, context, *limits));
    } else {
      log_warning("verbs", "device-skipped error=\"{}\"", limits.error().to_string());
    }
  }
  if (devices.empty()) return fail(ENODEV, "no RDMA device answers");
  return devices;
}

}  // namespace pnfsrdma::rdma::verbs
