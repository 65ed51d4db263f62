// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shared/initiator/data_path.h"
#include "tests/sim/model_channel.h"
#include "tests/sim/network.h"
#include "tests/sim/oracle.h"

namespace pnfsrdma::sim {

// A mount: the project's own data path, with what fuse-client does around it (opens, sizes, truncation), and
// the callbacks of its session on a fiber of their own.
class ModelClient final : public Callbacks, public initiator::OpenStateSource {
 public:
  // `host`: whose fibers this one's are.
  ModelClient(size_t number, uint64_t host, Network& network, ModelMds& mds, MdsProcess& process,
              const Clock& clock, uint64_t seed);
  ~ModelClient() override;

  struct OpenFile {
    std::shared_ptr<initiator::FileIo> data;
    initiator::ErrorCursor cursor;
    Oracle::Handle handle;
  };
  std::unique_ptr<OpenFile> open(size_t file, Oracle& oracle);
  // The last one settles the file.
  void release(std::unique_ptr<OpenFile> file);
  // Answers an errno.
  int truncate(OpenFile& file, uint64_t size);

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
  ModelChannel& channel() { return channel_; }
  void recall_any(uint32_t keep);

  // --- Callbacks
  void recall(const nfs4::CallbackLayoutRecallArguments& recall) override;

  // --- OpenStateSource
  std::optional<initiator::OpenState> open_state(bool) override { return initiator::OpenState{}; }

 private:
  struct Inode {
    std::shared_ptr<initiator::FileIo> data;
    int opens = 0;
    bool closing = false;
    bool locked = false;
    simulated::Bell unlocked;
  };

  void serve_callbacks();
  static initiator::DataPathOptions options_for(Dice& dice);

  const size_t number_;
  const uint64_t host_;
  ModelMds& mds_;
  Dice dice_;
  ModelChannel channel_;
  std::unique_ptr<initiator::DataPath> path_;
  std::map<size_t, Inode> inodes_;
  simulated::Bell closed_;
  std::deque<std::function<void()>> callbacks_;
  simulated::Bell called_;
  bool revoked_ = false;  // an answer has said that something is
  bool ending_ = false;
  simulated::Thread recall_thread_, lease_thread_;
};

}  // namespace pnfsrdma::sim
