// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/check_command.h"

#include <fmt/core.h>

#include <cstring>
#include <map>

#include "server/brickd/block_table.h"
#include "server/brickd/config.h"
#include "server/brickd/partition_command.h"
#include "server/brickd/superblock.h"
#include "shared/pmem/mapping.h"
#include "shared/pmem/page_persistence.h"

namespace pnfsrdma::brick {
namespace {

// Compares the bytes with themselves, one on: a memcmp for the whole block.
bool is_zero(ByteSpan bytes) {
  return bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

// The scan of one table, block by block.
class TableCheck {
 public:
  TableCheck(ByteSpan pool, const format::Superblock& superblock, CheckReport& report)
      : pool_(pool), superblock_(superblock), report_(report) {}

  void run() {
    for (uint64_t block = 0; block < superblock_.block_count; ++block) check(block);
  }

 private:
  void check(uint64_t block) {
    format::Entry entry;
    std::memcpy(&entry, pool_.data() + superblock_.table_offset + block * sizeof entry, sizeof entry);
    const EntryReading reading = read_entry(entry, block, superblock_.uuid);
    if (!reading.half) return problem(block, "its table entry is damaged");
    if (reading.torn) report_.notes.push_back(fmt::format("block {}: an update that never finished", block));
    switch (static_cast<format::State>(reading.record.state)) {
      case format::State::kFreeDirty:
        ++report_.dirty;
        return check_free(block, reading.record);
      case format::State::kFreeClean:
        ++report_.clean;
        if (!is_zero(pool_.subspan(superblock_.data_offset + block * superblock_.block_size,
                                   superblock_.block_size))) {
          problem(block, "it is marked clean but is not zero");
        }
        return check_free(block, reading.record);
      case format::State::kAllocated:
        ++report_.allocated;
        return check_used(block, reading.record);
      case format::State::kParked:
        ++report_.parked;
        return check_used(block, reading.record);
    }
  }

  void check_free(uint64_t block, const format::Record& record) {
    if (record.logical != 0 || record.owner != 0) problem(block, "it is free but has an owner");
  }

  void check_used(uint64_t block, const format::Record& record) {
    if (record.logical % superblock_.block_size != 0) problem(block, "its logical address is misaligned");
    const bool by_mds = superblock_.version < format::kVersion;
    if (by_mds && record.owner > superblock_.epoch)
      problem(block, "it belongs to an epoch nobody has claimed");
    const auto [other, first] = seen_.emplace(record.logical, block);
    if (!first) {
      problem(block,
              fmt::format("block {} has the same logical address {:#x}", other->second, record.logical));
    }
  }

  void problem(uint64_t block, std::string_view what) {
    report_.problems.push_back(fmt::format("block {}: {}", block, what));
  }

  ByteSpan pool_;
  const format::Superblock& superblock_;
  CheckReport& report_;
  std::map<uint64_t, uint64_t> seen_;
};

void print(const CheckReport& report) {
  fmt::print("blocks: {} free and clean, {} free and dirty, {} allocated, {} parked\n", report.clean,
             report.dirty, report.allocated, report.parked);
  for (const std::string& note : report.notes) fmt::print("note: {}\n", note);
  for (const std::string& problem : report.problems) fmt::print("problem: {}\n", problem);
  fmt::print("{}\n", report.problems.empty() ? "the pool is sound" : "the pool has problems");
}

}  // namespace

Result<CheckReport> check_pool(MutableByteSpan pool) {
  pmem::UnflushedPersistence reads_only(Durability::kVolatile);
  TRY_ASSIGN(const Superblock superblock, Superblock::open(pool, reads_only));
  CheckReport report;
  if (superblock.damaged_copies() > 0) {
    report.notes.push_back("one of the two superblocks is an update that never finished");
  }
  TableCheck(pool, superblock.content(), report).run();
  return report;
}

int run_check(const Config& config) {
  const auto mapping = open_pool_memory(config);
  if (!mapping) {
    fmt::print(stderr, "pnfsrdma-brickd: {}\n", mapping.error().to_string());
    return 2;
  }
  const auto report = check_pool((*mapping)->bytes());
  if (!report) {
    fmt::print(stderr, "pnfsrdma-brickd: {}: {}\n", config.pool.path, report.error().to_string());
    return 2;
  }
  print(*report);
  return report->problems.empty() ? 0 : 1;
}

}  // namespace pnfsrdma::brick
