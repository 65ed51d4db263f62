// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/console/alert_readings.h"
#include "server/console/alert_table.h"
#include "server/console/kept_file.h"
#include "shared/base/guarded.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

// The alerts of this server: evaluated every few seconds in a thread of its own, kept in a file over a
// restart, and told to whoever wants to know. Thread-safe.
class AlertKeeper {
 public:
  static constexpr std::chrono::seconds kEvery{5};

  struct Parts {
    const Clock& clock;
    std::string directory;  // where alerts.json is
    std::string server;     // what people call it
    std::function<Result<std::shared_ptr<const Numbers>>()> numbers;
    std::function<std::optional<double>()> certificate_seconds_left;
    std::function<void(const Alert&)> tell;  // that has begun to fire or was resolved; must not block
  };
  // Reads what is kept: those that fire are told once more, because nobody knows who heard of them. A file
  // that cannot be read is put aside and logged. Notes that the server has started.
  explicit AlertKeeper(Parts parts);
  ~AlertKeeper();
  AlertKeeper(const AlertKeeper&) = delete;
  AlertKeeper& operator=(const AlertKeeper&) = delete;

  // From now on by itself.
  void start();
  // Once.
  void evaluate();

  // Newest first.
  std::vector<Alert> all();
  std::optional<Alert> find(uint64_t id);
  // On the medium when it returns. ENOENT; EBUSY: it does not fire; what the file system gives.
  Result<Alert> acknowledge(uint64_t id, std::optional<Acknowledgement> acknowledgement);

 private:
  void load();
  Result<> keep();
  void log(const Alert& alert);
  size_t starts_in_window();

  const Parts parts_;
  const KeptFile file_;
  Mutex changing_;  // one change at a time, until it is kept
  Guarded<AlertTable> table_;
  AlertReadings readings_;       // by whoever holds changing_
  std::vector<int64_t> starts_;  // likewise: seconds since 1970
  bool unkept_ = false;          // likewise: the file is behind
  bool failing_ = false;         // likewise: and it was logged why
  struct Running {
    bool stopping = false;
  };
  Guarded<Running> running_;
  Condition stopped_;
  Thread thread_;
};

}  // namespace pnfsrdma::console
