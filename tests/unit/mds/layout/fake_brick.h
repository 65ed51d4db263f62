// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/mds/bricks/block_memory.h"
#include "server/mds/meta/brick_records.h"
#include "shared/base/event_loop.h"
#include "shared/brick/control.h"

namespace pnfsrdma::mds::testing {

// A brick in a few maps, with the rules of protocol.h, that notes every breach of them, answers from the
// loop, and can stop dead before or behind any call. Outlives the MDS under test, as a brick does.
class FakeBrick final : public brick::Control {
 public:
  struct LiveGrant {
    uint64_t client = 0;
    brick::Grant grant;
  };
  // Called at each changing call; false: the MDS is dead, nothing happens any more.
  std::function<bool()> before_call = [] { return true; };
  std::function<bool()> behind_call = [] { return true; };

  explicit FakeBrick(EventLoop& loop, uint64_t blocks = 64) : loop_(loop), capacity_(blocks) {}

  // --- what a test looks at or sets ---
  std::vector<std::string> calls;     // names of changing calls, in order
  std::vector<std::string> breaches;  // of the protocol, by the MDS
  std::map<uint64_t, LiveGrant> grants;
  std::set<uint64_t> sessions;
  std::set<uint64_t> blocks;  // logical addresses in use
  uint32_t connection = 1;    // that every client has
  uint32_t grants_max = 1000;
  size_t registrations = SIZE_MAX;  // of all clients
  uint64_t epoch = 0;
  uint64_t erased = 0;         // blocks
  uint64_t largest_bytes = 0;  // of one call of persist or zero
  xdr::FixedOpaque<16> uuid = [] {
    xdr::FixedOpaque<16> sevens;
    sevens.fill(std::byte{7});
    return sevens;
  }();
  std::string owner;                 // who claimed last
  bool hold_withdrawals = false;     // withdraw and close_session are answered by release()
  bool hold_exposures = false;       // expose, likewise
  bool hold_zeroing = false;         // zero, likewise
  bool hold_copies = false;          // copy, likewise
  bool hold_persists = false;        // persist, likewise
  bool hold_frees = false;           // free has not come in yet, until release()
  size_t listed_at_once = SIZE_MAX;  // blocks
  size_t grants_per_page = brick::kListedGrantsPerCall;
  uint64_t damaged = 0;            // blocks that are out of service
  uint64_t longest_run = 1 << 30;  // blocks: exposures are cut into runs of this many
  bool dead = false;               // answers nothing
  std::function<void(const std::vector<brick::Range>&)> on_persist = [](const auto&) {};
  xdr::FixedOpaque<8> verifier{std::byte{1}};

  size_t count(const std::string& name) const { return std::count(calls.begin(), calls.end(), name); }
  void release() {
    hold_withdrawals = hold_exposures = hold_zeroing = hold_frees = hold_copies = hold_persists = false;
    for (const auto& answer : std::exchange(held_, {})) loop_.post(answer);
  }
  // It took its MDS for dead. The connection stays.
  void lapse() {
    restart();
    lapsed_ = true;
  }
  // The process died and came back: sessions and grants are gone, blocks are not.
  void restart() {
    sessions.clear();
    grants.clear();
  }
  std::byte byte_at(uint64_t logical) const {
    const auto page = pages_.find(logical / kPage);
    return page == pages_.end() ? std::byte{0} : page->second[logical % kPage];
  }
  // The grain there, or null if all of it is zeros that nobody ever wrote.
  const std::byte* grain_at(uint64_t logical) const {
    const auto page = pages_.find(logical / kPage);
    return page == pages_.end() ? nullptr : page->second.data();
  }
  // A client's RDMA WRITE under a grant. False: refused.
  bool client_write(uint64_t client, uint64_t grant, uint64_t offset, std::byte value, uint64_t length) {
    const auto found = grants.find(grant);
    if (found == grants.end() || found->second.client != client || !found->second.grant.writable)
      return false;
    if (offset + length > found->second.grant.length) return false;
    fill(found->second.grant.logical + offset, value, length);
    return true;
  }
  void store(uint64_t logical, ByteSpan bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const uint64_t offset = (logical + at) % kPage;
      const size_t count = std::min<size_t>(bytes.size() - at, kPage - offset);
      std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(at), count,
                  page_of(logical + at).begin() + static_cast<ptrdiff_t>(offset));
      at += count;
    }
  }
  void fill(uint64_t logical, std::byte value, uint64_t length) {
    for (uint64_t at = logical; at < logical + length;) {
      const uint64_t count = std::min(logical + length - at, kPage - at % kPage);
      if (value == std::byte{0} && count == kPage) {
        pages_.erase(at / kPage);
      } else {
        std::fill_n(page_of(at).begin() + static_cast<ptrdiff_t>(at % kPage), count, value);
      }
      at += count;
    }
  }

  // --- Control ---
  void identify(Done<brick::IdentifyResult> done) override {
    run("identify", done, [&] {
      return brick::IdentifyResult{.uuid = uuid,
                                   .claimed_epoch = epoch,
                                   .owner = owner,
                                   .block_count = capacity_,
                                   .used_blocks = blocks.size()};
    });
  }
  void claim(const brick::ClaimArguments& arguments, Done<brick::ClaimResult> done) override {
    run("claim", done, [&] {
      brick::ClaimResult result;
      result.status = arguments.epoch > epoch ? brick::Status::kOk : brick::Status::kStaleEpoch;
      if (arguments.epoch > epoch) {
        epoch = arguments.epoch;
        owner = arguments.owner;
        lapsed_ = false;
      }
      result.claimed_epoch = epoch;
      result.uuid = uuid;
      result.incarnation = 1;
      result.verifier = verifier;
      result.block_count = capacity_;
      result.free_blocks = capacity_ - blocks.size();
      result.grants_max = grants_max;
      result.paths.push_back({"memory", "brick:1"});
      return result;
    });
  }
  void alloc(const brick::AllocArguments& arguments, Done<brick::RunsResult> done) override {
    run("alloc", done, [&] {
      return checked<brick::RunsResult>(arguments.epoch, [&](brick::RunsResult& result) {
        if (blocks.size() + damaged + arguments.count > capacity_) return brick::Status::kNoSpace;
        for (uint64_t i = 0; i < arguments.count; ++i) {
          if (ever_used_.contains(arguments.logical + i * brick::kBlockSize)) return brick::Status::kExists;
        }
        for (uint64_t i = 0; i < arguments.count; ++i) {
          blocks.insert(arguments.logical + i * brick::kBlockSize);
          ever_used_.insert(arguments.logical + i * brick::kBlockSize);
        }
        result.runs.push_back({arguments.logical, arguments.count});
        return brick::Status::kOk;
      });
    });
  }
  void free(const brick::BlocksArguments& arguments, Done<brick::StatusResult> done) override {
    if (hold_frees) return held_.push_back([this, arguments, done] { free(arguments, done); });
    run("free", done, [&] {
      return checked<brick::StatusResult>(arguments.epoch, [&](brick::StatusResult&) {
        for (const brick::Run& run : arguments.runs) {
          for (uint64_t i = 0; i < run.count; ++i) {
            const uint64_t block = run.logical + i * brick::kBlockSize;
            if (exposed(block, brick::kBlockSize)) {
              breaches.push_back("freed while exposed");
              return brick::Status::kBusy;
            }
            blocks.erase(block);
            for (uint64_t page = 0; page < brick::kBlockSize / kPage; ++page)
              pages_.erase(block / kPage + page);
          }
        }
        return brick::Status::kOk;
      });
    });
  }
  void map(const brick::MapArguments&, Done<brick::StatusResult>) override { breaches.push_back("map"); }
  void unmap(const brick::BlocksArguments&, Done<brick::StatusResult>) override {
    breaches.push_back("unmap");
  }
  void list(const brick::ListArguments& arguments, Done<brick::ListResult> done) override {
    run("list", done, [&] {
      brick::ListResult result;
      const size_t most = std::min<size_t>(arguments.limit, listed_at_once);
      auto at = blocks.lower_bound(arguments.from);
      for (; at != blocks.end() && result.runs.size() < most; ++at) result.runs.push_back({{*at, 1}, false});
      result.end = at == blocks.end();
      return result;
    });
  }
  void survey(const brick::SurveyArguments& arguments, Done<brick::SurveyResult> done) override {
    run("survey", done, [&] {
      brick::SurveyResult result;
      uint64_t at = 0;
      for (const uint64_t block : blocks) {
        if (at >= arguments.from && result.runs.size() < arguments.limit)
          result.runs.push_back({at, 1, brick::BlockUse::kAllocated, block});
        ++at;
      }
      if (arguments.from <= at && at < capacity_ && result.runs.size() < arguments.limit) {
        result.runs.push_back({at, capacity_ - at, brick::BlockUse::kClean, 0});
        at = capacity_;
      }
      result.end = result.runs.empty() || result.runs.back().first + result.runs.back().count == capacity_;
      return result;
    });
  }
  void erase(const brick::EraseArguments& arguments, Done<brick::StatusResult> done) override {
    run("erase", done, [&] {
      return checked<brick::StatusResult>(arguments.epoch, [&](brick::StatusResult&) {
        if (arguments.uuid != uuid) return brick::Status::kInvalid;
        if (!blocks.empty()) return brick::Status::kBusy;
        erased += arguments.count;
        return brick::Status::kOk;
      });
    });
  }
  void open_session(const brick::OpenSessionArguments& arguments, Done<brick::StatusResult> done) override {
    run("open_session", done, [&] {
      return checked<brick::StatusResult>(arguments.epoch, [&](brick::StatusResult&) {
        sessions.insert(arguments.client);
        return brick::Status::kOk;
      });
    });
  }
  void close_session(const brick::CloseSessionArguments& arguments, Done<brick::StatusResult> done) override {
    run("close_session", hold(hold_withdrawals, done), [&] {
      return checked<brick::StatusResult>(arguments.epoch, [&](brick::StatusResult&) {
        std::erase_if(grants, [&](const auto& grant) { return grant.second.client == arguments.client; });
        return sessions.erase(arguments.client) > 0 ? brick::Status::kOk : brick::Status::kNotFound;
      });
    });
  }
  void list_sessions(Done<brick::SessionsResult> done) override {
    run("list_sessions", done, [&] {
      brick::SessionsResult result;
      for (const uint64_t client : sessions)
        result.sessions.push_back({.client = client, .connection = connection});
      return result;
    });
  }
  void expose(const brick::ExposeArguments& arguments, Done<brick::ExposeResult> done) override {
    run("expose", hold(hold_exposures, done), [&] {
      return checked<brick::ExposeResult>(arguments.epoch, [&](brick::ExposeResult& result) {
        if (!sessions.contains(arguments.client)) return brick::Status::kNotFound;
        if (grants.size() >= registrations) return brick::Status::kLimit;
        result.connection = connection;
        const uint64_t most = longest_run * brick::kBlockSize;
        for (uint64_t at = arguments.logical; at < arguments.logical + arguments.length;) {
          if (!blocks.contains(at - at % brick::kBlockSize))
            breaches.push_back("exposed what is not allocated");
          const uint64_t end =
              std::min(arguments.logical + arguments.length, at - at % brick::kBlockSize + most);
          brick::Grant grant{next_grant_++, at, end - at, arguments.writable, 0x100, 0x7000000};
          grants[grant.grant] = {arguments.client, grant};
          result.grants.push_back(grant);
          at = end;
        }
        return brick::Status::kOk;
      });
    });
  }
  void withdraw(const brick::WithdrawArguments& arguments, Done<brick::StatusResult> done) override {
    run("withdraw", hold(hold_withdrawals, done), [&] {
      return checked<brick::StatusResult>(arguments.epoch, [&](brick::StatusResult&) {
        for (const uint64_t grant : arguments.grants) {
          if (grants.erase(grant) == 0 && withdrawn_.contains(grant)) breaches.push_back("withdrawn twice");
          withdrawn_.insert(grant);
        }
        return brick::Status::kOk;
      });
    });
  }
  void list_grants(const brick::ListGrantsArguments& arguments, Done<brick::GrantsResult> done) override {
    run("list_grants", done, [&] {
      brick::GrantsResult result;
      if (!sessions.contains(arguments.client)) result.status = brick::Status::kNotFound;
      for (auto next = grants.upper_bound(arguments.after); next != grants.end(); ++next) {
        if (next->second.client != arguments.client) continue;
        if (result.more = result.grants.size() == grants_per_page; result.more) break;
        result.grants.push_back(next->second.grant);
      }
      return result;
    });
  }
  void persist(const brick::RangesArguments& arguments, Done<brick::PersistResult> done) override {
    run("persist", hold(hold_persists, done), [&] {
      return checked<brick::PersistResult>(arguments.epoch, [&](brick::PersistResult& result) {
        note_bytes(arguments.ranges);
        on_persist(arguments.ranges);
        result.verifier = verifier;
        return brick::Status::kOk;
      });
    });
  }
  void zero(const brick::RangesArguments& arguments, Done<brick::StatusResult> done) override {
    run("zero", hold(hold_zeroing, done), [&] {
      return checked<brick::StatusResult>(arguments.epoch, [&](brick::StatusResult&) {
        note_bytes(arguments.ranges);
        for (const brick::Range& range : arguments.ranges) {
          if (!blocks.contains(range.logical - range.logical % brick::kBlockSize))
            breaches.push_back("zeroed nothing");
          zeroed.push_back(range);
          fill(range.logical, std::byte{0}, range.length);
        }
        return brick::Status::kOk;
      });
    });
  }
  void copy(const brick::CopyArguments& arguments, Done<brick::StatusResult> done) override {
    run("copy", hold(hold_copies, done), [&] {
      return checked<brick::StatusResult>(arguments.epoch, [&](brick::StatusResult&) {
        for (const uint64_t place : {arguments.source, arguments.target}) {
          if (!blocks.contains(place - place % brick::kBlockSize)) breaches.push_back("copied nothing");
        }
        copied += arguments.length;
        for (uint64_t at = 0; at < arguments.length; at += kPage) {
          const std::byte* const from = grain_at(arguments.source + at);
          if (from == nullptr) {
            fill(arguments.target + at, std::byte{0}, kPage);
          } else {
            store(arguments.target + at, {from, kPage});
          }
        }
        return brick::Status::kOk;
      });
    });
  }
  void loop_turns(Done<brick::LoopTurnsResult> done) override {
    run("loop_turns", done, [] { return brick::LoopTurnsResult{}; });
  }
  void session_traffic(Done<brick::SessionTrafficResult> done) override {
    run("session_traffic", done, [] { return brick::SessionTrafficResult{}; });
  }
  void statistics(Done<brick::StatisticsResult> done) override {
    run("statistics", done, [&] {
      brick::StatisticsResult result;
      result.block_count = capacity_;
      result.free_blocks = capacity_ - blocks.size();
      result.clean_blocks = result.free_blocks;
      result.sessions = static_cast<uint32_t>(sessions.size());
      result.grants = static_cast<uint32_t>(grants.size());
      return result;
    });
  }

  std::vector<brick::Range> zeroed;
  uint64_t copied = 0;  // bytes

 private:
  static constexpr uint64_t kPage = 4096;
  using Page = std::array<std::byte, kPage>;

  Page& page_of(uint64_t logical) { return pages_.try_emplace(logical / kPage).first->second; }
  void note_bytes(const std::vector<brick::Range>& ranges) {
    uint64_t bytes = 0;
    for (const brick::Range& range : ranges) bytes += range.length;
    largest_bytes = std::max(largest_bytes, bytes);
  }
  bool exposed(uint64_t logical, uint64_t length) const {
    for (const auto& [number, live] : grants) {
      if (live.grant.logical < logical + length && logical < live.grant.logical + live.grant.length)
        return true;
    }
    return false;
  }
  template <typename T>
  T checked(uint64_t with_epoch, const std::function<brick::Status(T&)>& act) {
    T result;
    result.status = with_epoch < epoch ? brick::Status::kStaleEpoch
                    : lapsed_          ? brick::Status::kLapsed
                                       : act(result);
    return result;
  }
  // An answer that the test may want to hold back, as `held` says when it is due.
  template <typename T>
  Done<T> hold(const bool& held, Done<T> done) {
    return [this, &held, done](Result<T> result) {
      if (!held) return done(std::move(result));
      held_.push_back([done, result] { done(result); });
    };
  }
  template <typename T, typename Act>
  void run(const char* name, Done<T> done, Act act) {
    if (dead || !before_call()) return;
    calls.push_back(name);
    const T result = act();
    if (!behind_call()) return;
    loop_.post([this, done, result] {
      if (!dead) done(result);
    });
  }

  EventLoop& loop_;
  const uint64_t capacity_;
  uint64_t next_grant_ = 1;
  bool lapsed_ = false;
  std::set<uint64_t> ever_used_;
  std::set<uint64_t> withdrawn_;  // grants
  std::map<uint64_t, Page> pages_;
  std::vector<std::function<void()>> held_;
};

// Brick memory as the MDS reaches it, without a network: the bytes of FakeBricks, the first one's unless a
// zone of addresses is another's.
class FakeMemory final : public BlockMemory {
 public:
  FakeMemory(EventLoop& loop, FakeBrick& brick) : loop_(loop), brick_(brick) {}
  void set_zone(uint32_t zone, FakeBrick& brick) { zones_[zone] = &brick; }

  void read(uint64_t logical, MutableByteSpan sink, std::shared_ptr<void> keep, Done done) override {
    loop_.post([this, logical, sink, keep, done] {
      for (size_t i = 0; i < sink.size(); ++i) sink[i] = at(logical).byte_at(logical + i);
      done(!broken);
    });
  }
  void write(uint64_t logical, ByteSpan source, std::shared_ptr<const void> keep, Done done) override {
    loop_.post([this, logical, source, keep, done] {
      FakeBrick& brick = at(logical);
      if (brick.dead || !brick.before_call()) return;
      if (before_write) before_write();
      if (!broken) brick.store(logical, source);
      if (brick.behind_call()) done(!broken);
    });
  }
  void forget(const std::vector<brick::Range>&, std::function<void()> done) override {
    loop_.post(std::move(done));
  }
  void reset() override {}

  bool broken = false;
  std::function<void()> before_write;

 private:
  FakeBrick& at(uint64_t logical) {
    const auto found = zones_.find(zone_of(logical));
    return found == zones_.end() ? brick_ : *found->second;
  }

  EventLoop& loop_;
  FakeBrick& brick_;
  std::map<uint32_t, FakeBrick*> zones_;
};

}  // namespace pnfsrdma::mds::testing
