// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/copy_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "server/mds/log/copy_connection.h"
#include "server/mds/log/copy_stream.h"
#include "server/mds/log/log_keys.h"
#include "server/mds/meta/rocksdb_store.h"
#include "shared/base/guarded.h"
#include "shared/base/log.h"
#include "shared/base/sync.h"
#include "shared/http/parser.h"
#include "shared/rpc/socket_address.h"

namespace pnfsrdma::mds {
namespace {

constexpr Milliseconds kLookAgain{20};
constexpr int kCopyBacklog = 16;

}  // namespace

class CopyServer::Http final : public http::Parser<httplib::SSLServer> {
 public:
  explicit Http(CopyServer& server)
      : Parser(server.options_.certificate.c_str(), server.options_.key.c_str(),
               server.options_.authority.c_str()) {
    Get(kPath, [&server](const httplib::Request& asked, httplib::Response& response) {
      server.give(asked, response);
    });
  }

  void use(int listening) { listens_at(listening); }
  // One request.
  void serve(CopyConnection& connection) {
    bool closed = false;
    process_one(connection, true, closed,
                [&connection](httplib::Request& request) { request.remote_addr = connection.address(); });
  }
};

CopyServer::CopyServer(EventLoop& loop, KeyValueStore& store, Options options)
    : loop_(loop), store_(store), options_(std::move(options)), http_(std::make_unique<Http>(*this)) {}

Result<std::unique_ptr<CopyServer>> CopyServer::start(EventLoop& loop, KeyValueStore& store,
                                                      Options options) {
  std::unique_ptr<CopyServer> server(new CopyServer(loop, store, std::move(options)));
  TRY(server->begin());
  return server;
}

CopyServer::~CopyServer() {
  acceptor_.reset();
  remove_copy();
}

Result<> CopyServer::begin() {
  if (!http_->is_valid())
    return fail(EINVAL, "config: metadata_log: ca_file, certificate or key cannot be used");
  TRY(listen());
  remove_copy();
  http_->use(listening_.get());
  const auto nothing = [](const std::string&, const std::string&, size_t) {
  };  // whoever reaches the port could fill the log
  acceptor_ = std::make_unique<http::Acceptor>(
      listening_.get(), http::Acceptor::Limits{kConnectionsMax, kConnectionsPerPeerMax}, stopping_,
      http::Acceptor::Events{.serve = [this](FileDescriptor socket) { serve(std::move(socket)); },
                             .refused = nothing});
  log_info("mds", "copies-listening address={}", options_.listen);
  return {};
}

Result<> CopyServer::listen() {
  const size_t colon = options_.listen.rfind(':');
  const auto address = rpc::SocketAddress::parse(options_.listen);
  if (colon == std::string::npos || !parse_decimal(options_.listen.substr(colon + 1)) ||
      (!address && address.error().number() == EINVAL))
    return fail(EINVAL, "config: metadata_log.copies must be of the form \"host:port\"");
  const auto nobody = [&](const Error& why) {
    return fail(EADDRINUSE,
                "nobody can listen at " + options_.listen + " (metadata_log.copies): " + why.what());
  };
  if (!address) return nobody(address.error());
  // Whoever has gone between poll and accept must not hold the acceptor.
  listening_ = FileDescriptor(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  setsockopt(listening_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (!listening_ || ::bind(listening_.get(), address->data(), address->size()) != 0 ||
      ::listen(listening_.get(), kCopyBacklog) != 0) {
    return nobody(Error::from_errno("listen"));
  }
  TRY_ASSIGN(const rpc::SocketAddress bound, rpc::SocketAddress::local_of(listening_.get()));
  port_ = bound.port();
  return {};
}

void CopyServer::serve(FileDescriptor socket) {
  CopyConnection connection(std::move(socket), http_->ssl_context(), stopping_);
  if (connection.handshake()) http_->serve(connection);
}

void CopyServer::give(const httplib::Request& asked, httplib::Response& response) {
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
