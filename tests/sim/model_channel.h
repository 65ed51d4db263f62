// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <list>
#include <map>
#include <optional>

#include "shared/initiator/mds.h"
#include "tests/sim/model_mds.h"

namespace pnfsrdma::sim {

// The process of the MDS as its clients see it.
struct MdsProcess {
  bool up = true;
  uint64_t incarnation = 1;
  // Calls of each client that it works on: they outlive the client.
  std::map<size_t, int> serving;
  // It goes up, a way to it opens, a brick comes back, a call is done.
  simulated::Bell changed;
};

// One client's session with the model: calls take time, wait while there is no way or no server, are sent
// again in a new session when the answer was lost with the old one, and meet the errors that were ordered.
class ModelChannel final : public initiator::Mds {
 public:
  enum class Call { kLayoutGet, kLayoutCommit, kWrite, kCommit, kSetSize };

  // `host`: of the client, for the scheduler.
  ModelChannel(ModelMds& mds, MdsProcess& process, size_t client, uint64_t host, uint64_t seed)
      : mds_(mds),
        process_(process),
        client_(client),
        host_(host),
        dice_(seed),
        session_(process.incarnation) {}
  ~ModelChannel() override;

  // A new session: layouts are void. Called before any call goes on.
  std::function<void()> on_new_session;
  // Before an answer is handed on whose SEQUENCE says that something was revoked.
  std::function<void()> on_revoked;
  // An ordered error was answered for this file.
  std::function<void(Call, size_t)> on_error;

  void order_error(Call call, Status status) { ordered_.push_back({call, status}); }
  void forget_orders() { ordered_.clear(); }
  void set_reachable(bool reachable);
  bool reachable() const { return reachable_; }
  // So long is the next answer on its way.
  void delay_next(SteadyTime::duration delay) { next_delay_ = delay; }
  // A call without effect: what finds out about a new session where nothing else is called.
  void renew();
  // Of these stateids the revoked ones, which are freed with the next call.
  std::vector<nfs4::Stateid> free_revoked(const std::vector<nfs4::Stateid>& in_doubt);

  // --- what the mount itself asks
  uint64_t get_size(size_t file);
  struct SizeSet {
    bool returned = false;  // the LAYOUTRETURN in front was done
    Status status = Status::kOk;
    bool done = false;
    uint64_t size = 0;
  };
  // `returned` is told of the LAYOUTRETURN in front as soon as it is answered: the SETATTR may wait for
  // recalls.
  SizeSet set_size(size_t file, const std::optional<nfs4::LayoutReturnArguments>& layout_return,
                   uint64_t size, const std::function<void(const nfs4::LayoutReturnResult&)>& returned);

  // --- Mds
  MetadataResult<nfs4::DeviceAddress> get_device_info(const nfs4::DeviceId& device) override;
  MetadataResult<initiator::LayoutGetAnswer> layout_get(const initiator::FileReference& file,
                                                        const nfs4::LayoutGetArguments& arguments) override;
  MetadataResult<nfs4::LayoutCommitResult> layout_commit(
      const initiator::FileReference& file, const nfs4::LayoutCommitArguments& arguments) override;
  void start_layout_commit(const initiator::FileReference& file, const nfs4::LayoutCommitArguments& arguments,
                           std::function<void(MetadataResult<nfs4::LayoutCommitResult>)> done) override;
  MetadataResult<nfs4::LayoutReturnResult> layout_return(
      const initiator::FileReference& file, const nfs4::LayoutReturnArguments& arguments) override;
  MetadataResult<nfs4::ReadResult> read(const initiator::FileReference& file, const nfs4::Stateid& stateid,
                                        uint64_t offset, MutableByteSpan sink) override;
  MetadataResult<nfs4::WriteResult> write(const initiator::FileReference& file, const nfs4::Stateid& stateid,
                                          uint64_t offset, ByteSpan source) override;
  MetadataResult<initiator::WriteVerifier> commit(const initiator::FileReference& file,
                                                  const nfs4::CommitArguments& arguments) override;
  size_t io_size_max() const override { return size_t{32} << 10; }

 private:
  struct Order {
    Call call;
    Status status;
  };
  struct Task {
    simulated::Thread thread;
    bool done = false;
  };

  class AtServer;
  class AtClient;

  template <typename Run>
  auto call(Run run) -> decltype(run());
  void travel();
  void recover();
  std::optional<Status> ordered(Call call, const ModelMds::File& file);
  void wait_for_brick(const ModelMds::File& file);

  ModelMds& mds_;
  MdsProcess& process_;
  const size_t client_;
  const uint64_t host_;
  Dice dice_;
  uint64_t session_;
  bool recovering_ = false;
  bool reachable_ = true;
  SteadyTime::duration next_delay_{0};
  std::vector<Order> ordered_;
  std::list<Task> tasks_;
};

}  // namespace pnfsrdma::sim
