// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/dirty_list.h"

#include <gtest/gtest.h>

#include <array>

#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::initiator {
namespace {

using Verifier = xdr::FixedOpaque<8>;

Verifier verifier_of(uint8_t value) {
  Verifier made;
  made.fill(std::byte{value});
  return made;
}

// Devices that nobody connects.
struct Bricks {
  SystemClock clock;
  DeferredDestruction destruction{"test-destroy"};
  Fabric fabric{.clock = clock,
                .options = {},
                .transports = {},
                .address_of = [](const nfs4::DeviceId&) -> Result<nfs4::DeviceAddress> {
                  return fail(ENOENT, "no device");
                },
                .destruction = destruction};
  std::array<Device, 2> devices{Device{nfs4::DeviceId{}, fabric}, Device{nfs4::DeviceId{}, fabric}};
};

// The same for every byte by itself, in the plainest way.
class NaiveList {
 public:
  struct Byte {
    bool unflushed = false;
    bool growth = false;
    bool void_growth = false;
    Place place;
    uint64_t sequence = 0;
    uint64_t layout_incarnation = 0;
    std::optional<std::byte> copy = std::nullopt;
  };

  explicit NaiveList(size_t bytes, uint64_t size) : server_size(size), bytes_(bytes) {}

  void wrote(uint64_t offset, uint64_t end, const Place& place, uint64_t known_size,
             uint64_t layout_incarnation) {
    ++sequence;
    for (uint64_t i = offset; i < end; ++i)
      bytes_[i] = {true, i >= known_size, false, place, sequence, layout_incarnation};
    reach(std::min(known_size, end));
  }
  // Flushed behind its WRITE. What `stays` may have been written over it.
  template <typename Stays>
  void wrote_and_flushed(uint64_t offset, uint64_t end, const Place& place, uint64_t known_size,
                         uint64_t layout_incarnation, const Stays& stays) {
    ++sequence;
    for (uint64_t i = offset; i < end; ++i) {
      if (!stays(i)) bytes_[i] = {false, i >= known_size, false, place, sequence, layout_incarnation};
    }
    reach(std::min(known_size, end));
  }
  void reach(uint64_t end) {
    server_size = std::max(server_size, end);
    reached_ = std::max(reached_, end);
  }
  void wrote_through_mds(uint64_t offset, uint64_t end, bool stable, const Place& place,
                         std::optional<std::byte> copy) {
    if (!stable) ++sequence;
    for (uint64_t i = offset; i < end; ++i)
      bytes_[i] = stable ? Byte{} : Byte{true, false, false, place, sequence, 0, copy};
    reach(end);
  }
  void drop_copies() {
    for (Byte& byte : bytes_) byte.copy.reset();
  }
  bool gone_from_mds(uint64_t until, const Place& now) {
    bool lost = false;
    for (Byte& byte : bytes_) {
      if (!byte.unflushed || byte.sequence > until || byte.place.device != nullptr || byte.place == now)
        continue;
      byte.unflushed = byte.copy.has_value();
      lost = lost || !byte.unflushed;
    }
    losses += lost ? 1 : 0;
    return lost;
  }
  void end_flush(uint64_t until) {
    for (Byte& byte : bytes_) {
      if (byte.sequence > until) continue;
      byte.unflushed = false;
      byte.copy.reset();
    }
  }
  bool verify(uint64_t until, const Place& now, bool committing) {
    bool lost = false;
    for (Byte& byte : bytes_) {
      if (!byte.unflushed || byte.sequence > until || byte.place.device != now.device || byte.place == now)
        continue;
      byte.unflushed = false;
      if (byte.growth && !committing) {
        byte.void_growth = true;
      } else {
        lost = true;
      }
    }
    losses += lost ? 1 : 0;
    return lost;
  }
  void committed(uint64_t size, uint64_t layout_incarnation) {
    reach(size);
    for (uint64_t i = 0; i < std::min<uint64_t>(size, bytes_.size()); ++i)
      bytes_[i].growth =
          bytes_[i].growth && (bytes_[i].void_growth || bytes_[i].layout_incarnation != layout_incarnation);
  }
  void void_growth() {
    for (Byte& byte : bytes_) byte.void_growth = byte.void_growth || byte.growth;
  }
  bool restored() {
    bool lost = false;
    for (Byte& byte : bytes_) {
      if (!byte.growth) continue;
      byte = Byte{};
      lost = true;
    }
    losses += lost ? 1 : 0;
    return lost;
  }
  void begin_truncation() {
    cut_ = sequence;
    reached_ = 0;
  }
  // True: something changed beside it.
  bool end_truncation(uint64_t size) {
    for (uint64_t i = 0; i < bytes_.size(); ++i) {
      if (bytes_[i].sequence > cut_) continue;
      bytes_[i].growth = false;
      if (i >= size) bytes_[i] = Byte{};
    }
    server_size = std::max(size, reached_);
    return sequence != cut_ || reached_ > 0;
  }
  uint64_t growth_end() const {
    for (uint64_t i = bytes_.size(); i > 0; --i) {
      if (bytes_[i - 1].growth) return i;
    }
    return 0;
  }
  uint64_t size() const { return std::max(server_size, growth_end()); }
  bool growth_void(uint64_t layout_incarnation) const {
    return std::any_of(bytes_.begin(), bytes_.end(), [&](const Byte& byte) {
      return byte.growth && (byte.void_growth || byte.layout_incarnation != layout_incarnation);
    });
  }
  bool anything(bool Byte::* what) const {
    return std::any_of(bytes_.begin(), bytes_.end(), [&](const Byte& byte) { return byte.*what; });
  }
  const Byte& operator[](uint64_t offset) const { return bytes_[offset]; }

  uint64_t server_size;
  uint64_t sequence = 0;
  uint64_t losses = 0;

 private:
  std::vector<Byte> bytes_;
  uint64_t cut_ = 0;
  uint64_t reached_ = 0;
};

// Random operations on both.
class DirtyListModel {
 public:
  DirtyListModel(uint64_t seed, size_t bytes, uint64_t length_max, uint64_t server_size)
      : bytes_(bytes),
        length_max_(length_max),
        random_(seed),
        list_(server_size),
        naive_(bytes, server_size) {}

  void step() {
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return write_to_brick();
      case 5:
        return write_durably();
      case 6:
        return write_through_mds();
      case 7:
      case 8:
        return flush_ ? end_flush() : begin_flush();
      case 9:
        return below(3) == 0 ? lose_mds() : verify();
      case 10:
      case 11:
        return commit_ ? end_commit() : begin_commit();
      case 12:
        if (below(8) == 0) verifiers_[below(3)] = verifier_of(static_cast<uint8_t>(below(250)));
        if (below(8) == 0) ++layout_incarnation_;
        return;
      case 13:
        return hear_of_size();
      case 14:
        if (cutting_) return end_truncation();
        return below(4) == 0 ? begin_truncation() : void_growth();
      default:
        if (below(8) == 0) restore();
        if (below(16) == 0) close();
    }
  }
  // What is known of the size under a layout may be less or more than what was heard of it last.
  void write_to_brick() { write_to(below(2), below(8) == 0 ? below(bytes_) : naive_.server_size); }
  void write_to(size_t brick, uint64_t known_size) {
    const auto [offset, end] = range();
    const LayoutSegment piece{.offset = offset,
                              .length = end - offset,
                              .device = &bricks_.devices[brick],
                              .incarnation = bricks_.devices[brick].incarnation()};
    list_.wrote(piece, known_size, layout_incarnation_, verifiers_[brick], {});
    naive_.wrote(offset, end, {piece.device, verifiers_[brick]}, known_size, layout_incarnation_);
    changed_ = true;
  }
  // A WRITE with its flush behind it, posted when up to three writes less were noted.
  void write_durably() {
    const auto [offset, end] = range();
    const size_t brick = below(2);
    const uint64_t known_size = below(8) == 0 ? below(bytes_) : naive_.server_size;
    const uint64_t noted = list_.noted() - std::min(list_.noted(), below(4));
    std::vector<bool> stays(bytes_);
    for (const DirtyExtent& extent : list_.extents()) {
      for (uint64_t i = extent.offset; i < extent.end; ++i) stays[i] = extent.sequence > noted;
    }
    for (uint64_t i = offset; i < end; ++i) {
      if (naive_[i].unflushed && naive_[i].sequence > noted) {
        ASSERT_TRUE(stays[i]) << i;
      }
    }
    const LayoutSegment piece{.offset = offset,
                              .length = end - offset,
                              .device = &bricks_.devices[brick],
                              .incarnation = bricks_.devices[brick].incarnation()};
    list_.wrote(piece, known_size, layout_incarnation_, verifiers_[brick], {}, noted);
    naive_.wrote_and_flushed(offset, end, {piece.device, verifiers_[brick]}, known_size, layout_incarnation_,
                             [&](uint64_t i) { return stays[i]; });
    changed_ = true;
  }
  void begin_flush() {
    flush_ = list_.begin_flush();
    flush_until_ = naive_.sequence;
  }
  void end_flush() {
    const bool done = below(2) == 0;
    (void)list_.end_flush(*flush_, done);  // of what was written over: below
    if (done) naive_.end_flush(flush_until_);
    flush_.reset();
  }

  // Sizes and losses; cheap.
  void expect_same_facts() {
    ASSERT_EQ(list_.size(), naive_.size());
    ASSERT_EQ(list_.server_size(), naive_.server_size);
    ASSERT_EQ(list_.losses(), naive_.losses);
  }
  // Every byte. `exact`: the list names no byte that was not written.
  void expect_same_bytes(bool exact) {
    uint64_t position = 0;
    for (const DirtyExtent& extent : list_.extents()) {
      ASSERT_LT(extent.offset, extent.end);
      ASSERT_LE(position, extent.offset);
      expect_clean(position, extent.offset);
      for (position = extent.offset; position < extent.end; ++position) {
        const NaiveList::Byte& byte = naive_[position];
        if (!exact && !byte.unflushed && !byte.growth) continue;
        ASSERT_EQ(byte.unflushed, extent.unflushed) << position;
        ASSERT_EQ(byte.growth, extent.growth) << position;
        ASSERT_EQ(byte.place, extent.place) << position;
        ASSERT_LE(byte.sequence, extent.sequence) << position;
      }
    }
    expect_clean(position, bytes_);
    ASSERT_EQ(list_.growth_void(layout_incarnation_), naive_.growth_void(layout_incarnation_));
    ASSERT_EQ(list_.grew(), naive_.anything(&NaiveList::Byte::growth));
    ASSERT_EQ(list_.grew_before(bytes_), list_.grew());
    uint64_t grown = 0;
    for (const FileRange& range : list_.growth()) {
      grown += range.length;
      for (uint64_t i = range.offset; i < range.end(); ++i) ASSERT_TRUE(naive_[i].growth) << i;
    }
    for (uint64_t i = 0; i < bytes_; ++i) grown -= naive_[i].growth ? 1 : 0;
    ASSERT_EQ(grown, 0u);
    if (exact) {
      ASSERT_EQ(list_.anything_unflushed(), naive_.anything(&NaiveList::Byte::unflushed));
    }
  }
  size_t extents() const { return list_.extents().size(); }
  void expect_same_copies() {
    for (uint64_t i = 0; i < bytes_; ++i) {
      std::byte copy{};
      const bool kept = list_.first_copy({i, 1}, std::span(&copy, 1)).has_value();
      ASSERT_EQ(kept, naive_[i].copy.has_value()) << i;
      if (kept) {
        ASSERT_EQ(copy, *naive_[i].copy) << i;
      }
    }
  }

 private:
  uint64_t below(uint64_t bound) { return random_.next_u64() % bound; }
  std::pair<uint64_t, uint64_t> range() {
    const uint64_t offset = below(bytes_);
    return {offset, std::min(bytes_, offset + 1 + below(length_max_))};
  }
  void expect_clean(uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i) ASSERT_TRUE(!naive_[i].unflushed && !naive_[i].growth) << i;
  }

  void write_through_mds() {
    const auto [offset, end] = range();
    const bool stable = below(4) == 0;
    // Each write has a number of its own: those that copies say are those that were written last.
    const bool copied = !stable && below(3) > 0;
    const Bytes bytes(end - offset, static_cast<std::byte>(++written_));
    list_.wrote_through_mds(offset,
                            {static_cast<uint32_t>(end - offset),
                             stable ? nfs4::StableHow::kFileSync : nfs4::StableHow::kUnstable, verifiers_[2]},
                            copied ? memory_.copy(bytes) : nullptr);
    naive_.wrote_through_mds(offset, end, stable, {nullptr, verifiers_[2]},
                             copied ? std::optional(bytes.front()) : std::nullopt);
  }
  void close() {
    list_.drop_copies();
    naive_.drop_copies();
  }
  void lose_mds() {
    if (!flush_) return;
    const DirtyList::Gone gone = list_.gone_from_mds(*flush_, verifiers_[2]);
    ASSERT_EQ(gone.lost, naive_.gone_from_mds(flush_until_, {nullptr, verifiers_[2]}));
    for (uint64_t i = 0; i < bytes_; ++i) {
      const bool to_be_sent = naive_[i].copy && naive_[i].unflushed && naive_[i].sequence <= flush_until_ &&
                              naive_[i].place.verifier != verifiers_[2];
      const bool found = std::any_of(gone.copied.begin(), gone.copied.end(), [i](const FileRange& range) {
        return range.offset <= i && i < range.end();
      });
      ASSERT_TRUE(found || !to_be_sent) << i;
    }
  }
  void verify() {
    if (!flush_) return;
    const size_t which = below(2);
    Device* const device = &bricks_.devices[which];
    ASSERT_EQ(list_.verify(*flush_, device, verifiers_[which]),
              naive_.verify(flush_until_, {device, verifiers_[which]}, commit_.has_value()));
    ASSERT_FALSE(list_.verify(*flush_, device, verifiers_[which])) << "a loss is found once";
  }
  void begin_commit() {
    commit_ = list_.begin_commit(layout_incarnation_);
    ASSERT_EQ(commit_.has_value(), changed_);
    changed_ = false;
    if (!commit_) return;
    ASSERT_EQ(commit_->size.value_or(0), naive_.growth_end());
  }
  void end_commit() {
    switch (below(3)) {
      case 0:
        for (const FileRange& range : list_.committed(*commit_, std::nullopt)) {
          for (uint64_t i = range.offset; i < range.end(); ++i) ASSERT_TRUE(naive_[i].growth) << i;
        }
        naive_.committed(commit_->size.value_or(0), commit_->layout_incarnation);
        break;
      case 1:
        list_.not_committed(*commit_);
        changed_ = true;
        break;
      default:
        list_.commit_void(*commit_);
        if (commit_->size) naive_.void_growth();
        changed_ = changed_ || commit_->size;
    }
    commit_.reset();
  }
  void begin_truncation() {
    list_.begin_truncation();
    naive_.begin_truncation();
    cutting_ = true;
  }
  void end_truncation() {
    cutting_ = false;
    if (below(4) == 0) {
      list_.end_truncation(std::nullopt);
      return;
    }
    const uint64_t size = below(bytes_);
    const DirtyList::Cut cut = list_.end_truncation(size);
    const bool beside = naive_.end_truncation(size);
    ASSERT_EQ(cut.version, beside ? 0 : list_.version());
    changed_ = changed_ && beside;
    cut_at_ = list_.version();
  }
  void hear_of_size() {
    const uint64_t size = below(bytes_);
    const bool overtaken = below(2) == 0;
    const uint64_t asked_at = list_.version() - (overtaken ? 1 : 0);
    list_.server_size(size, asked_at, SteadyTime());
    if (!overtaken) naive_.server_size = size;
    if (overtaken && asked_at >= cut_at_) naive_.server_size = std::max(naive_.server_size, size);
  }
  void void_growth() {
    list_.void_growth();
    naive_.void_growth();
  }
  void restore() {
    ASSERT_EQ(list_.restored(), naive_.restored());
    changed_ = false;
  }

  const uint64_t bytes_;
  const uint64_t length_max_;
  SeededRandom random_;
  Bricks bricks_;
  std::array<Verifier, 3> verifiers_{};  // of both bricks and the MDS
  uint64_t layout_incarnation_ = 1;
  bool changed_ = false;
  bool cutting_ = false;
  uint64_t cut_at_ = 0;
  std::optional<Flush> flush_;
  uint64_t flush_until_ = 0;
  std::optional<Commit> commit_;
  UnstableMemory memory_{1 << 20};
  uint8_t written_ = 0;
  DirtyList list_;
  NaiveList naive_;
};

TEST(DirtyList, IsWhatANaiveListOfBytesIs) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    DirtyListModel model(seed, 64, 16, 32);
    for (int i = 0; i < 100'000; ++i) {
      model.step();
      model.expect_same_facts();
      if (i % 8 == 0) model.expect_same_bytes(true);
      if (i % 64 == 0) model.expect_same_copies();
      if (::testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
  }
}

TEST(DirtyList, OfVeryManyExtentsNeighboursAreJoinedAndNoneIsForgotten) {
  DirtyListModel model(1, 1 << 14, 1, (1 << 14) - 64);
  for (int i = 0; i < 20'000; ++i) {
    model.write_to(0, (1 << 14) - 64);
    if (i % 5'000 == 0) model.begin_flush();
    if (i % 5'000 == 2'500) model.end_flush();
    if (i % 500 == 0) {
      model.expect_same_bytes(false);
      // What comes during a flush is not joined with what is being flushed.
      const bool flushing = i % 5'000 <= 2'500;
      EXPECT_LE(model.extents(), flushing ? SIZE_MAX : DirtyList::kExtentsMax);
    }
    if (::testing::Test::HasFatalFailure()) FAIL() << "step " << i;
  }
}

class DirtyListTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSize = uint64_t{1} << 20;

  void wrote(uint64_t offset, uint8_t verifier, size_t brick = 0,
             std::optional<uint64_t> flushed_behind = std::nullopt) {
    const LayoutSegment piece{.offset = offset,
                              .length = 4096,
                              .device = &bricks.devices[brick],
                              .incarnation = bricks.devices[brick].incarnation()};
    list.wrote(piece, list.server_size(), 1, verifier_of(verifier), {}, flushed_behind);
  }

  Bricks bricks;
  DirtyList list{kSize};
};

TEST_F(DirtyListTest, AFlushClearsOnlyWhatWasCompleteWhenItBegan) {
  wrote(0, 1);
  const Flush flush = list.begin_flush();
  wrote(4096, 1);
  wrote(0, 1);
  EXPECT_TRUE(list.end_flush(flush, true));
  EXPECT_EQ(list.begin_flush().by_rdma.ranges().front(), (FileRange{0, 8192}));
}

// The first write is in no extent any more, and the second is none of the flush's business: together they were
// nobody's.
TEST_F(DirtyListTest, AFlushAnswersForWhatWasWrittenOverMeanwhile) {
  wrote(0, 1);
  Flush flush = list.begin_flush();
  wrote(0, 1);
  EXPECT_TRUE(list.pending(flush, &bricks.devices[0]));
  EXPECT_FALSE(list.verify(flush, &bricks.devices[0], verifier_of(1)));
  EXPECT_TRUE(list.end_flush(flush, true));

  flush = list.begin_flush();
  wrote(0, 1);
  EXPECT_FALSE(list.verify(flush, &bricks.devices[0], verifier_of(2)));
  EXPECT_FALSE(list.end_flush(flush, true));
  flush = list.begin_flush();
  EXPECT_TRUE(list.verify(flush, &bricks.devices[0], verifier_of(2)));
  EXPECT_TRUE(list.end_flush(flush, true));
  EXPECT_EQ(list.losses(), 1u);
}

TEST_F(DirtyListTest, AFlushAnswersForWhatTheMdsHadAndWasWrittenOverMeanwhile) {
  list.wrote_through_mds(0, {4096, nfs4::StableHow::kUnstable, verifier_of(1)});
  const Flush flush = list.begin_flush();
  wrote(0, 1);
  EXPECT_FALSE(list.gone_from_mds(flush, verifier_of(2)).lost);
  EXPECT_FALSE(list.end_flush(flush, true));
}

TEST_F(DirtyListTest, ASilentBrickIsNotAskedForWhatWasWrittenOver) {
  wrote(0, 1);
  const Flush flush = list.begin_flush();
  list.wrote_through_mds(0, {4096, nfs4::StableHow::kUnstable, verifier_of(1)});
  EXPECT_FALSE(list.to_be_asked(flush, &bricks.devices[0]));
  EXPECT_FALSE(list.end_flush(flush, true));
}

TEST_F(DirtyListTest, AWriteThatTookItsFlushAlongCoversWhatLayUnderItAndNothingNewer) {
  wrote(0, 1);
  const uint64_t noted = list.noted();
  wrote(8192, 1);
  const LayoutSegment all{.offset = 0, .length = 16384, .device = &bricks.devices[0], .incarnation = 1};
  list.wrote(all, kSize, 1, verifier_of(1), {}, noted);
  EXPECT_EQ(list.begin_flush().by_rdma.ranges().front(), (FileRange{8192, 4096}));
  EXPECT_EQ(list.extents().size(), 1u);
  EXPECT_TRUE(list.anything_uncommitted());
}

TEST_F(DirtyListTest, GrowthThatTookItsFlushAlongIsNotLostWithTheBricksVerifier) {
  wrote(kSize, 1, 0, list.noted());
  EXPECT_FALSE(list.anything_unflushed());
  EXPECT_TRUE(list.grew());
  EXPECT_FALSE(list.verify(list.begin_flush(), &bricks.devices[0], verifier_of(2)));
  EXPECT_FALSE(list.growth_void(1));
  EXPECT_EQ(list.begin_commit(1)->size, kSize + 4096);
}

TEST_F(DirtyListTest, TheRestartOfOneBrickDoubtsItsOwnBytesOnly) {
  wrote(0, 1, 0);
  wrote(4096, 1, 1);
  list.wrote_through_mds(8192, {4096, nfs4::StableHow::kUnstable, verifier_of(1)});
  const Flush flush = list.begin_flush();
  EXPECT_FALSE(list.verify(flush, &bricks.devices[1], verifier_of(1)));
  EXPECT_FALSE(list.gone_from_mds(flush, verifier_of(1)).lost);
  EXPECT_TRUE(list.verify(flush, &bricks.devices[0], verifier_of(2)));
  EXPECT_FALSE(list.pending(flush, &bricks.devices[0]));
  EXPECT_TRUE(list.pending(flush, &bricks.devices[1]));
  EXPECT_EQ(list.losses(), 1u);
}

TEST_F(DirtyListTest, BytesThatWereWrittenElsewhereMeanwhileAreNotLost) {
  wrote(0, 1);
  const Flush flush = list.begin_flush();
  list.wrote_through_mds(0, {4096, nfs4::StableHow::kUnstable, verifier_of(1)});
  EXPECT_FALSE(list.verify(flush, &bricks.devices[0], verifier_of(2)));
}

TEST_F(DirtyListTest, GrowthUnderAnotherVerifierIsVoidAndNotLost) {
  wrote(kSize, 1);
  EXPECT_FALSE(list.verify(list.begin_flush(), &bricks.devices[0], verifier_of(2)));
  EXPECT_TRUE(list.growth_void(1));
  EXPECT_EQ(list.size(), kSize + 4096);
}

TEST_F(DirtyListTest, ATruncationDropsWhatLiesBehindIt) {
  wrote(0, 1);
  wrote(8192, 1);
  list.begin_truncation();
  wrote(kSize, 1);
  list.end_truncation(10'000);
  const Flush flush = list.begin_flush();
  const auto ranges = flush.by_rdma.ranges();
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[1], (FileRange{8192, 10'000 - 8192}));
}

TEST_F(DirtyListTest, GrowthWrittenBesideATruncationStays) {
  wrote(kSize, 1);
  list.begin_truncation();
  wrote(kSize + 4096, 1);
  const DirtyList::Cut cut = list.end_truncation(kSize / 2);
  EXPECT_EQ(cut.settled, (std::vector{FileRange{kSize, 4096}}));
  EXPECT_EQ(list.growth(), (std::vector{FileRange{kSize + 4096, 4096}}));
  EXPECT_TRUE(list.begin_commit(1));
  // The GETATTR behind the SETATTR may be from before that write.
  list.server_size(kSize / 2, cut.version, SteadyTime());
  EXPECT_EQ(list.size(), kSize + 8192);
}

TEST_F(DirtyListTest, AnAnswerThatWasOvertakenMakesTheFileLongerButNotShorter) {
  const uint64_t asked_at = list.version();
  wrote(kSize, 1);
  list.server_size(2 * kSize, asked_at, SteadyTime());
  EXPECT_EQ(list.server_size(), 2 * kSize);
  list.server_size(kSize / 2, asked_at, SteadyTime());
  EXPECT_EQ(list.server_size(), 2 * kSize);
  list.begin_truncation();
  list.end_truncation(4096);
  list.server_size(2 * kSize, asked_at, SteadyTime());
  EXPECT_EQ(list.server_size(), 4096u);
}

// An open that waited long for its answer, beside one that did not.
TEST_F(DirtyListTest, AnAnswerThatWasOvertakenByOneToWhoAskedLaterSaysNothing) {
  const SteadyTime asked_first, asked_later = asked_first + std::chrono::milliseconds(1);
  const uint64_t version = list.version();
  list.server_size(2 * kSize, version, asked_later);
  wrote(kSize, 1);
  list.server_size(kSize, version, asked_first);
  EXPECT_EQ(list.server_size(), 2 * kSize);
  list.server_size(kSize, list.version(), asked_later);
  EXPECT_EQ(list.server_size(), kSize);
}

TEST_F(DirtyListTest, ACommitSettlesNothingThatWasWrittenUnderALaterLayout) {
  wrote(kSize, 1);
  const auto commit = list.begin_commit(1);
  const LayoutSegment piece{.offset = kSize / 2, .length = 4096, .device = &bricks.devices[0]};
  list.wrote(piece, 0, 2, verifier_of(1), {});
  EXPECT_EQ(list.committed(*commit, std::nullopt), (std::vector{FileRange{kSize, 4096}}));
  EXPECT_EQ(list.growth(), (std::vector{FileRange{kSize / 2, 4096}}));
}

}  // namespace
}  // namespace pnfsrdma::initiator
