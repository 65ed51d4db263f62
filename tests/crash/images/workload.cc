// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/images/workload.h"

namespace pnfsrdma::crash {
namespace {
constexpr uint64_t kSmallGrains = 40;   // files that share blocks
constexpr uint64_t kLargeGrains = 300;  // and those with blocks of their own
constexpr uint64_t kWish = uint64_t{1} << 20;
}  // namespace

void Workload::write(const std::string& name) {
  OpenFile* file = client_.open(name, true);
  if (file == nullptr) return;
  const bool large = below(6) == 0;
  const uint64_t grain = below(large ? kLargeGrains : kSmallGrains);
  const uint64_t grains = 1 + below(large ? 100 : 12);
  if (below(5) == 0) {
    client_.write_through_server(*file, grain * kGrain, std::min<uint64_t>(grains, 16) * kGrain,
                                 below(2) == 0);
    return;
  }
  client_.write(*file, grain * kGrain, grains * kGrain, below(2) * kWish);
  if (below(4) != 0) client_.sync(*file, any_flush());
}

void Workload::random_step() {
  const std::string name = any_name();
  OpenFile* file = client_.opened(name);
  switch (below(20)) {
    case 0:
      if (journal_.names.contains(name)) client_.remove(name);
      return;
    case 1:
      client_.rename(name, any_name());
      return;
    case 2:
      client_.close(name);
      return;
    case 3:
      client_.close_nameless();
      return;
    case 4:
    case 5:
    case 6:
      return truncate(
          name, below(below(4) == 0 ? kLargeGrains : kSmallGrains) * kGrain + below(kGrain / kWord) * kWord);
    case 7:
      if (file != nullptr) client_.give_back(*file);
      return;
    case 8:
    case 9:
      if (file != nullptr) client_.sync(*file, any_flush());
      return;
    case 10:
      if (below(4) == 0) client_.start();
      return;
    default:
      return write(name);
  }
}

void Workload::write_to(const std::string& name, uint64_t grain, uint64_t grains, Flush flush) {
  OpenFile* file = client_.open(name, true);
  if (file != nullptr && client_.write(*file, grain * kGrain, grains * kGrain, 0)) client_.sync(*file, flush);
}

void Workload::truncate(const std::string& name, uint64_t size) {
  OpenFile* file = journal_.names.contains(name) ? client_.open(name, false) : nullptr;
  if (file != nullptr) client_.truncate(*file, size);
}

void Workload::fixed_step(int number) {
  switch (number) {
    case 0:
      return write_to("a", 0, 2, Flush::kNative);
    case 1:
      return write_to("b", 0, 3, Flush::kMessage);
    case 2:
      return write_to("a", 1, 3, Flush::kLayoutCommit);
    case 3:
      return truncate("a", 6000);
    case 4:
      return truncate("a", 20000);
    case 5:
      client_.remove("b");
      return;
    case 6:
      client_.close_nameless();
      return;
    case 7:
      return write_to("c", 0, 5, Flush::kNative);  // where b was
    case 8:
      return truncate("c", 30000);
    case 9:
      client_.rename("a", "c");
      return;
    case 10:
      client_.close_nameless();
      return;
    case 11:
      return write_to("big", 0, 80, Flush::kMessage);
    case 12:
      return write_to("big", 70, 40, Flush::kNative);
    case 13:
      return truncate("big", 100000);
    case 14:
      return write_to("c", 0, 1, Flush::kMessage);
    case 15:
      client_.close("c");
      return;
    case 16:
      if (OpenFile* file = client_.open("d", true)) client_.write_through_server(*file, 0, 8192, false);
      return;
    case 17:  // while nothing else makes the metadata durable
      if (OpenFile* file = client_.open("f", true)) client_.write_through_server(*file, 0, 8192, false);
      return;
    case 18:  // written past the end, and never committed
      if (OpenFile* file = client_.open("d", true)) client_.write(*file, 8192, 12288, 0);
      return;
    case 19:
      if (OpenFile* file = client_.opened("d")) client_.give_back(*file);
      return;
    case 20:
      return truncate("d", 16384);
    case 21:
      client_.remove("big");
      return;
    case 22:
      client_.close_nameless();
      return;
    case 23:
      client_.start();
      return;
    default:
      return write_to("e", 2, 4, Flush::kNative);
  }
}

}  // namespace pnfsrdma::crash
