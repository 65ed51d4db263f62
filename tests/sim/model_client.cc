// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/model_client.h"

#include "shared/base/check.h"
#include "shared/base/sync.h"
#include "shared/nfs4/snapshot_list.h"
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
  options.unstable_bytes_max = uint64_t{4} << 10 << dice.between(0, 8);
  options.kept_bytes_max = uint64_t{256} << 10 << dice.between(0, 4);
  options.recall_threads = size_t{1} << dice.below(4);
  options.closed_files_kept = dice.between(1, 4);
  if (dice.one_in(4)) options.threshold_write_size = uint64_t{16} << 10;
  return options;
}

initiator::SessionOptions ModelClient::session_options(size_t number, Dice& dice) {
  initiator::SessionOptions options;
  options.host = "mds";
  options.owner = std::to_string(number);
  options.timeout = std::chrono::seconds(dice.between(1, 4));
  options.slots = static_cast<uint32_t>(dice.between(2, 8));
  options.message_size = uint32_t{64} << 10;
  options.delay_max = Milliseconds(100);
  return options;
}

ModelClient::ModelClient(size_t number, uint64_t host, Network& network, Served served, const Clock& clock,
                         uint64_t seed)
    : number_(number),
      host_(host),
      network_(network),
      served_(std::move(served)),
      clock_(clock),
      dice_(seed) {}

void ModelClient::mount() {
  const initiator::SessionOptions options = session_options(number_, dice_);
  while (!session_) {
    if (auto started = initiator::Session::start(options, nullptr, nullptr)) {
      session_ = *std::move(started);
    } else {
      sleep_for(Milliseconds(20));
    }
  }
  session_mds_ = std::make_unique<initiator::SessionMds>(*session_);
  std::vector<std::shared_ptr<rdma::Transport>> transports{network_.make_transport(number_)};
  path_ =
      std::make_unique<initiator::DataPath>(*session_mds_, clock_, std::move(transports), options_for(dice_));
  if (!served_.root) return session_->set_handlers(path_.get(), this);
  files_ = std::make_unique<ClientFiles>(*session_, *session_mds_, *path_, clock_, *served_.root,
                                         served_.delegates);
}

ModelClient::~ModelClient() {
  if (!path_) return;
  if (files_) files_->end();
  path_->shut_down(steady_now() + std::chrono::seconds(5));
  session_->end();
  inodes_.clear();
  files_.reset();
  path_.reset();
}

class ModelClient::Use {
 public:
  Use(ModelClient& client, size_t file) : users_(client.inodes_[file].users) { ++users_; }
  ~Use() { --users_; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  int& users_;
};

std::unique_ptr<ModelClient::OpenFile> ModelClient::open_served(size_t number, bool writes, Oracle& oracle) {
  Inode& inode = inodes_[number];
  ++inode.users;
  const SteadyTime asked = steady_now();
  auto opened = files_->open(served_.file(number), writes);
  {
    // To the kernel it is one step.
    const simulated::Scheduler::Undisturbed in_one_step;
    if (!opened.inode->at_open(opened.attributes, steady_now()).keep_pages) inode.pages.drop();
  }
  auto file = std::make_unique<OpenFile>();
  file->data = std::move(opened.data);
  // One half of them is small for its server, however long: by a delegation to write, writes are held.
  if (files_->delegates() && number % 2 == 1) file->data->set_thresholds(UINT64_MAX, UINT64_MAX);
  file->inode = std::move(opened.inode);
  file->writable = writes;
  file->group = opened.attributes.status.st_gid;
  file->cursor = file->data->error_cursor();
  file->known = file->data->losses_from_now();
  file->handle = oracle.open(number_, number, asked, simulated::Scheduler::current().look());
  return file;
}

std::unique_ptr<ModelClient::OpenFile> ModelClient::open(size_t number, bool writes, Oracle& oracle) {
  if (files_) return open_served(number, writes, oracle);
  Inode& inode = inodes_[number];
  while (inode.closing) (void)closed_.wait(SteadyTime::max(), "a file to be closed");
  ++inode.opens;
  const SteadyTime asked = steady_now();
  const auto before = inode.data;
  const uint64_t version = before ? before->local_version() : 0;
  const uint64_t size = get_size(number);
  auto file = std::make_unique<OpenFile>();
  file->data = path_->open(served_.handle_of(number), *this, size);
  if (file->data == before) file->data->server_size(size, version, asked);
  inode.data = file->data;
  file->cursor = file->data->error_cursor();
  file->known = file->data->losses_from_now();
  file->handle = oracle.open(number_, number, asked, simulated::Scheduler::current().look());
  return file;
}

void ModelClient::release(std::unique_ptr<OpenFile> file) {
  Inode& inode = inodes_[file->handle.file];
  if (files_) {
    files_->release(file->inode);
    --inode.users;
    return;
  }
  if (--inode.opens > 0) return;
  inode.closing = true;
  inode.data.reset();
  file->data->release();
  file.reset();
  inode.closing = false;
  closed_.ring();
}

Result<size_t> ModelClient::read(OpenFile& file, uint64_t offset, initiator::BufferSlice sink, bool& kept) {
  KeptPages& pages = inodes_[file.handle.file].pages;
  kept = served_.delegates && pages.copy(offset, sink.bytes());
  if (kept) return sink.bytes().size();
  const uint64_t generation = pages.generation();
  TRY_ASSIGN(const size_t count, file.data->read(offset, sink));
  if (served_.delegates) pages.fill(generation, offset, sink.bytes().first(count));
  return count;
}

uint32_t ModelClient::group(size_t file) {
  const Use use(*this, file);
  return files_->attributes(served_.file(file)).status.st_gid;
}

bool ModelClient::set_group(size_t file, uint32_t group) {
  const Use use(*this, file);
  return files_->set_group(served_.file(file), group);
}

void ModelClient::rename(size_t file) {
  const Use use(*this, file);
  files_->rename(served_.file(file));
}

void ModelClient::link_for_a_moment(size_t file) {
  const Use use(*this, file);
  files_->link_for_a_moment(served_.file(file));
}

void ModelClient::forget(size_t file) {
  if (inodes_[file].users > 0) return;
  inodes_[file].pages.drop();
  files_->forget(served_.file(file));
}

fuse_client::Question ModelClient::ask(const OpenFile& file) const {
  if (files_) return files_->ask(*file.inode);
  return {.asked_at = steady_now(), .data = file.data, .data_version = file.data->local_version()};
}

void ModelClient::learn(OpenFile& file, fuse_client::Question question, uint64_t version,
                        const nfs4::Attributes& attributes) {
  question.data_version = version;
  if (files_) return files_->learn(*file.inode, question, attributes);
  file.data->server_size(attributes.size.value(), version, question.asked_at);
}

Result<uint64_t> ModelClient::append(OpenFile& file, initiator::BufferSlice source) {
  TRY_ASSIGN(const std::optional<uint64_t> at, file.data->append_unasked(source));
  if (at) return *at;
  if (files_) {
    (void)files_->refresh(*file.inode);
  } else {
    const SteadyTime asked = steady_now();
    const uint64_t version = file.data->local_version();
    file.data->server_size(get_size(file.handle.file), version, asked);
  }
  return file.data->append(source);
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

uint64_t ModelClient::get_size(size_t number) {
  const auto reply = session_->call({nfs4::PutFileHandleArguments{served_.handle_of(number)},
                                     nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kSize)}},
                                    {});
  CHECK(reply && reply->ok());
  return reply->result<nfs4::GetAttributesResponse>(1)->attributes.size.value();
}

nfs4::Bitmap ModelClient::wanted() const {
  return files_ ? client::stat_attributes() : nfs4::Bitmap::of(nfs4::Attribute::kSize);
}

Result<ModelClient::SizeSet> ModelClient::set_size(OpenFile& file,
                                                   std::optional<nfs4::LayoutReturnArguments> layout_return,
                                                   uint64_t size) {
  initiator::Session::Operations operations{
      nfs4::PutFileHandleArguments{served_.handle_of(file.handle.file)}};
  const bool returns = layout_return.has_value();
  if (returns) operations.emplace_back(*std::move(layout_return));
  const size_t set_at = operations.size();
  nfs4::SetAttributesArguments set;
  set.attributes.size = size;
  operations.emplace_back(std::move(set));
  operations.emplace_back(nfs4::GetAttributesArguments{wanted()});
  const std::function take_in_return = [&](const initiator::CompoundReply& so_far) {
    const auto* result = returns ? so_far.result<nfs4::LayoutReturnResponse>(1) : nullptr;
    if (result != nullptr) file.data->layout_returned(*result);
  };
  const auto reply =
      session_->call(std::move(operations), {}, {.cache_reply = true, .on_repetition = &take_in_return});
  if (!reply) return std::unexpected(reply.error());
  take_in_return(*reply);
  SizeSet answer{.at_return = returns && reply->results.size() == 2,
                 .done = reply->succeeded(set_at),
                 .repeated = reply->repeated,
                 .status = reply->status};
  if (const auto* result = reply->result<nfs4::GetAttributesResponse>(set_at + 1))
    answer.attributes = result->attributes;
  return answer;
}

int ModelClient::truncate(OpenFile& file, uint64_t size, bool& refused) {
  constexpr int kTries = 3;
  refused = true;
  bool repeated = false;
  for (int tries = 1;; ++tries) {
    if (const auto settled = file.data->settle(); !settled) return settled.error().number();
    auto layout_return = file.data->truncating(size);
    if (!layout_return) return layout_return.error().number();
    const auto question = ask(file);
    const auto answer = set_size(file, *layout_return, size);
    const uint64_t version = file.data->truncated(size, answer && answer->done);
    if (!answer) {
      refused = false;
      return answer.error().number();
    }
    repeated |= answer->repeated;
    if (answer->at_return && initiator::is_lost_state(answer->status))
      file.data->layouts_refused(answer->status);
    if (answer->done) {
      refused = false;
      if (answer->attributes) learn(file, question, version, *answer->attributes);
      return 0;
    }
    if (initiator::is_lost_state(answer->status) && tries < kTries) continue;
    // Of what was sent again the first one may have happened, its answer being lost.
    refused = !repeated;
    return nfs4::to_errno(answer->status);
  }
}

int ModelClient::clone(OpenFile& file, size_t target) {
  if (const auto settled = file.data->settle(); !settled) return settled.error().number();
  if (const int error = empty(target); error != 0) return error;
  return clone_from(served_.handle_of(file.handle.file), target, {});
}

int ModelClient::clone_part(OpenFile& file, size_t target, const Part& part) {
  if (const auto settled = file.data->settle(); !settled) return settled.error().number();
  return clone_from(served_.handle_of(file.handle.file), target, part);
}

int ModelClient::clone_out_of(const std::string& snapshot, size_t file, size_t target) {
  const auto found = find_in(snapshot, file);
  if (!found) return found.error();
  if (const int error = empty(target); error != 0) return error;
  return clone_from(found->handle, target, {});
}

int ModelClient::empty(size_t target) {
  nfs4::SetAttributesArguments nothing;
  nothing.attributes.size = 0;
  const auto emptied = session_->call({nfs4::PutFileHandleArguments{served_.handle_of(target)}, nothing}, {},
                                      {.cache_reply = true});
  if (!emptied) return emptied.error().number();
  return nfs4::to_errno(emptied->status);
}

// Without a count: all that is behind `from`.
int ModelClient::clone_from(const nfs4::FileHandle& source, size_t target, const Part& part) {
  const nfs4::CloneArguments what{.source_offset = part.from, .target_offset = part.to, .count = part.count};
  const auto reply = session_->call({nfs4::PutFileHandleArguments{source}, nfs4::SaveFileHandleArguments{},
                                     nfs4::PutFileHandleArguments{served_.handle_of(target)}, what},
                                    {}, {.cache_reply = true});
  if (!reply) return reply.error().number();
  return nfs4::to_errno(reply->status);
}

std::expected<ClientFiles::Found, int> ModelClient::find_in(const std::string& snapshot, size_t file) {
  const ServedFile names = served_.file(file);
  auto found = files_->find({std::string(nfs4::kSnapshotListName), snapshot, names.name});
  if (!found) found = files_->find({std::string(nfs4::kSnapshotListName), snapshot, names.other_name});
  return found;
}

Result<std::vector<std::byte>> ModelClient::contents(size_t file) {
  return contents_of(served_.handle_of(file));
}

Result<std::vector<std::byte>> ModelClient::contents_in(const std::string& snapshot, size_t number,
                                                        bool by_layout, initiator::BufferSlice buffer) {
  const auto found = find_in(snapshot, number);
  if (!found) return fail(found.error(), "a lookup in a snapshot");
  if (!by_layout) return contents_of(found->handle);
  const auto opened = files_->open_found(*found);
  if (!opened) return fail(opened.error(), "an open in a snapshot");
  std::vector<std::byte> all;
  Result<size_t> count = 0;
  for (;;) {
    count = opened->data->read(all.size(), buffer);
    if (!count || *count == 0) break;
    const ByteSpan bytes = ByteSpan(buffer.bytes()).first(*count);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  files_->release(opened->inode);
  if (!count) return std::unexpected(count.error());
  return all;
}

Result<std::vector<std::byte>> ModelClient::contents_of(const nfs4::FileHandle& file) {
  constexpr uint32_t kPiece = 256 << 10;
  std::vector<std::byte> all;
  for (;;) {
    const auto reply =
        session_->call({nfs4::PutFileHandleArguments{file},
                        nfs4::ReadArguments{.stateid = {}, .offset = all.size(), .count = kPiece}},
                       {});
    if (!reply) return std::unexpected(reply.error());
    const auto* read = reply->result<nfs4::ReadResponse>(1);
    if (read == nullptr) return fail(nfs4::to_errno(reply->status), "a read through the server");
    const ByteSpan data = read->data.span();
    all.insert(all.end(), data.begin(), data.end());
    if (read->end_of_file) return all;
  }
}

int ModelClient::punch(OpenFile& file, uint64_t offset, uint64_t length, bool& refused) {
  refused = true;
  if (const auto committed = file.data->hand_over(); !committed) return committed.error().number();
  const auto question = ask(file);
  const auto reply =
      session_->call({nfs4::PutFileHandleArguments{served_.handle_of(file.handle.file)},
                      nfs4::DeallocateArguments{{}, offset, length}, nfs4::GetAttributesArguments{wanted()}},
                     {}, {.cache_reply = true});
  refused = reply && !reply->succeeded(1) && !reply->repeated;
  if (!reply) return reply.error().number();
  if (const auto* result = reply->result<nfs4::GetAttributesResponse>(2))
    learn(file, question, question.data_version, result->attributes);
  return reply->succeeded(1) ? 0 : nfs4::to_errno(reply->status);
}

}  // namespace pnfsrdma::sim
