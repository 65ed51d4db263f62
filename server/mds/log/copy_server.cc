// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/copy_server.h"

#include <httplib.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "server/mds/log/copy_stream.h"
#include "server/mds/log/log_keys.h"
#include "server/mds/meta/rocksdb_store.h"
#include "shared/base/guarded.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

constexpr auto kCopyPatience = std::chrono::seconds(20);
constexpr Milliseconds kLookAgain{20};
constexpr size_t kThreads = 2;  // one gives the copy, one says that it is busy

}  // namespace

struct CopyServer::Http {
  explicit Http(const Options& options)
      : server(options.certificate.c_str(), options.key.c_str(), options.authority.c_str()) {}
  httplib::SSLServer server;
};

CopyServer::CopyServer(EventLoop& loop, KeyValueStore& store, Options options)
    : loop_(loop), store_(store), options_(std::move(options)), http_(std::make_unique<Http>(options_)) {}

Result<std::unique_ptr<CopyServer>> CopyServer::start(EventLoop& loop, KeyValueStore& store,
                                                      Options options) {
  std::unique_ptr<CopyServer> server(new CopyServer(loop, store, std::move(options)));
  TRY(server->begin());
  return server;
}

CopyServer::~CopyServer() {
  stopping_ = true;
  http_->server.stop();
  if (thread_.joinable()) thread_.join();
  remove_copy();
}

Result<> CopyServer::begin() {
  httplib::SSLServer& server = http_->server;
  if (!server.is_valid())
    return fail(EINVAL, "config: metadata_log: ca_file, certificate or key cannot be used");
  const size_t colon = options_.listen.rfind(':');
  const auto port = parse_decimal(options_.listen.substr(colon + 1));
  if (colon == std::string::npos || !port || *port > UINT16_MAX)
    return fail(EINVAL, "config: metadata_log.copies must be of the form \"host:port\"");
  remove_copy();
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  // Nobody else beside it: the default lets others share the port.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.set_read_timeout(kCopyPatience);
  server.set_write_timeout(kCopyPatience);
  server.set_keep_alive_max_count(1);
  server.Get(kPath, [this](const httplib::Request& asked, httplib::Response& response) {
    if (busy_.exchange(true)) {
      response.status = 503;
      return;
    }
    const Result<> made = make_copy();
    auto opened = made ? CopyWriter::open(options_.directory) : std::unexpected(made.error());
    if (!opened) {
      log_error("mds", "copy-not-given to={} error=\"{}\"", asked.remote_addr, opened.error().to_string());
      remove_copy();
      busy_ = false;
      response.status = 500;
      return;
    }
    log_info("mds", "copy-begun to={} files={}", asked.remote_addr, (*opened)->files());
    const std::shared_ptr<CopyWriter> writer = std::move(*opened);
    response.set_chunked_content_provider(
        "application/octet-stream",
        [writer](size_t, httplib::DataSink& sink) {
          const auto piece = writer->next();
          if (!piece) return false;
          if (!piece->empty()) return sink.write(piece->data(), piece->size());
          sink.done();
          return true;
        },
        [this, to = asked.remote_addr](bool whole) {
          whole ? log_info("mds", "copy-given to={}", to) : log_warning("mds", "copy-broken-off to={}", to);
          remove_copy();
          busy_ = false;
        });
  });
  std::string host = options_.listen.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);  // IPv6
  port_ = static_cast<int>(*port);
  if (port_ == 0)
    port_ = server.bind_to_any_port(host);
  else if (!server.bind_to_port(host, port_))
    port_ = -1;
  if (port_ < 0)
    return fail(EADDRINUSE, "nobody can listen at " + options_.listen + " (metadata_log.copies)");
  thread_ = Thread([&server] { server.listen_after_bind(); });
  while (!server.is_running()) sleep_for(kLookAgain);
  log_info("mds", "copies-listening address={}", options_.listen);
  return {};
}

Result<> CopyServer::make_copy() {
  using Outcome = Guarded<std::optional<Result<>>>;
  const auto outcome = std::make_shared<Outcome>();
  loop_.post(lifetime_.guard([this, outcome] {
    RocksdbStore::copy_to(store_, options_.directory,
                          [outcome](Result<> made) { *outcome->lock() = std::move(made); });
  }));
  while (!stopping_) {
    if (auto now = outcome->lock(); *now) return **now;
    sleep_for(kLookAgain);
  }
  return fail(ECANCELED, "this server ends");
}

void CopyServer::remove_copy() {
  std::error_code ignored;  // whatever is left is in the way of the next one, which says so
  std::filesystem::remove_all(options_.directory, ignored);
}

}  // namespace pnfsrdma::mds
