// SPDX-License-Identifier: Apache-2.0
// What Wireshark makes of our RPC-over-RDMA: transport headers, and the RPC and NFS messages in them.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <sstream>

#include "tests/interop/iwarp/recording_proxy.h"
#include "tests/unit/rpc_rdma/connection_fixture.h"

namespace pnfsrdma::rpc_rdma::testing {
namespace {

std::string output_of(const std::string& command) {
  std::string output;
  std::array<char, 4096> buffer;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  while (size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    output.append(buffer.data(), count);
  ::pclose(pipe);
  return output;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class RpcRdmaTshark : public ConnectionTest {};

TEST_P(RpcRdmaTshark, DecodesHeadersChunksAndTheMessagesInThem) {
  if (output_of("tshark --version 2>/dev/null").empty()) GTEST_SKIP() << "tshark is not installed";
  const std::string file = "/tmp/rpc-rdma-interop-" + std::to_string(::getpid()) + ".pcap";
  {
    rdma::iwarp::testing::RecordingProxy proxy(listener_->address(), file);
    auto endpoint = rpc_rdma::connect(transport_, proxy.address(), soon(), kNfs);
    ASSERT_TRUE(endpoint) << endpoint.error().to_string();
    nfs4::ReadArguments read;
    read.count = 20'000;
    nfs4::WriteArguments write;
    const Bytes data = file_bytes(0, 10'000);
    write.data = nfs4::Data::view_of(data);
    nfs4::SetXattrArguments set;
    set.key = decltype(set.key)("user.long");
    set.value = decltype(set.value)(file_bytes(0, 60'000));
    exchange(**endpoint, 1, {nfs4::PutRootFileHandleArguments{}});  // all inline
    exchange(**endpoint, 2, {read});                                // a write chunk
    exchange(**endpoint, 3, {write});                               // a read chunk
    exchange(**endpoint, 4, {nfs4::GetXattrArguments{}});           // a reply chunk
    exchange(**endpoint, 5, {set});                                 // a chunk at position zero
    endpoint->reset();
    proxy.finish();
  }
  const std::string tshark = "tshark -r " + file + " 2>/dev/null ";
  const std::string headers =
      output_of(tshark +
                "-Y rpcordma -T fields -E 'separator=|' -e rpcordma.xid -e rpcordma.version "
                "-e rpcordma.flow_control -e rpcordma.msg_type -e rpcordma.reads_count "
                "-e rpcordma.writes_count -e rpcordma.reply_count");
  EXPECT_EQ(lines_of(headers),
            (std::vector<std::string>{
                "0x00000001|1|128|0|0|0|0", "0x00000001|1|128|0|0|0|0",  // call and reply inline
                "0x00000002|1|128|0|0|1|0", "0x00000002|1|128|0|0|1|0",  // data by write chunk
                "0x00000003|1|128|0|1|0|0", "0x00000003|1|128|0|0|0|0",  // data by read chunk
                "0x00000004|1|128|0|0|0|1", "0x00000004|1|128|1|0|0|1",  // RDMA_NOMSG in the reply chunk
                "0x00000005|1|128|1|2|0|0", "0x00000005|1|128|0|0|0|0",  // RDMA_NOMSG, two segments
            }))
      << headers;
  // RPC and NFS are found inside of the messages that travel inline.
  EXPECT_NE(output_of(tshark + "-Y 'rpcordma && nfs'").find("PUTROOTFH"), std::string::npos);
  // One reply is malformed to Wireshark's NFS: that of the READ, which is reduced as RFC 8166, 3.4 has it. It
  // says 20000 bytes and has none, they went by RDMA Write; over iWARP Wireshark does not put them back.
  EXPECT_EQ(output_of(tshark + "-Y '_ws.malformed && !(rpcordma.writes_count > 0)'"), "");
  if (!HasFailure()) ::unlink(file.c_str());
}

INSTANTIATE_TEST_SUITE_P(, RpcRdmaTshark, ::testing::Values(Kind::kIwarp), name_of);

}  // namespace
}  // namespace pnfsrdma::rpc_rdma::testing
