// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/file_view.h"

#include <cerrno>

#include "server/mds/admin/path_lookup.h"
#include "server/mds/meta/extents.h"

namespace pnfsrdma::mds {

namespace {

constexpr size_t kExtentsMax = 1000;

console::FileType shown_type(FileType type) {
  switch (type) {
    case FileType::kRegular:
      return console::FileType::kRegular;
    case FileType::kDirectory:
      return console::FileType::kDirectory;
    case FileType::kBlockDevice:
      return console::FileType::kBlockDevice;
    case FileType::kCharacterDevice:
      return console::FileType::kCharacterDevice;
    case FileType::kSymlink:
      return console::FileType::kSymlink;
    case FileType::kSocket:
      return console::FileType::kSocket;
    case FileType::kFifo:
      return console::FileType::kFifo;
  }
  return console::FileType::kRegular;
}

Result<> add_extents(Namespace& names, const Inode& inode, console::File& file) {
  Extents extents(names.store());
  TRY_ASSIGN(const auto all, extents.overlapping(inode.id, 0, UINT64_MAX, kExtentsMax + 1));
  for (const Extent& extent : all) {
    if (file.extents.size() >= kExtentsMax) {
      file.extents_truncated = true;
      break;
    }
    file.extents.push_back(
        {.offset = extent.file_offset, .length = extent.length, .brick = {}, .logical = extent.logical});
  }
  return {};
}

}  // namespace

Result<console::File> view_file(Namespace& names, const OpenTable& opens, const std::string& path) {
  TRY_ASSIGN(const InodePointer inode, find_path(names, path));
  console::File file{.path = path,
                     .inode = inode->id,
                     .type = shown_type(inode->type),
                     .size = inode->size,
                     .space_used = inode->space_used,
                     .mode = inode->mode,
                     .uid = inode->uid,
                     .gid = inode->gid,
                     .links = inode->nlink,
                     .modified = inode->mtime,
                     .open_by = {},
                     .extents = {}};
  file.open_by = opens.clients_of_file(inode->id);
  if (inode->is_regular()) TRY(add_extents(names, *inode, file));
  return file;
}

}  // namespace pnfsrdma::mds
