// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "server/mds/meta/key_value.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {

// Gives the store of the server that leads to one that the log does not reach any more, by HTTPS: to whoever has a
// certificate of the same authority, one at a time. Made and used by the control loop's thread.
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
  // Ends what is under way, within a second or so.
  ~CopyServer();
  CopyServer(const CopyServer&) = delete;
  CopyServer& operator=(const CopyServer&) = delete;

  // Where it listens: the kernel's choice for port 0.
  int port() const { return port_; }
  static constexpr const char* kPath = "/metadata";

 private:
  struct Http;
  CopyServer(EventLoop& loop, KeyValueStore& store, Options options);
  Result<> begin();
  // In a thread of the server.
  Result<> make_copy();
  void remove_copy();

  EventLoop& loop_;
  KeyValueStore& store_;
  const Options options_;
  std::unique_ptr<Http> http_;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> busy_ = false;
  Thread thread_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
