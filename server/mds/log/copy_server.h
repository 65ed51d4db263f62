// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "server/mds/meta/key_value.h"
#include "shared/base/event_loop.h"
#include "shared/base/guarded.h"
#include "shared/base/lifetime.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"

namespace httplib {
struct Request;
struct Response;
}  // namespace httplib

namespace pnfsrdma::mds {

// Gives the store of the server that leads to one that the log does not reach any more, by HTTPS: to whoever has a
// certificate of the same authority, one at a time. A thread per connection, and few of them: who comes then is turned
// away, and who has not asked in two seconds, too. Parsing and writing is httplib's; accepting, deadlines and TLS are
// not, because its queue of connections has no bound, and all that is in it is served before its end. Made and used by
// the control loop's thread.
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
  struct Connections {
    size_t open = 0;
    std::map<std::string, size_t> by_peer;
  };
  CopyServer(EventLoop& loop, KeyValueStore& store, Options options);
  Result<> begin();
  Result<> listen();
  void accept_loop();
  void accept_one();
  bool admit(const std::string& peer);
  void leave(const std::string& peer);
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
  Guarded<Connections> connections_;
  Condition all_gone_;
  std::unique_ptr<Http> http_;
  Thread acceptor_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
