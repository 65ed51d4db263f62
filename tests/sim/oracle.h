// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/clock.h"

namespace pnfsrdma::sim {

// Everything is written and read in units, each of which says which write of which file it is of, and where
// it lies in it.
inline constexpr uint64_t kUnit = 32;

// What was called, when, and what came of it; and from that, what may be read. It stands outside the system:
// it knows no layouts, flushes or commits. A value is legal as long as nobody whom the reader must see has
// written over it:
// - the reader's client, before the read began;
// - another client that has closed or synced the file before the reader opened it (close-to-open).
// What was written and not synced may be gone after a brick has lost its memory; but an fsync that answers 0
// afterwards, and no error came before it, says that it is not.
class Oracle {
 public:
  struct Handle {
    size_t client = 0, file = 0;
    SteadyTime opened;   // when the open began
    SteadyTime ready;    // and ended
    uint64_t heard = 0;  // of losses, by its fsyncs
    // It reads from the kernel's pages: they say nothing of what is there now, and go when the file's change attribute
    // moves, which for an overwrite is at its close.
    bool kept = false;
    // Instead of all that: the numbers of the writes that must be seen.
    const std::vector<bool>* must = nullptr;
  };

  Oracle(size_t clients, size_t files, std::function<void(const std::string&)> violated)
      : known_(clients * files),
        files_(files),
        units_(files),
        cuts_(files),
        abandoned_(files),
        groups_(files, {Group{.began = {}, .ended = {}, .done = true}}),
        violated_(std::move(violated)) {}

  Handle open(size_t client, size_t file, SteadyTime asked, SteadyTime ready);

  // `offset`: none for an append, which learns it at its end.
  static constexpr uint64_t kUnknown = UINT64_MAX;
  size_t begin_write(size_t client, size_t file, uint64_t offset, uint64_t length, SteadyTime now);
  void fill(size_t write, MutableByteSpan bytes) const;
  void place(size_t write, uint64_t offset);
  // Before its place: an append goes behind all that is there for whoever would open the file now.
  void check_append(size_t write, SteadyTime ended, uint64_t offset);
  size_t begin_truncation(size_t client, size_t file, uint64_t size, SteadyTime now);
  // Zeros from then on, as behind a truncation, and the size stays.
  size_t begin_hole(size_t client, size_t file, uint64_t offset, uint64_t length, SteadyTime now);
  // `refused`: it has failed and not happened, as far as a truncation can.
  void end(size_t write, bool done, SteadyTime now, bool refused = false);

  // `count` bytes came of `asked`: what is missing is behind the end of file.
  void check_read(const Handle& handle, SteadyTime began, SteadyTime ended, uint64_t offset, uint64_t asked,
                  ByteSpan bytes, size_t count);

  // What a snapshot has to have that is taken from then on, each by its number; and how many losses there were.
  struct Moment {
    SteadyTime time;
    std::vector<bool> durable;    // it stays, whatever the bricks lose
    std::vector<bool> published;  // synced or closed, and not lost yet
    uint64_t losses = 0;
  };
  Moment moment(SteadyTime time) const;
  uint64_t losses() const { return losses_; }
  // A snapshot that was asked for at `asked` and answered at `answered` has these bytes of the file: of what `must` be
  // seen nothing is missing, of what began later than the answer nothing is there. `bytes` are all it has.
  void check_snapshot(size_t file, SteadyTime asked, SteadyTime answered, const std::vector<bool>& must,
                      ByteSpan bytes);
  // When the youngest write began that is there; `asked`: none that is younger than that.
  SteadyTime youngest(SteadyTime asked, ByteSpan bytes) const;

  // An attribute of a file that changes by chown(2) alone, each time to another value.
  uint32_t begin_group(size_t file, SteadyTime now);
  void end_group(size_t file, uint32_t group, bool done, SteadyTime now);
  // It was shown to somebody who may not see what was changed behind `since`, and asked until `ended`.
  void check_group(size_t client, size_t file, uint32_t group, SteadyTime since, SteadyTime ended);
  // Before an fsync or a close, which then ends with one of the two behind it.
  void begin_sync(const Handle& handle, SteadyTime now);
  void synced(Handle& handle, SteadyTime began, SteadyTime ended, bool success);
  void closed(const Handle& handle, SteadyTime began, SteadyTime ended, bool success);
  // The client has died with all its descriptors: what it had not synced is there or not, unit by unit. `closed`
  // bytes are at the bricks. Then, fenced: nothing of it comes any more, and what is seen not to be there stays
  // away, unless a living client may write there (`reached`: file, offset, length): a file may grow over what lies
  // behind its end in memory that the writer who lets it grow holds.
  using Reached = std::function<bool(size_t file, uint64_t offset, uint64_t length)>;
  void died(size_t client);
  void fenced(size_t client, SteadyTime now, const Reached& reached);
  // What lies on these files and is not synced may be gone (`client`: only what it wrote).
  void may_be_lost(size_t file, const size_t* client = nullptr);

 private:
  struct Write {
    size_t client = 0, file = 0;
    uint64_t first = 0, units = 0;  // `first` in units
    bool cut = false;               // a truncation or a hole: zeros from `first` on, so many units
    SteadyTime began, ended = SteadyTime::max();
    bool done = false, refused = false;
    bool durable = false;
    SteadyTime fenced = SteadyTime::max();  // its client has died unsynced, and sends nothing any more
    uint64_t lost = 0;                      // which loss it may have been part of; 0: none
    SteadyTime published =
        SteadyTime::max();  // synced or closed: then others see it, and nobody writes it again
    SteadyTime closed = SteadyTime::max();
  };
  struct Known {
    std::vector<size_t> unsettled, unclosed;
    uint64_t heard = 0;  // by any descriptor
    // Calls that said so: an open beside one of them starts before or behind it.
    struct Said {
      SteadyTime began;
      uint64_t losses = 0;
    };
    std::vector<Said> said;
    std::vector<SteadyTime> asking;  // when those that are under way began
  };

  // Of the losses that the descriptor need not speak of.
  static uint64_t heard(const Known& mine, const Handle& handle);
  // Another call, which has not come back, may be saying it: `handle` was opened beside that.
  static bool being_said(const Known& mine, const Handle& handle);
  static void end_sync(Known& mine, SteadyTime began);
  Known& known(size_t client, size_t file) { return known_[client * files_ + file]; }
  bool must_be_seen(const Write& write, const Handle& handle, SteadyTime began) const;
  static bool zeroes(const Write& cut, uint64_t unit);
  static bool over(const Write& later, const Write& earlier);
  // All of it has become zeros since, before that time.
  bool cut_away(const Write& write, SteadyTime before) const;
  bool dominated(const Write* write, uint64_t unit, const Handle& handle, SteadyTime began) const;
  bool zero_is_legal(uint64_t unit, const Handle& handle, SteadyTime began, SteadyTime ended) const;
  std::string judge(uint64_t value, uint64_t unit, const Handle& handle, SteadyTime began,
                    SteadyTime ended) const;
  struct Group {
    SteadyTime began, ended = SteadyTime::max();
    bool done = false;
  };
  std::string all_at(size_t file, uint64_t unit) const;
  void note_absence(uint64_t unit, bool end_of_file, const Handle& handle, SteadyTime began,
                    SteadyTime ended);
  std::string describe(const Write& write) const;

  std::vector<Write> writes_{1};  // number 0 is none
  std::vector<Known> known_;
  const size_t files_;
  std::vector<std::vector<std::vector<uint32_t>>> units_;  // [file][unit]: the writes there
  std::vector<std::vector<size_t>> cuts_;
  std::map<size_t, size_t> died_;               // client: how many writes there were then, of all clients
  std::vector<std::vector<size_t>> abandoned_;  // [file]: closed and not synced by a client that died
  std::map<std::pair<size_t, uint64_t>, SteadyTime> absent_;  // write and unit: seen not to be there
  uint64_t losses_ = 0;
  std::vector<std::vector<Group>> groups_;  // [file][group]
  std::function<void(const std::string&)> violated_;
};

}  // namespace pnfsrdma::sim
