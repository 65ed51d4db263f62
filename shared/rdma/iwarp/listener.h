// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "shared/base/owned.h"
#include "shared/base/sync.h"
#include "shared/rdma/iwarp/mpa_frame.h"
#include "shared/rdma/iwarp/transport.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::rdma::iwarp {

// Whether we ask for CRC on this connected socket.
bool wants_crc(CrcPolicy policy, int socket);

// A listening TCP socket and the one thread that reads MPA Requests from it. All handshakes run side by side,
// each with its deadline, so a peer that connects and says nothing keeps nobody else waiting. Nothing of a
// peer is kept that has not said a whole Request in time.
class IwarpListener final : public Listener {
 public:
  using OnRequest = std::function<void(std::unique_ptr<ConnectionRequest>)>;

  static Result<std::unique_ptr<Listener>> make(const std::string& address, const Options& options,
                                                OnRequest on_request);
  ~IwarpListener() override;
  std::string address() const override { return address_; }

 private:
  // A peer that has not finished its Request.
  struct Handshake {
    FileDescriptor socket;
    SteadyTime deadline;
    Bytes bytes;  // read so far
    size_t wanted = kMpaHeader;
    MpaHeader header;
  };
  static constexpr size_t kHandshakesMax = 256;

  IwarpListener(FileDescriptor socket, FileDescriptor wake, const Options& options, OnRequest on_request);
  void run();
  void accept_one();
  // False when the handshake is over, well or badly.
  bool read_some(Handshake& handshake);
  bool frame_whole(Handshake& handshake);

  const Options options_;
  const OnRequest on_request_;
  FileDescriptor socket_;
  FileDescriptor wake_;  // eventfd: stop
  std::string address_;
  std::vector<Handshake> handshakes_;
  Thread thread_;  // last: uses all of the above
};

}  // namespace pnfsrdma::rdma::iwarp
