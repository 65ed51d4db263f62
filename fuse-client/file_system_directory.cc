// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "fuse-client/directory_stream.h"
#include "fuse-client/file_system.h"

// opendir, readdir, readdirplus, releasedir. READDIR asks for all attributes and the filehandle, so that `ls
// -l` and `find` cost one call per some hundred entries. The kernel keeps a whole listing: Inode::keeps_listing().
namespace pnfsrdma::fuse_client {
namespace {

// Bytes of one READDIR reply: a few hundred entries with attributes.
constexpr uint32_t kReplyBytes = 128u << 10;

const nfs4::Bitmap& entry_attributes() {
  static const nfs4::Bitmap kWanted =
      client::stat_attributes() | nfs4::Bitmap::of(nfs4::Attribute::kFileHandle);
  return kWanted;
}

DirectoryStream& stream_of(const fuse_file_info* info) {
  return *reinterpret_cast<DirectoryStream*>(info->fh);
}

}  // namespace

// Collects entries as the kernel wants them, up to the size it asked for.
class FileSystem::Listing {
 public:
  Listing(fuse_req_t request, size_t size) : request_(request), bytes_(size) {}

  bool add(const char* name, const struct stat& status, off_t next) {
    return take(fuse_add_direntry(request_, free(), room(), name, &status, next));
  }
  bool add(const char* name, const fuse_entry_param& entry, off_t next) {
    return take(fuse_add_direntry_plus(request_, free(), room(), name, &entry, next));
  }
  void reply() { fuse_reply_buf(request_, bytes_.data(), used_); }

 private:
  char* free() { return bytes_.data() + used_; }
  size_t room() const { return bytes_.size() - used_; }
  // libfuse says what it would need; more than there is room for was not added.
  bool take(size_t needed) {
    if (needed > room()) return false;
    used_ += needed;
    return true;
  }

  fuse_req_t request_;
  std::vector<char> bytes_;
  size_t used_ = 0;
};

void FileSystem::opendir(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  const std::shared_ptr<Inode> directory = inode(node);
  directory->directory_opened();
  info->fh =
      open_directories_.give(std::make_unique<DirectoryStream>(directory, parts_.listings.bytes_max()));
  // A listing says what is not there, as a lookup does.
  info->cache_readdir = parts_.names.believes_absent() ? 1 : 0;
  info->keep_cache = parts_.names.keeps_listing(*directory, parts_.clock.now()) ? 1 : 0;
  if (fuse_reply_open(request, info) == -ENOENT) releasedir(nullptr, info);
}

void FileSystem::releasedir(fuse_req_t request, fuse_file_info* info) {
  const std::unique_ptr<DirectoryStream> stream = open_directories_.take_back(info->fh);
  stream->directory->directory_closed();
  if (request != nullptr) fuse_reply_err(request, 0);
}

void FileSystem::readdir(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, fuse_file_info* info,
                         bool plus) {
  Listing listing(request, size);
  int error = 0;
  {
    DirectoryStream& stream = stream_of(info);
    // Held across the call: the stream is one reader's; only its own requests wait.
    const std::lock_guard lock(stream.mutex);
    error = list(request, *inode(node), stream, static_cast<uint64_t>(offset), plus, listing);
  }
  // Once the kernel has its answer it may release the stream: nothing of it is touched from here on.
  if (error != 0) {
    fuse_reply_err(request, error);
  } else {
    listing.reply();
  }
}

// Fills the listing with what comes behind `position`. 0 or an errno.
int FileSystem::list(fuse_req_t request, const Inode& directory, DirectoryStream& stream, uint64_t position,
                     bool plus, Listing& listing) {
  // "." and "..": the kernel wants only their names here.
  const auto add_special = [&](const char* name, uint64_t next) {
    fuse_entry_param entry{};
    entry.attr.st_ino = directory.id;
    entry.attr.st_mode = S_IFDIR;
    const bool added = plus ? listing.add(name, entry, static_cast<off_t>(next))
                            : listing.add(name, entry.attr, static_cast<off_t>(next));
    if (added) position = next;
    return added;
  };
  if (position == 0) stream.rewind();
  if (position == 0 && !add_special(".", kDotOffset)) return 0;
  if (position == kDotOffset && !add_special("..", kDotDotOffset)) return 0;
  return list_entries(request, directory, stream, position, plus, listing);
}

int FileSystem::list_entries(fuse_req_t request, const Inode& directory, DirectoryStream& stream,
                             uint64_t position, bool plus, Listing& listing) {
  for (bool has_entries = false;; has_entries = true) {
    const uint64_t cookie = DirectoryStream::cookie_of(position);
    if (stream.has_kept() || take_kept_listing(stream, cookie)) {
      const ListedEntry* kept = stream.kept_after(cookie);
      if (kept != nullptr && add_kept_entry(listing, directory, *kept, plus)) {
        position = kept->cookie;
        continue;
      }
      if (stream.has_kept()) break;  // the end of it, or of the room
    }
    const nfs4::DirectoryEntry* entry = stream.after(cookie);
    if (entry == nullptr) {
      // What is there goes out first; more is asked for when the kernel comes back.
      if (has_entries || stream.at_end(cookie)) break;
      if (const int error = fetch(request, stream, cookie); error != 0) return error;
      entry = stream.after(cookie);
      if (entry == nullptr) break;
    }
    if (!add_entry(listing, directory, stream, *entry, plus)) break;
    position = entry->cookie;
  }
  return 0;
}

nfs4::ReadDirectoryArguments FileSystem::read_directory(uint64_t cookie,
                                                        const nfs4::Verifier& verifier) const {
  nfs4::ReadDirectoryArguments arguments;
  arguments.cookie = cookie;
  arguments.cookie_verifier = verifier;
  arguments.directory_count = kReplyBytes / 4;
  arguments.max_count = std::min(kReplyBytes, parts_.session.io_size_max());
  arguments.requested = entry_attributes();
  return arguments;
}

// One READDIR from `cookie` on. 0 or an errno.
int FileSystem::fetch(fuse_req_t request, DirectoryStream& stream, uint64_t cookie) {
  const Operations operations = {nfs4::GetAttributesArguments{client::stat_attributes()},
                                 read_directory(cookie, stream.verifier(cookie))};
  DirectoryCall called;
  if (cookie == 0) {
    called = call_directory(request, stream.directory, Inode::AskedFor::kListing, operations);
  } else {
    called.question = ask(nullptr);
    called.error =
        call(request, {nfs4::PutFileHandleArguments{stream.directory->handle}, operations[0], operations[1]},
             called.reply);
  }
  // Removed by another host, or what it was in: a snapshot, an export. An empty listing, or the end of one, would tell
  // programs that copy that there is nothing. (What this host has removed the kernel lists as empty by itself.)
  if (called.error == ESTALE) {
    stream.directory->expire();
    return called.error;
  }
  learn_directory(*stream.directory, called.question, called.reply, called.at);
  const auto* before = called.reply.result<nfs4::GetAttributesResponse>(called.at);
  const auto* result = called.reply.result<nfs4::ReadDirectoryResponse>(called.at + 1);
  if (called.error != 0 || result == nullptr) return called.error != 0 ? called.error : EIO;
  take_page(stream, called.question, cookie, before ? before->attributes.change : std::nullopt, *result);
  return 0;
}

// `change`: the directory's, ahead of the page.
void FileSystem::take_page(DirectoryStream& stream, const Question& question, uint64_t cookie,
                           std::optional<uint64_t> change, const nfs4::ReadDirectoryResult& page) {
  const std::shared_ptr<Inode>& directory = stream.directory;
  const std::vector<uint64_t> nodes = learn_page(directory, question, change, page);
  stream.is_learnt = !nodes.empty();
  stream.take(cookie, page);
  stream.asked_at = question.asked_at;
  stream.name_changes = question.name_changes;
  if (!parts_.names.believes_absent()) return;
  stream.names.take(cookie, question.asked_at, change, listed_entries(page, nodes), page.end);
  auto whole = stream.names.take_whole();
  if (!whole) return;
  if (whole->names) directory->names_complete(*whole->names, whole->change);
  directory->listed(whole->change, whole->asked_at);
  if (!whole->entries) return parts_.listings.forget(directory->node);
  parts_.listings.keep(directory->node, std::make_shared<const WholeListing>(
                                            WholeListing{std::move(*whole->entries), whole->change,
                                                         whole->asked_at, page.cookie_verifier}));
}

// The kernel may have dropped the one that it kept.
bool FileSystem::take_kept_listing(DirectoryStream& stream, uint64_t cookie) {
  if (cookie != 0) return false;
  auto kept = parts_.listings.find(stream.directory->node);
  if (!kept || !parts_.names.believes(*kept, *stream.directory, parts_.clock.now())) return false;
  stream.take_kept(std::move(kept));
  return true;
}

// What a page of a listing says of its files, as if each had been looked up, though the kernel may not be told of them.
// Their nodes; 0: there is none. Nothing if none are kept.
std::vector<uint64_t> FileSystem::learn_page(const std::shared_ptr<Inode>& directory,
                                             const Question& question, std::optional<uint64_t> change,
                                             const nfs4::ReadDirectoryResult& page) {
  std::vector<uint64_t> nodes;
  if (parts_.listings.bytes_max() == 0) return nodes;
  nodes.reserve(page.entries.size());
  std::vector<std::string> names;
  const SteadyTime until = parts_.clock.now() + parts_.options.attributes.directory_min;
  for (const nfs4::DirectoryEntry& entry : page.entries) {
    uint64_t& node = nodes.emplace_back(0);
    const auto attributes = client::to_file_attributes(entry.attributes);
    if (!attributes || !entry.attributes.file_handle) continue;
    const auto inode = parts_.inodes.keep(*entry.attributes.file_handle, attributes->status.st_ino);
    if (!inode) continue;
    node = inode->node;
    // What has been written through a data path is not in the answer, perhaps.
    if (!inode->data()) (void)learn(*inode, question, *attributes);
    inode->found_as(*directory, entry.name, until);
    parts_.inodes.named(*inode, directory, entry.name);
    names.push_back(entry.name);
  }
  if (change) directory->names_are_found(names, *change);
  give_back_gone();
  return nodes;
}

bool FileSystem::add_kept_entry(Listing& listing, const Inode& directory, const ListedEntry& entry,
                                bool plus) {
  const auto next = static_cast<off_t>(entry.cookie);
  fuse_entry_param param{};
  param.attr.st_ino = entry.file_id;
  param.attr.st_mode = entry.type;
  if (!plus) return listing.add(entry.name.c_str(), param.attr, next);
  const SteadyTime now = parts_.clock.now();
  const auto known = known_entry(directory, parts_.names.listed(directory, entry.node, now), now);
  if (!known) return listing.add(entry.name.c_str(), param, next);
  // Of several, the one that the kernel has been told last.
  if (known->attributes.status.st_nlink > 1)
    parts_.inodes.named(*known->inode, directory.shared_from_this(), entry.name);
  if (listing.add(entry.name.c_str(), known->param, next)) return true;
  forget_lookups(known->param.ino, 1);  // did not fit: the kernel never hears of it
  return false;
}

// With one lookup more. What the inode has learnt of the page already, it does not learn twice.
std::expected<FileSystem::Entry, int> FileSystem::make_listed_entry(const DirectoryStream& stream,
                                                                    const nfs4::DirectoryEntry& entry) {
  const Question question{.asked_at = stream.asked_at, .name_changes = stream.name_changes, .data = nullptr};
  if (!stream.is_learnt) return make_entry(question, &*entry.attributes.file_handle, &entry.attributes);
  const auto said = client::to_file_attributes(entry.attributes);
  if (!said) return std::unexpected(nfs4::to_errno(said.error()));
  const SteadyTime now = parts_.clock.now();
  std::shared_ptr<Inode> inode = parts_.inodes.look_up(*entry.attributes.file_handle, said->status.st_ino);
  const bool is_known = inode->has_answer_of(stream.asked_at);
  const auto believed = is_known ? beliefs_.believed(*inode, now) : std::nullopt;
  const Shown shown = believed   ? show(*inode, *believed)
                      : is_known ? show(*inode, {*said, Milliseconds(0), stream.asked_at})
                                 : take_in(*inode, question, *said);
  return entry_of(std::move(inode), shown, now - stream.asked_at);
}

bool FileSystem::add_entry(Listing& listing, const Inode& directory, const DirectoryStream& stream,
                           const nfs4::DirectoryEntry& entry, bool plus) {
  const auto next = static_cast<off_t>(entry.cookie);
  const auto attributes = client::to_file_attributes(entry.attributes);
  fuse_entry_param param{};
  if (attributes) param.attr = attributes->status;
  if (!plus) return listing.add(entry.name.c_str(), param.attr, next);
  // Without a handle the kernel gets the name only (node 0) and looks it up when it needs more.
  if (!attributes || !entry.attributes.file_handle) return listing.add(entry.name.c_str(), param, next);
  auto made = make_listed_entry(stream, entry);
  if (!made) return listing.add(entry.name.c_str(), param, next);
  if (!stream.is_learnt) {
    made->inode->found_as(directory, entry.name,
                          parts_.clock.now() + parts_.options.attributes.directory_min);
    parts_.inodes.named(*made->inode, directory.shared_from_this(), entry.name);
  }
  if (listing.add(entry.name.c_str(), made->param, next)) return true;
  forget_lookups(made->param.ino, 1);  // did not fit: the kernel never hears of it
  return false;
}

}  // namespace pnfsrdma::fuse_client
