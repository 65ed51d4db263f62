// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "server/mds/meta/key_value.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"
#include "shared/http/acceptor.h"

namespace httplib {
struct Request;
struct Response;
}  // namespace httplib

namespace pnfsrdma::mds {

// Gives the store of the server that leads to one that the log does not reach any more, by HTTPS: to whoever has a
// certificate of the same authority, one at a time. A thread per connection, and few of them: who comes then is turned
// away, and who has not asked in two seconds, too (shared/http). Made and used by the control loop's thread.
class CopyServer {
 public:
  struct Options {
    std::string listen;  // "host:port"
    // PEM files.
    std::string authority;
    std::string certificate;
    std::string key;
    std::string directory;  // for the copy, on the store's file system; what is there is removed
  };
  // Serves from now on. EINVAL: a file or the address is wrong. EADDRINUSE: nobody can listen there. `store`, of
  // RocksdbStore::open(), outlives the result, and is open.
  static Result<std::unique_ptr<CopyServer>> start(EventLoop& loop, KeyValueStore& store, Options options);
  // Breaks off what is under way. Takes half a second, and as long as the disk takes for a read of 1 MiB and for
  // removing the copy.
  ~CopyServer();
  CopyServer(const CopyServer&) = delete;
  CopyServer& operator=(const CopyServer&) = delete;

  // Where it listens: the kernel's choice for port 0.
  int port() const { return port_; }
  static constexpr const char* kPath = "/metadata";
  static constexpr size_t kConnectionsMax = 32;
  static constexpr size_t kConnectionsPerPeerMax = 8;  // of one address

 private:
  class Http;
  CopyServer(EventLoop& loop, KeyValueStore& store, Options options);
  Result<> begin();
  Result<> listen();
  // In the thread of a connection.
  void serve(FileDescriptor socket);
  void give(const httplib::Request& asked, httplib::Response& response);
  Result<> make_copy();
  void remove_copy();

  EventLoop& loop_;
  KeyValueStore& store_;
  const Options options_;
  FileDescriptor listening_;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> busy_ = false;
  std::unique_ptr<Http> http_;
  std::unique_ptr<http::Acceptor> acceptor_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
