// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

// What the stop-watch and the client it watches say to each other, a line each, words parted by blanks.
//
//   to the attacker     write GRANT HANDLE ADDRESS LENGTH | break | invalidate KEY | stop
//   from the attacker   connected | writing | refused NANOSECONDS OUTCOME | invalidated OUTCOME |
//                       end LAST_SUCCESS_POSTED REFUSALS CONNECTIONS
//
// Times are CLOCK_MONOTONIC.
namespace pnfsrdma::bench {

// Lines from a descriptor, without ever blocking longer than asked. Not thread-safe.
class OrderReader {
 public:
  explicit OrderReader(int fd) : fd_(fd) {}
  // The words of the next line; none when no line came within `milliseconds`. After the end of the stream
  // ended() is true.
  std::vector<std::string> next(int milliseconds);
  bool ended() const { return ended_; }

 private:
  const int fd_;
  std::string buffer_;
  bool ended_ = false;
};

// Writes the whole line at once.
void say(int fd, const std::string& line);

}  // namespace pnfsrdma::bench
