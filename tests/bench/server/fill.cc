// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/server/fill.h"

#include <algorithm>
#include <chrono>

#include "shared/nfs4/pmem_layout.h"
#include "tests/bench/server/settings.h"
#include "tests/bench/server/tree.h"

namespace pnfsrdma::bench {
namespace {

using nfs4::CompoundResultReader;
using nfs4::CompoundWriter;

constexpr uint64_t kLayoutBytes = 4096;
constexpr uint32_t kLayoutReplyBytes = 4096;

// CREATE makes the new folder the current filehandle.
void build_folder(Worker& worker, CompoundWriter& compound) {
  worker.taken = std::min(worker.taken, worker.tree.many.begun_folders);
  if (worker.taken == worker.tree.many.begun_folders) ++worker.tree.many.begun_folders;
  put_handle(compound, worker.tree.root);
  nfs4::CreateArguments arguments;
  arguments.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  arguments.name = "m" + std::to_string(worker.taken);
  arguments.attributes.mode = 0755;
  put(compound, arguments);
  put(compound, nfs4::GetFileHandleArguments());
}

Outcome read_folder(Worker& worker, CompoundResultReader& results) {
  TRY(results.result<nfs4::PutFileHandleResponse>());
  TRY(results.result<nfs4::CreateResponse>());
  TRY_ASSIGN(nfs4::GetFileHandleResult made, results.result<nfs4::GetFileHandleResponse>());
  worker.tree.many.folders[worker.taken] = std::move(made.object);
  worker.taken = kNothingTaken;
  return {};
}

bool folders_left(const Worker& worker) {
  return worker.tree.many.begun_folders < worker.tree.many.folders.size();
}

void put_layoutget(CompoundWriter& compound) {
  nfs4::LayoutGetArguments arguments;
  arguments.layout_type = nfs4::kLayoutTypePmem;
  arguments.io_mode = nfs4::IoMode::kReadWrite;
  arguments.length = arguments.min_length = kLayoutBytes;
  arguments.stateid = nfs4::Stateid::current();
  arguments.max_count = kLayoutReplyBytes;
  put(compound, arguments);
}

// To memory of the brick, by the server; nobody waits until it is durable.
void put_bytes(CompoundWriter& compound, uint32_t size) {
  static const Bytes kBytes(kFileBytes, std::byte{0x5a});
  put(compound, nfs4::WriteArguments{nfs4::Stateid::current(), 0, nfs4::StableHow::kUnstable,
                                     nfs4::Data::view_of(ByteSpan(kBytes).first(size))});
}

// OPEN and CLOSE, or what is held of the file, in one COMPOUND, by the current stateid.
void build_file(Worker& worker, CompoundWriter& compound) {
  ManyFiles& many = worker.tree.many;
  worker.taken = std::min(worker.taken, many.begun);
  if (worker.taken == many.begun) ++many.begun;
  put_handle(compound, many.folders[worker.taken % many.folders.size()]);
  put(compound, open_arguments(worker, "file" + std::to_string(worker.taken), true));
  if (many.bytes > 0) put_bytes(compound, many.bytes);
  if (many.layouts_held) put_layoutget(compound);
  if (!many.opens_held) put(compound, nfs4::CloseArguments{0, nfs4::Stateid::current()});
}

Outcome read_file(Worker& worker, CompoundResultReader&) {
  worker.taken = kNothingTaken;
  ManyFiles& many = worker.tree.many;
  ++many.made;
  if (many.made * Filling::kParts / many.wanted > many.marks.size()) {
    many.marks.push_back(std::chrono::steady_clock::now());
  }
  return {};
}

bool files_left(const Worker& worker) {
  return worker.tree.many.begun < worker.tree.many.wanted;
}

}  // namespace

Result<Filling> fill(Fleet& fleet, Tree& tree, const ServerSettings& settings) {
  static const Calls kFolders = {{.what = "CREATE of a folder",
                                  .build = build_folder,
                                  .read = read_folder,
                                  .cache = true,
                                  .again = folders_left,
                                  .wanted = folders_left}};
  static const Calls kFiles = {{.what = "OPEN of a new file",
                                .build = build_file,
                                .read = read_file,
                                .cache = true,
                                .again = files_left,
                                .wanted = files_left}};
  tree.many = ManyFiles();
  tree.many.wanted = settings.fill;
  tree.many.layouts_held = settings.hold == "layouts";
  tree.many.opens_held = tree.many.layouts_held || settings.hold == "opens";
  tree.many.bytes = settings.fill_bytes;
  tree.many.folders.resize(settings.folders);
  TRY(fleet.play(kFolders));
  auto before = std::chrono::steady_clock::now();
  TRY(fleet.play(kFiles));
  Filling filling{.files = settings.fill, .rates = {}};
  for (const auto& mark : tree.many.marks) {
    const double seconds = std::chrono::duration<double>(mark - before).count();
    filling.rates.push_back(static_cast<double>(settings.fill) / Filling::kParts / seconds);
    before = mark;
  }
  return filling;
}

}  // namespace pnfsrdma::bench
