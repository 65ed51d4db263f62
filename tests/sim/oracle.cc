// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "shared/base/check.h"

namespace pnfsrdma::sim {

namespace {

constexpr uint64_t kEndless = UINT64_MAX;
constexpr uint64_t kFileShift = 56, kWriteShift = 28;
constexpr uint64_t kWriteMask = (uint64_t{1} << (kFileShift - kWriteShift)) - 1,
                   kPlaceMask = (uint64_t{1} << kWriteShift) - 1;

double milliseconds(SteadyTime time) {
  return std::chrono::duration<double, std::milli>(time.time_since_epoch() - std::chrono::hours(1)).count();
}

// The unit's one value; none: it is torn.
std::optional<uint64_t> value_of(ByteSpan unit) {
  uint64_t value = 0;
  std::memcpy(&value, unit.data(), sizeof value);
  for (size_t at = 0; at < unit.size(); at += sizeof value) {
    if (std::memcmp(&unit[at], &value, sizeof value) != 0) return std::nullopt;
  }
  return value;
}

}  // namespace

Oracle::Handle Oracle::open(size_t client, size_t file, SteadyTime asked, SteadyTime ready) {
  return {client, file, asked, ready, known(client, file).heard};
}

uint64_t Oracle::heard(const Known& mine, const Handle& handle) {
  uint64_t heard = handle.heard;
  for (const Known::Said& said : mine.said) {
    if (said.began < handle.ready) heard = std::max(heard, said.losses);
  }
  return heard;
}

size_t Oracle::begin_write(size_t client, size_t file, uint64_t offset, uint64_t length, SteadyTime now) {
  const size_t number = writes_.size();
  writes_.push_back(
      {.client = client, .file = file, .first = kUnknown, .units = length / kUnit, .began = now});
  known(client, file).unsettled.push_back(number);
  known(client, file).unclosed.push_back(number);
  if (offset != kUnknown) place(number, offset);
  return number;
}

void Oracle::fill(size_t number, MutableByteSpan bytes) const {
  for (size_t at = 0; at < bytes.size(); at += kUnit) {
    const uint64_t value =
        uint64_t{writes_[number].file + 1} << kFileShift | uint64_t{number} << kWriteShift | at / kUnit;
    for (size_t word = 0; word < kUnit; word += sizeof value)
      std::memcpy(&bytes[at + word], &value, sizeof value);
  }
}

void Oracle::place(size_t number, uint64_t offset) {
  Write& write = writes_[number];
  write.first = offset / kUnit;
  auto& units = units_[write.file];
  if (units.size() < write.first + write.units) units.resize(write.first + write.units);
  for (uint64_t unit = write.first; unit < write.first + write.units; ++unit)
    units[unit].push_back(static_cast<uint32_t>(number));
}

// Of each write that reaches beyond `offset` one unit is enough: truncations cut from behind.
void Oracle::check_append(size_t number, SteadyTime ended, uint64_t offset) {
  const Write& append = writes_[number];
  const Handle now{append.client, append.file, append.began, append.began};
  for (const Write& write : writes_) {
    if (write.file != append.file || write.cut || write.first == kUnknown) continue;
    const uint64_t unit = std::max(write.first, offset / kUnit);
    if (unit >= write.first + write.units || !must_be_seen(write, now, append.began)) continue;
    if (zero_is_legal(unit, now, append.began, ended)) continue;
    return violated_(fmt::format(
        "client {} appends to file {} at unit {} from {:.3f} to {:.3f} ms, over\n    {}", append.client,
        append.file, offset / kUnit, milliseconds(append.began), milliseconds(ended), describe(write)));
  }
}

size_t Oracle::begin_truncation(size_t client, size_t file, uint64_t size, SteadyTime now) {
  const size_t number = writes_.size();
  writes_.push_back(
      {.client = client, .file = file, .first = size / kUnit, .units = kEndless, .cut = true, .began = now});
  cuts_[file].push_back(number);
  return number;
}

size_t Oracle::begin_hole(size_t client, size_t file, uint64_t offset, uint64_t length, SteadyTime now) {
  const size_t number = begin_truncation(client, file, offset, now);
  writes_[number].units = length / kUnit;
  return number;
}

bool Oracle::zeroes(const Write& cut, uint64_t unit) {
  return unit >= cut.first && unit - cut.first < cut.units;
}

void Oracle::end(size_t number, bool done, SteadyTime now, bool refused) {
  Write& write = writes_[number];
  write.ended = now;
  write.done = done;
  write.refused = refused;
  if (write.cut && done) {
    write.durable = true;
    write.published = write.closed = now;
  }
}

bool Oracle::must_be_seen(const Write& write, const Handle& handle, SteadyTime began) const {
  if (handle.must != nullptr) {
    const auto number = static_cast<size_t>(&write - writes_.data());
    return number < handle.must->size() && (*handle.must)[number];
  }
  if (!write.done || write.lost != 0 || write.ended >= began) return false;
  return write.client == handle.client || (handle.kept ? write.closed : write.published) < handle.opened;
}

// An old copy of one client's growth may come over what another one wrote meanwhile, until it is synced or
// closed.
bool Oracle::over(const Write& later, const Write& earlier) {
  return later.began > (later.client == earlier.client ? earlier.ended : earlier.published);
}

// Nobody has to tell of the loss of such a write; so whether its bytes were there before the cut stays open.
bool Oracle::cut_away(const Write& write, SteadyTime before) const {
  const auto& cuts = cuts_[write.file];
  return std::any_of(cuts.begin(), cuts.end(), [&](size_t number) {
    const Write& cut = writes_[number];
    return cut.done && cut.ended < before && over(cut, write) && zeroes(cut, write.first) &&
           zeroes(cut, write.first + write.units - 1);
  });
}

bool Oracle::dominated(const Write* write, uint64_t unit, const Handle& handle, SteadyTime began) const {
  const auto hides = [&](size_t number) {
    const Write& other = writes_[number];
    if (&other == write || !must_be_seen(other, handle, began)) return false;
    return write == nullptr || over(other, *write);
  };
  const auto& units = units_[handle.file];
  if (unit < units.size() && std::any_of(units[unit].begin(), units[unit].end(), hides)) return true;
  if (write == nullptr || write->cut) return false;
  const auto& cuts = cuts_[handle.file];
  return std::any_of(cuts.begin(), cuts.end(),
                     [&](size_t number) { return zeroes(writes_[number], unit) && hides(number); });
}

bool Oracle::zero_is_legal(uint64_t unit, const Handle& handle, SteadyTime began, SteadyTime ended) const {
  if (!dominated(nullptr, unit, handle, began)) return true;
  const auto& cuts = cuts_[handle.file];
  return std::any_of(cuts.begin(), cuts.end(), [&](size_t number) {
    const Write& cut = writes_[number];
    const bool past = cut.refused && cut.ended < began;
    return zeroes(cut, unit) && cut.began < ended && !past && !dominated(&cut, unit, handle, began);
  });
}

std::string Oracle::describe(const Write& write) const {
  return fmt::format("{} {} by client {} at unit {}+{} from {:.3f} to {:.3f} ms{}{}{}",
                     !write.cut                ? "write"
                     : write.units == kEndless ? "truncation"
                                               : "hole",
                     &write - writes_.data(), write.client, static_cast<int64_t>(write.first),
                     static_cast<int64_t>(write.units), milliseconds(write.began),
                     write.ended == SteadyTime::max() ? -1 : milliseconds(write.ended),
                     write.done ? ", done" : "", write.durable ? ", durable" : "",
                     write.lost != 0 ? ", perhaps lost" : "");
}

// Empty: legal.
std::string Oracle::judge(uint64_t value, uint64_t unit, const Handle& handle, SteadyTime began,
                          SteadyTime ended) const {
  if (value == 0) return zero_is_legal(unit, handle, began, ended) ? "" : "zeros";
  const uint64_t number = value >> kWriteShift & kWriteMask;
  if (value >> kFileShift != handle.file + 1) return fmt::format("bytes of file {}", value >> kFileShift);
  if (number == 0 || number >= writes_.size()) return fmt::format("bytes that nobody wrote: {:x}", value);
  const Write& write = writes_[number];
  if (write.first == kUnknown) return "";  // an append that has not ended, or failed
  if (write.first + (value & kPlaceMask) != unit) return "bytes of another place: " + describe(write);
  if (write.began >= ended) return "bytes of the future: " + describe(write);
  const auto absent = absent_.find({number, unit});
  if (!handle.kept && absent != absent_.end() && absent->second < began)
    return "bytes that were not there any more: " + describe(write);
  return dominated(&write, unit, handle, began) ? "old bytes: " + describe(write) : "";
}

// Of what a dead client had not synced. Who has opened the file since knows where it ends.
void Oracle::note_absence(uint64_t unit, bool end_of_file, const Handle& handle, SteadyTime began,
                          SteadyTime ended) {
  if (unit >= units_[handle.file].size()) return;
  for (const uint32_t number : units_[handle.file][unit]) {
    const Write& write = writes_[number];
    if (write.fenced < (end_of_file ? handle.opened : began)) absent_.try_emplace({number, unit}, ended);
  }
}

std::string Oracle::all_at(size_t file, uint64_t unit) const {
  std::string known;
  if (unit < units_[file].size()) {
    for (const uint32_t number : units_[file][unit]) known += "\n    " + describe(writes_[number]);
  }
  for (const size_t number : cuts_[file]) {
    if (zeroes(writes_[number], unit)) known += "\n    " + describe(writes_[number]);
  }
  return known;
}

void Oracle::check_read(const Handle& handle, SteadyTime began, SteadyTime ended, uint64_t offset,
                        uint64_t asked, ByteSpan bytes, size_t count) {
  for (uint64_t at = 0; at < asked; at += kUnit) {
    const uint64_t unit = (offset + at) / kUnit;
    std::string wrong;
    if (at < count && at + kUnit <= count) {
      const auto value = value_of(bytes.subspan(at, kUnit));
      // Two writes at once may be mixed, but nobody writes half a unit.
      wrong = value ? judge(*value, unit, handle, began, ended) : "";
      if (value == 0 && !handle.kept) note_absence(unit, false, handle, began, ended);
    } else if (!zero_is_legal(unit, handle, began, ended)) {
      wrong = "nothing, the file ends before";
    } else {
      note_absence(unit, true, handle, began, ended);
    }
    if (wrong.empty()) continue;
    violated_(
        fmt::format("client {} reads {} in file {} at unit {} (byte {}) from {:.3f} to {:.3f} ms, opened "
                    "{:.3f}; there were:{}",
                    handle.client, wrong, handle.file, unit, unit * kUnit, milliseconds(began),
                    milliseconds(ended), milliseconds(handle.opened), all_at(handle.file, unit)));
    return;
  }
}

Oracle::Moment Oracle::moment(SteadyTime time) const {
  Moment moment{.time = time, .durable = {}, .published = {}, .losses = losses_};
  for (const Write& write : writes_) {
    const bool counts = write.done && write.lost == 0;
    moment.durable.push_back(counts && write.durable && write.published < time);
    moment.published.push_back(counts && write.published < time);
  }
  return moment;
}

SteadyTime Oracle::youngest(SteadyTime asked, ByteSpan bytes) const {
  SteadyTime youngest = asked;
  for (size_t at = 0; at + kUnit <= bytes.size(); at += kUnit) {
    const uint64_t number = value_of(bytes.subspan(at, kUnit)).value_or(0) >> kWriteShift & kWriteMask;
    if (number != 0 && number < writes_.size()) youngest = std::max(youngest, writes_[number].began);
  }
  return youngest;
}

void Oracle::check_snapshot(size_t file, SteadyTime asked, SteadyTime answered, const std::vector<bool>& must,
                            ByteSpan bytes) {
  const Handle handle{.file = file, .opened = asked, .ready = asked, .must = &must};
  const uint64_t units = std::max<uint64_t>(units_[file].size(), bytes.size() / kUnit);
  for (uint64_t unit = 0; unit < units; ++unit) {
    std::string wrong;
    if ((unit + 1) * kUnit <= bytes.size()) {
      const auto value = value_of(bytes.subspan(unit * kUnit, kUnit));
      wrong = value ? judge(*value, unit, handle, asked, answered) : "";
    } else if (!zero_is_legal(unit, handle, asked, answered)) {
      wrong = "nothing, the file ends before";
    }
    if (wrong.empty()) continue;
    return violated_(
        fmt::format("{} in file {} at unit {}, in a snapshot from {:.3f} to {:.3f} ms; there were:{}", wrong,
                    file, unit, milliseconds(asked), milliseconds(answered), all_at(file, unit)));
  }
}

uint32_t Oracle::begin_group(size_t file, SteadyTime now) {
  groups_[file].push_back({.began = now});
  return static_cast<uint32_t>(groups_[file].size() - 1);
}

void Oracle::end_group(size_t file, uint32_t group, bool done, SteadyTime now) {
  // What has no answer may be done later.
  if (done) groups_[file][group].ended = now;
  groups_[file][group].done = done;
}

void Oracle::check_group(size_t client, size_t file, uint32_t group, SteadyTime since, SteadyTime ended) {
  const auto& all = groups_[file];
  const bool known = group < all.size() && all[group].began < ended;
  const auto newer = std::ranges::find_if(all, [&](const Group& other) {
    return other.done && other.ended < since && (!known || other.began > all[group].ended);
  });
  if (known && newer == all.end()) return;
  violated_(fmt::format(
      "client {} is shown group {} of file {}; {}, of before {:.3f} ms", client, group, file,
      newer == all.end()
          ? "nobody has set it"
          : fmt::format("it was {} from {:.3f} ms on", newer - all.begin(), milliseconds(newer->ended)),
      milliseconds(since)));
}

bool Oracle::being_said(const Known& mine, const Handle& handle) {
  return std::ranges::any_of(mine.asking, [&](SteadyTime began) { return began < handle.ready; });
}

void Oracle::begin_sync(const Handle& handle, SteadyTime now) {
  known(handle.client, handle.file).asking.push_back(now);
}

void Oracle::end_sync(Known& mine, SteadyTime began) {
  const auto at = std::ranges::find(mine.asking, began);
  CHECK(at != mine.asking.end());
  mine.asking.erase(at);
}

void Oracle::synced(Handle& handle, SteadyTime began, SteadyTime ended, bool success) {
  Known& mine = known(handle.client, handle.file);
  end_sync(mine, began);
  if (!success) {
    // Of everything that is not synced: this descriptor has heard, others have not.
    may_be_lost(handle.file, &handle.client);
    handle.heard = mine.heard = losses_;
    mine.said.push_back({began, losses_});
    return;
  }
  handle.heard = heard(mine, handle);
  const bool others_say = being_said(mine, handle);
  for (const size_t number : mine.unsettled) {
    Write& write = writes_[number];
    if (write.ended >= began) continue;
    write.published = std::min(write.published, ended);
    if (write.lost != 0 && cut_away(write, began)) {
      write.durable = true;
      continue;
    }
    if (!write.done || (write.lost != 0 && (write.lost <= handle.heard || others_say))) continue;
    write.lost = 0;
    write.durable = true;
  }
  std::erase_if(mine.unsettled, [&](size_t number) { return writes_[number].durable; });
}

void Oracle::closed(const Handle& handle, SteadyTime began, SteadyTime ended, bool success) {
  Known& mine = known(handle.client, handle.file);
  end_sync(mine, began);
  if (!success) {
    // Whoever opens the file from now on starts behind that; this descriptor's fsync still has to say it.
    may_be_lost(handle.file, &handle.client);
    mine.heard = losses_;
    mine.said.push_back({began, losses_});
    return;
  }
  for (const size_t number : mine.unsettled) {
    Write& write = writes_[number];
    if (write.ended < began) write.published = std::min(write.published, ended);
  }
  std::erase_if(mine.unclosed, [&](size_t number) {
    Write& write = writes_[number];
    if (write.ended >= began) return false;
    write.closed = ended;
    return true;
  });
}

void Oracle::died(size_t client) {
  ++losses_;
  died_[client] = writes_.size();
  for (size_t file = 0; file < files_; ++file) {
    Known& mine = known(client, file);
    for (const size_t number : mine.unsettled) {
      Write& write = writes_[number];
      if (write.published == SteadyTime::max() && write.lost == 0) write.lost = losses_;
      abandoned_[file].push_back(number);
    }
    mine.unsettled.clear();
    mine.unclosed.clear();
    mine.said.clear();
    mine.asking.clear();
  }
}

void Oracle::fenced(size_t client, SteadyTime now, const Reached& reached) {
  // Behind these are those of its next life.
  for (size_t number = 1; number < died_.at(client); ++number) {
    Write& write = writes_[number];
    if (write.client != client || (write.cut && write.ended != SteadyTime::max())) continue;
    write.ended = std::min(write.ended, now);
    write.published = std::min(write.published, now);
    if (write.durable || write.cut || write.first == kUnknown) continue;
    if (!reached(write.file, write.first * kUnit, write.units * kUnit))
      write.fenced = std::min(write.fenced, now);
  }
}

void Oracle::may_be_lost(size_t file, const size_t* client) {
  ++losses_;
  for (const size_t number : abandoned_[file]) {
    if (client == nullptr && writes_[number].lost == 0) writes_[number].lost = losses_;
  }
  for (size_t one = 0; one < known_.size() / files_; ++one) {
    if (client != nullptr && one != *client) continue;
    for (const size_t number : known(one, file).unsettled) {
      if (!writes_[number].durable && writes_[number].lost == 0) writes_[number].lost = losses_;
    }
  }
}

}  // namespace pnfsrdma::sim
