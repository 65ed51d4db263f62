// SPDX-License-Identifier: Apache-2.0
#include "library/session/session_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::library::session {
namespace {

constexpr uint32_t kPageBytes = 64 * 1024;

nfs4::Bitmap wanted_attributes() {
  return nfs4::Bitmap::of(nfs4::Attribute::kType) | nfs4::Bitmap::of(nfs4::Attribute::kFileId);
}

unsigned char type_of(const nfs4::Attributes& attributes) {
  switch (attributes.type.value_or(nfs4::FileType::kAttributeDirectory)) {
    case nfs4::FileType::kRegular:
      return DT_REG;
    case nfs4::FileType::kDirectory:
      return DT_DIR;
    case nfs4::FileType::kBlock:
      return DT_BLK;
    case nfs4::FileType::kCharacter:
      return DT_CHR;
    case nfs4::FileType::kLink:
      return DT_LNK;
    case nfs4::FileType::kSocket:
      return DT_SOCK;
    case nfs4::FileType::kFifo:
      return DT_FIFO;
    default:
      return DT_UNKNOWN;
  }
}

}  // namespace

Result<std::unique_ptr<SessionDirectory>> SessionDirectory::open(Client& client, std::string_view path) {
  initiator::Credential who = Client::caller();
  TRY_ASSIGN(const Names::Answer answer,
             client.names().at(path, who,
                               {nfs4::GetFileHandleArguments{},
                                nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kType)}}));
  const auto* handle = answer.result<nfs4::GetFileHandleResponse>(0);
  const auto* told = answer.result<nfs4::GetAttributesResponse>(1);
  if (handle == nullptr || told == nullptr) return fail(EPROTO, "GETFH, GETATTR");
  if (told->attributes.type != nfs4::FileType::kDirectory)
    return fail(ENOTDIR, fmt::format("{}: not a directory", path));
  std::unique_ptr<SessionDirectory> opened(new SessionDirectory(client, handle->object, std::move(who)));
  // Who may not read it is told now.
  TRY(opened->fetch());
  return opened;
}

Result<> SessionDirectory::fetch() {
  nfs4::ReadDirectoryArguments arguments;
  arguments.cookie = page_.cookie;
  arguments.cookie_verifier = page_.verifier;
  arguments.directory_count = kPageBytes / 4;
  arguments.max_count = std::min(kPageBytes, session_.io_size_max());
  arguments.requested = wanted_attributes();
  TRY_ASSIGN(initiator::CompoundReply reply,
             session_.call({nfs4::PutFileHandleArguments{handle_}, std::move(arguments)}, who_));
  page_.entries.clear();
  page_.next = 0;
  // Removed while it was open: empty, as rmdir(2) wanted it.
  page_.is_last = reply.status == nfs4::Status::kStale;
  if (page_.is_last) return {};
  const auto* result = reply.result<nfs4::ReadDirectoryResponse>(1);
  if (result == nullptr) {
    return fail(nfs4::to_errno(reply.status),
                fmt::format("reading the directory: the server answers {}", nfs4::to_string(reply.status)));
  }
  if (result->entries.empty() && !result->end) return fail(EPROTO, "READDIR: no entries, and not the end");
  page_.entries.assign(result->entries.begin(), result->entries.end());
  if (!page_.entries.empty()) page_.cookie = page_.entries.back().cookie;
  page_.verifier = result->cookie_verifier;
  page_.is_last = result->end;
  return {};
}

Result<bool> SessionDirectory::next(struct dirent& entry) {
  for (;;) {
    while (page_.next == page_.entries.size()) {
      if (page_.is_last) return false;
      TRY(fetch());
    }
    const nfs4::DirectoryEntry& found = page_.entries[page_.next++];
    if (is_special(found.name)) continue;
    TRY(fill(entry, found.attributes.file_id.value_or(0), type_of(found.attributes), found.name));
    return true;
  }
}

}  // namespace pnfsrdma::library::session
