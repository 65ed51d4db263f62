// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {

// A limit of this process, bytes; none: unlimited.
struct Limit {
  std::optional<uint64_t> soft;
  std::optional<uint64_t> hard;
};

struct InterfaceAddress {
  std::string interface;
  std::string address;  // "192.0.2.1", "2001:db8::1"; link-local ones are left out
};

// What adjtimex(2) says of the clock.
struct ClockState {
  bool synchronised = false;
  std::chrono::duration<double> error_max{0};
};

// The host as the doctor's probes see it: files, limits, devices. A test gives one of its own.
class Host {
 public:
  virtual ~Host() = default;

  // A whole (small) file, without the line break at its end; errno as read.
  virtual Result<std::string> read(const std::string& path) const = 0;
  // The names in a directory, sorted; empty when there is none.
  virtual std::vector<std::string> list(const std::string& path) const = 0;
  // Where a symbolic link points to; empty: it is none.
  virtual std::string link(const std::string& path) const = 0;
  virtual bool exists(const std::string& path) const = 0;
  // This process may open it for reading and writing.
  virtual bool may_open(const std::string& path) const = 0;
  // Permission bits of a file; 0 when there is none.
  virtual uint32_t mode(const std::string& path) const = 0;

  virtual uint32_t user() const = 0;
  virtual std::string kernel_release() const = 0;  // "6.1.0-18-amd64"
  virtual Limit locked_memory() const = 0;
  virtual std::vector<InterfaceAddress> addresses() const = 0;
  virtual ClockState clock() const = 0;
  // The path of a program in PATH (and the sbin folders); empty: none.
  virtual std::string program(std::string_view name) const = 0;
  // The file the dynamic linker takes for a library, symbolic links resolved; empty: none.
  virtual std::string library(const std::string& name) const = 0;
  // Names of the RDMA devices that open, as a mount would open them.
  virtual Result<std::vector<std::string>> open_rdma_devices() const = 0;
  // Runs a program; what it writes to standard output. It must change nothing.
  virtual Result<std::string> run(const std::vector<std::string>& words) const = 0;
  // Connects to "host:port" and leaves at once.
  virtual Result<> reach(const std::string& address, Milliseconds patience) const = 0;
};

}  // namespace pnfsrdma::cli
