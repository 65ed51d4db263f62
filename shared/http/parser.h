// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <httplib.h>

#include <functional>

namespace pnfsrdma::http {

// httplib's parser and writer, without its listener. `Base`: httplib::Server or httplib::SSLServer, which has
// the context of TLS.
template <typename Base>
class Parser : public Base {
 public:
  using Base::Base;

 protected:
  using Prepare = std::function<void(httplib::Request&)>;
  // What httplib asks when it wonders whether it is stopping.
  void listens_at(int socket) { this->svr_sock_ = socket; }
  // One request of `stream`; `last`: the connection is closed behind it. `prepare` sees its head. A Range may
  // be left out of account (RFC 9110, 14.2): it is, because a thousand of them would be a thousand copies of
  // the answer.
  bool process_one(httplib::Stream& stream, bool last, bool& closed, const Prepare& prepare = nullptr) {
    return process(*this, stream, last, closed, [&prepare](httplib::Request& request) {
      request.ranges.clear();
      if (prepare) prepare(request);
    });
  }

 private:
  // The versions of httplib in Debian 12 and 13 differ in what they want to be told.
  template <typename Self>
  static bool process(Self& self, httplib::Stream& stream, bool last, bool& closed, const Prepare& prepare) {
    if constexpr (requires { self.process_request(stream, last, closed, prepare); }) {
      return self.process_request(stream, last, closed, prepare);
    } else {
      return self.process_request(stream, "", 0, "", 0, last, closed, prepare);
    }
  }
};

}  // namespace pnfsrdma::http
