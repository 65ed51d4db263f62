// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/mds/meta/extents.h"
#include "shared/nfs4/basic_types.h"
#include "tests/sim/client_files.h"
#include "tests/sim/mds_network.h"
#include "tests/sim/served_brick.h"

namespace pnfsrdma::sim {

// The MDS itself (server/mds) behind the wires: its control loop and its commit thread are fibers, its store is in
// memory, its bricks are ServedBricks. It dies wherever it is, with its host or without, and starts again from
// what its store has then.
class RealMds final : public MdsNetwork::Server {
 public:
  // `contended`: how long a file is not delegated after a recall. 0: none is delegated. `quotas`: they are counted, and
  // whose the last `clones` of the files are may have a few MiB. The seed says how many extents are cloned in a batch.
  RealMds(MdsNetwork& network, std::vector<ServedBrick*> bricks, size_t files, size_t clones,
          Milliseconds lease, Milliseconds contended, bool quotas, uint64_t seed);
  ~RealMds() override;

  // It goes up, or is done with something.
  simulated::Bell changed;
  std::function<void(const std::string&)> on_violation;
  // Every call and every answer, for a trace; may be empty.
  std::function<void(const std::string&)> on_event;

  const ServedFile& file(size_t file) const { return served_.at(file); }
  const nfs4::FileHandle& root() const { return root_; }

  // --- MdsNetwork::Server
  bool up() const override { return up_; }
  void message(const std::shared_ptr<Wire>& wire, Bytes record) override;
  void closed(const std::shared_ptr<Wire>& wire) override;

  // Its process ends. `host`: the host does, and what was not synced is gone, but for some first part of it.
  void stop(bool host);
  void start();
  void brick_changed(size_t brick);
  // Clients reclaim: nobody gets anything new.
  bool in_grace() const;
  // That client's lease is over; returns when nothing of it comes any more.
  void expire(size_t client);
  // Its client ID; 0: it has none, or the MDS is down.
  uint64_t id_of(size_t client) const;
  // The MDS knows no such client, and no brick lets it in.
  bool gone(uint64_t id) const;
  void recall_any(size_t client, uint32_t keep);
  // It forgets that client's open of the file, without a word; its layouts stay.
  void disown(size_t client, size_t file);
  // As the administrator does, without its help.
  void revoke(size_t client, size_t file);
  // From everybody, as a conflict makes it.
  void recall(size_t file, uint64_t offset, uint64_t length);
  uint64_t revocations() const;

  // --- snapshots, as the administrator takes and deletes them
  struct Answer {
    std::string error;  // empty: it is done
    uint32_t number = 0;
    SteadyTime time;
  };
  // They wait for the MDS, and for its answer. nullopt: it has died before that.
  std::optional<Answer> take_snapshot(const std::string& name);
  std::optional<Answer> remove_snapshot(const std::string& name);
  // One is being taken, and its copy is being made.
  bool copies_metadata() const;
  // Those that people see. It is up.
  std::map<std::string, uint32_t> snapshots() const;
  // What the copy of one says of the files: those that it has. It is up.
  struct StoredFile {
    uint64_t size = 0;
    std::vector<mds::Extent> extents;
    bool operator==(const StoredFile&) const = default;
  };
  std::map<size_t, StoredFile> files_in(uint32_t snapshot) const;
  // All are removed, as by somebody who has none open. Their memory follows.
  void remove_files();
  // Bytes that only snapshots have.
  uint64_t held() const;

  // Of all its lives.
  struct DelegationCounts {
    uint64_t granted = 0, recalled = 0, revoked = 0;
  };
  DelegationCounts delegations() const;

 private:
  struct Process;
  using Rows = std::vector<std::pair<std::string, std::string>>;
  using Copies = std::map<uint32_t, std::map<std::string, std::string, std::less<>>>;
  void serve();
  void make_files();
  // The loop's own work, and what it answers.
  using Tell = std::function<void(Answer)>;
  std::optional<Answer> ask(const std::function<void(Process&, Tell)>& work);
  void check_store(Process& process) const;
  void add_counts(const Process& process);
  void tell(const Wire& wire, const char* what, ByteSpan record) const;

  MdsNetwork& network_;
  const std::vector<ServedBrick*> bricks_;
  const size_t files_, clones_;
  const Milliseconds lease_, contended_;
  const bool quotas_;
  const uint64_t seed_;
  Dice dice_;
  nfs4::FileHandle root_;
  std::vector<ServedFile> served_;
  std::vector<uint64_t> inodes_;  // of the files
  Rows rows_;
  Copies copies_;  // those of snapshots, half made or half removed ones, too
  uint64_t host_boots_ = 1;
  uint64_t host_ = 0;  // of its fibers
  bool up_ = false;
  uint64_t revocations_ = 0;  // by processes of before
  DelegationCounts delegations_;
  Process* process_ = nullptr;  // fibers that are no more still stand in it: never taken apart
};

}  // namespace pnfsrdma::sim
