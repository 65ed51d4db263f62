// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"

// A Unix socket of type SOCK_SEQPACKET with an abstract name, and messages with descriptors over it.
namespace pnfsrdma::ring {

// The most descriptors of one message.
inline constexpr size_t kDescriptorsMax = 4;

// Errors: EADDRINUSE, and what socket(2) says.
Result<FileDescriptor> listen_on(std::string_view name);
// Errors: ECONNREFUSED when nobody listens there (or in another network namespace).
Result<FileDescriptor> connect_to(std::string_view name);

// Does not wait, and raises no signal. Errors: EAGAIN, EPIPE.
Result<> send_message(int socket, ByteSpan message, std::span<const int> descriptors = {});

struct Message {
  size_t size = 0;  // 0: the other side has closed
  std::vector<FileDescriptor> descriptors;
};
// Waits as the socket does. A longer message than `sink` is EMSGSIZE, and so is one with too many descriptors; its
// descriptors are closed.
Result<Message> receive_message(int socket, MutableByteSpan sink);

}  // namespace pnfsrdma::ring
