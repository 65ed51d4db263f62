// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/log_writer.h"

#include <cerrno>
#include <utility>

#include "server/mds/log/log_record.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

constexpr Milliseconds kAskAgain{20};

}  // namespace

LogWriter::LogWriter(EventLoop& loop, std::unique_ptr<KeyServer> server, Options options)
    : loop_(loop), server_(std::move(server)), options_(std::move(options)), end_(options_.end) {
  queue_.lock()->logged.end = end_;
}

LogWriter::~LogWriter() {
  queue_.lock()->stopping = true;
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void LogWriter::start(Hooks hooks) {
  hooks_ = {.logged = lifetime_.guard(std::move(hooks.logged)),
            .lost = lifetime_.guard(std::move(hooks.lost))};
  thread_ = Thread([this] { run(); });
}

void LogWriter::append(std::string record) {
  {
    auto queue = queue_.lock();
    queue->records.push_back(std::move(record));
    ++queue->appended;
  }
  wake_.notify_one();
}

Result<Logged> LogWriter::wait() {
  auto queue = queue_.lock();
  queue.wait(progress_, [](const Queue& now) { return now.lost || now.logged.records == now.appended; });
  if (queue->lost) return std::unexpected(*queue->lost);
  return queue->logged;
}

void LogWriter::run() {
  while (auto group = next_group()) {
    for (std::string& value : group->values) {
      if (const Result<> written = write(std::move(value)); !written) return end(written.error());
    }
    Logged logged;
    {
      auto queue = queue_.lock();
      queue->logged.records += group->records;
      queue->logged.end = end_;
      logged = queue->logged;
    }
    progress_.notify_all();
    loop_.post([told = hooks_.logged, logged] { told(logged); });
  }
}

std::optional<LogWriter::Group> LogWriter::next_group() {
  auto queue = queue_.lock();
  queue.wait(wake_, [](const Queue& now) { return now.stopping || !now.records.empty(); });
  if (queue->stopping) return std::nullopt;
  Group group;
  ValueBuilder value;
  for (bool ended = false; !ended && !queue->records.empty() && value.add(queue->records.front());) {
    ended = ends_value(queue->records.front());
    queue->records.pop_front();
    ++group.records;
  }
  if (value.empty()) {
    group.values = ValueBuilder::parts_of(queue->records.front());
    queue->records.pop_front();
    group.records = 1;
  } else {
    group.values.push_back(value.take());
  }
  return group;
}

Result<> LogWriter::write(std::string value) {
  chain_value(value, end_.hash);
  const std::string key = options_.keys.value(end_.position + 1);
  const SteadyTime begun = steady_now();
  std::string problem;
  for (;;) {
    if (!options_.leads()) return fail(ESTALE, "the lead could not be renewed in time");
    if (queue_.lock()->stopping) return fail(ECANCELED, "the log is closed");
    if (const auto outcome = try_write(key, value, problem)) {
      if (*outcome) {
        end_ = {end_.position + 1, hash_of(value)};
        if (options_.wrote) options_.wrote(end_.position, value.size(), steady_now() - begun);
      }
      return *outcome;
    }
    if (steady_now() - begun > options_.patience) {
      return fail(ETIMEDOUT, "etcd renews the lead, but for " +
                                 std::to_string(options_.patience.count() / 1000) + " s has not taken " +
                                 key + ": " + problem);
    }
    sleep_for(kAskAgain);
  }
}

std::optional<Result<>> LogWriter::try_write(const std::string& key, const std::string& value,
                                             std::string& problem) {
  const std::string leader = options_.keys.leader();
  const auto outcome = server_->commit({.if_all = {{leader, options_.lead}, {key, 0}},
                                        .puts = {{key, value}},
                                        .otherwise_read = {leader, key}});
  if (!outcome) {
    // It takes requests, but never this one: too large for its --max-request-bytes, say.
    if (outcome.error().number() == EPROTO) return std::unexpected(outcome.error());
    if (std::exchange(problem, outcome.error().to_string()).empty())
      log_warning("mds", "log-waits error=\"{}\" what=\"changes wait until etcd answers\"", problem);
    return std::nullopt;
  }
  if (outcome->done) return Result<>();
  bool mine = false;
  bool there = false;
  for (const KeyRow& row : outcome->found) {
    if (row.key == leader) mine = row.revision == options_.lead;
    if (row.key == key) there = row.value == value;
  }
  if (!mine) return fail(ESTALE, "another server has taken the lead");
  if (there) return Result<>();  // an earlier try, whose answer was lost
  return fail(EUCLEAN, "somebody else writes the log: " + key);
}

void LogWriter::end(const Error& error) {
  queue_.lock()->lost = error;
  progress_.notify_all();
  loop_.post([told = hooks_.lost, error] { told(error); });
}

}  // namespace pnfsrdma::mds
