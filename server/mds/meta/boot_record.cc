// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/boot_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"
#include "shared/base/log.h"
#include "shared/base/random.h"

namespace pnfsrdma::mds {
namespace {

constexpr std::string_view kBootName = "boot";
constexpr std::string_view kLeaseName = "lease";  // milliseconds
constexpr const char* kBootIdFile = "/proc/sys/kernel/random/boot_id";
constexpr const char* kFailedSyncFile = "/sync-failed";
constexpr size_t kMarkDigits = 16;

// The last start, as stored.
struct StoredBoot {
  uint64_t boot_count = 0;
  uint64_t epoch = 0;
  xdr::FixedOpaque<16> instance{};
  xdr::String<64> host_boot_id;
  bool clean_shutdown = false;
};

// FNV-1a: boots are told apart, nobody is kept out by it.
uint64_t era_of(std::string_view host_boot_id) {
  uint64_t era = 0xcbf29ce484222325;
  for (const char letter : host_boot_id) era = (era ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return era;
}

Result<> store_boot(KeyValueStore& store, const StoredBoot& boot, Batch batch = {}) {
  put_value(batch, meta_key(kBootName), boot);
  TRY(store.commit(batch, CommitKind::kNamespace));
  return store.sync();
}

}  // namespace

Result<BootRecord> open_boot(KeyValueStore& store, Random& random, const std::string& host_boot_id,
                             Milliseconds lease) {
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
  record.era = era_of(host_boot_id);
  boot.host_boot_id = host_boot_id;
  boot.clean_shutdown = false;
  StoredNumber longest{static_cast<uint64_t>(lease.count())};
  TRY_ASSIGN(const std::optional<std::string> before, store.get(meta_key(kLeaseName)));
  if (before) {
    TRY_ASSIGN(const StoredNumber known, read_value<StoredNumber>(*before, "a lease"));
    record.lease_before = Milliseconds(known.number);
    longest.number = std::max(longest.number, known.number);
  }
  Batch batch;
  put_value(batch, meta_key(kLeaseName), longest);
  TRY(store_boot(store, boot, std::move(batch)));
  log_info("meta", "boot-opened count={} epoch={} same-host-boot={} clean={}", record.boot_count,
           record.epoch, record.same_host_boot, record.clean_shutdown);
  return record;
}

Result<> forget_earlier_leases(KeyValueStore& store, Milliseconds lease) {
  Batch batch;
  put_value(batch, meta_key(kLeaseName), StoredNumber{static_cast<uint64_t>(lease.count())});
  TRY(store.commit(batch, CommitKind::kState));
  return {};
}

Result<> close_boot(KeyValueStore& store) {
  TRY_ASSIGN(const std::optional<std::string> stored, store.get(meta_key(kBootName)));
  if (!stored) return fail(ENOENT, "the store was never opened as a server");
  TRY_ASSIGN(StoredBoot boot, read_value<StoredBoot>(*stored, "a boot record"));
  boot.clean_shutdown = true;
  return store_boot(store, boot);
}

Result<std::string> read_host_boot_id(const std::string& directory) {
  std::ifstream file(kBootIdFile);
  std::string id;
  if (!std::getline(file, id) || id.empty()) return fail(EIO, std::string("reading ") + kBootIdFile);
  std::ifstream failed(directory + kFailedSyncFile);
  std::string mark;
  if (failed && std::getline(failed, mark)) id += "-" + mark.substr(0, kMarkDigits);
  return id;
}

void note_failed_sync(const std::string& directory, Random& random) {
  std::ofstream file(directory + kFailedSyncFile, std::ios::trunc);
  file << fmt::format("{:0{}x}", random.next_u64(), kMarkDigits) << std::endl;
  if (!file) log_error("meta", "sync-failure-not-noted directory={}", directory);
}

}  // namespace pnfsrdma::mds
