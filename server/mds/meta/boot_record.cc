// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/boot_record.h"

#include <cerrno>
#include <fstream>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

constexpr std::string_view kBootName = "boot";
constexpr const char* kBootIdFile = "/proc/sys/kernel/random/boot_id";

// The last start, as stored.
struct StoredBoot {
  uint64_t boot_count = 0;
  uint64_t epoch = 0;
  xdr::FixedOpaque<16> instance{};
  xdr::String<64> host_boot_id;
  bool clean_shutdown = false;
};

Result<> store_boot(KeyValueStore& store, const StoredBoot& boot) {
  Batch batch;
  put_value(batch, meta_key(kBootName), boot);
  TRY(store.commit(batch, CommitKind::kNamespace));
  return store.sync();
}

}  // namespace

Result<BootRecord> open_boot(KeyValueStore& store, Random& random, const std::string& host_boot_id) {
  if (host_boot_id.size() > decltype(StoredBoot::host_boot_id)::kMax)
    return fail(EINVAL, "the boot id is too long");
  StoredBoot boot;
  TRY_ASSIGN(const std::optional<std::string> stored, store.get(meta_key(kBootName)));
  if (stored) {
    TRY_ASSIGN(boot, read_value<StoredBoot>(*stored, "a boot record"));
  } else {
    random.fill(boot.instance);
  }
  BootRecord record;
  record.same_host_boot = stored && boot.host_boot_id == host_boot_id;
  record.clean_shutdown = boot.clean_shutdown;
  record.boot_count = ++boot.boot_count;
  record.epoch = ++boot.epoch;
  record.instance = boot.instance;
  boot.host_boot_id = host_boot_id;
  boot.clean_shutdown = false;
  TRY(store_boot(store, boot));
  log_info("meta", "boot-opened count={} epoch={} same-host-boot={} clean={}", record.boot_count,
           record.epoch, record.same_host_boot, record.clean_shutdown);
  return record;
}

Result<> close_boot(KeyValueStore& store) {
  TRY_ASSIGN(const std::optional<std::string> stored, store.get(meta_key(kBootName)));
  if (!stored) return fail(ENOENT, "the store was never opened as a server");
  TRY_ASSIGN(StoredBoot boot, read_value<StoredBoot>(*stored, "a boot record"));
  boot.clean_shutdown = true;
  return store_boot(store, boot);
}

Result<std::string> read_host_boot_id() {
  std::ifstream file(kBootIdFile);
  std::string id;
  if (!std::getline(file, id) || id.empty()) return fail(EIO, std::string("reading ") + kBootIdFile);
  return id;
}

}  // namespace pnfsrdma::mds
