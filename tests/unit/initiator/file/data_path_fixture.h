// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "shared/base/random.h"
#include "shared/initiator/data_path.h"
#include "shared/initiator/file/inside.h"
#include "shared/rdma/iwarp/transport.h"
#include "tests/doubles/rdma_memory/transport.h"
#include "tests/unit/initiator/file/scripted_mds.h"

namespace pnfsrdma::initiator {

// Open for reading and writing, but for the next `closed` that ask.
class OpenForAll final : public OpenStateSource {
 public:
  std::optional<OpenState> open_state(bool) override {
    if (closed == 0) return OpenState{};
    --closed;
    return std::nullopt;
  }
  std::atomic<int> closed = 0;
};

// A mount with one file, its MDS and its brick, in one process.
class DataPathTest : public ::testing::Test {
 protected:
  explicit DataPathTest(bool over_tcp = false, rdma::iwarp::Options tcp = {})
      : over_tcp_(over_tcp), tcp_(tcp) {}

  std::unique_ptr<rdma::Transport> make_transport() {
    if (over_tcp_) return rdma::iwarp::make_transport(tcp_, random);
    return rdma::memory::make_transport(network, random);
  }

  static DataPathOptions quick_options() {
    DataPathOptions options;
    options.io_timeout = std::chrono::seconds(5);
    options.connect_timeout = std::chrono::seconds(2);
    options.connect_pause_first = Milliseconds(5);
    options.connect_pause_max = Milliseconds(20);
    options.recall_threads = 0;
    options.layout_pause = Milliseconds(20);
    options.commit_distance = Milliseconds(0);
    options.layout_bytes_min = uint64_t{1} << 20;
    return options;
  }

  void SetUp() override { build(quick_options()); }
  void TearDown() override {
    file.reset();
    if (path) path->abort();
    path.reset();
  }

  void build(DataPathOptions options, uint64_t size = 0) {
    file.reset();
    path.reset();
    channel.size = size;
    path = std::make_unique<DataPath>(
        channel, clock, std::vector<std::shared_ptr<rdma::Transport>>{client_transport}, options);
    file = path->open(handle, opens, size);
    buffer = *path->make_buffer(kBufferSize);
    cursor = file->error_cursor();
  }
  // A file of so many bytes with a pattern in the brick's memory.
  void make_file(uint64_t size) {
    for (uint64_t i = 0; i < size; ++i) brick.memory()[i] = pattern(i);
    build(options_now, size);
  }
  static std::byte pattern(uint64_t offset, uint8_t seed = 0) {
    return static_cast<std::byte>((offset * 31 + (offset >> 12) * 7 + seed) & 0xff);
  }
  BufferSlice filled(uint64_t offset, size_t length, uint8_t seed) {
    BufferSlice slice = buffer->slice(0, length);
    for (size_t i = 0; i < length; ++i) slice.data()[i] = pattern(offset + i, seed);
    return slice;
  }
  bool holds(const std::byte* bytes, uint64_t offset, size_t length, uint8_t seed) {
    for (size_t i = 0; i < length; ++i) {
      if (bytes[i] != pattern(offset + i, seed)) return false;
    }
    return true;
  }
  void write(uint64_t offset, size_t length, uint8_t seed) {
    const auto written = file->write(offset, filled(offset, length, seed));
    ASSERT_TRUE(written) << written.error().to_string();
    ASSERT_EQ(*written, length);
  }
  void expect_read(uint64_t offset, size_t length, uint8_t seed) {
    const BufferSlice sink = buffer->slice(0, length);
    std::memset(sink.data(), 0xee, length);
    const auto count = file->read(offset, sink);
    ASSERT_TRUE(count) << count.error().to_string();
    ASSERT_EQ(*count, length);
    EXPECT_TRUE(holds(sink.data(), offset, length, seed));
  }
  CallbackAnswer recall(uint64_t offset, uint64_t length, nfs4::Stateid stateid,
                        nfs4::IoMode iomode = nfs4::IoMode::kAny) {
    nfs4::CallbackLayoutRecallArguments arguments;
    arguments.layout_type = nfs4::kLayoutTypePmem;
    arguments.io_mode = iomode;
    arguments.what = nfs4::LayoutRecallWhat::make<nfs4::LayoutRecallType::kFile>(nfs4::LayoutRecallFile{
        .file_handle = handle, .offset = offset, .length = length, .stateid = stateid});
    return path->layout_recall(arguments);
  }

  const bool over_tcp_;
  const rdma::iwarp::Options tcp_;
  EventLog events;
  SystemClock clock;
  SystemRandom random;
  std::shared_ptr<rdma::memory::Network> network = std::make_shared<rdma::memory::Network>();
  std::shared_ptr<rdma::Transport> client_transport = make_transport();
  std::unique_ptr<rdma::Transport> brick_transport = make_transport();
  FakeBrick brick{*brick_transport, over_tcp_ ? "127.0.0.1:0" : "brick:0", events};
  ScriptedMds channel{brick, over_tcp_ ? "tcp" : "memory", events};
  OpenForAll opens;
  nfs4::FileHandle handle{Bytes(16, std::byte{5})};
  DataPathOptions options_now = quick_options();
  std::unique_ptr<DataPath> path;
  std::shared_ptr<FileIo> file;
  std::unique_ptr<Buffer> buffer;
  ErrorCursor cursor;
};

}  // namespace pnfsrdma::initiator
