// SPDX-License-Identifier: Apache-2.0
#include "server/console/http_server.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "server/console/connection_stream.h"
#include "server/console/http_limits.h"
#include "server/console/problem.h"
#include "shared/base/log.h"
#include "shared/http/parser.h"

namespace pnfsrdma::console {

namespace {

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

HttpRequest our_request(const httplib::Request& request, const Peer& peer) {
  HttpRequest ours{.method = request.method == "HEAD" ? "GET" : request.method,
                   .path = request.path,
                   .query = {request.params.begin(), request.params.end()},
                   .headers = {},
                   .body = request.body,
                   .peer = peer};
  for (const auto& [name, value] : request.headers) ours.headers.emplace(lower_case(name), value);
  return ours;
}

void answer(HttpResponse ours, httplib::Response& response, ConnectionStream& connection,
            const std::atomic<bool>& stopping) {
  response.status = ours.status;
  for (const auto& [name, value] : ours.headers) response.set_header(name, value);
  if (!ours.stream) {
    if (!ours.body.empty() || ours.status != 204) response.set_content(ours.body, ours.content_type);
    return;
  }
  response.set_chunked_content_provider(
      ours.content_type,
      [stream = ours.stream, keep = ours.keep, &connection, &stopping](size_t, httplib::DataSink& sink) {
        if (!connection.release()) return false;  // a stream's bytes go as they come
        HttpSink ours_sink{
            .write = [&sink](std::string_view bytes) { return sink.write(bytes.data(), bytes.size()); },
            .stopping = [&stopping] { return stopping.load(); }};
        stream(ours_sink);
        sink.done();
        return true;
      });
}

}  // namespace

class HttpServer::Parser final : public http::Parser<httplib::Server> {
 public:
  Parser(int socket, const HttpHandler& handler, const std::atomic<bool>& stopping)
      : handler_(handler), stopping_(stopping) {
    listens_at(socket);
    set_payload_max_length(kBodyBytesMax);
    const auto handle = [this](const httplib::Request& request, httplib::Response& response) {
      respond(request, response);
    };
    // Before routing: by httplib's own a body is read only where a handler is registered.
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return answer_early(request, response) ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    });
    Get(".*", handle).Post(".*", Handler(handle)).Put(".*", Handler(handle));
    Patch(".*", Handler(handle)).Delete(".*", Handler(handle)).Options(".*", handle);
    set_error_handler(Handler([](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty()) return;
      // httplib's own refusals (a head it cannot read, a body too large), and our early ones.
      const HttpResponse problem = to_response(problem_of_status(response.status));
      response.status = problem.status;
      response.set_content(problem.body, problem.content_type);
    }));
    set_exception_handler([](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
      // A library threw in a handler: the request is lost, the server is not.
      log_error("console", "request-failed what=\"a handler threw: this is a bug\"");
      response.status = 500;
    });
  }

  // Requests of one connection, one after the other.
  void serve(ConnectionStream& stream) {
    const Peer& peer = stream.peer();
    while (stream.wait_for_request()) {
      bool closed = false;
      close_after_ = false;
      peer_ = &peer;
      stream_ = &stream;
      stream.gather();
      const bool good = process_one(stream, false, closed);
      const bool sent = stream.release();
      if (close_after_) return stream.drain();
      if (!good || !sent || closed) return;
    }
  }

 private:
  // What is answered before a body is read. Where one would stay unread the connection ends after the answer:
  // its bytes must not be taken for the next request.
  bool answer_early(const httplib::Request& request, httplib::Response& response) {
    const bool reads_body = request.method == "POST" || request.method == "PUT" ||
                            request.method == "PATCH" ||
                            (request.method == "DELETE" && request.has_header("Content-Length"));
    const std::string length = request.get_header_value("Content-Length");
    const bool has_body = request.has_header("Transfer-Encoding") || (!length.empty() && length != "0");
    const bool json = request.get_header_value("Content-Type").starts_with("application/json");
    // httplib would read what is too long to its end.
    const bool long_body = length.size() > 9 || std::strtoull(length.c_str(), nullptr, 10) > kBodyBytesMax;
    if (request.path.size() > kPathBytesMax || long_body) {
      response.status = 413;
    } else if (has_body && (!json || request.has_header("Content-Encoding"))) {
      response.status = 415;
    } else if (request.get_header_value_count("Content-Length") > 1 || (has_body && !reads_body) ||
               (request.has_header("Transfer-Encoding") && !length.empty())) {
      response.status = 400;
    } else if (!has_body) {
      // No length, no body (RFC 9112, 6.3): httplib would read one until the peer closes where it expects
      // one, and match the path against the handlers' regular expressions where it does not.
      respond(request, response);
      return true;
    } else {
      return false;
    }
    close_after_ = true;
    response.set_header("Connection", "close");
    return true;
  }

  void respond(const httplib::Request& request, httplib::Response& response) {
    answer(handler_(our_request(request, *peer_)), response, *stream_, stopping_);
  }

  const HttpHandler& handler_;
  const std::atomic<bool>& stopping_;
  // Of the connection this thread serves.
  static thread_local bool close_after_;
  static thread_local const Peer* peer_;
  static thread_local ConnectionStream* stream_;
};
thread_local bool HttpServer::Parser::close_after_ = false;
thread_local const Peer* HttpServer::Parser::peer_ = nullptr;
thread_local ConnectionStream* HttpServer::Parser::stream_ = nullptr;

HttpServer::HttpServer(ListeningSocket socket, SSL_CTX* context, HttpHandler handler)
    : listening_(std::move(socket)),
      context_(context),
      handler_(std::move(handler)),
      parser_(std::make_unique<Parser>(listening_.socket.get(), handler_, stopping_)),
      acceptor_(std::make_unique<http::Acceptor>(
          listening_.socket.get(), http::Acceptor::Limits{kConnectionsMax, kConnectionsPerPeerMax}, stopping_,
          http::Acceptor::Events{.serve = [this](FileDescriptor accepted) { serve(std::move(accepted)); },
                                 .refused =
                                     [](const std::string& peer, const std::string& why, size_t count) {
                                       log_warning("console",
                                                   "connection-refused peer={} what=\"{}\" refused={}", peer,
                                                   why, count);
                                     }})) {}

HttpServer::~HttpServer() {
  acceptor_.reset();
  if (listening_.local) ::unlink(listening_.address.c_str());
}

void HttpServer::serve(FileDescriptor socket) {
  ConnectionStream stream(std::move(socket), context_, stopping_);
  if (stream.handshake(steady_now() + kHandshakeDeadline)) parser_->serve(stream);
}

}  // namespace pnfsrdma::console
