// SPDX-License-Identifier: Apache-2.0
#include "shared/ring/channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "shared/ring/control.h"

namespace pnfsrdma::ring {
namespace {

class ChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto listening = listen_on(name);
    ASSERT_TRUE(listening) << listening.error().to_string();
    auto connected = connect_to(name);
    ASSERT_TRUE(connected) << connected.error().to_string();
    client = std::move(*connected);
    server = FileDescriptor(::accept4(listening->get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(server);
  }

  const std::string name = "pnfsrdma-channel-test-" + std::to_string(::getpid());
  FileDescriptor client, server;
  Bytes sink = Bytes(64);
};

TEST_F(ChannelTest, AMessageArrivesWithItsDescriptors) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor reading(ends[0]), writing(ends[1]);
  ASSERT_TRUE(send_message(client.get(), as_bytes("hello"), std::array{writing.get(), writing.get()}));
  const auto message = receive_message(server.get(), sink);
  ASSERT_TRUE(message);
  EXPECT_EQ(as_text(ByteSpan(sink).first(message->size)), "hello");
  ASSERT_EQ(message->descriptors.size(), 2u);
  ASSERT_EQ(::write(message->descriptors[1].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST_F(ChannelTest, ALongerMessageIsRefused) {
  ASSERT_TRUE(send_message(client.get(), Bytes(65)));
  EXPECT_EQ(receive_message(server.get(), sink).error().number(), EMSGSIZE);
}

TEST_F(ChannelTest, TheEndIsAnEmptyMessage) {
  client.reset();
  const auto message = receive_message(server.get(), sink);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->size, 0u);
}

TEST_F(ChannelTest, ANameIsTakenOnceAndOtherNamesAreNobodys) {
  const auto listening = listen_on(name + "-2");
  EXPECT_EQ(listen_on(name + "-2").error().number(), EADDRINUSE);
  EXPECT_EQ(connect_to(name + "-3").error().number(), ECONNREFUSED);
  EXPECT_EQ(connect_to("").error().number(), EINVAL);
  EXPECT_EQ(connect_to(std::string(200, 'x')).error().number(), EINVAL);
}

// A 32-bit program's ioctls are the same.
TEST(Control, HasTheSameSizesEverywhere) {
  EXPECT_EQ(sizeof(Request), 32u);
  EXPECT_EQ(sizeof(Answer), 152u);
  EXPECT_EQ(sizeof(Find), 128u);
  EXPECT_EQ(sizeof(Attach), 24u);
  EXPECT_EQ(sizeof(Append), 56u);
}

}  // namespace
}  // namespace pnfsrdma::ring
