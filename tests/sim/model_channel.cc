// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/model_channel.h"

#include <algorithm>
#include <utility>

#include "shared/base/sync.h"

namespace pnfsrdma::sim {

// What the server does for a call goes on when the client dies; its answer then reaches nobody.
class ModelChannel::AtServer {
 public:
  explicit AtServer(ModelChannel& channel) : process_(channel.process_), client_(channel.client_), host_(0) {
    ++process_.serving[client_];
  }
  ~AtServer() {
    --process_.serving[client_];
    process_.changed.ring();
  }
  AtServer(const AtServer&) = delete;
  AtServer& operator=(const AtServer&) = delete;

 private:
  MdsProcess& process_;
  const size_t client_;
  const simulated::Scheduler::OnHost host_;
};

// Between two operations of a call the client takes in what is answered already. When it dies there, the
// operations behind are not done.
class ModelChannel::AtClient {
 public:
  explicit AtClient(ModelChannel& channel) : serving_(left(channel)), host_(channel.host_) {}
  ~AtClient() { ++serving_; }
  AtClient(const AtClient&) = delete;
  AtClient& operator=(const AtClient&) = delete;

 private:
  static int& left(ModelChannel& channel) {
    int& serving = channel.process_.serving[channel.client_];
    --serving;
    channel.process_.changed.ring();
    return serving;
  }

  int& serving_;
  const simulated::Scheduler::OnHost host_;
};

ModelChannel::~ModelChannel() {
  for (Task& task : tasks_) task.thread.join();
}

void ModelChannel::set_reachable(bool reachable) {
  reachable_ = reachable;
  process_.changed.ring();
}

// One way.
void ModelChannel::travel() {
  sleep_for((dice_.one_in(40) ? dice_.microseconds(500, 20000) : dice_.microseconds(20, 200)) +
            std::exchange(next_delay_, SteadyTime::duration(0)));
  while (!reachable_) (void)process_.changed.wait(SteadyTime::max(), "the way to the MDS");
}

void ModelChannel::recover() {
  while (!process_.up || recovering_) (void)process_.changed.wait(SteadyTime::max(), "the MDS");
  if (session_ == process_.incarnation) return;
  recovering_ = true;
  session_ = process_.incarnation;
  on_new_session();
  recovering_ = false;
  process_.changed.ring();
}

template <typename Run>
auto ModelChannel::call(Run run) -> decltype(run()) {
  for (;;) {
    travel();
    recover();
    const uint64_t served_by = process_.incarnation;
    auto answer = [&] {
      const AtServer at_server(*this);
      return run();
    }();
    const bool revoked = !mds_.revoked(client_).empty();
    travel();
    if (revoked) on_revoked();
    if (process_.incarnation == served_by || dice_.one_in(2)) return answer;
  }
}

std::optional<Status> ModelChannel::ordered(Call call, const ModelMds::File& file) {
  const auto found =
      std::find_if(ordered_.begin(), ordered_.end(), [&](const Order& order) { return order.call == call; });
  if (found == ordered_.end()) return std::nullopt;
  const Status status = found->status;
  ordered_.erase(found);
  on_error(call, file.number);
  return status;
}

void ModelChannel::wait_for_brick(const ModelMds::File& file) {
  while (!mds_.bricks()[file.brick]->up() || !process_.up)
    (void)process_.changed.wait(SteadyTime::max(), "the brick, at the MDS");
}

void ModelChannel::renew() {
  (void)call([] { return 0; });
}

std::vector<nfs4::Stateid> ModelChannel::free_revoked(const std::vector<nfs4::Stateid>& in_doubt) {
  const auto revoked = call([&] {
    std::vector<nfs4::Stateid> found;
    for (const nfs4::Stateid& known : mds_.revoked(client_)) {
      const auto same = [&](const nfs4::Stateid& one) { return one.other == known.other; };
      if (std::any_of(in_doubt.begin(), in_doubt.end(), same)) found.push_back(known);
    }
    return found;
  });
  if (!revoked.empty()) {
    (void)call([&] {
      for (const nfs4::Stateid& stateid : revoked) mds_.free_stateid(client_, stateid);
      return 0;
    });
  }
  return revoked;
}

uint64_t ModelChannel::get_size(size_t file) {
  return call([&] { return mds_.file(file).size; });
}

ModelChannel::SizeSet ModelChannel::set_size(
    size_t number, const std::optional<nfs4::LayoutReturnArguments>& layout_return, uint64_t size,
    const std::function<void(const nfs4::LayoutReturnResult&)>& returned) {
  ModelMds::File& file = mds_.file(number);
  return call([&] {
    wait_for_brick(file);
    SizeSet answer;
    if (layout_return) {
      const auto& what = *layout_return->what.get_if<nfs4::LayoutReturnType::kFile>();
      const auto left = mds_.layout_return(client_, file, layout_return->io_mode, what);
      if (!left) {
        answer.status = left.error().status;
        return answer;
      }
      answer.returned = true;
      sleep_for(dice_.microseconds(20, 200));
      const AtClient at_client(*this);
      returned(*left);
    }
    if (const auto status = ordered(Call::kSetSize, file)) {
      answer.status = *status;
      return answer;
    }
    answer.done = mds_.set_size(file, size).has_value();
    answer.size = file.size;
    return answer;
  });
}

MetadataResult<nfs4::DeviceAddress> ModelChannel::get_device_info(const nfs4::DeviceId& device) {
  return call([&] { return mds_.get_device_info(client_, device); });
}

MetadataResult<initiator::LayoutGetAnswer> ModelChannel::layout_get(
    const initiator::FileReference& reference, const nfs4::LayoutGetArguments& arguments) {
  ModelMds::File& file = mds_.file(reference.handle);
  return call([&]() -> MetadataResult<initiator::LayoutGetAnswer> {
    if (const auto status = ordered(Call::kLayoutGet, file))
      return std::unexpected(MetadataError{*status, 0});
    return mds_.layout_get(client_, file, arguments);
  });
}

MetadataResult<nfs4::LayoutCommitResult> ModelChannel::layout_commit(
    const initiator::FileReference& reference, const nfs4::LayoutCommitArguments& arguments) {
  ModelMds::File& file = mds_.file(reference.handle);
  return call([&]() -> MetadataResult<nfs4::LayoutCommitResult> {
    wait_for_brick(file);
    if (const auto status = ordered(Call::kLayoutCommit, file))
      return std::unexpected(MetadataError{*status, 0});
    return mds_.layout_commit(client_, file, arguments);
  });
}

void ModelChannel::start_layout_commit(const initiator::FileReference& file,
                                       const nfs4::LayoutCommitArguments& arguments,
                                       std::function<void(MetadataResult<nfs4::LayoutCommitResult>)> done) {
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    if (task->done) task->thread.join();
    task = task->done ? tasks_.erase(task) : std::next(task);
  }
  Task& task = tasks_.emplace_back();
  task.thread = simulated::Thread([this, &task, file, arguments, done = std::move(done)] {
    done(layout_commit(file, arguments));
    task.done = true;
  });
}

MetadataResult<nfs4::LayoutReturnResult> ModelChannel::layout_return(
    const initiator::FileReference& reference, const nfs4::LayoutReturnArguments& arguments) {
  const auto* what = arguments.what.get_if<nfs4::LayoutReturnType::kFile>();
  return call([&]() -> MetadataResult<nfs4::LayoutReturnResult> {
    if (what != nullptr)
      return mds_.layout_return(client_, mds_.file(reference.handle), arguments.io_mode, *what);
    mds_.layout_return_all(client_);
    return nfs4::LayoutReturnResult{};
  });
}

MetadataResult<nfs4::ReadResult> ModelChannel::read(const initiator::FileReference& reference,
                                                    const nfs4::Stateid&, uint64_t offset,
                                                    MutableByteSpan sink) {
  ModelMds::File& file = mds_.file(reference.handle);
  return call([&] {
    wait_for_brick(file);
    return mds_.read(file, offset, sink);
  });
}

MetadataResult<nfs4::WriteResult> ModelChannel::write(const initiator::FileReference& reference,
                                                      const nfs4::Stateid&, uint64_t offset,
                                                      ByteSpan source) {
  ModelMds::File& file = mds_.file(reference.handle);
  return call([&]() -> MetadataResult<nfs4::WriteResult> {
    wait_for_brick(file);
    if (const auto status = ordered(Call::kWrite, file)) return std::unexpected(MetadataError{*status, 0});
    return mds_.write(client_, file, offset, source);
  });
}

MetadataResult<initiator::WriteVerifier> ModelChannel::commit(const initiator::FileReference& reference,
                                                              const nfs4::CommitArguments& arguments) {
  ModelMds::File& file = mds_.file(reference.handle);
  return call([&]() -> MetadataResult<initiator::WriteVerifier> {
    wait_for_brick(file);
    if (const auto status = ordered(Call::kCommit, file)) return std::unexpected(MetadataError{*status, 0});
    return mds_.commit(file, arguments.offset, arguments.count);
  });
}

}  // namespace pnfsrdma::sim
