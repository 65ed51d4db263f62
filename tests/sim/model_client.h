// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shared/initiator/data_path.h"
#include "shared/initiator/session/session_mds.h"
#include "tests/sim/client_files.h"
#include "tests/sim/kept_pages.h"
#include "tests/sim/model_mds.h"
#include "tests/sim/network.h"
#include "tests/sim/oracle.h"

namespace pnfsrdma::sim {

// A mount: the project's own session and data path, with what fuse-client does around them. Where the server asks for
// opens, that is fuse-client's own (ClientFiles), and the kernel's pages are kept as that says.
class ModelClient final : public initiator::RecoveryHandler, public initiator::OpenStateSource {
 public:
  // The files, of a server that asks for no opens or of one that does.
  struct Served {
    std::function<nfs4::FileHandle(size_t)> handle_of;
    std::optional<nfs4::FileHandle> root;  // it asks for them
    std::function<ServedFile(size_t)> file;
    bool delegates = false;  // read delegations are wanted
  };
  // `host`: whose fibers this one's are.
  ModelClient(size_t number, uint64_t host, Network& network, Served served, const Clock& clock,
              uint64_t seed);
  ~ModelClient() override;

  // Establishes the session; tries until it is there. Before anything else, on the host.
  void mount();

  struct OpenFile {
    std::shared_ptr<initiator::FileIo> data;
    initiator::ErrorCursor cursor;
    initiator::ErrorCursor known;  // the losses that the oracle knows of
    Oracle::Handle handle;
    std::shared_ptr<ClientFiles::Inode> inode;  // of a server that asks for opens
    bool writable = true;
    uint32_t group = 0;  // as the open has shown it
  };
  std::unique_ptr<OpenFile> open(size_t file, bool writes, Oracle& oracle);
  // The last one settles the file.
  void release(std::unique_ptr<OpenFile> file);
  // `kept`: from the kernel's pages.
  Result<size_t> read(OpenFile& file, uint64_t offset, initiator::BufferSlice sink, bool& kept);
  // Before and behind each change of ours: the pages go.
  void pages_change(size_t file) { inodes_[file].pages.drop(); }
  // Where it went.
  Result<uint64_t> append(OpenFile& file, initiator::BufferSlice source);
  // Answers an errno. `refused`: the server has said that it did nothing, or was not asked.
  int truncate(OpenFile& file, uint64_t size, bool& refused);
  // The same. As fallocate(2) with FALLOC_FL_PUNCH_HOLE on a mount.
  int punch(OpenFile& file, uint64_t offset, uint64_t length, bool& refused);

  // As copy_file_range(2) of all of it to a file that nobody has open, and what that has then.
  int clone(OpenFile& file, size_t target);
  // Of a part of it (FICLONERANGE): the rest of the target stays. INVAL: the range is not all there.
  struct Part {
    uint64_t from = 0, to = 0, count = 0;  // bytes, in grains
  };
  int clone_part(OpenFile& file, size_t target, const Part& part);
  // Of a file as a snapshot has it.
  int clone_out_of(const std::string& snapshot, size_t file, size_t target);
  Result<std::vector<std::byte>> contents(size_t file);
  // What a file of a snapshot has: as the server reads it, or by a layout.
  Result<std::vector<std::byte>> contents_in(const std::string& snapshot, size_t file, bool by_layout,
                                             initiator::BufferSlice buffer);

  // Of a server that asks for opens, as system calls by path.
  uint32_t group(size_t file);
  bool set_group(size_t file, uint32_t group);
  void rename(size_t file);
  void link_for_a_moment(size_t file);
  // Of an open file, as fcntl(2).
  int lock(const OpenFile& file, fuse_client::LockOwner owner, const nfs4::LockRange& range) {
    return files_->lock(file.inode, owner, range);
  }
  int unlock(const OpenFile& file, fuse_client::LockOwner owner, const nfs4::LockRange& range) {
    return files_->unlock(*file.inode, owner, range);
  }
  // The kernel is short of memory.
  void forget(size_t file);
  uint64_t opens_under_delegation() const { return files_ ? files_->counts().opens : 0; }
  uint64_t held_writes() const { return path_ ? path_->statistics().held_writes.value() : 0; }

  // The kernel's lock of the inode: of writes and truncations one at a time.
  class InodeLock {
   public:
    InodeLock(ModelClient& client, size_t file);
    ~InodeLock();
    InodeLock(const InodeLock&) = delete;
    InodeLock& operator=(const InodeLock&) = delete;

   private:
    bool& locked_;
    simulated::Bell& unlocked_;
  };

  uint64_t host() const { return host_; }
  initiator::DataPath& path() { return *path_; }

  // --- RecoveryHandler
  void layouts_lost() override { path_->layouts_lost(); }
  void session_renewed() override { path_->session_renewed(); }
  void reclaim() override {}
  void state_revoked() override { path_->layouts_in_doubt(); }
  std::vector<nfs4::Stateid> stateids_in_doubt() override { return path_->layout_stateids(); }
  void stateid_gone(const nfs4::Stateid& stateid) override { path_->layout_stateid_gone(stateid); }

  // --- OpenStateSource
  std::optional<initiator::OpenState> open_state(bool) override { return initiator::OpenState{}; }

 private:
  struct Inode {
    std::shared_ptr<initiator::FileIo> data;
    int opens = 0;
    bool closing = false;
    bool locked = false;
    simulated::Bell unlocked;
    KeptPages pages;
    int users = 0;  // calls and opens
  };
  // A call by path is under way.
  class Use;

  static initiator::DataPathOptions options_for(Dice& dice);
  static initiator::SessionOptions session_options(size_t number, Dice& dice);
  uint64_t get_size(size_t file);
  Result<std::vector<std::byte>> contents_of(const nfs4::FileHandle& file);
  int empty(size_t target);
  int clone_from(const nfs4::FileHandle& source, size_t target, const Part& part);
  std::expected<ClientFiles::Found, int> find_in(const std::string& snapshot, size_t file);
  std::unique_ptr<OpenFile> open_served(size_t file, bool writes, Oracle& oracle);
  // What a call of ours that changes the file has brought. `version`: the local one then.
  void learn(OpenFile& file, fuse_client::Question question, uint64_t version,
             const nfs4::Attributes& attributes);
  fuse_client::Question ask(const OpenFile& file) const;
  nfs4::Bitmap wanted() const;
  struct SizeSet {
    bool at_return = false;  // it was the LAYOUTRETURN in front that failed
    bool done = false;
    bool repeated = false;  // sent again under a new session: the first one may have done it
    Status status = Status::kOk;
    std::optional<nfs4::Attributes> attributes;
  };
  Result<SizeSet> set_size(OpenFile& file, std::optional<nfs4::LayoutReturnArguments> layout_return,
                           uint64_t size);

  const size_t number_;
  const uint64_t host_;
  Network& network_;
  const Served served_;
  const Clock& clock_;
  Dice dice_;
  std::unique_ptr<initiator::Session> session_;
  std::unique_ptr<initiator::SessionMds> session_mds_;
  std::unique_ptr<initiator::DataPath> path_;
  std::unique_ptr<ClientFiles> files_;
  std::map<size_t, Inode> inodes_;
  simulated::Bell closed_;
};

}  // namespace pnfsrdma::sim
