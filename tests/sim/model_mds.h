// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "shared/initiator/callbacks.h"
#include "shared/initiator/mds.h"
#include "tests/sim/model_brick.h"

namespace pnfsrdma::sim {

using initiator::MetadataError;
using initiator::MetadataResult;
using initiator::WriteVerifier;
using nfs4::IoMode;
using nfs4::Status;

// What the MDS asks of one client; calls back into the data path on a fiber of its own.
class Callbacks {
 public:
  virtual ~Callbacks() = default;
  virtual void recall(const nfs4::CallbackLayoutRecallArguments& recall) = 0;
};

// The metadata server as docs/protocol.md and DESIGN.md, sections 3 to 8, have it: files in blocks of one
// brick each, layouts of whole blocks with a grant each, recall, revocation, zero tails. Its methods are what
// happens at the server; they take no time, but where they wait for a recall.
class ModelMds {
 public:
  static constexpr uint64_t kBlock = ModelBrick::kBlockBytes;

  ModelMds(std::vector<ModelBrick*> bricks, uint64_t seed);

  // For a trace; may be empty.
  std::function<void(const std::string&)> on_event;

  struct Held {
    uint64_t index = 0;  // of the block
    IoMode iomode = IoMode::kRead;
    uint64_t grant = 0;  // none: a hole
  };
  struct FileLayout {
    nfs4::Stateid stateid;
    std::vector<Held> held;
  };
  struct File {
    nfs4::FileHandle handle;
    size_t number = 0;
    size_t brick = 0;
    uint64_t size = 0;
    std::map<uint64_t, uint64_t> blocks;   // index -> block of the brick
    std::map<size_t, FileLayout> layouts;  // by client
    SteadyTime no_layouts_until{};         // a truncation waits for those of before
    std::map<size_t, SteadyTime> asked;    // by client: what that one recalled, and until when
  };

  void add_client(size_t client, Callbacks& callbacks) { clients_[client] = &callbacks; }
  // Its lease is over, or it is there again with another verifier and knows nothing of before.
  void expire(size_t client);
  File& file(const nfs4::FileHandle& handle);
  File& file(size_t number) { return *files_.at(number); }
  void add_files(size_t count);
  ModelBrick& brick_of(const File& file) { return *bricks_[file.brick]; }
  const std::vector<ModelBrick*>& bricks() const { return bricks_; }
  static nfs4::DeviceId device_of(size_t brick);

  // --- operations of a client
  MetadataResult<nfs4::DeviceAddress> get_device_info(size_t client, const nfs4::DeviceId& device);
  MetadataResult<initiator::LayoutGetAnswer> layout_get(size_t client, File& file,
                                                        const nfs4::LayoutGetArguments& wanted);
  MetadataResult<nfs4::LayoutCommitResult> layout_commit(size_t client, File& file,
                                                         const nfs4::LayoutCommitArguments& wanted);
  MetadataResult<nfs4::LayoutReturnResult> layout_return(size_t client, File& file, IoMode iomode,
                                                         const nfs4::LayoutReturnFile& wanted);
  void layout_return_all(size_t client);
  MetadataResult<nfs4::ReadResult> read(File& file, uint64_t offset, MutableByteSpan sink);
  MetadataResult<nfs4::WriteResult> write(size_t client, File& file, uint64_t offset, ByteSpan source,
                                          nfs4::StableHow stable);
  MetadataResult<initiator::WriteVerifier> commit(File& file, uint64_t offset, uint64_t length);
  // SETATTR of the size: everybody's layouts behind it are recalled first. DELAY while they are not back.
  MetadataResult<> set_size(File& file, uint64_t size);

  // --- faults
  void restart_layouts();  // the MDS was restarted, or the brick has lost its sessions: all layouts are void
  void brick_lost(size_t brick);
  void recall(size_t client, File& file, uint64_t offset, uint64_t length, IoMode iomode);
  void recall_all(size_t client);
  bool recalls_all(size_t client) const { return bulk_recalls_.contains(client); }
  void revoke(size_t client, File& file);
  void revoke_all(size_t client);
  // What was revoked and not freed: each answer to that client says that there is some.
  const std::vector<nfs4::Stateid>& revoked(size_t client) { return revoked_[client]; }
  void free_stateid(size_t client, const nfs4::Stateid& stateid);
  Status test_stateid(size_t client, const nfs4::Stateid& stateid);
  // The client's answer to a recall: it has nothing there.
  void not_held(size_t client, IoMode iomode, const nfs4::LayoutRecallFile& what);
  uint64_t revocations() const { return revocations_; }
  // Some client writes there without asking.
  static bool is_written(const File& file, uint64_t offset, uint64_t length);

 private:
  template <typename... Args>
  void tell(fmt::format_string<Args...> format, Args&&... args) const {
    if (on_event) on_event(fmt::format(format, std::forward<Args>(args)...));
  }
  uint64_t end_block(uint64_t end) const { return (end + kBlock - 1) / kBlock; }
  WriteVerifier write_verifier(const File& file);
  FileLayout& layout_of(size_t client, File& file);
  // OLD_STATEID, BAD_STATEID, or the layout.
  MetadataResult<FileLayout*> check(size_t client, File& file, const nfs4::Stateid& stateid);
  bool drop(size_t client, File& file, IoMode iomode, uint64_t offset, uint64_t length);
  void ended_writing(File& file, std::set<uint64_t> blocks);
  void clean_tails(File& file, const std::set<uint64_t>& ended);
  bool others_write(const File& file, uint64_t index, size_t client) const;
  // Nobody (but `except`) holds anything in the range when it returns.
  void recall_and_wait(File& file, uint64_t offset, uint64_t length, bool holes_only,
                       std::optional<size_t> except = std::nullopt);
  // The same for a truncation, which waits only for a little. False: somebody does.
  bool recall_behind(File& file, uint64_t offset);
  void recall_holes(size_t client, File& file, uint64_t from, uint64_t to);
  bool held_in(const FileLayout& layout, uint64_t offset, uint64_t length, bool holes_only) const;
  bool allocate(File& file, uint64_t index);

  std::vector<ModelBrick*> bricks_;
  Dice dice_;
  std::vector<std::unique_ptr<File>> files_;
  std::map<size_t, Callbacks*> clients_;
  uint64_t starts_ = 0;
  std::map<size_t, std::vector<nfs4::Stateid>> revoked_;
  std::set<size_t> bulk_recalls_;  // clients that are to give back everything
  simulated::Bell returned_;
  uint64_t next_stateid_ = 1;
  uint64_t revocations_ = 0;
};

}  // namespace pnfsrdma::sim
