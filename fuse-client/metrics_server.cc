// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/metrics_server.h"

#include <httplib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "shared/base/owned.h"
#include "shared/base/sync.h"
#include "shared/rpc/dial.h"

namespace pnfsrdma::fuse_client {
namespace {

constexpr int kBacklog = 16;
constexpr auto kPatience = std::chrono::seconds(5);  // of the peer's and ours, a read or write

// A socket file that a dead process left behind may go; one that is answered may not.
void remove_if_dead(const rpc::SocketAddress& address) {
  struct stat status{};
  // connect(2) says the same of a file that is no socket: that one is somebody's.
  if (!address.is_unix() || ::lstat(address.host().c_str(), &status) != 0 || !S_ISSOCK(status.st_mode))
    return;
  const auto answered = rpc::dial_and_wait(address, Milliseconds(1000));
  if (!answered && answered.error().number() == ECONNREFUSED) ::unlink(address.host().c_str());
}

Result<FileDescriptor> listen_at(const rpc::SocketAddress& address) {
  remove_if_dead(address);
  FileDescriptor fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return std::unexpected(Error::from_errno("socket"));
  const int on = 1;
  if (!address.is_unix()) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), address.data(), address.size()) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return std::unexpected(Error::from_errno("metrics=" + address.to_string()));
  }
  return fd;
}

}  // namespace

// cpp-httplib's server on a socket of ours: it knows no Unix sockets in every version we build with.
class MetricsServer::Http : public httplib::Server {
 public:
  explicit Http(std::function<std::string()> text) {
    new_task_queue = [] { return new httplib::ThreadPool(1); };
    set_keep_alive_max_count(1);
    set_read_timeout(kPatience);
    set_write_timeout(kPatience);
    set_payload_max_length(0);
    Get("/metrics", [text = std::move(text)](const httplib::Request&, httplib::Response& response) {
      response.set_content(text(), "text/plain; version=0.0.4; charset=utf-8");
    });
  }
  ~Http() override {
    stop();
    if (thread_.joinable()) thread_.join();
  }
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  void run_on(FileDescriptor listening) {
    svr_sock_ = listening.release();
    thread_ = Thread([this] { listen_after_bind(); });
    // stop() before that has no effect.
    while (!is_running()) yield_thread();
  }

 private:
  Thread thread_;
};

MetricsServer::MetricsServer(std::unique_ptr<Http> http, rpc::SocketAddress address)
    : http_(std::move(http)), address_(address) {}

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const rpc::SocketAddress& address,
                                                            std::function<std::string()> text) {
  TRY_ASSIGN(FileDescriptor listening, listen_at(address));
  TRY_ASSIGN(const rpc::SocketAddress bound, rpc::SocketAddress::local_of(listening.get()));
  auto http = std::make_unique<Http>(std::move(text));
  http->run_on(std::move(listening));
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(http), bound));
}

MetricsServer::~MetricsServer() {
  http_.reset();
  if (address_.is_unix()) ::unlink(address_.host().c_str());
}

}  // namespace pnfsrdma::fuse_client
