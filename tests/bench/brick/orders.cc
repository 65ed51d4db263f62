// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/brick/orders.h"

#include <poll.h>
#include <unistd.h>

#include <sstream>

namespace pnfsrdma::bench {

std::vector<std::string> OrderReader::next(int milliseconds) {
  for (;;) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::istringstream line(buffer_.substr(0, end));
      buffer_.erase(0, end + 1);
      std::vector<std::string> words;
      for (std::string word; line >> word;) words.push_back(word);
      return words;
    }
    if (ended_) return {};
    pollfd entry{fd_, POLLIN, 0};
    if (::poll(&entry, 1, milliseconds) <= 0) return {};
    char bytes[4096];
    const ssize_t count = ::read(fd_, bytes, sizeof(bytes));
    if (count <= 0) ended_ = true;
    if (count > 0) buffer_.append(bytes, static_cast<size_t>(count));
  }
}

void say(int fd, const std::string& line) {
  const std::string whole = line + "\n";
  static_cast<void>(!::write(fd, whole.data(), whole.size()));
}

}  // namespace pnfsrdma::bench
