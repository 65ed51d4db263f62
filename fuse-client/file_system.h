// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <atomic>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "fuse-client/acl_xattr.h"
#include "fuse-client/beliefs.h"
#include "fuse-client/blocked_locks.h"
#include "fuse-client/caller.h"
#include "fuse-client/clone_offers.h"
#include "fuse-client/delegations.h"
#include "fuse-client/directory_stream.h"
#include "fuse-client/file_opens.h"
#include "fuse-client/fuse_header.h"
#include "fuse-client/inode_table.h"
#include "fuse-client/invalidator.h"
#include "fuse-client/kept_listings.h"
#include "fuse-client/kernel_handles.h"
#include "fuse-client/known_names.h"
#include "fuse-client/lock_calls.h"
#include "fuse-client/mount_options.h"
#include "fuse-client/second_opens.h"
#include "shared/initiator/data_path.h"
#include "shared/initiator/session/session.h"
#include "shared/nfs4/rename_wish.h"

namespace pnfsrdma::fuse_client {

inline OpenFile& open_file(const fuse_file_info* info) {
  return *reinterpret_cast<OpenFile*>(info->fh);
}

class MountStatus;
class RingServer;

// What the file system is built of; all outlive it.
struct FileSystemParts {
  initiator::Session& session;
  initiator::DataPath& data_path;
  InodeTable& inodes;
  CallerGroups& callers;
  Invalidator& invalidator;
  LockCalls& lock_calls;
  BlockedLocks& blocked_locks;
  Delegations& delegations;
  Beliefs& beliefs;
  KnownNames& names;
  KeptListings& listings;
  const FileOpens& opens;
  RingServer& rings;
  const Clock& clock;
  const MountOptions& options;
  const MountStatus& status;
  // The server's change attribute moves by one at least with each change, so that our own can be told from
  // those of others.
  bool own_changes_known = false;
  // The server keeps POSIX ACLs and says with the attributes who has one, and it applies the umask.
  bool posix_acls = false;
};

// The FUSE requests. Each method answers its request exactly once, from any worker thread. Metadata goes to
// the MDS in one COMPOUND per request, in the name of the calling process; data goes to the data path.
//
// Server calls: lookup, getattr, create, mkdir, rename, … 1 each; read and write under a layout 0; getattr of
// a file whose attributes are still believed 0.
class FileSystem {
 public:
  explicit FileSystem(const FileSystemParts& parts)
      : parts_(parts),
        beliefs_(parts.beliefs),
        opens_(parts.opens),
        first_reads_(parts.options.threads / 4),
        second_opens_(parts.clock),
        second_exchanges_(parts.clock),
        clone_offers_(parts.clock) {}

  const MountOptions& options() const { return parts_.options; }
  bool has_posix_acls() const { return parts_.posix_acls; }
  // Once, before the first request: the kernel keeps its pages over our own changes (page_stamp.h), where those
  // can be told.
  void keep_pages() { keeps_pages_ = parts_.own_changes_known; }

  // file_system_attributes.cc
  void lookup(fuse_req_t request, fuse_ino_t parent, const char* name);
  void forget(fuse_req_t request, fuse_ino_t node, uint64_t lookups);
  void forget_multi(fuse_req_t request, size_t count, fuse_forget_data* forgets);
  // `by_read`: the kernel asks before it reads from its pages, and shows the answer to nobody.
  void getattr(fuse_req_t request, fuse_ino_t node, bool by_read);
  void look_up_node(fuse_req_t request, fuse_ino_t node, bool above);
  void setattr(fuse_req_t request, fuse_ino_t node, const struct stat& wanted, int to_set);
  void access(fuse_req_t request, fuse_ino_t node, int mask);

  // file_system_names.cc
  void mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device);
  void mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode);
  void symlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name);
  void readlink(fuse_req_t request, fuse_ino_t node);
  void remove(fuse_req_t request, fuse_ino_t parent, const char* name);  // unlink and rmdir
  void rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
              const char* new_name, unsigned flags);
  void link(fuse_req_t request, fuse_ino_t node, fuse_ino_t new_parent, const char* new_name);

  // file_system_exchange.cc
  void exchange(fuse_req_t request, const std::shared_ptr<Inode>& first, const char* first_name,
                const std::shared_ptr<Inode>& second, const char* second_name);

  // file_system_open.cc
  void open(fuse_req_t request, fuse_ino_t node, fuse_file_info* info);
  void create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* info);
  void release(fuse_req_t request, fuse_file_info* info);

  // file_system_data.cc
  void read(fuse_req_t request, size_t size, off_t offset, fuse_file_info* info);
  void write(fuse_req_t request, fuse_ino_t node, const char* data, size_t size, off_t offset,
             fuse_file_info* info);
  void flush(fuse_req_t request, fuse_file_info* info);
  void fsync(fuse_req_t request, bool data_only, fuse_file_info* info);

  // file_system_ranges.cc
  void fallocate(fuse_req_t request, fuse_ino_t node, int mode, uint64_t offset, uint64_t length,
                 fuse_file_info* info);
  void lseek(fuse_req_t request, uint64_t offset, int whence, fuse_file_info* info);

  // file_system_copy.cc
  void copy_file_range(fuse_req_t request, fuse_file_info* from, uint64_t source_offset,
                       fuse_ino_t target_node, fuse_file_info* to, uint64_t target_offset, size_t count);

  // file_system_ring.cc
  void ioctl(fuse_req_t request, fuse_ino_t node, unsigned command, ByteSpan in, bool on_directory,
             fuse_file_info* info);

  // file_system_locks.cc
  void getlk(fuse_req_t request, fuse_file_info* info, struct flock* lock);
  void setlk(fuse_req_t request, fuse_ino_t node, fuse_file_info* info, const struct flock& lock, bool waits);
  void flock(fuse_req_t request, fuse_ino_t node, fuse_file_info* info, int operation);
  bool try_lock_again(BlockedLocks::Waiting& waiting);

  // file_system_directory.cc
  void opendir(fuse_req_t request, fuse_ino_t node, fuse_file_info* info);
  void readdir(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, fuse_file_info* info,
               bool plus);
  void releasedir(fuse_req_t request, fuse_file_info* info);

  // file_system_status.cc
  void statfs(fuse_req_t request, fuse_ino_t node);

  // file_system_xattrs.cc
  void getxattr(fuse_req_t request, fuse_ino_t node, const char* name, size_t size);
  void listxattr(fuse_req_t request, fuse_ino_t node, size_t size);
  void setxattr(fuse_req_t request, fuse_ino_t node, const char* name, std::string_view value, int flags);
  void removexattr(fuse_req_t request, fuse_ino_t node, const char* name);

 private:
  using Operations = initiator::Session::Operations;
  using CompoundReply = initiator::CompoundReply;

  struct Entry {
    std::shared_ptr<Inode> inode;
    fuse_entry_param param;
    client::FileAttributes attributes;
  };

  // umount(8) asks for stat and statfs of the mount point before anything else, and a umount has to end, on a
  // hard mount too: those two wait no longer for a silent server.
  static constexpr Milliseconds kUmountPatience = std::chrono::seconds(5);

  // file_system.cc
  // 0, or the errno of what went wrong: no answer, or the status.
  int call(fuse_req_t request, Operations operations, initiator::CompoundReply& reply, bool changes = false,
           SteadyTime deadline = SteadyTime::max());
  int call(fuse_req_t request, Operations operations, initiator::CompoundReply& reply,
           const initiator::CallOptions& options);
  static int error_of(const Result<initiator::CompoundReply>& reply);
  initiator::Credential credential(fuse_req_t request);
  std::shared_ptr<Inode> inode(fuse_ino_t node) const { return parts_.inodes.at(node); }
  Question ask(const Inode* inode) const { return beliefs_.ask(inode); }
  // Takes an answer in: what to show, and how long the kernel may believe it.
  struct Shown {
    client::FileAttributes attributes;
    double timeout = 0;
  };
  Shown take_in(Inode& inode, const Question& question, const client::FileAttributes& attributes,
                bool of_own_change = false);
  // What is believed of it, to be shown.
  Shown show(Inode& inode, const Inode::Believed& believed) const;
  // As take_in(), of what the kernel is not told now. How long it may be believed.
  Milliseconds learn(Inode& inode, const Question& question, const client::FileAttributes& attributes,
                     bool of_own_change = false);
  // What the kernel is told in place of the file's time: PageStamp::instead_of().
  std::optional<timespec> page_time(Inode& inode, const struct stat& status, PageAsker asker) const;
  void reply_attributes(fuse_req_t request, Inode& inode, struct stat status, double timeout, bool by_read);
  // The inode behind GETFH and GETATTR results, with one lookup more. An errno if they don't hold what is
  // needed.
  std::expected<Entry, int> make_entry(const Question& question, const nfs4::FileHandle* handle,
                                       const nfs4::Attributes* attributes);
  // What the kernel is told of a file. Its lookup is counted already. `named_for`: how long its name is believed.
  Entry entry_of(std::shared_ptr<Inode> inode, const Shown& shown, SteadyTime::duration named_for = {}) const;
  // What the server says of a name, an errno.
  std::expected<Entry, int> look_up_at_server(fuse_req_t request, const std::shared_ptr<Inode>& directory,
                                              const char* name);
  // The same of a name that is known, in no call, with one lookup more. None: ask the server.
  std::optional<Entry> known_entry(const Inode& directory, const std::optional<KnownNames::Known>& known,
                                   SteadyTime now);
  // The server knows the handle no more by which something was asked. It may have been that of a directory on the way,
  // so names of directories that are known so far are asked for again.
  void handle_ended(Inode& asked);
  // The kernel forgets so many lookups of it.
  void forget_lookups(fuse_ino_t node, uint64_t lookups);
  // What those inodes hold that are not in the table any more.
  void give_back_gone();
  // The kernel is told that this is `name`. `done`: the operation of ours that has made the name so.
  void named(Inode& inode, const std::shared_ptr<Inode>& directory, std::string_view name,
             const nfs4::ChangeInfo& done);
  void named(Entry& entry, const std::shared_ptr<Inode>& directory, std::string_view name,
             const nfs4::ChangeInfo& done);
  // The kernel asks for the name each time while its directory is delegated.
  void reply_entry(fuse_req_t request, const std::expected<Entry, int>& entry);
  // An operation on names, done or failed: what was believed of the files in it is in doubt, and of no others.
  struct Touched {
    std::shared_ptr<Inode> inode;  // null: unknown by that name, so some file with several
    // In the reply, if they came: the attributes of a directory behind the operation, for which the kernel asks
    // next.
    std::optional<size_t> at;
  };
  // `asked`: from before the call. The number of the operation: Inode::name_changed().
  uint64_t names_changed(const std::vector<Touched>& touched, const Question& asked,
                         const CompoundReply& reply);
  // What an operation of ours has done to the names of a directory; null: it failed.
  static void learn_names(Inode& directory, const nfs4::ChangeInfo* done,
                          const std::function<void(DirectoryNames&)>& change);
  static void learn_rename(const std::shared_ptr<Inode>& from, std::string_view name,
                           const std::shared_ptr<Inode>& to, std::string_view new_name,
                           const nfs4::RenameResult* renamed);
  // The attributes of what was renamed, by the operation of that number alone.
  void learn_moved(Inode& moved, const Question& asked, uint64_t number, const nfs4::Attributes& said,
                   const nfs4::RenameResult& renamed);
  void learn_directory(Inode& directory, const Question& asked, const CompoundReply& reply, size_t at);
  void name_removed(Inode& removed);

  // How to rename for these flags of renameat2(2). None: the server, or nobody, can.
  std::optional<nfs4::RenameHow> rename_how(unsigned flags) const;
  std::expected<nfs4::FileHandle, int> ask_handle(fuse_req_t request, const Inode& directory,
                                                  std::string_view name);
  // Behind an answer to a RENAME that may have been done before, in another session: has the file moved?
  bool has_moved(fuse_req_t request, const nfs4::FileHandle& file, const Inode& from, std::string_view name,
                 const Inode& to, std::string_view new_name);
  struct ExchangeEnd;
  struct ExchangeAnswer;
  ExchangeAnswer try_exchange(fuse_req_t request, const ExchangeEnd& first, const ExchangeEnd& second);
  void learn_exchange(const ExchangeEnd& first, const ExchangeEnd& second, const ExchangeAnswer& answer);

  // ENODATA: the server tells nothing of quotas, or they are off.
  std::expected<std::string, int> own_quota(fuse_req_t request, const Inode& inode);
  bool xattr_is_as_changed(fuse_req_t request, const Inode& file, const nfs4::ArgumentOperation& change);
  void change_xattr(fuse_req_t request, fuse_ino_t node, nfs4::ArgumentOperation change, int done);

  // file_system_acls.cc. Errors are errnos.
  // FileAttributes::presence; 0: the server does not tell.
  std::expected<uint32_t, int> presence_of(fuse_req_t request, Inode& file);
  int ask_attributes(fuse_req_t request, Inode& file, const nfs4::Bitmap& wanted,
                     nfs4::Attributes& attributes);
  // ENODATA: no more than the mode says.
  std::expected<Bytes, int> get_acl(fuse_req_t request, Inode& file, AclKind kind);
  int set_acl(fuse_req_t request, Inode& file, AclKind kind, ByteSpan value);
  int remove_acl(fuse_req_t request, Inode& file, AclKind kind);
  int set_acl_attributes(fuse_req_t request, Inode& file, nfs4::Attributes attributes,
                         std::optional<uint64_t> change, nfs4::Status& status);
  // Of what the caller makes: the umask is the server's to apply, or the kernel has done so.
  nfs4::Attributes mode_of_new(fuse_req_t request, mode_t mode) const;
  int set_attributes(fuse_req_t request, Inode& file, const struct stat& wanted, int to_set,
                     std::expected<Shown, nfs4::Status>& shown);

  bool by_write_of_stranger(fuse_req_t request, const Inode& file, const struct stat& wanted,
                            int to_set) const;

  class Listing;
  int list(fuse_req_t request, const Inode& directory, DirectoryStream& stream, uint64_t position, bool plus,
           Listing& listing);
  int list_entries(fuse_req_t request, const Inode& directory, DirectoryStream& stream, uint64_t position,
                   bool plus, Listing& listing);
  int fetch(fuse_req_t request, DirectoryStream& stream, uint64_t cookie);
  // file_system_delegated.cc
  // A call about a directory: PUTFH of it, GET_DIR_DELEGATION where that is wanted, and these.
  struct DirectoryCall {
    int error = 0;
    Question question;
    CompoundReply reply;
    size_t at = 1;  // of the first of these
    std::optional<nfs4::Stateid> delegation;
  };
  DirectoryCall call_directory(fuse_req_t request, const std::shared_ptr<Inode>& directory,
                               Inode::AskedFor what, const Operations& operations);
  void take_directory_delegation(const std::shared_ptr<Inode>& directory, const DirectoryCall& called,
                                 const initiator::Credential& user);
  nfs4::ReadDirectoryArguments read_directory(uint64_t cookie, const nfs4::Verifier& verifier) const;
  // What was believed of files of the directory has lapsed, for one after the other that is asked for: a page of the
  // listing from this one on brings it. False: that cannot be had.
  bool refresh_page(fuse_req_t request, const std::shared_ptr<Inode>& directory, std::string_view name);
  bool take_kept_listing(DirectoryStream& stream, uint64_t cookie);
  std::vector<uint64_t> learn_page(const std::shared_ptr<Inode>& directory, const Question& question,
                                   std::optional<uint64_t> change, const nfs4::ReadDirectoryResult& page);
  void take_page(DirectoryStream& stream, const Question& question, uint64_t cookie,
                 std::optional<uint64_t> change, const nfs4::ReadDirectoryResult& page);
  bool add_entry(Listing& listing, const Inode& directory, const DirectoryStream& stream,
                 const nfs4::DirectoryEntry& entry, bool plus);
  bool add_kept_entry(Listing& listing, const Inode& directory, const ListedEntry& entry, bool plus);
  std::expected<Entry, int> make_listed_entry(const DirectoryStream& stream,
                                              const nfs4::DirectoryEntry& entry);
  void make(fuse_req_t request, fuse_ino_t parent, const char* name, nfs4::CreateType type,
            const nfs4::Attributes& mode);
  bool wants_new(int flags) const;
  int call_create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, int flags,
                  bool delegates, initiator::CompoundReply& reply);
  void make_regular(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode);
  struct OpenAnswer;
  enum class ByName : uint8_t { kDone, kLeadsElsewhere, kCannotBe };
  OpenAnswer try_open(fuse_req_t request, const std::shared_ptr<Inode>& file, const Inode::Name* name,
                      int flags);
  bool open_under_delegation(fuse_req_t request, const std::shared_ptr<Inode>& inode, fuse_file_info* info);
  int finish_open(fuse_req_t request, const std::shared_ptr<Inode>& inode, const Question& question,
                  OpenAnswer answer, fuse_file_info* info);
  void tell_opened(const std::shared_ptr<Inode>& inode, const client::FileAttributes& attributes,
                   SteadyTime asked_at, std::unique_ptr<OpenFile> file, fuse_file_info* info);
  std::optional<initiator::PendingLayout> layout_wanted(const Inode& inode, bool for_write,
                                                        Operations& operations);
  std::optional<FirstReads::Place> first_read_wanted(const Inode& inode, const OpenAnswer& answer, int flags,
                                                     Operations& operations);
  static std::shared_ptr<const FirstBytes> first_bytes(const Question& question, const OpenAnswer& answer,
                                                       const client::FileAttributes& attributes);
  LockWish wish_of(fuse_req_t request, const fuse_file_info* info, LockOwner owner,
                   const nfs4::LockRange& range);
  void acquire(fuse_req_t request, fuse_ino_t node, LockWish wish, bool waits);
  void ask_to_lock_here(fuse_req_t request, const OpenFile& file);
  void lock_given(fuse_req_t request, fuse_ino_t node, const std::shared_ptr<Inode>& file,
                  const Question& question, const LockCalls::Given& given);
  int unlock(const OpenFile& file, LockOwner owner, const nfs4::LockRange& range, bool last = false);
  void drop_posix_locks(const OpenFile& file, uint64_t owner);
  void drop_open_file_locks(const OpenFile& file, uint64_t open_file);
  int change_range(fuse_req_t request, Inode& file, int mode, initiator::FileRange range,
                   nfs4::Status& status);
  struct Copying;
  int prepare_copy(fuse_req_t request, Inode& source, initiator::FileIo& source_data, fuse_ino_t target_node,
                   const OpenFile& target);
  int copy(fuse_req_t request, Copying& copying);
  int copy_once(fuse_req_t request, Copying& copying, nfs4::Status& status);
  void offer_clone(fuse_req_t request, ByteSpan in, fuse_file_info* info);
  void clone(fuse_req_t request, fuse_ino_t node, ByteSpan in, fuse_file_info* info);
  int clear_privileges(fuse_req_t request, fuse_ino_t node);
  int take_privileges(fuse_req_t request, fuse_ino_t node);
  int ask_end(fuse_req_t request, OpenFile& file);
  // Where it was appended, or an errno.
  std::expected<uint64_t, int> append(fuse_req_t request, OpenFile& file, initiator::BufferSlice source,
                                      initiator::Stability stability);
  void attach(fuse_req_t request, ByteSpan in, fuse_file_info* info);
  void append_from_memory(fuse_req_t request, fuse_ino_t node, ByteSpan in, fuse_file_info* info);
  void change_word(fuse_req_t request, fuse_ino_t node, ByteSpan in, fuse_file_info* info);
  void verify(fuse_req_t request, ByteSpan in, fuse_file_info* info);
  void watch(fuse_req_t request, ByteSpan in, fuse_file_info* info);
  void signal(fuse_req_t request, ByteSpan in, fuse_file_info* info);
  int know_end(fuse_req_t request, OpenFile& file, uint64_t end);
  bool is_direct(const fuse_file_info* info) const;
  void reply_lost(fuse_req_t request, const OpenFile& file, const Error& error);
  std::optional<size_t> read_with_open(const OpenFile& file, uint64_t offset, MutableByteSpan sink);
  Result<size_t> read_on(fuse_req_t request, OpenFile& file, off_t offset, initiator::BufferSlice sink,
                         size_t done);
  void reply_written(fuse_req_t request, OpenFile& file, const fuse_file_info* info, size_t count,
                     initiator::ErrorCursor& losses);

  const FileSystemParts parts_;
  Beliefs& beliefs_;
  const FileOpens& opens_;
  bool keeps_pages_ = false;
  std::atomic<bool> server_clones_ = true;                 // it has not said that it cannot
  std::atomic<bool> server_delegates_directories_ = true;  // the same
  // Files below it are read through the MDS: what its newest mdsthreshold said.
  std::atomic<uint64_t> small_file_size_ = 0;
  FirstReads first_reads_;
  SecondOpens second_opens_, second_exchanges_;
  CloneOffers clone_offers_;
  KernelHandles<OpenFile> open_files_;
  KernelHandles<DirectoryStream> open_directories_;
};

// 0 or a positive errno for FUSE.
int to_number(const Error& error);

}  // namespace pnfsrdma::fuse_client
