// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/owned.h"
#include "shared/base/result.h"

// A directory of files as a stream of bytes: how a copy of a metadata store goes to another host.
//
//   stream = "pnfsrdma-metadata 1\n" file* "end <count>\n"
//   file   = "file <size> <name>\n", its bytes, "sha256 <64 hexadecimal digits>\n"
//   name   = relative, of parts of letters, digits, '.', '_' and '-' behind one another with '/'; none begins with '.'
namespace pnfsrdma::mds {

class CopyDigest;

// Reads the files. They do not change meanwhile. One thread at a time.
class CopyWriter {
 public:
  // Errors: what reading `directory` gives.
  static Result<std::unique_ptr<CopyWriter>> open(const std::string& directory);
  ~CopyWriter();

  // The next bytes, 1 MiB and a line at most. Empty: that was all. Errors: what reading gives; EIO: a file is not as
  // it was.
  Result<std::string> next();
  size_t files() const { return names_.size(); }

 private:
  CopyWriter(std::string directory, std::vector<std::string> names);
  Result<std::string> begin_file();

  const std::string directory_;
  const std::vector<std::string> names_;
  size_t next_ = 0;
  bool begun_ = false;
  bool ended_ = false;
  FileDescriptor file_;
  uint64_t left_ = 0;
  std::unique_ptr<CopyDigest> digest_;
};

// Writes them. One thread at a time.
class CopyReader {
 public:
  // `directory` is there, and empty.
  explicit CopyReader(std::string directory);
  ~CopyReader();

  // The next bytes, in pieces of any size. EPROTO: this is no such stream; EBADMSG: a file is not what was sent; else
  // what writing gives.
  Result<> take(std::string_view bytes);
  // Behind the last of them: all is on the medium. EPROTO: there is less than was sent.
  Result<> end();
  uint64_t bytes() const { return bytes_; }

 private:
  enum class Next { kGreeting, kFile, kBytes, kDigest, kNothing };
  Result<> take_line(const std::string& line);
  Result<> begin_file(std::string_view size_and_name);
  Result<> take_bytes(std::string_view bytes);
  Result<> end_file(std::string_view digest);

  const std::string directory_;
  Next next_ = Next::kGreeting;
  std::string line_;
  FileDescriptor file_;
  std::string name_;
  uint64_t left_ = 0;
  uint64_t files_ = 0;
  uint64_t bytes_ = 0;
  std::unique_ptr<CopyDigest> digest_;
};

}  // namespace pnfsrdma::mds
