// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "server/console/connection_stream.h"
#include "server/console/http.h"
#include "server/console/listening_socket.h"
#include "shared/base/guarded.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

// HTTP/1.1 on one listening socket: a thread per connection, at most kConnectionsMax of them; who comes then
// is turned away. Parsing and writing is httplib's; accepting, deadlines and TLS are ours, because httplib's
// listener ends at the first failed accept and a slow peer could hold it. The handler is called from many
// threads at once and must not throw.
class HttpServer {
 public:
  // `context` null: plain HTTP; it outlives this object. Serves until destroyed.
  HttpServer(ListeningSocket socket, SSL_CTX* context, HttpHandler handler);
  // Ends streams, waits for requests that run.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const std::string& address() const { return listening_.address; }

 private:
  class Parser;
  struct Connections {
    size_t open = 0;
    std::map<std::string, size_t> by_peer;
  };

  void accept_loop();
  void serve(FileDescriptor socket);
  bool admit(const std::string& peer);
  void leave(const std::string& peer);

  ListeningSocket listening_;
  SSL_CTX* const context_;
  const HttpHandler handler_;
  std::atomic<bool> stopping_ = false;
  Guarded<Connections> connections_;
  Condition all_gone_;
  std::unique_ptr<Parser> parser_;
  Thread acceptor_;
};

}  // namespace pnfsrdma::console
