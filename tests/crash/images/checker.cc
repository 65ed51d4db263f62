// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/images/checker.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "server/mds/meta/brick_list.h"
#include "server/mds/meta/namespace_check.h"
#include "shared/base/check.h"

namespace pnfsrdma::crash {
namespace {

constexpr size_t kProblemsMax = 50;
constexpr uint64_t kProbe = 3 * kGrain;
constexpr Milliseconds kReturnPatience{15'000};  // for blocks on their way back to the brick

uint64_t word_at(const Bytes& bytes, uint64_t offset) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + offset, std::min<size_t>(kWord, bytes.size() - offset));
  return bits;
}

}  // namespace

void Checker::note(std::string problem) {
  if (problems_.size() < kProblemsMax) problems_.push_back(std::move(problem));
}

std::vector<std::string> Checker::check() {
  for (const std::string& problem : system_.image_problems()) note("pool image: " + problem);
  if (!system_.ready()) return {"brick and metadata do not come into agreement"};
  if (!client_.start()) return {"the client is not let in"};
  check_names();
  for (const auto& [name, serial] : Journal::Names(journal_.names)) check_file(name, serial);
  check_metadata();
  check_blocks();
  return problems_;
}

// Either what was acknowledged, or with the operation under way done.
void Checker::check_names() {
  const auto listed = client_.names();
  if (!listed) return note("the root cannot be listed");
  const auto matches = [&](const Journal::Names& names) {
    return names.size() == listed->size() &&
           std::ranges::all_of(*listed, [&](const std::string& name) { return names.contains(name); });
  };
  if (journal_.names_after && matches(*journal_.names_after) && !matches(journal_.names)) {
    journal_.renamed();
  } else if (!matches(journal_.names)) {
    note("the names are neither those before nor those after the last operation");
    Journal::Names found;
    for (const std::string& name : *listed) {
      if (journal_.names.contains(name)) found[name] = journal_.names[name];
    }
    journal_.names = found;
  }
  journal_.not_renamed();
}

void Checker::check_file(const std::string& name, uint16_t serial) {
  OpenFile* file = client_.open(name, false);
  if (file == nullptr) return note(name + ": cannot be opened");
  CHECK(file->serial == serial);
  const uint64_t size = check_size(name, *file);
  const Bytes content = check_bytes(name, *file, size);
  if (content.size() != size) return;
  learn(serial, size, content);
  check_behind_end(name, *file);
  if (!client_.close(name)) note(name + ": cannot be closed");
}

uint64_t Checker::check_size(const std::string& name, const OpenFile& file) {
  const uint64_t size = file.size;
  Journal::File& known = journal_.files[file.serial];
  if (known.cutting && known.cutting->size == size) {
    known.cuts.push_back(*known.cutting);
  } else if (size < known.size_low || size > known.size_high) {
    note(fmt::format("{}: {} bytes, expected {} to {}", name, size, known.size_low, known.size_high));
  }
  known.cutting.reset();
  return size;
}

// Through the server, and through a layout: the same, and nothing but what may be there.
Bytes Checker::check_bytes(const std::string& name, OpenFile& file, uint64_t size) {
  const auto served = client_.read_through_server(file, 0, size);
  if (!served) note(name + ": cannot be read through the server");
  const auto direct = client_.read(file, 0, size);
  if (!direct) note(name + ": cannot be read through a layout");
  if (!served || !direct) return {};
  if (*served != *direct) note(name + ": server and layout show different bytes");
  size_t wrong = 0;
  for (uint64_t at = 0; at < size && wrong < 3; at += kWord) {
    const std::string problem = journal_.judge(file.serial, at, word_at(*served, at));
    if (problem.empty()) continue;
    ++wrong;
    note(fmt::format("{} (file {}) at {} of {}: {}", name, file.serial, at, size, problem));
  }
  return *served;
}

// What recovery brought back is on the medium: from here on it may not be lost.
void Checker::learn(uint16_t serial, uint64_t size, const Bytes& content) {
  Journal::File& file = journal_.files[serial];
  std::map<uint64_t, uint32_t> least;
  for (uint64_t at = 0; at + kWord <= size; at += kWord) {
    const uint32_t generation = decode(word_at(content, at)).generation;
    const auto [entry, is_new] = least.try_emplace(at / kGrain, generation);
    if (!is_new) entry->second = std::min(entry->second, generation);
  }
  std::erase_if(least, [](const auto& entry) { return entry.second == 0; });
  for (auto& [grain, generation] : least)
    generation = std::max(generation, file.least.contains(grain) ? file.least[grain] : 0);
  for (const auto& [grain, generation] : least) file.least[grain] = generation;
  journal_.ends_at(serial, size);
}

void Checker::check_behind_end(const std::string& name, OpenFile& file) {
  const uint64_t old_size = file.size;
  const uint64_t size = (old_size + kGrain - 1) / kGrain * kGrain + kProbe;
  if (!client_.truncate(file, size)) return note(name + ": cannot be grown");
  for (const auto& found : {client_.read_through_server(file, old_size, size - old_size),
                            client_.read(file, old_size, size - old_size)}) {
    if (!found) {
      note(name + ": cannot be read behind its old end");
    } else if (!std::ranges::all_of(*found, [](std::byte byte) { return byte == std::byte{0}; })) {
      note(fmt::format("{}: bytes behind the end at {} have come to light", name, old_size));
    }
  }
  if (!client_.truncate(file, old_size)) note(name + ": cannot be cut again");
}

void Checker::check_metadata() {
  const auto report = mds::check_namespace(system_.store());
  CHECK(report);
  for (const std::string& problem : report->problems) note("metadata: " + problem);
  // The tails too, once nobody writes: nothing is left to be destroyed.
  if (report->orphans > 0 &&
      !system_.until([&] { return mds::check_namespace(system_.store())->orphans == 0; }))
    note("metadata: orphans stay");
}

// The brick has the blocks the extents name, no more and no fewer; what is being freed has a while.
void Checker::check_blocks() {
  mds::SpaceDifference difference;
  bool same = false;
  // By the machine's clock: a sync in front of a freeing may take that long. What is missing stays missing.
  const SystemClock clock;
  const SteadyTime deadline = clock.now() + (problems_.empty() ? kReturnPatience : Milliseconds(0));
  static_cast<void>(system_.until([&] {
    const auto list = mds::BrickList::open(system_.store(), system_.clock);
    CHECK(list);
    difference = (*list)->space(mds::kFirstBrick).compare(system_.list_blocks());
    same = difference.leaked.empty() && difference.missing.empty();
    return same || !difference.missing.empty() || clock.now() > deadline;
  }));
  if (same) return;
  for (const brick::Run& run : difference.leaked)
    note(fmt::format("{} leaked blocks at {:#x}", run.count, run.logical));
  for (const brick::Run& run : difference.missing)
    note(fmt::format("{} missing blocks at {:#x}", run.count, run.logical));
}

}  // namespace pnfsrdma::crash
