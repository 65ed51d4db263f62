// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/brick/durable.h"

#include <fmt/format.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "tests/bench/brick/brick_owner.h"
#include "tests/bench/brick/device.h"
#include "tests/bench/percentiles.h"
#include "tests/unit/brickd/test_client.h"

namespace pnfsrdma::bench {
namespace {

constexpr uint64_t kClient = 1;
constexpr uint32_t kPiece = 4096;
constexpr uint64_t kWarmUp = 50;

class Durable {
 public:
  static Result<nlohmann::json> run(const BrickSettings& settings) {
    SystemRandom random;
    TRY_ASSIGN(const auto transport, open_transport(settings.transport, random));
    TRY_ASSIGN(const auto owner, BrickOwner::claim(settings.control));
    TRY_ASSIGN(const std::string address, owner->address_for(settings.transport));
    TRY_ASSIGN(const uint64_t logical, owner->alloc(1));
    TRY_ASSIGN(const Ticket ticket, owner->open_session(kClient));
    TRY_ASSIGN(const auto client, brick::TestClient::connect(*transport, address, ticket));
    if (!client->hello()) return fail(EPROTO, "the brick does not answer the hello");
    TRY_ASSIGN(const brick::Grant grant, owner->expose(kClient, logical, brick::kBlockSize, true));
    Durable durable(*client, grant, random);
    nlohmann::json report{{"transport", settings.transport},
                          {"kind", owner->identity().kind},
                          {"durability", owner->identity().durability},
                          {"bytes", kPiece}};
    if (settings.method != "commit_message" && client->queue_pair().limits().native_flush) {
      TRY(durable.measure(settings.operations, &Durable::native_flush, report["native_flush"]));
    }
    if (settings.method != "native_flush") {
      TRY(durable.measure(settings.operations, &Durable::commit_message, report["commit_message"]));
    }
    return report;
  }

 private:
  Durable(brick::TestClient& client, const brick::Grant& grant, Random& random)
      : client_(client), grant_(grant), random_(random) {}

  bool native_flush(uint64_t offset) {
    return client_.write_and_flush(grant_, offset, kPiece) == rdma::Outcome::kSuccess;
  }
  bool commit_message(uint64_t offset) {
    const auto reply = client_.write_and_persist(grant_, offset, kPiece);
    return reply && reply->status == brick::PersistStatus::kOk;
  }
  Result<> measure(uint64_t operations, bool (Durable::*method)(uint64_t), nlohmann::json& report) {
    Percentiles microseconds;
    const int64_t began = now_ns();
    for (uint64_t number = 0; number < kWarmUp + operations; ++number) {
      const uint64_t offset = random_.next_u32() % (grant_.length / kPiece) * kPiece;
      const int64_t start = now_ns();
      if (!(this->*method)(offset)) return fail(EIO, "a durable write failed");
      if (number >= kWarmUp) microseconds.add(static_cast<double>(now_ns() - start) / 1000);
    }
    report = {{"operations", operations},
              {"p10_us", microseconds.at(10)},
              {"p50_us", microseconds.at(50)},
              {"p99_us", microseconds.at(99)},
              {"mean_us",
               static_cast<double>(now_ns() - began) / 1000 / static_cast<double>(kWarmUp + operations)}};
    return {};
  }

  brick::TestClient& client_;
  const brick::Grant grant_;
  Random& random_;
};

}  // namespace

int run_durable(const BrickSettings& settings) {
  const auto report = Durable::run(settings);
  if (!report) {
    fmt::print(stderr, "bench-brick: {}\n", report.error().to_string());
    return 2;
  }
  if (settings.json) {
    fmt::print("{}\n", report->dump(2));
    return 0;
  }
  fmt::print("durable WRITE of 4 KiB, {}, {}: microseconds\n{:<16} {:>10} {:>10} {:>10}\n",
             settings.transport, (*report)["kind"].get<std::string>(), "", "mean", "p50", "p99");
  for (const char* method : {"native_flush", "commit_message"}) {
    if (!report->contains(method)) continue;
    const auto& row = (*report)[method];
    fmt::print("{:<16} {:>10.1f} {:>10.1f} {:>10.1f}\n", method, row["mean_us"].get<double>(),
               row["p50_us"].get<double>(), row["p99_us"].get<double>());
  }
  return 0;
}

}  // namespace pnfsrdma::bench
