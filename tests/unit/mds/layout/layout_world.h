// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/mds/admin/data_plane.h"
#include "server/mds/layout/file_clone.h"
#include "server/mds/layout/file_io.h"
#include "server/mds/layout/file_ranges.h"
#include "server/mds/layout/layout_committer.h"
#include "server/mds/layout/layout_granter.h"
#include "server/mds/layout/snapshot_keeper.h"
#include "server/mds/meta/boot_record.h"
#include "server/mds/meta/brick_list.h"
#include "server/mds/meta/dead_memory.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/meta/namespace_check.h"
#include "shared/nfs4/pmem_layout.h"
#include "shared/xdr/codec.h"
#include "tests/doubles/manual_clock.h"
#include "tests/doubles/metadata/memory_store.h"
#include "tests/doubles/seeded_random.h"
#include "tests/unit/mds/layout/brick_plug.h"
#include "tests/unit/mds/layout/fake_brick.h"

namespace pnfsrdma::mds::testing {

inline constexpr uint64_t kBlock = brick::kBlockSize;
inline constexpr uint64_t kAlice = 1001;
inline constexpr uint64_t kBob = 1002;

// Clients as the layouts see them: what was recalled, and what they say to it.
class FakeRecaller final : public LayoutRecaller {
 public:
  explicit FakeRecaller(EventLoop& loop) : loop_(loop) {}

  void recall_layout(const LayoutRecall& recall, std::function<void(RecallAnswer)> done) override {
    recalls.push_back(recall);
    if (on_recall) on_recall(recall);
    loop_.post([this, done] { done(answer); });
  }
  void recall_any(uint64_t client, uint32_t keep) override { asked_for_less.push_back({client, keep}); }
  void layouts_revoked(uint64_t client) override { revoked.insert(client); }
  void revoked_layouts_freed(uint64_t client) override { revoked.erase(client); }
  bool is_open(uint64_t inode) const override {
    for (const auto& [file, client] : opens) {
      if (file == inode) return true;
    }
    return false;
  }
  bool is_open_by(uint64_t inode, uint64_t client) const override { return opens.contains({inode, client}); }
  bool is_written_by_others(uint64_t inode, uint64_t client) const override {
    return std::ranges::any_of(
        opens, [&](const auto& open) { return open.first == inode && open.second != client; });
  }
  uint32_t stateid_window(uint64_t) const override { return 3; }

  std::vector<LayoutRecall> recalls;
  RecallAnswer answer = RecallAnswer::kAccepted;
  std::function<void(const LayoutRecall&)> on_recall;
  std::vector<std::pair<uint64_t, uint32_t>> asked_for_less;
  std::set<uint64_t> revoked;
  std::set<std::pair<uint64_t, uint64_t>> opens;  // file, client

 private:
  EventLoop& loop_;
};

// The store of an MDS that can die at any commit.
class MortalStore final : public MemoryStore {
 public:
  explicit MortalStore(EventLoop& loop) : MemoryStore(loop) {}
  std::function<bool()> before_commit = [] { return true; };
  std::function<bool()> behind_commit = [] { return true; };
  std::vector<CommitKind> kinds;  // of all commits, in order
  size_t largest = 0;             // puts and erases of one of them
  size_t rows_visited = 0;        // by scans

 protected:
  Result<> walk(SnapshotNumber at, std::string_view prefix, std::string_view from, const Visitor& visitor,
                Reach reach, std::string& reached) override {
    const auto counted = [&](std::string_view key, std::string_view value) {
      ++rows_visited;
      return visitor(key, value);
    };
    return MemoryStore::walk(at, prefix, from, counted, reach, reached);
  }
  Result<Sequence> write(const Batch& batch, CommitKind kind) override {
    if (!before_commit()) return fail(EIO, "the process is dead");
    kinds.push_back(kind);
    largest = std::max(largest, batch.size());
    const auto committed = MemoryStore::write(batch, kind);
    if (!behind_commit()) return fail(EIO, "the process is dead");
    return committed;
  }
};

// One MDS with one brick or several, on a clock that stands still. start() and crash() make it live again and
// again over the same store and the same brick.
class LayoutWorld {
 public:
  static constexpr const char* kBrick = "unix:/brick";
  static constexpr Milliseconds kLease{30'000};

  explicit LayoutWorld(uint64_t blocks = 64, std::vector<uint64_t> others = {})
      : brick(loop, blocks), store(loop), recaller(loop) {
    plug.lend(kBrick, brick);
    for (const uint64_t other : others) lend_brick(other);
    start();
  }
  ~LayoutWorld() { stop(); }

  ManualClock clock;
  EventLoop loop{clock};
  SeededRandom random{42};
  FakeBrick brick;
  std::deque<FakeBrick> others;  // bricks 2, 3, …, as they were lent
  BrickPlug plug;
  MortalStore store;
  FakeRecaller recaller;
  Counters counters;
  std::unique_ptr<Namespace> names;
  std::unique_ptr<BrickList> list;
  std::unique_ptr<FakeMemory> memory;
  std::unique_ptr<DataPlane> mds;
  std::string fenced;
  bool wants_end = false;  // who asks by get() appends
  std::string host_boot = "host-boot";
  bool reads_space_beside = false;  // a start serves before it knows what is in use
  std::set<uint64_t> unknown;       // clients that a start does not find on record
  NamespaceOptions options;         // from the next start on

  // One more brick in the configuration, or to be added.
  std::string lend_brick(uint64_t blocks) {
    FakeBrick& other = others.emplace_back(loop, blocks);
    other.uuid[0] = static_cast<std::byte>(7 + others.size());
    plug.lend(addresses().back(), other);
    return addresses().back();
  }
  std::vector<std::string> addresses() const {
    std::vector<std::string> all{kBrick};
    for (size_t i = 0; i < others.size(); ++i) all.push_back(std::string(kBrick) + std::to_string(i + 2));
    return all;
  }
  FakeBrick& brick_of(BrickNumber number) { return number == kFirstBrick ? brick : others[number - 2]; }

  void build() {
    const auto boot = open_boot(store, random, host_boot);
    ASSERT_TRUE(boot) << boot.error().to_string();
    names = *Namespace::open(store, clock, boot->boot_count, options);
    list = reads_space_beside
               ? *BrickList::open(store, clock, loop, [](const Error& error) { FAIL() << error.to_string(); })
               : *BrickList::open(store, clock);
    ASSERT_TRUE(list->configure(addresses()));
    memory = std::make_unique<FakeMemory>(loop, brick);
    for (uint32_t i = 0; i < others.size(); ++i) memory->set_zone(i + 1, others[i]);
    mds = std::make_unique<DataPlane>(
        DataPlane::Parts{loop, clock, random, *names, *list, plug.connector(), recaller, counters},
        DataPlane::Options{.first_epoch = boot->epoch,
                           .owner = "test",
                           .lease = kLease,
                           .metadata_era = boot->era,
                           .memory = memory.get(),
                           .on_fenced = [this](const std::string& why) { fenced = why; }});
    ASSERT_TRUE(mds->recover(boot->boot_count, [&](uint64_t client) {
      return boot->same_host_boot && !unknown.contains(client);
    }));
    names->set_in_use(
        [this](InodeId id) { return recaller.is_open(id) || mds->conflicts().file_in_use(id); });
  }
  void start() {
    build();
    for (const std::string& address : addresses()) plug.up(address);
    settle();
  }
  void stop() {
    mds.reset();
    memory.reset();
    list.reset();
    names.reset();
    settle();
  }
  // The process dies; the host, if `keep` is given, keeps only so many of the unsynced commits.
  void crash(std::optional<size_t> keep = std::nullopt) {
    stop();
    if (keep) {
      store.crash(*keep);
      host_boot += "+";
    }
    brick.dead = false;
    for (FakeBrick& other : others) other.dead = false;
    recaller.opens.clear();
    recaller.on_recall = nullptr;
  }

  // Runs the loop until nothing moves.
  void settle() {
    for (int i = 0; i < 60; ++i) loop.run_once(Milliseconds(0));
  }
  void pass(Milliseconds time) {
    for (Milliseconds step{0}; step < time; step += Milliseconds(50)) {
      clock.advance(Milliseconds(50));
      settle();
    }
  }

  Space& space() { return list->space(kFirstBrick); }
  InodeId create(const std::string& name) {
    const auto created = names->create(kRootInode, name, NewInode{.mode = 0644});
    EXPECT_TRUE(created);
    return (*created).inode->id;
  }
  // With so many extents of a grain, each behind the hole that its neighbour leaves; past the bricks.
  InodeId create_sparse(const std::string& name, uint64_t extents) {
    constexpr uint64_t kTogether = 256;  // each insert looks through what is pending
    const InodeId inode = create(name);
    for (uint64_t at = 0; at < extents;) {
      Batch batch;
      ExtentChange change(store, inode);
      for (const uint64_t end = std::min(extents, at + kTogether); at < end; ++at)
        EXPECT_TRUE(change.insert({at * 2 * kGrainSize, at * 2 * kGrainSize, kGrainSize}));
      change.write_to(batch);
      EXPECT_TRUE(store.commit(batch, CommitKind::kNamespace));
    }
    EXPECT_TRUE(names->update(inode, {.size = extents * 2 * kGrainSize}));
    return inode;
  }
  InodePointer stat(InodeId inode) { return *names->get(inode); }

  LayoutGranter::Answer get(uint64_t client, InodeId inode, IoMode mode, uint64_t offset, uint64_t length,
                            uint64_t min_length = 1, std::optional<LayoutStateid> stateid = std::nullopt,
                            uint32_t max_bytes = 65536) {
    std::optional<LayoutGranter::Answer> answer;
    GrantRequest request{.client = client, .inode = inode, .mode = mode};
    request.range = range_of(offset, length);
    request.min_length = min_length;
    request.max_bytes = max_bytes;
    request.stateid = stateid;
    request.wants_end = wants_end;
    mds->granter().grant(request, [&](LayoutGranter::Answer got) { answer = std::move(got); });
    settle();
    if (!answer) return std::unexpected(nfs4::Status::kServerFault);
    for (const nfs4::Segment& segment : segments(*answer)) told_.insert({client, segment.read.grant});
    check_told(client, inode);
    return *answer;
  }
  // What a client was never told of it cannot give back: nothing of that kind stays booked.
  void check_told(uint64_t client, InodeId inode) {
    const HeldLayout* held = mds->table().find(inode, client);
    if (held == nullptr) return;
    for (const HeldGrant& grant : held->grants()) {
      EXPECT_TRUE(told_.contains({client, grant.grant}))
          << "booked and not told: grant " << grant.grant << " of [" << grant.file.begin << ", "
          << grant.file.end << ")";
    }
  }
  static std::vector<nfs4::Segment> segments(const LayoutGranter::Answer& answer) {
    std::vector<nfs4::Segment> found;
    if (!answer) return found;
    for (const nfs4::Layout& layout : answer->layouts) {
      nfs4::LayoutBody body;
      xdr::Decoder decoder(layout.content.body);
      EXPECT_TRUE(xdr::decode(decoder, body));
      found.insert(found.end(), body.segments.begin(), body.segments.end());
    }
    return found;
  }
  static LayoutStateid stateid_of(const LayoutGranter::Answer& answer) {
    return {answer->stateid.seqid, answer->stateid.other};
  }
  nfs4::Status commit(uint64_t client, InodeId inode, const LayoutStateid& stateid, const ByteRange& range,
                      std::optional<uint64_t> last, std::vector<nfs4::PersistRange> persist = {}) {
    std::optional<LayoutCommitter::Answer> answer;
    CommitRequest request{.client = client, .inode = inode, .stateid = stateid, .range = range};
    request.last_write_offset = last;
    request.persist = std::move(persist);
    mds->committer().commit(request, [&](LayoutCommitter::Answer got) { answer = got; });
    settle();
    if (!answer) return nfs4::Status::kServerFault;
    return *answer ? nfs4::Status::kOk : answer->error();
  }
  bool give_back(uint64_t client, InodeId inode, uint64_t offset = 0, uint64_t length = UINT64_MAX,
                 IoMode mode = IoMode::kAny) {
    bool done = false;
    mds->layouts().give_back(client, inode, range_of(offset, length), mode, [&] { done = true; });
    settle();
    return done;
  }
  // Behind a death at a commit (store.before_commit): the host has lost what was not synced. All is as it should be.
  void restart_after_death() {
    crash(0);
    store.before_commit = [] { return true; };
    start();
    obey_recalls();
    pass(Milliseconds(1500));
    check("restarted");
  }
  // Every client answers recalls by giving back what is asked for.
  void obey_recalls() {
    recaller.on_recall = [this](const LayoutRecall& recall) {
      loop.post([this, recall] {
        if (mds) {
          mds->layouts().give_back(recall.client, recall.inode, range_of(recall.offset, recall.length),
                                   IoMode::kAny, [] {});
        }
      });
    };
  }
  std::optional<nfs4::Status> set_size(InodeId inode, uint64_t size, uint64_t requester = kBob) {
    auto status = std::make_shared<std::optional<nfs4::Status>>();
    mds->conflicts().set_size(inode, size, requester, [status](nfs4::Status got) { *status = got; });
    settle();
    return *status;
  }
  std::optional<nfs4::Status> allocate(InodeId inode, const ByteRange& range) {
    auto status = std::make_shared<std::optional<nfs4::Status>>();
    mds->ranges().allocate({.client = kBob, .inode = inode}, range,
                           [status](nfs4::Status got) { *status = got; });
    settle();
    return *status;
  }
  std::optional<nfs4::Status> deallocate(InodeId inode, const ByteRange& range) {
    auto status = std::make_shared<std::optional<nfs4::Status>>();
    mds->ranges().deallocate({.client = kBob, .inode = inode}, range,
                             [status](nfs4::Status got) { *status = got; });
    settle();
    return *status;
  }
  std::expected<nfs4::SeekResult, nfs4::Status> seek(InodeId inode, uint64_t offset, nfs4::ContentType what) {
    std::expected<nfs4::SeekResult, nfs4::Status> found = std::unexpected(nfs4::Status::kServerFault);
    mds->ranges().seek(inode, offset, what, [&](const auto& got) { found = got; });
    settle();
    return found;
  }
  nfs4::Status write(InodeId inode, uint64_t offset, const std::string& text,
                     nfs4::StableHow stable = nfs4::StableHow::kFileSync) {
    const auto answer = write_answer(inode, offset, text, stable);
    return answer ? nfs4::Status::kOk : answer.error();
  }
  // What an unstable write says its writeverf4 is.
  nfs4::Verifier write_unstable(InodeId inode, uint64_t offset, const std::string& text) {
    const auto answer = write_answer(inode, offset, text, nfs4::StableHow::kUnstable);
    EXPECT_TRUE(answer.has_value());
    return answer ? answer->verifier : nfs4::Verifier{};
  }
  std::optional<nfs4::Verifier> commit(InodeId inode) {
    std::optional<nfs4::Verifier> answer;
    mds->io().commit(inode, 0, 0, [&](std::expected<nfs4::Verifier, nfs4::Status> got) {
      if (got) answer = *got;
    });
    settle();
    return answer;
  }
  std::expected<nfs4::WriteResult, nfs4::Status> write_answer(InodeId inode, uint64_t offset,
                                                              const std::string& text,
                                                              nfs4::StableHow stable) {
    using Answer = std::expected<nfs4::WriteResult, nfs4::Status>;
    auto answer = std::make_shared<Answer>(std::unexpected(nfs4::Status::kServerFault));
    const ByteSpan bytes = as_bytes(text);
    mds->io().write({.client = kBob,
                     .inode = inode,
                     .offset = offset,
                     .data = std::make_shared<const Bytes>(bytes.begin(), bytes.end()),
                     .stable = stable},
                    [answer](Answer got) { *answer = std::move(got); });
    settle();
    return *answer;
  }
  std::string read(InodeId inode, uint64_t offset, uint32_t count, bool* end = nullptr) {
    std::optional<std::string> text;
    mds->io().read(inode, offset, count, [&](std::expected<FileIo::Read, nfs4::Status> got) {
      text = got ? std::string(as_text(*got->data)) : "error";
      if (got && end != nullptr) *end = got->end_of_file;
    });
    settle();
    return text.value_or("no answer");
  }
  // READ_PLUS in short: "[0 +100] 100 hello", a hole in brackets; "." at the end of the file.
  std::string pieces(InodeId inode, uint64_t offset, uint32_t count, uint32_t room = 1 << 20) {
    std::string text = "no answer";
    mds->io().read_pieces(inode, offset, count, room,
                          [&](const std::expected<FileIo::Pieces, nfs4::Status>& got) {
                            text = got ? "" : "error";
                            if (!got) return;
                            for (const FileIo::Piece& piece : got->pieces) {
                              if (!text.empty()) text += ' ';
                              text += piece.data ? fmt::format("{} {}", piece.offset, as_text(*piece.data))
                                                 : fmt::format("[{} +{}]", piece.offset, piece.length);
                            }
                            if (got->end_of_file) text += '.';
                          });
    settle();
    return text;
  }
  nfs4::Status clone(const FileClone::What& what) {
    std::optional<nfs4::Status> status;
    mds->clones().clone(what, [&](nfs4::Status got) { status = got; });
    settle();
    return status.value_or(nfs4::Status::kServerFault);
  }
  std::optional<Result<SnapshotNumber>> take_snapshot(const std::string& name,
                                                      Milliseconds patience = Milliseconds(3000),
                                                      SnapshotKeeper::Revoking revoking = nullptr) {
    auto answer = std::make_shared<std::optional<Result<SnapshotNumber>>>();
    mds->snapshots().take(
        name, [answer](const Result<SnapshotNumber>& got) { *answer = got; }, SnapshotClass::kNone,
        std::move(revoking));
    settle();
    for (; !*answer && patience > Milliseconds(0); patience -= Milliseconds(50)) pass(Milliseconds(50));
    return *answer;
  }
  bool remove_snapshot(const std::string& name) {
    bool removed = false;
    mds->snapshots().remove(name, [&](const Result<>& got) { removed = got.has_value(); });
    settle();
    pass(Milliseconds(500));
    return removed;
  }
  std::vector<Extent> extents(InodeId inode) { return *Extents(store).all(inode); }

  // --- what must always be true once the MDS is ready ---
  void check(const std::string& when) {
    SCOPED_TRACE(when);
    EXPECT_TRUE(mds->ready());
    const auto report = check_namespace(store);
    ASSERT_TRUE(report);
    for (const std::string& problem : report->problems) ADD_FAILURE() << problem;
    size_t blocks = brick.blocks.size();
    for (const std::string& breach : brick.breaches) ADD_FAILURE() << breach;
    for (const FakeBrick& other : others) {
      for (const std::string& breach : other.breaches) ADD_FAILURE() << breach;
      blocks += other.blocks.size();
    }
    std::set<uint64_t> used;
    static_cast<void>(Extents(store).scan([&](InodeId inode, const Extent& extent) {
      for (uint64_t at = extent.logical; at < extent.logical_end(); at += kGrainSize) {
        used.insert(at - at % kBlock);
      }
      check_bytes(inode, extent);
      return true;
    }));
    const std::vector<DeadRun> dead = *DeadMemory(store).page(0);
    for (const DeadRun& run : dead) {
      EXPECT_TRUE(names->snapshots().holds(run.born, run.died)) << "memory that nothing holds";
      for (uint64_t at = run.memory.logical; at < run.memory.end(); at += kGrainSize)
        used.insert(at - at % kBlock);
    }
    for (const uint64_t block : used)
      EXPECT_TRUE(brick_of(list->brick_of(block)).blocks.contains(block)) << "an extent without its block";
    EXPECT_EQ(blocks, used.size()) << "a leaked block";
    check_shared(brick);
    for (const FakeBrick& other : others) check_shared(other);
  }

 private:
  std::set<std::pair<uint64_t, uint64_t>> told_;  // client, grant

  // check_namespace() has seen to it that what several files have is on record.
  void check_shared(const FakeBrick& at) {
    for (const auto& [number, live] : at.grants) {
      if (!live.grant.writable) continue;
      EXPECT_TRUE(SharedRuns(store).within({live.grant.logical, live.grant.length})->empty())
          << "client " << live.client << " can write what several files have";
    }
  }

  // A file's bytes are zeros or its own pattern, and zeros behind its end unless somebody may be writing
  // there.
  void check_bytes(InodeId inode, const Extent& extent) {
    const uint64_t size = stat(inode)->size;
    const bool writer = mds->table().writable_past(inode, size);
    const auto own = static_cast<std::byte>('A' + inode % 26);
    for (uint64_t at = 0; at < extent.length; at += kGrainSize) {
      const std::byte* grain = brick_of(list->brick_of(extent.logical)).grain_at(extent.logical + at);
      if (grain == nullptr) continue;
      for (uint64_t i = 0; i < kGrainSize; ++i) {
        if (grain[i] == std::byte{0}) continue;
        const uint64_t offset = extent.file_offset + at + i;
        ASSERT_EQ(grain[i], own) << "a stale byte of another file in " << inode << " at " << offset;
        ASSERT_TRUE(writer || offset < size)
            << "a byte behind the end of " << inode << " at " << offset << ", size " << size;
      }
    }
  }
};

}  // namespace pnfsrdma::mds::testing
