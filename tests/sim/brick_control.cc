// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/brick_control.h"

#include <cerrno>
#include <type_traits>
#include <utility>

#include "server/mds/meta/brick_records.h"
#include "shared/base/check.h"
#include "shared/base/event_loop.h"

namespace pnfsrdma::sim {

// To one brick. A connection is a number: what belongs to an earlier one is lost.
class BrickControls::Way final : public brick::Control, public std::enable_shared_from_this<Way> {
 public:
  Way(EventLoop& loop, ServedBrick& brick, Dice& dice)
      : loop_(loop), brick_(brick), there_(dice.next()), back_(dice.next()) {}

  const ServedBrick& brick() const { return brick_; }
  void use(brick::BrickClient::Events events) {
    events_ = std::move(events);
    changed();
  }
  void changed() {
    there_.send([self = shared_from_this()] {
      self->back_.send([self] { self->loop_.post([self] { self->look(); }); });
    });
  }

  void read(uint64_t logical, MutableByteSpan sink, std::shared_ptr<void> keep, BlockMemory::Done done) {
    memory(std::move(done), [self = shared_from_this(), logical, sink, keep, epoch = brick_.epoch()] {
      return self->brick_.read(epoch, logical, sink);
    });
  }
  void write(uint64_t logical, ByteSpan source, std::shared_ptr<const void> keep, BlockMemory::Done done) {
    memory(std::move(done), [self = shared_from_this(), logical, source, keep, epoch = brick_.epoch()] {
      return self->brick_.write(epoch, logical, source);
    });
  }

  // --- Control
  void identify(Done<brick::IdentifyResult> done) override {
    ask(std::move(done), [](ServedBrick& brick) { return brick.identify(); });
  }
  void claim(const brick::ClaimArguments& a, Done<brick::ClaimResult> done) override {
    ask(std::move(done), [a](ServedBrick& brick) { return brick.claim(a); });
  }
  void alloc(const brick::AllocArguments& a, Done<brick::RunsResult> done) override {
    ask(std::move(done), [a](ServedBrick& brick) { return brick.alloc(a); });
  }
  void free(const brick::BlocksArguments& a, Done<brick::StatusResult> done) override {
    ask(std::move(done), [a](ServedBrick& brick) { return brick.free(a); });
  }
  void list(const brick::ListArguments& a, Done<brick::ListResult> done) override {
    ask(std::move(done), [a](ServedBrick& brick) { return brick.list(a); });
  }
  void open_session(const brick::OpenSessionArguments& a, Done<brick::StatusResult> done) override {
    ask(std::move(done), [a](ServedBrick& brick) { return brick.open_session(a); });
  }
  void close_session(const brick::CloseSessionArguments& a, Done<brick::StatusResult> done) override {
    ask(std::move(done), [a](ServedBrick& brick) { return brick.close_session(a); });
  }
  void list_sessions(Done<brick::SessionsResult> done) override {
    ask(std::move(done), [](ServedBrick& brick) { return brick.list_sessions(); });
  }
  void expose(const brick::ExposeArguments& a, Done<brick::ExposeResult> done) override {
    ask(std::move(done), [a](ServedBrick& brick) { return brick.expose(a); });
  }
  void withdraw(const brick::WithdrawArguments& a, Done<brick::StatusResult> done) override {
    ask(std::move(done), [a](ServedBrick& brick) { return brick.withdraw(a); });
  }
  void persist(const brick::RangesArguments& a, Done<brick::PersistResult> done) override {
    ask(std::move(done), [a](ServedBrick& brick) { return brick.persist(a); });
  }
  void zero(const brick::RangesArguments& a, Done<brick::StatusResult> done) override {
    ask(std::move(done), [a](ServedBrick& brick) { return brick.zero(a); });
  }
  void statistics(Done<brick::StatisticsResult> done) override {
    ask(std::move(done), [](ServedBrick& brick) { return brick.statistics(); });
  }
  // Nobody asks.
  void map(const brick::MapArguments&, Done<brick::StatusResult>) override { CHECK(false); }
  void unmap(const brick::BlocksArguments&, Done<brick::StatusResult>) override { CHECK(false); }
  void survey(const brick::SurveyArguments&, Done<brick::SurveyResult>) override { CHECK(false); }
  void erase(const brick::EraseArguments&, Done<brick::StatusResult>) override { CHECK(false); }
  void list_grants(const brick::ListGrantsArguments& arguments, Done<brick::GrantsResult> done) override {
    ask(std::move(done), [arguments](ServedBrick& brick) { return brick.list_grants(arguments); });
  }
  void copy(const brick::CopyArguments& a, Done<brick::StatusResult> done) override {
    ask(std::move(done), [a](ServedBrick& brick) { return brick.copy(a); });
  }
  void loop_turns(Done<brick::LoopTurnsResult>) override { CHECK(false); }
  void session_traffic(Done<brick::SessionTrafficResult>) override { CHECK(false); }

 private:
  // In the loop: the connection is lost when the brick's process is another one, and made when that is up.
  void look() {
    const uint64_t incarnation = brick_.process();
    if (connected_ && (!brick_.up() || incarnation != process_)) {
      connected_ = false;
      ++connection_;
      for (auto& [number, lost] : std::exchange(asked_, {})) lost();
      events_.on_lost(Error(ECONNRESET, "the brick has closed the connection"));
    }
    if (connected_ || !brick_.up()) return;
    connected_ = true;
    process_ = incarnation;
    events_.on_connected();
  }

  template <typename T, typename Act>
  void ask(Done<T> done, Act act) {
    const uint64_t number = ++last_;
    if (!connected_) return loop_.post([done] { done(fail(ENOTCONN, "no connection to the brick")); });
    asked_[number] = [done] { done(fail(ECONNRESET, "the brick has closed the connection")); };
    there_.send([self = shared_from_this(), number, done, act, process = process_] {
      if (!self->brick_.up() || self->brick_.process() != process) return;
      const T result = act(self->brick_);
      self->back_.send([self, number, done, result] {
        self->loop_.post([self, number, done, result] {
          if (self->asked_.erase(number) > 0) done(result);
        });
      });
    });
  }

  template <typename Act>
  void memory(BlockMemory::Done done, Act act) {
    there_.send([self = shared_from_this(), done = std::move(done), act] {
      const bool moved = act();
      self->back_.send([self, done, moved] { self->loop_.post([done, moved] { done(moved); }); });
    });
  }

  EventLoop& loop_;
  ServedBrick& brick_;
  Courier there_, back_;
  brick::BrickClient::Events events_;
  bool connected_ = false;
  uint64_t process_ = 0;  // of the brick, that we are connected to
  uint64_t connection_ = 0;
  uint64_t last_ = 0;
  std::map<uint64_t, std::function<void()>> asked_;  // what a loss says to those who wait
};

namespace {

struct Connection final : mds::BrickConnection {
  explicit Connection(brick::Control& control) : way(control) {}
  brick::Control& control() override { return way; }
  Milliseconds silence() const override { return Milliseconds(0); }
  brick::Control& way;
};

}  // namespace

BrickControls::BrickControls(EventLoop& loop, std::vector<ServedBrick*> bricks, uint64_t seed) : loop_(loop) {
  Dice dice(seed);
  for (ServedBrick* brick : bricks) ways_.push_back(std::make_shared<Way>(loop, *brick, dice));
}

BrickControls::~BrickControls() = default;

mds::ConnectBrick BrickControls::connector() {
  return [this](const std::string& address, brick::BrickClient::Events events) {
    for (const auto& way : ways_) {
      if (way->brick().address() != address) continue;
      way->use(std::move(events));
      return std::make_unique<Connection>(*way);
    }
    CHECK(false);
    return std::unique_ptr<Connection>();
  };
}

void BrickControls::changed(size_t brick) {
  ways_[brick]->changed();
}

// Bricks have their numbers, and these their zones, in the order in which they are configured.
BrickControls::Way& BrickControls::way_to(uint64_t logical) {
  return *ways_.at(mds::zone_of(logical));
}

void BrickControls::read(uint64_t logical, MutableByteSpan sink, std::shared_ptr<void> keep, Done done) {
  way_to(logical).read(logical, sink, std::move(keep), std::move(done));
}

void BrickControls::write(uint64_t logical, ByteSpan source, std::shared_ptr<const void> keep, Done done) {
  way_to(logical).write(logical, source, std::move(keep), std::move(done));
}

void BrickControls::forget(const std::vector<brick::Range>&, std::function<void()> done) {
  loop_.post(std::move(done));
}

}  // namespace pnfsrdma::sim
