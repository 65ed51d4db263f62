// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "shared/base/random.h"
#include "shared/brick/session_messages.h"
#include "shared/rdma/software_domain.h"
#include "shared/rdma/transport.h"
#include "tests/sim/dice.h"
#include "tests/sim/scheduler.h"

namespace pnfsrdma::sim {

class Network;
class Link;

// The far side of a link: a brick.
class Responder {
 public:
  virtual ~Responder() = default;
  // A connection with this ticket; on success the brick keeps the link.
  virtual std::expected<void, brick::RejectReason> connected(const brick::ConnectPrivateData& data,
                                                             const std::shared_ptr<Link>& link) = 0;
  virtual bool up() const = 0;
  virtual bool native_flush() const = 0;
  // The protection domain that belongs to the link; answers go by Link::answer().
  virtual void message(Link& link, ByteSpan bytes) = 0;
  virtual bool may_flush(Link& link) = 0;
};

// A reliable connection as TCP or a queue pair is one: both directions keep their order, what has left the
// poster is on its way whatever the poster does then, and arrives after a partition, unless the far side has
// ended the connection. "Completed" means that the answer has come back.
class Link : public std::enable_shared_from_this<Link> {
 public:
  static constexpr size_t kToBrick = 0, kToClient = 1;

  struct Request {
    uint64_t work_id = 0;
    rdma::Opcode opcode = rdma::Opcode::kWrite;
    Bytes bytes;  // of a WRITE or SEND
    rdma::LocalSlice sink;
    rdma::RemoteSlice remote;
  };
  struct Receive {
    uint64_t work_id = 0;
    rdma::LocalSlice buffer;
  };

  Link(Network& network, size_t client, size_t brick, std::shared_ptr<rdma::SoftwareDomain> client_domain,
       const rdma::QueuePairLimits& limits)
      : network(network),
        client(client),
        brick(brick),
        client_domain(std::move(client_domain)),
        limits(limits) {}

  Network& network;
  const size_t client, brick;
  const std::shared_ptr<rdma::SoftwareDomain> client_domain;
  rdma::QueuePairLimits limits;
  // The brick's side.
  std::shared_ptr<rdma::SoftwareDomain> brick_domain;
  xdr::FixedOpaque<8> verifier{};  // when it was made
  bool brick_open = true;
  // The client's side.
  bool client_open = true;
  std::deque<Receive> receives;
  std::deque<Request> posted;
  std::deque<std::pair<uint64_t, rdma::Opcode>> outstanding;  // sent and not completed, in order
  std::deque<rdma::Completion> finished;
  simulated::Bell changed;
  rdma::TransportCounters counters;

  void submit();
  // A message of the brick.
  void answer(Bytes message, SteadyTime::duration after);
  // The client gives it up: what is on its way still arrives.
  void close_client();
  // The brick ends it: from now on nothing arrives.
  void close_brick();
  // The connection dies between them: of what is on its way some arrives.
  void cut(Dice& dice);
  // The client's host dies: of what it has sent some arrives, and perhaps nobody says that it was the last.
  void abandon(Dice& dice);
  // Delivers what is due in one direction.
  void pump(size_t direction);

 private:
  friend class Network;
  struct Message {
    SteadyTime due;
    std::function<void()> deliver;
  };
  void send(size_t direction, SteadyTime::duration after, std::function<void()> deliver);
  void arrive(const std::shared_ptr<Request>& request);
  rdma::Outcome perform(Request& request);
  void complete(const Request& request, rdma::Outcome outcome);
  void finish(rdma::Completion completion);

  std::array<std::deque<Message>, 2> on_its_way_;
};

// All links, and who can reach whom. One fiber delivers.
class Network {
 public:
  Network(uint64_t seed, Random& random);
  ~Network();

  void add(const std::string& address, size_t brick, Responder& responder);
  std::unique_ptr<rdma::Transport> make_transport(size_t client);

  void partition(size_t client, size_t brick, bool apart);
  bool apart(size_t client, size_t brick) const { return apart_.contains({client, brick}); }
  // The live links between the two.
  void cut(size_t client, size_t brick);
  // Its host dies.
  void abandon(size_t client);
  // A round trip's half.
  SteadyTime::duration latency();

  Result<rdma::Connected> connect(size_t client, const std::string& address,
                                  std::shared_ptr<rdma::SoftwareDomain> domain,
                                  const rdma::ConnectOptions& options);
  Random& random() { return random_; }
  Responder& responder(size_t brick) { return *responders_.at(brick); }

 private:
  friend class Link;
  void schedule(SteadyTime due, const std::shared_ptr<Link>& link, size_t direction);
  void deliver();

  Random& random_;
  Dice dice_;
  std::map<std::string, size_t> addresses_;
  std::map<size_t, Responder*> responders_;
  std::map<std::pair<size_t, size_t>, bool> apart_;
  std::vector<std::weak_ptr<Link>> links_;
  std::multimap<SteadyTime, std::pair<std::weak_ptr<Link>, size_t>> due_;
  simulated::Bell due_changed_;
  bool ending_ = false;
  simulated::Thread thread_;
};

}  // namespace pnfsrdma::sim
