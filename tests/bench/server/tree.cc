// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/server/tree.h"

#include <algorithm>

#include "shared/nfs4/pmem_layout.h"

namespace pnfsrdma::bench {
namespace {

using nfs4::CompoundResultReader;
using nfs4::CompoundWriter;
using nfs4::Status;

constexpr uint32_t kFolderMode = 0755;
constexpr uint32_t kFileMode = 0644;

void put_lookup(CompoundWriter& compound, std::string name) {
  put(compound, nfs4::LookupArguments{std::move(name)});
}

void put_folder(CompoundWriter& compound, std::string name) {
  nfs4::CreateArguments arguments;
  arguments.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  arguments.name = std::move(name);
  arguments.attributes.mode = kFolderMode;
  put(compound, arguments);
}

// The handle behind PUTFH and LOOKUP.
Outcome read_looked_up(CompoundResultReader& results, nfs4::FileHandle& handle) {
  TRY(results.result<nfs4::PutFileHandleResponse>());
  TRY(results.result<nfs4::LookupResponse>());
  TRY_ASSIGN(nfs4::GetFileHandleResult found, results.result<nfs4::GetFileHandleResponse>());
  handle = std::move(found.object);
  return {};
}

bool of_our_type(const nfs4::Attributes& attributes) {
  return attributes.fs_layout_types &&
         std::ranges::find(*attributes.fs_layout_types, nfs4::kLayoutTypePmem) !=
             attributes.fs_layout_types->end();
}

Outcome read_above(Worker& worker, CompoundResultReader& results) {
  TRY(results.result<nfs4::PutRootFileHandleResponse>());
  for (size_t i = 0; i < worker.tree.above.size(); ++i) TRY(results.result<nfs4::LookupResponse>());
  TRY_ASSIGN(nfs4::GetFileHandleResult found, results.result<nfs4::GetFileHandleResponse>());
  worker.tree.above_handle = std::move(found.object);
  return {};
}

Outcome read_layout_types(Worker& worker, CompoundResultReader& results) {
  TRY(results.result<nfs4::PutFileHandleResponse>());
  TRY_ASSIGN(const nfs4::GetAttributesResult got, results.result<nfs4::GetAttributesResponse>());
  worker.tree.layouts = of_our_type(got.attributes);
  return {};
}

// OPEN, GETFH and CLOSE in one COMPOUND, by the current stateid.
void put_made_file(Worker& worker, CompoundWriter& compound, const nfs4::FileHandle& folder,
                   std::string name) {
  put_handle(compound, folder);
  put(compound, open_arguments(worker, std::move(name), true));
  put(compound, nfs4::GetFileHandleArguments());
  put(compound, nfs4::CloseArguments{0, nfs4::Stateid::current()});
}

void put_removal(CompoundWriter& compound, const nfs4::FileHandle& folder, std::string name) {
  put_handle(compound, folder);
  put(compound, nfs4::RemoveArguments{std::move(name)});
}

// The next client whose folder this worker removes; slots.size(): none.
uint32_t next_client(const Worker& worker) {
  const auto& slots = worker.tree.slots;
  uint32_t number = worker.number;
  while (number < slots.size() && slots[number] == 0) number += kFolders;
  return std::min<uint32_t>(number, static_cast<uint32_t>(slots.size()));
}

bool has_client(const Worker& worker) {
  return next_client(worker) < worker.tree.slots.size();
}

}  // namespace

nfs4::OpenArguments open_arguments(const Worker& worker, std::string name, bool create) {
  nfs4::OpenArguments arguments;
  arguments.share_access = nfs4::kShareAccessBoth | nfs4::kShareAccessWantNoDelegation;
  const std::string owner = "open" + std::to_string(worker.slot);
  arguments.owner.owner = nfs4::OwnerId(as_bytes(owner));
  if (create) {
    nfs4::Attributes attributes;
    attributes.mode = kFileMode;
    arguments.how = nfs4::OpenHow::make<nfs4::OpenType::kCreate>(
        nfs4::CreateHow::make<nfs4::CreateMode::kUnchecked>(std::move(attributes)));
  }
  arguments.claim = nfs4::OpenClaim::make<nfs4::ClaimType::kNull>(std::move(name));
  return arguments;
}

Outcome read_made_file(Worker& worker, CompoundResultReader& results) {
  TRY(results.result<nfs4::PutFileHandleResponse>());
  TRY(results.result<nfs4::OpenResponse>());
  TRY_ASSIGN(nfs4::GetFileHandleResult made, results.result<nfs4::GetFileHandleResponse>());
  worker.file = std::move(made.object);
  return {};
}

const Calls& make_root() {
  static const Calls kCalls = {
      {.what = "LOOKUP of the path",
       .build =
           [](Worker& worker, CompoundWriter& compound) {
             put(compound, nfs4::PutRootFileHandleArguments());
             for (const std::string& component : worker.tree.above) put_lookup(compound, component);
             put(compound, nfs4::GetFileHandleArguments());
           },
       .read = read_above},
      {.what = "CREATE of the generator's folder",
       .build =
           [](Worker& worker, CompoundWriter& compound) {
             put_handle(compound, worker.tree.above_handle);
             put_folder(compound, worker.tree.name);
           },
       .cache = true},
      {.what = "LOOKUP of the generator's folder",
       .build =
           [](Worker& worker, CompoundWriter& compound) {
             put_handle(compound, worker.tree.above_handle);
             put_lookup(compound, worker.tree.name);
             put(compound, nfs4::GetFileHandleArguments());
           },
       .read = [](Worker& worker,
                  CompoundResultReader& results) { return read_looked_up(results, worker.tree.root); }},
      {.what = "GETATTR of layout types",
       .build =
           [](Worker& worker, CompoundWriter& compound) {
             put_handle(compound, worker.tree.root);
             put(compound, nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kFsLayoutTypes)});
           },
       .read = read_layout_types},
  };
  return kCalls;
}

const Calls& remove_root() {
  static const Calls kCalls = {
      {.what = "REMOVE of the generator's folder", .build = [](Worker& worker, CompoundWriter& compound) {
         put_removal(compound, worker.tree.above_handle, worker.tree.name);
       }}};
  return kCalls;
}

const Calls& make_shared_folder() {
  static const Calls kCalls = {
      {.what = "CREATE of a folder",
       .build =
           [](Worker& worker, CompoundWriter& compound) {
             put_handle(compound, worker.tree.root);
             put_folder(compound, shared_folder(worker.number));
           },
       .cache = true},
      {.what = "LOOKUP of a folder",
       .build =
           [](Worker& worker, CompoundWriter& compound) {
             put_handle(compound, worker.tree.root);
             put_lookup(compound, shared_folder(worker.number));
             put(compound, nfs4::GetFileHandleArguments());
           },
       .read =
           [](Worker& worker, CompoundResultReader& results) {
             return read_looked_up(results, worker.tree.folders[worker.number]);
           }},
      {.what = "OPEN of a new file",
       .build =
           [](Worker& worker, CompoundWriter& compound) {
             auto& files = worker.tree.files[worker.number];
             put_made_file(worker, compound, worker.tree.folders[worker.number],
                           shared_file(static_cast<uint32_t>(files.size())));
           },
       .read = [](Worker& worker, CompoundResultReader& results) -> Outcome {
         TRY(read_made_file(worker, results));
         worker.tree.files[worker.number].push_back(worker.file);
         return {};
       },
       .cache = true,
       .again =
           [](const Worker& worker) { return worker.tree.files[worker.number].size() < kFilesPerFolder; }},
  };
  return kCalls;
}

const Calls& remove_folders() {
  constexpr uint32_t kAtOnce = 32;
  static const Calls kCalls = {
      {.what = "REMOVE of a client's folder",
       .build =
           [](Worker& worker, CompoundWriter& compound) {
             const uint32_t client = next_client(worker);
             put_handle(compound, worker.tree.root);
             put_lookup(compound, client_folder(client));
             for (uint32_t slot = 0; slot < worker.tree.slots[client]; ++slot) {
               put(compound, nfs4::RemoveArguments{slot_file(slot)});
             }
             put_removal(compound, worker.tree.root, client_folder(client));
           },
       .read = [](Worker& worker, CompoundResultReader&) -> Outcome {
         worker.tree.slots[next_client(worker)] = 0;
         return {};
       },
       .again = has_client,
       .wanted = has_client},
      {.what = "REMOVE of files",
       .build =
           [](Worker& worker, CompoundWriter& compound) {
             auto& files = worker.tree.files[worker.number];
             put_handle(compound, worker.tree.folders[worker.number]);
             for (uint32_t i = 0; i < kAtOnce && !files.empty(); ++i) {
               files.pop_back();
               put(compound, nfs4::RemoveArguments{shared_file(static_cast<uint32_t>(files.size()))});
             }
           },
       .again = [](const Worker& worker) { return !worker.tree.files[worker.number].empty(); }},
      {.what = "REMOVE of a folder",
       .build =
           [](Worker& worker, CompoundWriter& compound) {
             put_removal(compound, worker.tree.root, shared_folder(worker.number));
           }},
  };
  return kCalls;
}

const Calls& make_client_folder() {
  static const Calls kCalls = {
      {.what = "CREATE of a client's folder",
       .build =
           [](Worker& worker, CompoundWriter& compound) {
             put_handle(compound, worker.tree.root);
             put_folder(compound, client_folder(worker.number));
           },
       .cache = true,
       .also_good = Status::kExist},
      {.what = "LOOKUP of a client's folder",
       .build =
           [](Worker& worker, CompoundWriter& compound) {
             put_handle(compound, worker.tree.root);
             put_lookup(compound, client_folder(worker.number));
             put(compound, nfs4::GetFileHandleArguments());
           },
       .read = [](Worker& worker,
                  CompoundResultReader& results) { return read_looked_up(results, worker.folder); }},
      {.what = "OPEN of a client's file",
       .build =
           [](Worker& worker, CompoundWriter& compound) {
             put_made_file(worker, compound, worker.folder, slot_file(worker.slot));
           },
       .read = [](Worker& worker, CompoundResultReader& results) -> Outcome {
         TRY(read_made_file(worker, results));
         auto& slots = worker.tree.slots;
         if (slots.size() <= worker.number) slots.resize(worker.number + 1);
         slots[worker.number] = std::max(slots[worker.number], worker.slot + 1);
         return {};
       },
       .cache = true},
  };
  return kCalls;
}

}  // namespace pnfsrdma::bench
