// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/server/rows.h"

#include <algorithm>
#include <array>

#include "shared/nfs4/pmem_layout.h"
#include "tests/bench/server/settings.h"
#include "tests/bench/server/tree.h"

namespace pnfsrdma::bench {
namespace {

using nfs4::Attribute;
using nfs4::Bitmap;
using nfs4::CompoundResultReader;
using nfs4::CompoundWriter;
using nfs4::Status;

constexpr uint32_t kBlock = 4096;
constexpr uint32_t kRemovedAtOnce = 32;
// What the Linux client asks of READDIR on pages of 4 KiB.
constexpr uint32_t kPageNames = 8170;
constexpr uint32_t kPageBytes = 32680;

// What the Linux client asks of a file.
const Bitmap& file_attributes() {
  static const Bitmap kWanted =
      Bitmap::of(Attribute::kType, Attribute::kChange, Attribute::kSize, Attribute::kFsid, Attribute::kFileId,
                 Attribute::kMode, Attribute::kLinkCount, Attribute::kOwner, Attribute::kOwnerGroup,
                 Attribute::kRawDevice, Attribute::kSpaceUsed, Attribute::kTimeAccess,
                 Attribute::kTimeMetadata, Attribute::kTimeModify, Attribute::kMountedOnFileId);
  return kWanted;
}
const Bitmap& entry_attributes() {
  static const Bitmap kWanted =
      file_attributes() | Bitmap::of(Attribute::kReadAttributeError, Attribute::kFileHandle);
  return kWanted;
}

ByteSpan data(uint32_t size) {
  static const std::array<std::byte, kFileBytes> kData = [] {
    std::array<std::byte, kFileBytes> bytes;
    bytes.fill(std::byte{0x5a});
    return bytes;
  }();
  return ByteSpan(kData).first(size);
}

void put_attributes(CompoundWriter& compound) {
  put(compound, nfs4::GetAttributesArguments{file_attributes()});
}

// --- getattr, lookup, readdir ---

// The first answer of a row in full: what was asked for is there. Later ones cost the generator no more than
// their status.
Outcome check_attributes(Worker& worker, CompoundResultReader& results) {
  if (std::exchange(worker.checked, true)) return {};
  TRY(results.result<nfs4::PutFileHandleResponse>());
  TRY_ASSIGN(const nfs4::GetAttributesResult got, results.result<nfs4::GetAttributesResponse>());
  const nfs4::Attributes& attributes = got.attributes;
  return attributes.size && attributes.time_modify ? Outcome() : std::unexpected(Status::kAttrNotSupp);
}

Outcome check_page(Worker& worker, CompoundResultReader& results) {
  if (std::exchange(worker.checked, true)) return {};
  TRY(results.result<nfs4::PutFileHandleResponse>());
  TRY_ASSIGN(const nfs4::ReadDirectoryResult page, results.result<nfs4::ReadDirectoryResponse>());
  return page.entries.size() == kFilesPerFolder && page.end ? Outcome() : std::unexpected(Status::kBadCookie);
}

void build_getattr(Worker& worker, CompoundWriter& compound) {
  const auto& files = worker.tree.files[worker.pick(kFolders)];
  put_handle(compound, files[worker.pick(kFilesPerFolder)]);
  put_attributes(compound);
}

void build_lookup(Worker& worker, CompoundWriter& compound) {
  put_handle(compound, worker.tree.folders[worker.pick(kFolders)]);
  put(compound, nfs4::LookupArguments{shared_file(worker.pick(kFilesPerFolder))});
  put(compound, nfs4::GetFileHandleArguments());
  put_attributes(compound);
}

void build_readdir(Worker& worker, CompoundWriter& compound) {
  put_handle(compound, worker.tree.folders[worker.pick(kFolders)]);
  nfs4::ReadDirectoryArguments arguments;
  arguments.directory_count = kPageNames;
  arguments.max_count = kPageBytes;
  arguments.requested = entry_attributes();
  put(compound, arguments);
}

// --- open, close, create ---

void put_open(Worker& worker, CompoundWriter& compound, std::string name, bool create) {
  put_handle(compound, worker.folder);
  put(compound, open_arguments(worker, std::move(name), create));
  put(compound, nfs4::GetFileHandleArguments());
  put_attributes(compound);
}

Outcome read_open(Worker& worker, CompoundResultReader& results) {
  TRY(results.result<nfs4::PutFileHandleResponse>());
  TRY_ASSIGN(const nfs4::OpenResult opened, results.result<nfs4::OpenResponse>());
  worker.open = opened.stateid;
  TRY_ASSIGN(nfs4::GetFileHandleResult found, results.result<nfs4::GetFileHandleResponse>());
  worker.file = std::move(found.object);
  return {};
}

std::string made_name(const Worker& worker, uint32_t number) {
  return "n" + std::to_string(worker.slot) + "." + std::to_string(number);
}

const Call kOpen = {
    .what = "OPEN",
    .build = [](Worker& worker,
                CompoundWriter& compound) { put_open(worker, compound, slot_file(worker.slot), false); },
    .read = read_open,
    .cache = true};
const Call kClose = {.what = "CLOSE",
                     .build =
                         [](Worker& worker, CompoundWriter& compound) {
                           put_handle(compound, worker.file);
                           put(compound, nfs4::CloseArguments{0, worker.open});
                         },
                     .cache = true};
const Call kCreate = {.what = "OPEN of a new file",
                      .build =
                          [](Worker& worker, CompoundWriter& compound) {
                            put_open(worker, compound, made_name(worker, worker.made), true);
                          },
                      .read = [](Worker& worker, CompoundResultReader& results) -> Outcome {
                        ++worker.made;
                        return read_open(worker, results);
                      },
                      .cache = true};
const Call kRemoveMade = {.what = "REMOVE",
                          .build =
                              [](Worker& worker, CompoundWriter& compound) {
                                worker.removed = std::min(worker.made, kRemovedAtOnce);
                                put_handle(compound, worker.folder);
                                for (uint32_t i = 1; i <= worker.removed; ++i) {
                                  put(compound, nfs4::RemoveArguments{made_name(worker, worker.made - i)});
                                }
                              },
                          .read = [](Worker& worker, CompoundResultReader&) -> Outcome {
                            worker.made -= worker.removed;
                            return {};
                          },
                          .cache = true,
                          .again = [](const Worker& worker) { return worker.made > 0; },
                          .wanted = [](const Worker& worker) { return worker.made > 0; }};

// --- lock ---

void build_lock(Worker& worker, CompoundWriter& compound) {
  put_handle(compound, worker.file);
  nfs4::LockArguments arguments;
  arguments.type = nfs4::LockType::kWrite;
  arguments.offset = uint64_t{worker.pick(kFileBytes / kBlock)} * kBlock;
  arguments.length = kBlock;
  if (worker.lock == nfs4::Stateid()) {
    nfs4::OpenToLockOwner first;
    first.open_stateid = worker.open;
    const std::string owner = "lock" + std::to_string(worker.slot);
    first.lock_owner.owner = nfs4::OwnerId(as_bytes(owner));
    arguments.locker = nfs4::LockOwner::make<nfs4::Locker::kNewOwner>(std::move(first));
  } else {
    arguments.locker = nfs4::LockOwner::make<nfs4::Locker::kExistingOwner>({worker.lock, 0});
  }
  put(compound, arguments);
}

void build_unlock(Worker& worker, CompoundWriter& compound) {
  put_handle(compound, worker.file);
  nfs4::UnlockArguments arguments;
  arguments.type = nfs4::LockType::kWrite;
  arguments.lock_stateid = worker.lock;
  arguments.length = nfs4::kLengthToEnd;
  put(compound, arguments);
}

template <typename Response>
Outcome read_lock_stateid(Worker& worker, CompoundResultReader& results) {
  TRY(results.result<nfs4::PutFileHandleResponse>());
  TRY_ASSIGN(const auto result, results.result<Response>());
  worker.lock = result.lock_stateid;
  return {};
}

const Call kLock = {
    .what = "LOCK", .build = build_lock, .read = read_lock_stateid<nfs4::LockResponse>, .cache = true};
const Call kUnlock = {
    .what = "LOCKU", .build = build_unlock, .read = read_lock_stateid<nfs4::UnlockResponse>, .cache = true};
// A slot that had nothing to do (open loop) has no lock.
const Call kForgetLock = {.what = "FREE_STATEID",
                          .build =
                              [](Worker& worker, CompoundWriter& compound) {
                                put(compound, nfs4::FreeStateidArguments{std::exchange(worker.lock, {})});
                              },
                          .wanted = [](const Worker& worker) { return worker.lock != nfs4::Stateid(); }};

// --- write, layouts ---

void put_write(Worker& worker, CompoundWriter& compound, uint64_t offset, uint32_t size,
               nfs4::StableHow stable) {
  put_handle(compound, worker.file);
  put(compound, nfs4::WriteArguments{worker.open, offset, stable, nfs4::Data::view_of(data(size))});
}

template <nfs4::StableHow kStable>
void build_write(Worker& worker, CompoundWriter& compound) {
  put_write(worker, compound, uint64_t{worker.pick(kFileBytes / kBlock)} * kBlock, kBlock, kStable);
}

Outcome read_write(Worker& worker, CompoundResultReader& results) {
  TRY(results.result<nfs4::PutFileHandleResponse>());
  TRY_ASSIGN(const nfs4::WriteResult written, results.result<nfs4::WriteResponse>());
  worker.committed = written.committed != nfs4::StableHow::kUnstable;
  return written.count >= kBlock ? Outcome() : std::unexpected(Status::kIo);
}

const Call kFill = {.what = "WRITE of the file",
                    .build =
                        [](Worker& worker, CompoundWriter& compound) {
                          put_write(worker, compound, 0, kFileBytes, nfs4::StableHow::kFileSync);
                        },
                    .read = read_write};
const Call kWriteStable = {
    .what = "WRITE", .build = build_write<nfs4::StableHow::kFileSync>, .read = read_write};
const Call kWriteUnstable = {
    .what = "WRITE", .build = build_write<nfs4::StableHow::kUnstable>, .read = read_write};
// As clients do, only where the server has not committed the WRITE already.
const Call kCommit = {.what = "COMMIT",
                      .build =
                          [](Worker& worker, CompoundWriter& compound) {
                            put_handle(compound, worker.file);
                            put(compound, nfs4::CommitArguments());
                          },
                      .wanted = [](const Worker& worker) { return !worker.committed; }};

void build_layoutget(Worker& worker, CompoundWriter& compound) {
  put_handle(compound, worker.file);
  nfs4::LayoutGetArguments arguments;
  arguments.layout_type = nfs4::kLayoutTypePmem;
  arguments.io_mode = nfs4::IoMode::kReadWrite;
  arguments.length = kFileBytes;
  arguments.min_length = kFileBytes;
  arguments.stateid = worker.open;
  arguments.max_count = kBlock;
  put(compound, arguments);
}

Outcome read_layoutget(Worker& worker, CompoundResultReader& results) {
  TRY(results.result<nfs4::PutFileHandleResponse>());
  TRY_ASSIGN(const nfs4::LayoutGetResult got, results.result<nfs4::LayoutGetResponse>());
  worker.layout = got.stateid;
  return {};
}

void build_layoutreturn(Worker& worker, CompoundWriter& compound) {
  put_handle(compound, worker.file);
  nfs4::LayoutReturnArguments arguments;
  arguments.layout_type = nfs4::kLayoutTypePmem;
  arguments.what =
      nfs4::LayoutReturnWhat::make<nfs4::LayoutReturnType::kFile>({0, nfs4::kLengthToEnd, worker.layout, {}});
  put(compound, arguments);
}

const Call kLayoutGet = {
    .what = "LAYOUTGET", .build = build_layoutget, .read = read_layoutget, .cache = true};
const Call kLayoutReturn = {.what = "LAYOUTRETURN", .build = build_layoutreturn, .cache = true};

}  // namespace

const std::vector<Row>& all_rows() {
  static const std::vector<Row> kRows = {
      {.name = "getattr",
       .what = "PUTFH GETATTR",
       .run = {{.what = "GETATTR", .build = build_getattr, .read = check_attributes}}},
      {.name = "lookup",
       .what = "PUTFH LOOKUP GETFH GETATTR",
       .run = {{.what = "LOOKUP", .build = build_lookup}}},
      {.name = "readdir",
       .what = "PUTFH READDIR of 64 entries with attributes",
       .run = {{.what = "READDIR", .build = build_readdir, .read = check_page}}},
      {.name = "open_close", .what = "PUTFH OPEN GETFH GETATTR, PUTFH CLOSE", .run = {kOpen, kClose}},
      {.name = "create",
       .what = "PUTFH OPEN(create) GETFH GETATTR, PUTFH CLOSE",
       .run = {kCreate, kClose},
       .finish = {kRemoveMade}},
      {.name = "lock",
       .what = "PUTFH LOCK, PUTFH LOCKU",
       .prepare = {kOpen},
       .run = {kLock, kUnlock},
       .finish = {kForgetLock, kClose}},
      {.name = "layoutget",
       .what = "PUTFH LAYOUTGET(RW, 64 KiB), PUTFH LAYOUTRETURN",
       .prepare = {kOpen, kFill},
       .run = {kLayoutGet, kLayoutReturn},
       .finish = {kClose},
       .layouts = true},
      {.name = "write_stable",
       .what = "PUTFH WRITE(4 KiB, FILE_SYNC)",
       .prepare = {kOpen, kFill},
       .run = {kWriteStable},
       .finish = {kClose}},
      {.name = "write_commit",
       .what = "PUTFH WRITE(4 KiB, UNSTABLE), PUTFH COMMIT",
       .prepare = {kOpen, kFill},
       .run = {kWriteUnstable, kCommit},
       .finish = {kClose}},
  };
  return kRows;
}

}  // namespace pnfsrdma::bench
