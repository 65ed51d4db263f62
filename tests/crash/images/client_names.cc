// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shared/base/check.h"
#include "tests/crash/images/client.h"

// The half of Client that has to do with names, and what the checker reads with.
namespace pnfsrdma::crash {
namespace {
constexpr uint64_t kReadMax = uint64_t{512} << 10;
}

bool Client::start() {
  link_.reset();
  if (!compounds_.connect()) return false;
  // The layouts of our last incarnation are dead: nothing beyond a committed end is in the files any more.
  journalled(true, [&] {
    for (const auto& [name, file] : files_) journal_.ends_at(file->serial, file->size);
  });
  files_.clear();
  nameless_.clear();
  return true;
}

void Client::brick_lost() {
  link_.reset();
  for (const auto& [name, file] : files_) {
    drop_layout(*file);
    // Written past the end and never committed: zeroed by the server. (FileIo writes it again.)
    std::erase_if(file->unsynced, [&](const auto& entry) { return (entry.first + 1) * kGrain > file->size; });
    file->written_end = std::min(file->written_end, file->size);
    journalled(true, [&] { journal_.ends_at(file->serial, file->size); });
  }
  for (const auto& file : nameless_) drop_layout(*file);
}

OpenFile* Client::opened(const std::string& name) {
  const auto found = files_.find(name);
  return found == files_.end() ? nullptr : found->second.get();
}

OpenFile* Client::open(const std::string& name, bool create) {
  if (OpenFile* file = opened(name)) return file;
  const bool is_new = !journal_.names.contains(name);
  if (is_new && !create) return nullptr;
  auto file = std::make_unique<OpenFile>();
  journalled(true, [&] {
    file->serial = is_new ? ++journal_.last_serial : journal_.names.at(name);
    if (!is_new) return;
    auto after = journal_.names;
    after[name] = file->serial;
    journal_.files[file->serial] = {};
    journal_.begin_names(std::move(after));
  });
  nfs4::OpenArguments arguments;
  arguments.share_access = nfs4::kShareAccessBoth | nfs4::kShareAccessWantNoDelegation;
  arguments.owner.owner = nfs4::OwnerId(as_bytes(std::string_view("owner")));
  arguments.claim = nfs4::OpenClaim::make<nfs4::ClaimType::kNull>(nfs4::Component(name));
  if (is_new) {
    nfs4::Attributes attributes;
    attributes.mode = 0644;
    arguments.how = nfs4::OpenHow::make<nfs4::OpenType::kCreate>(
        nfs4::CreateHow::make<nfs4::CreateMode::kUnchecked>(attributes));
  }
  const Reply reply =
      compounds_.call({nfs4::PutRootFileHandleArguments{}, arguments, nfs4::GetFileHandleArguments{},
                       nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kSize)}});
  const bool opened = finished(reply);
  journalled(true, [&] {
    if (is_new) opened ? journal_.renamed() : journal_.not_renamed();
  });
  if (!opened) return nullptr;
  file->open = reply.result<nfs4::OpenResponse>().stateid;
  file->handle = reply.result<nfs4::GetFileHandleResponse>().object;
  file->size = reply.result<nfs4::GetAttributesResponse>().attributes.size.value();
  return (files_[name] = std::move(file)).get();
}

bool Client::remove(const std::string& name) {
  journalled(true, [&] {
    auto after = journal_.names;
    after.erase(name);
    journal_.begin_names(std::move(after));
  });
  const bool removed = finished(
      compounds_.call({nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{nfs4::Component(name)}}));
  journalled(true, [&] { removed ? journal_.renamed() : journal_.not_renamed(); });
  if (removed && files_.contains(name)) {
    nameless_.push_back(std::move(files_[name]));
    files_.erase(name);
  }
  return removed;
}

bool Client::rename(const std::string& from, const std::string& to) {
  if (from == to || !journal_.names.contains(from)) return false;
  journalled(true, [&] {
    auto after = journal_.names;
    after[to] = after[from];
    after.erase(from);
    journal_.begin_names(std::move(after));
  });
  const bool renamed =
      finished(compounds_.call({nfs4::PutRootFileHandleArguments{}, nfs4::SaveFileHandleArguments{},
                                nfs4::RenameArguments{nfs4::Component(from), nfs4::Component(to)}}));
  journalled(true, [&] { renamed ? journal_.renamed() : journal_.not_renamed(); });
  if (renamed) move_name(from, to);
  return renamed;
}

void Client::move_name(const std::string& from, const std::string& to) {
  if (files_.contains(to)) nameless_.push_back(std::move(files_[to]));
  files_.erase(to);
  if (!files_.contains(from)) return;
  files_[to] = std::move(files_[from]);
  files_.erase(from);
}

bool Client::close(const std::string& name) {
  OpenFile* file = opened(name);
  if (file == nullptr) return true;
  if (!commit(*file, Flush::kNative)) return false;
  journalled(true, [&] { journal_.synced(file->serial, {}, file->size); });
  Operations operations = layout_return(*file);
  operations.push_back(nfs4::CloseArguments{.open_stateid = file->open});
  if (!finished(compounds_.call(operations))) return false;
  journalled(true, [&] { journal_.ends_at(file->serial, file->size); });
  files_.erase(name);
  return true;
}

void Client::close_nameless() {
  for (const auto& file : std::exchange(nameless_, {})) {
    Operations operations = layout_return(*file);
    operations.push_back(nfs4::CloseArguments{.open_stateid = file->open});
    finished(compounds_.call(operations));
  }
}

// --- for the checker ---

std::optional<uint64_t> Client::size_of(const OpenFile& file) {
  const Reply reply =
      compounds_.call({nfs4::PutFileHandleArguments{file.handle},
                       nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kSize)}});
  if (!reply.ok()) return std::nullopt;
  return reply.result<nfs4::GetAttributesResponse>().attributes.size;
}

std::optional<Bytes> Client::read_through_server(const OpenFile& file, uint64_t offset, uint64_t length) {
  Bytes all;
  while (all.size() < length) {
    nfs4::ReadArguments arguments{.stateid = file.open, .offset = offset + all.size()};
    arguments.count = static_cast<uint32_t>(std::min(kReadMax, length - all.size()));
    const Reply reply = compounds_.call({nfs4::PutFileHandleArguments{file.handle}, arguments});
    if (!reply.ok()) return std::nullopt;
    const ByteSpan part = reply.result<nfs4::ReadResponse>().data.span();
    if (part.empty()) return std::nullopt;
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::optional<Bytes> Client::read(OpenFile& file, uint64_t offset, uint64_t length) {
  Bytes all(length);
  for (uint64_t at = 0; at < length; at += kReadMax) {
    const uint64_t count = std::min(kReadMax, length - at);
    if (!cover(file, offset + at, count, 0, false)) return std::nullopt;
    const bool read =
        each_piece(file, offset + at, count, [&](const auto& piece, uint64_t from, uint64_t part) {
          if (piece.hole) return true;
          const auto source = remote(piece, from, part);
          return source && link_->read(MutableByteSpan(all).subspan(from - offset, part), *source);
        });
    if (!read) return std::nullopt;
  }
  return all;
}

std::optional<std::vector<std::string>> Client::names() {
  nfs4::ReadDirectoryArguments arguments{.directory_count = 4096, .max_count = 65536};
  arguments.requested = nfs4::Bitmap::of(nfs4::Attribute::kType);
  const Reply reply = compounds_.call({nfs4::PutRootFileHandleArguments{}, arguments});
  if (!reply.ok() || !reply.result<nfs4::ReadDirectoryResponse>().end) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& entry : reply.result<nfs4::ReadDirectoryResponse>().entries) names.push_back(entry.name);
  return names;
}

}  // namespace pnfsrdma::crash
