// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <time.h>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "shared/base/owned.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {

struct Moment {
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
  auto operator<=>(const Moment&) const = default;
  timespec as_timespec() const { return {.tv_sec = seconds, .tv_nsec = nanoseconds}; }
};

// What lstat(2) says of a file, a directory or anything else with a name.
struct Status {
  uint32_t mode = 0;
  uint32_t user = 0;
  uint32_t group = 0;
  uint32_t links = 0;
  uint64_t size = 0;
  uint64_t device = 0;    // that it is on
  uint64_t special = 0;   // that it is
  uint64_t inode = 0;     // on one of our mounts that of the living file, in snapshots as well
  uint64_t snapshot = 0;  // in which one it is; 0: none
  Moment accessed, modified, changed;

  uint32_t type() const { return mode & S_IFMT; }
  uint32_t permissions() const { return mode & 07777; }
  bool is_directory() const { return type() == S_IFDIR; }
  bool is_file() const { return type() == S_IFREG; }
  // The same one, or the same at another time.
  bool is_same_as(const Status& other) const { return device == other.device && inode == other.inode; }
};

// Something as found: its name in an open directory ("." is that itself).
struct Entry {
  int directory = -1;
  std::string name;
  Status status;

  // A path for those calls that take nothing else; no symbolic link in front of the name is followed.
  std::string path() const;
};

// The very thing that was found, by whatever name it is there now.
struct Held {
  FileDescriptor file;  // O_PATH
  Status status;

  // For calls that take nothing else, and follow links.
  std::string path() const;
};

// A directory with all that is in it. No path inside leads through a symbolic link, nor out of it, whatever others
// do to it meanwhile. Each call's errors are those of open(2) and stat(2).
class Tree {
 public:
  // The path may lead through links, but not at its end.
  static Result<Tree> open(const std::string& path);

  const Status& root() const { return root_status_; }
  // One that is in it, however deep; "": itself. To find what is there (O_PATH).
  Result<FileDescriptor> directory(const std::string& relative) const;
  // A name in a directory of it.
  Result<Entry> find(int directory, const std::string& name) const;
  // The same as the server has it now, and not as the mount remembers it: of a file that the caller may read.
  Result<Entry> find_now(int directory, const std::string& name) const;
  // ESTALE: another one has the name by now.
  Result<Held> hold(const Entry& entry) const;
  // What is open.
  Result<Held> hold(int file) const;
  // All names in a directory, sorted.
  static Result<std::vector<std::string>> names(int directory);

 private:
  Tree(FileDescriptor root, bool is_ours) : root_(std::move(root)), is_ours_(is_ours) {}

  FileDescriptor root_;
  Status root_status_;
  bool is_ours_;  // on a mount of pnfsrdma-fuse
};

// As Tree::find, of any path, as the kernel has it when it asks; a link at its end is not followed.
Result<Status> status_of(const std::string& path);

// "a/b"; "b" where `directory` is "".
std::string joined(const std::string& directory, const std::string& name);
// The reverse: "" and "b" of "b".
std::string directory_of(const std::string& path);
std::string name_of(const std::string& path);

}  // namespace pnfsrdma::cli
