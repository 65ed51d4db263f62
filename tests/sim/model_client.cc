// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/model_client.h"

#include "shared/base/sync.h"
#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::sim {

initiator::DataPathOptions ModelClient::options_for(Dice& dice) {
  initiator::DataPathOptions options;
  options.io_timeout = std::chrono::seconds(1);
  options.connect_timeout = std::chrono::milliseconds(500);
  options.connect_pause_first = Milliseconds(10);
  options.connect_pause_max = Milliseconds(200);
  options.layout_pause = Milliseconds(100);
  options.layout_bytes_min = ModelMds::kBlock * dice.between(1, 4);
  options.layout_bytes_max = ModelMds::kBlock * 16;
  options.kept_bytes_max = uint64_t{256} << 10 << dice.between(0, 4);
  options.recall_threads = size_t{1} << dice.below(4);
  options.closed_files_kept = dice.between(1, 4);
  if (dice.one_in(4)) options.threshold_write_size = uint64_t{16} << 10;
  return options;
}

ModelClient::ModelClient(size_t number, uint64_t host, Network& network, ModelMds& mds, MdsProcess& process,
                         const Clock& clock, uint64_t seed)
    : number_(number),
      host_(host),
      mds_(mds),
      dice_(seed),
      channel_(mds, process, number, host, dice_.next()) {
  const simulated::Scheduler::OnHost on_host(host);
  std::vector<std::shared_ptr<rdma::Transport>> transports{network.make_transport(number)};
  path_ = std::make_unique<initiator::DataPath>(channel_, clock, std::move(transports), options_for(dice_));
  channel_.on_new_session = [this] { path_->layouts_lost(); };
  channel_.on_revoked = [this] {
    revoked_ = true;
    path_->layouts_in_doubt();
  };
  mds.add_client(number, *this);
  recall_thread_ = simulated::Thread([this] { serve_callbacks(); });
  lease_thread_ = simulated::Thread([this] {
    while (!ending_) {
      sleep_for(Milliseconds(250));
      channel_.renew();
      // Some round trips after what was told of it, as a session does it.
      if (!std::exchange(revoked_, false)) continue;
      for (const nfs4::Stateid& gone : channel_.free_revoked(path_->layout_stateids()))
        path_->layout_stateid_gone(gone);
    }
  });
}

ModelClient::~ModelClient() {
  ending_ = true;
  called_.ring();
  lease_thread_.join();
  path_->shut_down(steady_now() + std::chrono::seconds(5));
  recall_thread_.join();
  inodes_.clear();
  path_.reset();
}

std::unique_ptr<ModelClient::OpenFile> ModelClient::open(size_t number, Oracle& oracle) {
  Inode& inode = inodes_[number];
  while (inode.closing) (void)closed_.wait(SteadyTime::max(), "a file to be closed");
  ++inode.opens;
  const SteadyTime asked = steady_now();
  const auto before = inode.data;
  const uint64_t version = before ? before->local_version() : 0;
  const uint64_t size = channel_.get_size(number);
  auto file = std::make_unique<OpenFile>();
  file->data = path_->open(mds_.file(number).handle, *this, size);
  if (file->data == before) file->data->server_size(size, version, asked);
  inode.data = file->data;
  file->cursor = file->data->error_cursor();
  file->handle = oracle.open(number_, number, asked, simulated::Scheduler::current().look());
  return file;
}

void ModelClient::release(std::unique_ptr<OpenFile> file) {
  Inode& inode = inodes_[file->handle.file];
  if (--inode.opens > 0) return;
  inode.closing = true;
  inode.data.reset();
  file->data->release();
  file.reset();
  inode.closing = false;
  closed_.ring();
}

ModelClient::InodeLock::InodeLock(ModelClient& client, size_t file)
    : locked_(client.inodes_[file].locked), unlocked_(client.inodes_[file].unlocked) {
  while (locked_) (void)unlocked_.wait(SteadyTime::max(), "an inode");
  locked_ = true;
}

ModelClient::InodeLock::~InodeLock() {
  locked_ = false;
  unlocked_.ring();
}

int ModelClient::truncate(OpenFile& file, uint64_t size) {
  constexpr int kTries = 3;
  for (int tries = 1;; ++tries) {
    if (const auto settled = file.data->settle(); !settled) return settled.error().number();
    auto layout_return = file.data->truncating(size);
    if (!layout_return) return layout_return.error().number();
    const SteadyTime asked = steady_now();
    const auto answer = channel_.set_size(
        file.handle.file, *layout_return, size,
        [&](const nfs4::LayoutReturnResult& returned) { file.data->layout_returned(returned); });
    const uint64_t version = file.data->truncated(size, answer.done);
    const bool at_return = layout_return->has_value() && !answer.returned;
    if (at_return && initiator::is_lost_state(answer.status)) file.data->layouts_refused(answer.status);
    if (answer.done) {
      file.data->server_size(answer.size, version, asked);
      return 0;
    }
    if (!initiator::is_lost_state(answer.status) || tries == kTries) return nfs4::to_errno(answer.status);
  }
}

void ModelClient::recall_any(uint32_t keep) {
  callbacks_.push_back([this, keep] {
    nfs4::CallbackRecallAnyArguments arguments;
    arguments.objects_to_keep = keep;
    arguments.types.set(nfs4::kRecallAnyOtherLayoutMin);
    if (const auto answer = path_->recall_any(arguments); answer.then) answer.then();
  });
  called_.ring();
}

void ModelClient::recall(const nfs4::CallbackLayoutRecallArguments& arguments) {
  callbacks_.push_back([this, arguments] {
    constexpr int kTries = 20;
    for (int tries = 0; tries < kTries && !ending_; ++tries) {
      sleep_for(dice_.one_in(4) ? dice_.microseconds(300, 20000) : dice_.microseconds(20, 300));
      while (!channel_.reachable() && !ending_) sleep_for(Milliseconds(10));
      const auto answer = path_->layout_recall(arguments);
      if (answer.status == Status::kDelay) {
        sleep_for(Milliseconds(20));
        continue;
      }
      if (answer.then) answer.then();
      if (answer.status == Status::kNomatchingLayout) {
        const auto* file = arguments.what.get_if<nfs4::LayoutRecallType::kFile>();
        file != nullptr ? mds_.not_held(number_, *file) : mds_.layout_return_all(number_);
      }
      return;
    }
  });
  called_.ring();
}

void ModelClient::serve_callbacks() {
  while (!ending_ || !callbacks_.empty()) {
    if (callbacks_.empty()) {
      (void)called_.wait(SteadyTime::max(), "callbacks");
      continue;
    }
    const auto callback = std::move(callbacks_.front());
    callbacks_.pop_front();
    callback();
  }
}

}  // namespace pnfsrdma::sim
