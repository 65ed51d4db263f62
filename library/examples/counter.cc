// SPDX-License-Identifier: Apache-2.0
// A counter on remote persistent memory, in C++: each run adds one, durably, and prints it.
//
//   counter SOURCE PATH
#include <fcntl.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <pnfsrdma.hpp>

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: counter SOURCE PATH\n");
    return 2;
  }
  try {
    pnfsrdma::client client(arguments[1]);
    pnfsrdma::file file(client, arguments[2], O_RDWR | O_CREAT, 0644);
    {
      pnfsrdma::map map(file, 0, sizeof(std::uint64_t));
      auto& value = *static_cast<std::uint64_t*>(map.address());
      ++value;
      map.sync({{0, sizeof value}});
      std::printf("%llu\n", static_cast<unsigned long long>(value));
    }
    file.close();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "counter: %s\n", error.what());
    return 1;
  }
}
