// SPDX-License-Identifier: Apache-2.0
#include "shared/brick/client.h"

#include <algorithm>
#include <cerrno>

#include "shared/base/event_loop.h"
#include "shared/base/log.h"
#include "shared/brick/call_limits.h"
#include "shared/rpc/connection.h"
#include "shared/rpc/dial.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::brick {

// The connection as it comes and goes. Callbacks of the loop hold it weakly, so that a client can be
// destroyed at any time.
class BrickClient::Link : public std::enable_shared_from_this<Link> {
 public:
  Link(EventLoop& loop, BrickClientOptions options, Events events)
      : loop_(loop),
        options_(std::move(options)),
        events_(std::move(events)),
        backoff_(options_.backoff_shortest) {}

  void start() {
    loop_.post([self = weak_from_this()] {
      if (const auto link = self.lock()) link->dial();
    });
  }

  void end() {
    ended_ = true;
    loop_.cancel(timer_);
    for (const auto& connection : {connection_, securing_}) {
      if (connection) connection->close();
    }
  }

  bool connected() const { return connection_ && connection_->is_open(); }
  bool secured() const { return connected() && connection_->tls_peer() != nullptr; }
  void reassess_tls() {
    if (connected()) reassess(*connection_, security_);
  }
  Milliseconds silence() const {
    return connected() ? std::chrono::duration_cast<Milliseconds>(loop_.now() - heard_) : Milliseconds(0);
  }
  const std::string& address() const { return options_.address; }

  template <typename Answer, typename Arguments>
  void call(Procedure procedure, const Arguments& arguments, Done<Answer> done) {
    call(procedure, arguments, options_.call_timeout, std::move(done));
  }

  template <typename Answer, typename Arguments>
  void call_for_data(Procedure procedure, const Arguments& arguments, Done<Answer> done) {
    call(procedure, arguments, options_.data_timeout, std::move(done));
  }

  template <typename Answer, typename Arguments>
  void call(Procedure procedure, const Arguments& arguments, Milliseconds timeout, Done<Answer> done) {
    if (!connected() || !may_speak()) {
      loop_.post([self = weak_from_this(), done = std::move(done)] {
        if (const auto link = self.lock(); link && !link->ended_) done(link->not_sent());
      });
      return;
    }
    connection_->call(kProgram, kVersion, static_cast<uint32_t>(procedure), {},
                      xdr::encode_to_bytes(arguments), timeout,
                      [self = weak_from_this(), done = std::move(done)](Result<rpc::Reply> reply) {
                        const auto link = self.lock();
                        if (link && !link->ended_) link->template finish<Answer>(std::move(reply), done);
                      });
  }

 private:
  bool may_speak() const { return !options_.may_speak || options_.may_speak(); }
  std::unexpected<Error> not_sent() const {
    if (connected()) return fail(ENOTCONN, "nothing is sent to the brick at " + options_.address);
    return fail(ENOTCONN, "the brick at " + options_.address + " is not connected");
  }

  template <typename Answer>
  void finish(Result<rpc::Reply> reply, const Done<Answer>& done) {
    if (!reply) {
      // Whatever this connection still brings would be late: nobody may act on it.
      if (reply.error().number() == ETIMEDOUT && connection_) connection_->close();
      return done(std::unexpected(reply.error().in("brick " + options_.address)));
    }
    heard_ = loop_.now();
    auto answer = xdr::decode_from<Answer>(reply->results);
    if (!answer) return done(fail(EPROTO, "brick " + options_.address + ": malformed answer"));
    done(std::move(*answer));
  }

  Milliseconds patience() const { return std::min(options_.call_timeout, Milliseconds(5000)); }
  Result<std::shared_ptr<rpc::TlsEndpoint>> tls() const { return options_.tls ? options_.tls() : nullptr; }

  void dial() {
    if (ended_) return;
    auto address = rpc::SocketAddress::parse(options_.address, kDefaultControlPort);
    if (!address) return lost(address.error());
    auto security = tls();
    if (!security) return lost(security.error());
    rpc::dial(loop_, *address, patience(),
              [self = weak_from_this(), security = *security](Result<FileDescriptor> socket) {
                const auto link = self.lock();
                if (!link || link->ended_) return;
                if (!socket) return link->lost(socket.error());
                link->begin(std::move(*socket), security);
              });
  }

  void begin(FileDescriptor socket, const std::shared_ptr<rpc::TlsEndpoint>& security) {
    rpc::ConnectionOptions options;
    options.record_bytes_max = kAnswerBytesMax;
    auto connection = rpc::Connection::start(loop_, std::move(socket), options, nullptr);
    if (!security) return connect(std::move(connection), security);
    securing_ = std::move(connection);
    securing_->start_tls(*security, rpc::SocketAddress::host_in(options_.address), kProgram, kVersion,
                         patience(), [self = weak_from_this(), security](Result<> secured) {
                           const auto link = self.lock();
                           if (!link || link->ended_) return;
                           auto made = std::exchange(link->securing_, nullptr);
                           if (!secured) return link->lost(secured.error());
                           link->connect(std::move(made), security);
                         });
  }

  // Ends one that is not made, with TLS or without, as it would be now.
  void reassess(rpc::Connection& connection, const std::shared_ptr<rpc::TlsEndpoint>& security) const {
    const auto wanted = tls();
    wanted && *wanted == security ? connection.reassess_tls() : connection.close();
  }

  void connect(rpc::ConnectionPointer connection, const std::shared_ptr<rpc::TlsEndpoint>& security) {
    reassess(*connection, security);
    if (!connection->is_open())
      return lost(Error(ECONNABORTED, "the configuration has changed meanwhile, or the brick has gone"));
    connection_ = std::move(connection);
    security_ = security;
    connection_->on_close([self = weak_from_this()](const rpc::ConnectionPointer&, const Error& reason) {
      const auto link = self.lock();
      if (link && !link->ended_) link->lost(reason);
    });
    backoff_ = options_.backoff_shortest;
    reported_ = false;
    was_connected_ = true;
    heard_ = loop_.now();
    log_info("brick-client", "connected brick={} tls={}", options_.address, secured());
    keep_alive_later();
    if (events_.on_connected) events_.on_connected();
  }

  void lost(const Error& reason) {
    if (ended_) return;
    connection_.reset();
    loop_.cancel(timer_);
    if (!reported_)
      log_warning("brick-client", "lost brick={} reason=\"{}\"", options_.address, reason.to_string());
    reported_ = true;
    timer_ = loop_.after(backoff_, [self = weak_from_this()] {
      if (const auto link = self.lock()) link->dial();
    });
    backoff_ = std::min(backoff_ * 2, options_.backoff_longest);
    const bool was_connected = std::exchange(was_connected_, false);
    const auto& tell = was_connected ? events_.on_lost : events_.on_unreachable;
    if (tell) tell(reason);
  }

  void keep_alive_later() {
    timer_ = loop_.after(options_.keepalive, [self = weak_from_this()] {
      const auto link = self.lock();
      if (!link || !link->connected()) return;
      link->call<xdr::Void>(Procedure::kNull, xdr::Void{}, link->options_.silence,
                            [](const Result<xdr::Void>&) {});
      link->keep_alive_later();
    });
  }

  EventLoop& loop_;
  BrickClientOptions options_;
  Events events_;
  Milliseconds backoff_;
  rpc::ConnectionPointer connection_;
  std::shared_ptr<rpc::TlsEndpoint> security_;  // by which that was made; null: without TLS
  rpc::ConnectionPointer securing_;             // on its way to TLS
  SteadyTime heard_;                            // the last answer, or the connection itself
  EventLoop::TimerId timer_ = 0;                // reconnect or keep-alive: never both
  bool reported_ = false;                       // this outage is in the log
  bool was_connected_ = false;
  bool ended_ = false;
};

BrickClient::BrickClient(EventLoop& loop, BrickClientOptions options, Events events)
    : link_(std::make_shared<Link>(loop, std::move(options), std::move(events))) {}
BrickClient::~BrickClient() {
  link_->end();
}

void BrickClient::start() {
  link_->start();
}
bool BrickClient::connected() const {
  return link_->connected();
}
bool BrickClient::secured() const {
  return link_->secured();
}
void BrickClient::reassess_tls() {
  link_->reassess_tls();
}
Milliseconds BrickClient::silence() const {
  return link_->silence();
}
const std::string& BrickClient::address() const {
  return link_->address();
}

void BrickClient::identify(Done<IdentifyResult> done) {
  link_->call(Procedure::kIdentify, xdr::Void{}, std::move(done));
}
void BrickClient::claim(const ClaimArguments& arguments, Done<ClaimResult> done) {
  link_->call(Procedure::kClaim, arguments, std::move(done));
}
void BrickClient::alloc(const AllocArguments& arguments, Done<RunsResult> done) {
  link_->call(Procedure::kAlloc, arguments, std::move(done));
}
void BrickClient::free(const BlocksArguments& arguments, Done<StatusResult> done) {
  link_->call(Procedure::kFree, arguments, std::move(done));
}
void BrickClient::map(const MapArguments& arguments, Done<StatusResult> done) {
  link_->call(Procedure::kMap, arguments, std::move(done));
}
void BrickClient::unmap(const BlocksArguments& arguments, Done<StatusResult> done) {
  link_->call(Procedure::kUnmap, arguments, std::move(done));
}
void BrickClient::list(const ListArguments& arguments, Done<ListResult> done) {
  link_->call(Procedure::kList, arguments, std::move(done));
}
void BrickClient::survey(const SurveyArguments& arguments, Done<SurveyResult> done) {
  link_->call(Procedure::kSurvey, arguments, std::move(done));
}
void BrickClient::erase(const EraseArguments& arguments, Done<StatusResult> done) {
  link_->call(Procedure::kErase, arguments, std::move(done));
}
void BrickClient::open_session(const OpenSessionArguments& arguments, Done<StatusResult> done) {
  link_->call(Procedure::kOpenSession, arguments, std::move(done));
}
void BrickClient::close_session(const CloseSessionArguments& arguments, Done<StatusResult> done) {
  link_->call_for_data(Procedure::kCloseSession, arguments, std::move(done));
}
void BrickClient::list_sessions(Done<SessionsResult> done) {
  link_->call(Procedure::kListSessions, xdr::Void{}, std::move(done));
}
void BrickClient::expose(const ExposeArguments& arguments, Done<ExposeResult> done) {
  link_->call(Procedure::kExpose, arguments, std::move(done));
}
void BrickClient::withdraw(const WithdrawArguments& arguments, Done<StatusResult> done) {
  link_->call_for_data(Procedure::kWithdraw, arguments, std::move(done));
}
void BrickClient::list_grants(const ListGrantsArguments& arguments, Done<GrantsResult> done) {
  // A brick of before knows only the whole list.
  const auto answered = [link = std::weak_ptr(link_), client = arguments.client,
                         done = std::move(done)](Result<GrantsResult> listed) {
    const auto live = link.lock();
    if (!live || listed || listed.error().number() != EOPNOTSUPP) return done(std::move(listed));
    live->call<AllGrantsResult>(Procedure::kListAllGrants, ListAllGrantsArguments{client},
                                [done](Result<AllGrantsResult> all) {
                                  if (!all) return done(std::unexpected(all.error()));
                                  GrantsResult whole{.status = all->status};
                                  whole.grants.assign(all->grants.begin(), all->grants.end());
                                  done(std::move(whole));
                                });
  };
  link_->call<GrantsResult>(Procedure::kListGrants, arguments, answered);
}
void BrickClient::persist(const RangesArguments& arguments, Done<PersistResult> done) {
  link_->call_for_data(Procedure::kPersist, arguments, std::move(done));
}
void BrickClient::zero(const RangesArguments& arguments, Done<StatusResult> done) {
  link_->call_for_data(Procedure::kZero, arguments, std::move(done));
}
void BrickClient::copy(const CopyArguments& arguments, Done<StatusResult> done) {
  link_->call_for_data(Procedure::kCopy, arguments, std::move(done));
}
void BrickClient::statistics(Done<StatisticsResult> done) {
  link_->call(Procedure::kStatistics, xdr::Void{}, std::move(done));
}
void BrickClient::loop_turns(Done<LoopTurnsResult> done) {
  link_->call(Procedure::kLoopTurns, xdr::Void{}, std::move(done));
}
void BrickClient::session_traffic(Done<SessionTrafficResult> done) {
  link_->call(Procedure::kSessionTraffic, xdr::Void{}, std::move(done));
}

}  // namespace pnfsrdma::brick
