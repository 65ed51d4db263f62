// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <memory>
#include <string>

#include "server/console/http.h"
#include "server/console/listening_socket.h"
#include "shared/base/owned.h"
#include "shared/http/acceptor.h"

namespace pnfsrdma::console {

// HTTP/1.1 on one listening socket: a thread per connection, at most kConnectionsMax of them; who comes then
// is turned away. Parsing and writing is httplib's; accepting, deadlines and TLS are not (shared/http). The
// handler is called from many threads at once and must not throw.
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
  void serve(FileDescriptor socket);

  ListeningSocket listening_;
  SSL_CTX* const context_;
  const HttpHandler handler_;
  std::atomic<bool> stopping_ = false;
  std::unique_ptr<Parser> parser_;
  std::unique_ptr<http::Acceptor> acceptor_;
};

}  // namespace pnfsrdma::console
