// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "fuse-client/directory_names.h"
#include "fuse-client/file_delegation.h"
#include "fuse-client/file_locks.h"
#include "fuse-client/first_bytes.h"
#include "fuse-client/mount_options.h"
#include "fuse-client/page_stamp.h"
#include "shared/base/sync.h"
#include "shared/client/file_attributes.h"
#include "shared/initiator/file/file_io.h"
#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::fuse_client {

// A stateid to be closed at the server.
struct OpenToClose {
  nfs4::Stateid stateid;
  initiator::Credential credential;
};
// What a file owes the server when nobody has it open, or its delegation ends.
struct OwedToServer {
  std::optional<OpenToClose> open;
  std::optional<FileDelegation::ToReturn> delegation;
};
// What a reclaim needs to know of an open.
struct OpenToReclaim {
  // One OPEN each, in the name of somebody who had it: the server checks what each may do.
  struct Part {
    uint32_t share_access = 0;
    initiator::Credential credential;
  };
  std::vector<Part> parts;
  nfs4::Stateid stateid;  // what it was
  // Under which locks are decided here, or data is held: the last of the parts claims it.
  bool with_write_delegation = false;
};

// FUSE's number of the root.
inline constexpr uint64_t kRootNode = 1;

// A file, directory or link that the kernel knows, or has known or may ask for: then it is kept for what is believed of
// it. Owned by the InodeTable until that drops it.
// Thread-safe. Its mutex is never held across a call to the server or the
// kernel.
class Inode final : public initiator::OpenStateSource, public std::enable_shared_from_this<Inode> {
 public:
  Inode(nfs4::FileHandle file_handle, uint64_t file_id, uint64_t fuse_node = kRootNode)
      : handle(std::move(file_handle)), id(file_id), node(fuse_node) {}

  const nfs4::FileHandle handle;
  const uint64_t id;    // st_ino
  const uint64_t node;  // FUSE's number

  // --- attributes ---

  // Of when attributes are: FileIo::local_version(), and FileSystem's count of changed names.
  struct Versions {
    uint64_t data = 0;
    uint64_t name_changes = UINT64_MAX;  // none has been missed
  };
  // What the server just said. `asked_at`: when the question was sent; an older answer than the one known is
  // dropped, with its versions (none: those known stay). Which of two is older is not certain when the one
  // that was asked for first has the later change: a SETATTR waits at the server while others are answered.
  // Then the next one asks again. Returns the time for which the kernel may believe it (nfs(5): between ac*min
  // and ac*max, doubling while nothing changes; of an open file not longer than acregmin).
  Milliseconds learn(const client::FileAttributes& attributes, SteadyTime asked_at,
                     const AttributeTimeouts& timeouts, const std::optional<Versions>& versions);
  // The attributes, while they may still be believed and nothing has changed since: a name that the file has or
  // had (name_changed()), or, where that is given, the file by our own writes (`data_version`). `lost_link`: the
  // newest name change that has taken a link from some file with several. Under a delegation they are believed until
  // it ends, or the lease does.
  struct Believed {
    client::FileAttributes attributes;
    Milliseconds left;
    SteadyTime known_at;  // when the server was asked for them
  };
  std::optional<Believed> believed(SteadyTime now, std::optional<uint64_t> data_version,
                                   uint64_t lost_link = 0, SteadyTime lease_end = {}) const;
  // The same with the answer to a commit or write of ours, after which the file's local version will be
  // `data_version`.
  void learn_with_write(const client::FileAttributes& attributes, SteadyTime asked_at,
                        const AttributeTimeouts& timeouts, uint64_t data_version);
  // What the server said last, however old; and when it was asked.
  std::optional<client::FileAttributes> last_known() const;
  std::optional<SteadyTime> asked_at() const;
  // Is what the server said to a question of that time known, or a later answer?
  bool has_answer_of(SteadyTime asked_at) const;
  // They are known to be old.
  void expire();
  // The same by an operation of ours on names, the `number`th: it has changed this directory, or a file whose
  // name it was. Answers to what was asked before it are not believed. True: none since `asked`, so the answer
  // that brought it holds all of them.
  bool name_changed(uint64_t asked, uint64_t number);
  // At open, after the answer was judged: may the kernel keep its pages of before? (Only when nobody else has
  // changed the file since the last open.) `kernel_attributes_old`: the kernel believes other attributes than
  // the server's.
  struct CacheVerdict {
    bool keep_pages = false;
    bool kernel_attributes_old = false;
  };
  // `asked_at`: when the server was asked for them. What the kernel was told in place of others since then, or a moment
  // before, may not have reached it yet: another thread of its own takes that in.
  CacheVerdict at_open(const client::FileAttributes& attributes, SteadyTime asked_at);
  static constexpr Milliseconds kOnItsWay{10};
  // At a lock: were the kernel's pages read after it forgot those of before so many foreign_changes()? (Not
  // what at_open() has said: its answer may not have reached the kernel yet.)
  bool pages_renewed_at(uint64_t foreign_changes) const;
  // The kernel has forgotten its pages since then.
  void pages_renewed(uint64_t foreign_changes);
  // The kernel has been told these.
  void told_kernel(const client::FileAttributes& attributes, SteadyTime now);
  bool has_type(mode_t type) const;
  // The kernel knows the file no more, nor its pages and attributes. True: something is believed of it, for which it is
  // worth keeping.
  bool forgotten_by_kernel();
  // Bytes that it takes, about.
  size_t memory() const;
  // The time of birth, which never changes. None has been asked for, or the server has none.
  void born(std::optional<timespec> birth);
  bool knows_birth() const;
  std::optional<timespec> birth() const;

  // --- the names that a directory has not, or has: DirectoryNames

  void name_is_absent(std::string_view name, uint64_t change);
  void name_is_found(std::string_view name, uint64_t change);
  void names_are_found(std::span<const std::string> names, uint64_t change);
  void names_complete(const std::unordered_set<std::string>& names, uint64_t change);
  // What an operation of ours has made of what is known.
  void change_names(const std::function<void(DirectoryNames&)>& change);
  void forget_names();
  // There is no such name: the server has said so of the directory as it was when its attributes were asked for
  // last, which is not longer ago than the least time for which attributes of files and directories are
  // believed. (Not the longer one of a directory: a new file of another host is waited for.) Here and below: however
  // long ago that is, while the directory is delegated, and the lease lasts.
  bool lacks_name(std::string_view name, SteadyTime now, const AttributeTimeouts& timeouts,
                  SteadyTime lease_end) const;
  // It is the name of the file of which it was when it was found last: the server has said so of the directory at this
  // time, which is not longer ago than the least time for which attributes of a directory are believed; the kernel may
  // believe a name for as long.
  std::optional<SteadyTime> found_name_at(std::string_view name, SteadyTime now,
                                          const AttributeTimeouts& timeouts, SteadyTime lease_end) const;

  // --- the listing that the kernel keeps of a directory

  // The kernel gets a whole listing, asked for at `asked_at`: the directory as it was at this value of its change
  // attribute.
  void listed(uint64_t change, SteadyTime asked_at);
  // At an open of the directory: the kernel may keep it. As lacks_name(), and no longer than the attributes of
  // files that came with it are believed: `ls -l` of a kept listing asks for each file.
  bool keeps_listing(SteadyTime now, const AttributeTimeouts& timeouts, SteadyTime lease_end) const;
  // The same of a listing that the mount has.
  bool is_as_listed(uint64_t change, SteadyTime asked_at, SteadyTime now, const AttributeTimeouts& timeouts,
                    SteadyTime lease_end) const;
  // After an operation of ours, of which the kernel knows by itself.
  void forget_listing();
  // It has become known that the directory is not as it was then: true once.
  bool listing_is_old();

  // --- the time by which the kernel judges its pages: PageStamp

  void judge_pages(const ChangeAnswer& answer, timespec modified);
  void doubt_pages();
  timespec page_time() const;
  uint64_t foreign_changes() const;
  std::optional<timespec> page_time_instead_of(timespec modified, uint64_t size, PageAsker asker);

  // --- the kernel's pages, for whoever writes under them: RingServer

  // The kernel fills some, or is told attributes.
  void pages_filled() { pages_filled_.store(true, std::memory_order_seq_cst); }
  // Behind a write past them: true when the kernel has to drop them before the writer hears of it (there may be
  // some, or another write is waiting for that); then pages_dropped() has to follow. One thread.
  bool drop_pages() {
    if (!pages_filled_.exchange(false, std::memory_order_seq_cst) && dropping_pages_ == 0) return false;
    ++dropping_pages_;
    return true;
  }
  void pages_dropped() { --dropping_pages_; }

  // Descriptors of a directory.
  // --- the delegation of a directory (RFC 8881, 10.9): FileDelegation, too

  // The server is going to be asked for a listing from its start, or for a name: should it be asked for a delegation
  // with that? At the second listing, or the last of kLookUpsInARow. Not if it has none to give, or has just wanted it
  // back: it would not give it so soon again.
  enum class AskedFor : uint8_t { kListing, kName };
  bool wants_directory_delegation(AskedFor what, SteadyTime now);
  static constexpr uint32_t kLookUpsInARow = 8;
  static constexpr Milliseconds kInARow = std::chrono::seconds(1);
  static constexpr Milliseconds kNotSoSoonAgain = std::chrono::seconds(30);
  // Around that question: until it is answered, a recall may be of what the answer brings.
  void begin_asking();
  void end_asking();
  void directory_delegation_refused(SteadyTime now);
  bool is_directory_delegated(SteadyTime now, SteadyTime lease_end) const;
  // It went with the directory: nothing is to be returned.
  void drop_delegation();
  // A name of it was looked for that is known, but what was believed of its file has lapsed: is this the second one in
  // a row? Then those of others have, too.
  bool lapses_in_a_row(SteadyTime now);

  void directory_opened();
  void directory_closed();
  // This host has removed its name. Programs may be in it still: it is their working directory.
  void name_removed();
  // A directory that somebody here may look at though the server has none any more.
  bool may_outlive_its_name() const;

  // --- the name

  // A name that leads here, as the kernel has been told last. Of regular files only: they are what is opened.
  struct Name {
    std::shared_ptr<const Inode> directory;
    std::string name;
  };
  void named(std::shared_ptr<const Inode> directory, std::string_view name);
  // By which to open it; null: by its handle.
  std::shared_ptr<const Name> name() const;
  // The server says that the name leads elsewhere. From here on name_is_lost(), until the kernel has a new
  // one.
  void lose_name(const std::shared_ptr<const Name>& name);
  bool name_is_lost() const;
  // Before named(), where a look-up shows this name. If the file has one link and had another name, somebody else has
  // renamed it, and until then the kernel may believe the old name, which it does not mention when it opens the file.
  void found_as(const Inode& directory, std::string_view name, SteadyTime until);
  bool has_old_name(SteadyTime now) const;

  // The mode after a write by an ordinary user, when that is another one (set-user-id, set-group-id).
  std::optional<mode_t> mode_without_privileges() const;

  // --- the open at the server: one per inode, shared by all opens of the mount (one open owner) ---

  // Around an OPEN: waits while the last close settles the data and while a CLOSE is under way, so that the
  // two can't overtake each other. Each begin_open() is followed by one opened() or open_failed().
  void begin_open();
  // The same, but false when nobody wants the open any more (the CLOSE may wait for a silent server).
  bool begin_open_if_wanted();
  // As release(): the last one may have left meanwhile, and left the rest to this one.
  bool open_failed();
  // `used_for`: what the caller does with it, where that is less.
  void opened(const nfs4::Stateid& stateid, uint32_t share_access, const initiator::Credential& credential,
              std::optional<uint32_t> used_for = std::nullopt);
  // The file's data path is its open files', and the data path's own while it holds a layout of the file or
  // owes the server something: a closed file costs no more than its name and attributes.
  void set_data(const std::shared_ptr<initiator::FileIo>& data);
  // How many it has had. One more than before a question, when there was none: this one is not older than that.
  uint64_t data_paths() const;
  // Nothing has been written by this new data path, so the attributes of before are its own.
  void data_is_as_known(uint64_t data_version);
  std::shared_ptr<initiator::FileIo> data() const;
  // A write or truncation of ours begins, or a lock shows what others wrote: bytes that were read before are old.
  void data_changes();
  uint64_t data_changes_count() const;
  // The file's bytes may be those of when the server was asked: nothing else is known, and that is no longer ago
  // than the least time for which attributes are believed.
  bool is_as_read(const FirstBytes& read, SteadyTime now, const AttributeTimeouts& timeouts) const;
  // The kernel has kept its pages at every open so far: likely it has what an open reads.
  bool has_kept_pages() const;
  // At the last close: all is told. Attributes from before are not believed when nobody is there to know it.
  void data_settled(uint64_t data_version);
  // One open less. True: it was the last one. Then its data is to be settled, then settled() to be called: from
  // then on it may be opened again, or closed at the server.
  bool release();
  // True: it stays open at the server, as long as the delegation is in force.
  bool settled();
  // What to close and to return at the server; then closed(), delegation_returned() have to follow. None: it is open
  // again, or closed.
  // `may_return`: the delegation had ended when it was found that nothing is held under it. If it ends now, it is
  // queued once more.
  std::optional<OwedToServer> begin_close(bool may_return = true);
  void closed();

  // --- the delegation: FileDelegation; which files have one: Delegations

  // Which one an OPEN is to ask for (kShareAccessWant*). At the second one that only reads, or that reads and writes:
  // most files are opened once.
  uint32_t wanted_delegation(uint32_t share_access) const;
  // Is a lock a reason to ask for one to write, under which it is decided here? Not if the file's locks are the
  // server's already. Once in kAskToLockEach: who has been refused would pay for it at each lock.
  bool asks_to_lock_here(SteadyTime now);
  static constexpr Milliseconds kAskToLockEach = std::chrono::seconds(30);
  // False: it is the one that has ended here.
  bool delegated(const FileDelegation::Grant& grant);
  // An OPEN for that which was asked at that time was granted.
  void admit(const initiator::Credential& user, uint32_t share_access, SteadyTime asked_at);
  bool has_delegation(const nfs4::Stateid& stateid) const;
  // In force, or still to be returned.
  std::optional<nfs4::Stateid> delegation() const;
  // The same of one that is recalled. kPerhapsSoon: an OPEN is under way, whose answer may bring it.
  enum class Holds : uint8_t { kYes, kPerhapsSoon, kNo };
  Holds holds_delegation(const nfs4::Stateid& stateid) const;
  // Behind begin_open(), in place of opened(): opens the file without the server. Then these are its attributes. None:
  // the server has to be asked.
  std::optional<client::FileAttributes> open_under_delegation(const initiator::Credential& user,
                                                              uint32_t share_access, SteadyTime now,
                                                              SteadyTime lease_end);
  // What the server may be told of the file that is held to write (CB_GETATTR), but for what was written here and it
  // does not know: its attributes, as they were last learnt, with the change attribute that came with the delegation.
  // They may be old: of what it has done itself, the server knows better. None: there is no such delegation.
  std::optional<client::FileAttributes> told_of_held() const;
  // Before and behind an operation of ours that changes who may read the file.
  void rights_changed(SteadyTime now);
  // It came with the file's creation, and nobody has opened the file since.
  bool delegation_ends_with_close() const;
  // It is to be returned.
  bool delegation_has_ended() const;
  // Something that was written under it is still to be sent.
  bool holds_data() const;
  // No use is made of it from here on, and begin_close() returns it. False: none is in force.
  bool end_delegation();
  // True: it is to be returned once more, under the stateid that a reclaim has brought meanwhile.
  bool delegation_returned(const nfs4::Stateid& stateid);
  // The server has lost its state, and given it again.
  void delegation_reclaimed(const nfs4::Stateid& stateid);

  // An open file of the kernel that may write: while there is one, pages of a shared mapping may be newer than what we
  // have been told.
  void writer_came() { ++writers_; }
  void writer_left() { --writers_; }
  bool has_writers() const { return writers_ > 0; }

  std::optional<initiator::OpenState> open_state(bool for_write) override;
  bool locks_lost() override { return locks_.any_lost(); }
  std::optional<initiator::OpenState> write_delegation() override;
  bool may_hold() override;
  bool is_open() const;

  // After a new clientid.
  std::optional<OpenToReclaim> to_reclaim() const;
  void reclaimed(const nfs4::Stateid& stateid);
  void reclaim_failed();

  // Byte-range locks of this mount's processes.
  FileLocks& locks() { return locks_; }
  const FileLocks& locks() const { return locks_; }
  // FileLocks::lock_here() while the delegation allows it, and the lease; else lock_at_server(). In one step with that:
  // once it has ended, none is given here any more.
  FileLocks::Verdict lock(LockOwner owner, const nfs4::LockRange& range, const FileLocks::Held& asker,
                          SteadyTime now, SteadyTime lease_end);
  FileLocks::Verdict test_lock(LockOwner owner, const nfs4::LockRange& range, SteadyTime now,
                               SteadyTime lease_end, std::optional<FileLocks::InTheWay>& found) const;

  // Guarded by the InodeTable: lookups the kernel has not forgotten; the newest name, as a key.
  uint64_t lookups = 0;
  uint64_t name_key = 0;

 private:
  // Under mutex_.
  bool has_ended();
  bool keeps_open() const;
  bool only_we_lock(SteadyTime now, SteadyTime lease_end) const;
  uint32_t wanted(uint32_t share_access) const;
  bool knows_names(SteadyTime now, Milliseconds at_most, SteadyTime lease_end) const;
  bool is_delegated(SteadyTime now, SteadyTime lease_end) const;
  // Under mutex_. False: an older answer.
  bool take_in(const client::FileAttributes& attributes, SteadyTime asked_at,
               const AttributeTimeouts& timeouts);

  static constexpr uint64_t kNoVersion = UINT64_MAX;

  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::optional<client::FileAttributes> known_;
  SteadyTime known_at_;
  Versions known_versions_;
  uint64_t newest_change_ = 0;             // of name_changed()
  std::unique_ptr<DirectoryNames> names_;  // of a directory in which something was looked for
  struct Listing {
    uint64_t change = 0;
    SteadyTime asked_at;
  };
  bool is_as_listed(const Listing& listing, SteadyTime now, const AttributeTimeouts& timeouts,
                    SteadyTime lease_end) const;
  std::optional<Listing> listing_;
  bool names_in_doubt_ = false;  // until the server has been asked again
  // What has been asked of this directory, and when last.
  struct Asked {
    uint32_t times = 0;
    SteadyTime last_at;
    // How often in a row.
    uint32_t again(SteadyTime now, Milliseconds row) {
      times = times > 0 && now - last_at < row ? times + 1 : 1;
      last_at = now;
      return times;
    }
  };
  Asked names_asked_, lapses_;
  uint32_t listings_asked_ = 0;
  std::optional<SteadyTime> no_delegation_until_;
  Milliseconds believed_for_{0};
  PageStamp pages_;
  // foreign_changes() of the last open, and before the kernel forgot its pages for a lock.
  std::optional<uint64_t> opened_at_, renewed_at_;
  std::optional<uint64_t> told_change_;
  std::optional<uint64_t> told_size_;
  std::optional<SteadyTime> told_anew_at_;  // in place of others
  std::optional<std::optional<timespec>> birth_;
  std::shared_ptr<const Name> name_;
  bool name_is_lost_ = false;
  SteadyTime old_name_until_;

  Condition opens_changed_;
  nfs4::Stateid stateid_;
  bool open_at_server_ = false;
  bool closing_ = false;  // its data is being settled, or a CLOSE is under way
  bool broken_ = false;   // could not be reclaimed
  uint32_t share_access_ = 0;
  uint32_t opens_ = 0;
  uint32_t opening_ = 0;
  uint32_t asking_ = 0;       // for the delegation of a directory
  bool was_read_ = false;     // opened for reading alone
  bool was_written_ = false;  // opened for reading and writing
  FileDelegation delegation_;
  std::optional<SteadyTime> asked_to_lock_;
  uint32_t directory_opens_ = 0;
  bool name_removed_ = false;
  initiator::Credential reader_, writer_;
  std::weak_ptr<initiator::FileIo> data_;
  uint64_t data_paths_ = 0;
  uint64_t data_changes_ = 0;
  std::atomic<uint32_t> writers_ = 0;
  std::atomic<bool> pages_filled_ = false;
  uint32_t dropping_pages_ = 0;
  FileLocks locks_;
};

// One open file of the kernel: what its `fh` points to.
struct OpenFile {
  std::shared_ptr<Inode> inode;
  std::shared_ptr<initiator::FileIo> data;
  bool readable = false;
  bool writable = false;
  bool append = false;
  int flags = 0;          // of open(2)
  bool attached = false;  // to a ring
  bool watched = false;   // by its program
  initiator::ErrorCursor cursor;
  std::shared_ptr<const FirstBytes> first_bytes;  // none: nothing was read with the open
};

}  // namespace pnfsrdma::fuse_client
