// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "shared/base/random.h"
#include "shared/nfs4/compound.h"
#include "shared/nfs4/data_items.h"
#include "shared/rdma/iwarp/transport.h"
#include "shared/rpc/message.h"
#include "shared/rpc_rdma/endpoint.h"
#include "shared/rpc_rdma/listener.h"
#include "tests/doubles/rdma_memory/transport.h"

namespace pnfsrdma::rpc_rdma::testing {

using namespace std::chrono_literals;

inline constexpr UpperLayer kNfs{.argument_items = nfs4::argument_data_items,
                                 .result_items = nfs4::result_data_items,
                                 .result_bound = nfs4::result_bound,
                                 .restored_items = nfs4::restored_data_items};

inline SteadyTime soon() {
  return std::chrono::steady_clock::now() + 10s;
}

// A file that is all arithmetic.
inline std::byte byte_at(uint64_t offset) {
  return static_cast<std::byte>(offset * 7 + (offset >> 8));
}
inline Bytes file_bytes(uint64_t offset, size_t count) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = byte_at(offset + i);
  return bytes;
}

// Answers READ from the arithmetic file, WRITE if it brings that file's bytes, READDIR with nothing, GETXATTR
// with 60,000 bytes, SETXATTR if it brings them.
inline Bytes serve(ByteSpan arguments) {
  Bytes results;
  auto reader = nfs4::CompoundReader::open(arguments);
  if (!reader) return results;
  nfs4::CompoundResultWriter writer(results, reader->header().tag);
  while (reader->left() > 0) {
    const auto item = reader->next();
    if (!item.arguments) {
      writer.add(nfs4::status_result(item.operation, item.arguments.error()));
    } else if (const auto* read = std::get_if<nfs4::ReadArguments>(&*item.arguments)) {
      nfs4::ReadResult result;
      result.data = nfs4::Data(file_bytes(read->offset, read->count));
      writer.add(nfs4::ReadResponse(std::move(result)));
    } else if (const auto* write = std::get_if<nfs4::WriteArguments>(&*item.arguments)) {
      const Bytes expected = file_bytes(write->offset, write->data.size());
      const bool right = std::ranges::equal(write->data.span(), expected);
      nfs4::WriteResult result;
      result.count = static_cast<uint32_t>(expected.size());
      writer.add(right ? nfs4::WriteResponse(result) : nfs4::WriteResponse(nfs4::Status::kIo));
    } else if (std::holds_alternative<nfs4::GetXattrArguments>(*item.arguments)) {
      nfs4::GetXattrResult result;
      result.value = decltype(result.value)(file_bytes(0, 60'000));
      writer.add(nfs4::GetXattrResponse(std::move(result)));
    } else if (const auto* set = std::get_if<nfs4::SetXattrArguments>(&*item.arguments)) {
      const bool right = std::ranges::equal(set->value, file_bytes(0, 60'000));
      writer.add(right ? nfs4::SetXattrResponse(nfs4::SetXattrResult{})
                       : nfs4::SetXattrResponse(nfs4::Status::kIo));
    } else {
      writer.add(nfs4::status_result(item.operation, nfs4::Status::kOk));
    }
  }
  return results;
}

enum class Kind { kMemory, kIwarp };
inline std::string to_string(Kind kind) {
  return kind == Kind::kMemory ? "Memory" : "Iwarp";
}
inline std::string name_of(const ::testing::TestParamInfo<Kind>& info) {
  return to_string(info.param);
}
// What the test runner shows behind a test's name.
inline void PrintTo(Kind kind, std::ostream* out) {
  *out << to_string(kind);
}

// A server in a loop of its own thread, over one transport; its clients are endpoints that the test drives.
class ConnectionTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    network_ = std::make_shared<rdma::memory::Network>();
    transport_ = make_transport();
    rpc::Service service = make_service();
    auto listener =
        Listener::listen(loop_, transport_, "127.0.0.1:0", std::move(service), kNfs, destruction_);
    ASSERT_TRUE(listener) << listener.error().to_string();
    listener_ = *std::move(listener);
    thread_ = std::thread([this] { loop_.run(); });
  }

  void TearDown() override {
    loop_.post([this] {
      listener_.reset();
      if (connection_) connection_->close();
      connection_.reset();
      loop_.after(5ms, [this] { loop_.stop(); });
    });
    thread_.join();
  }

  virtual rpc::Service make_service() {
    rpc::Service service;
    service.on_call = [this](const rpc::ConnectionPointer&, rpc::IncomingCall call,
                             rpc::Responder responder) {
      ++calls_;
      if (holding_) return held_.push_back(std::move(responder));
      responder.reply(serve(call.arguments));
    };
    service.on_accept = [this](const rpc::ConnectionPointer& connection) { connection_ = connection; };
    service.on_close = [this](const rpc::ConnectionPointer& connection, const Error& reason) {
      if (connection_ == connection) connection_.reset();
      held_.clear();
      if (++closed_connections_ == 1) closed_.set_value(reason);
    };
    return service;
  }

  // What stands between both ends and the transport.
  virtual std::unique_ptr<rdma::Transport> around(std::unique_ptr<rdma::Transport> inner) { return inner; }

  std::shared_ptr<rdma::Transport> make_transport() {
    if (GetParam() == Kind::kMemory) return around(rdma::memory::make_transport(network_, random_));
    return around(rdma::iwarp::make_transport({}, random_));
  }

  std::unique_ptr<Endpoint> connect() {
    auto endpoint = rpc_rdma::connect(transport_, listener_->address(), soon(), kNfs);
    EXPECT_TRUE(endpoint) << endpoint.error().to_string();
    return endpoint ? *std::move(endpoint) : nullptr;
  }

  // Runs `task` in the server's loop and waits for it.
  void in_loop(std::function<void()> task) {
    std::promise<void> done;
    loop_.post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  static void send_call(Endpoint& endpoint, uint32_t xid, std::vector<nfs4::ArgumentOperation> operations) {
    Bytes head;
    xdr::Encoder encoder(head);
    rpc::CallHeader header;
    header.xid = xid;
    header.program = nfs4::kProgram;
    header.version = nfs4::kVersion;
    header.procedure = nfs4::kProcedureCompound;
    xdr::encode(encoder, header);
    Bytes body = xdr::encode_to_bytes(nfs4::CompoundArguments{{nfs4::Tag(), 2}, std::move(operations)});
    ASSERT_TRUE(endpoint.send(std::move(head), std::make_shared<const Bytes>(std::move(body))));
    ASSERT_TRUE(endpoint.flush());
  }

  // Messages until there are `count`, or the connection ends.
  static std::vector<Bytes> receive(Endpoint& endpoint, size_t count) {
    std::vector<Bytes> messages;
    const SteadyTime deadline = soon();
    for (;;) {
      const auto progress = endpoint.progress(messages);
      if (messages.size() >= count || !progress) return messages;
      if (!endpoint.queue_pair().wait(deadline)) {
        ADD_FAILURE() << "no message";
        return messages;
      }
    }
  }

  struct Answer {
    Bytes message;
    nfs4::CompoundResults results;
  };
  static Answer parse(Bytes message, uint32_t xid) {
    Answer answer{std::move(message), {}};
    xdr::Decoder decoder(answer.message);
    rpc::ReplyHeader header;
    EXPECT_TRUE(xdr::decode(decoder, header));
    EXPECT_EQ(header.xid, xid);
    EXPECT_TRUE(header.successful());
    auto results = xdr::decode_from<nfs4::CompoundResults>(decoder.rest());
    EXPECT_TRUE(results);
    if (results) answer.results = *std::move(results);
    return answer;
  }
  static Answer exchange(Endpoint& endpoint, uint32_t xid, std::vector<nfs4::ArgumentOperation> operations) {
    send_call(endpoint, xid, std::move(operations));
    auto messages = receive(endpoint, 1);
    if (messages.size() != 1) {
      ADD_FAILURE() << messages.size() << " replies";
      return {};
    }
    return parse(std::move(messages[0]), xid);
  }

  SystemClock clock_;
  SystemRandom random_;
  DeferredDestruction destruction_{"destroy-test"};
  EventLoop loop_{clock_};
  std::shared_ptr<rdma::memory::Network> network_;
  std::shared_ptr<rdma::Transport> transport_;
  std::unique_ptr<Listener> listener_;
  std::thread thread_;
  // The server's, in its loop.
  rpc::ConnectionPointer connection_;
  std::vector<rpc::Responder> held_;
  std::atomic<bool> holding_ = false;
  std::atomic<size_t> calls_ = 0;
  size_t closed_connections_ = 0;  // loop only
  std::promise<Error> closed_;     // why the first one was
};

}  // namespace pnfsrdma::rpc_rdma::testing
