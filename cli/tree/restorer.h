// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cli/tree/beside.h"
#include "cli/tree/comparison.h"
#include "cli/tree/tree.h"
#include "cli/tree/tree_diff.h"

namespace pnfsrdma::cli {

// The first that somebody could not have any more: a new owner, a new group or a tree.
struct OverQuota {
  std::string path;
  uint32_t user = 0;
  uint32_t group = 0;
};

struct Restored {
  uint64_t files = 0;       // anything but directories: made again, or made as it was
  uint64_t attributes = 0;  // of what was in place: also of directories
  uint64_t directories = 0;
  uint64_t links = 0;    // further names of a file
  uint64_t removed = 0;  // what the snapshot does not have
  uint64_t kept = 0;     // the same, if it is not to be removed: at the top of what is new
  uint64_t bytes_shared = 0;
  uint64_t bytes_copied = 0;  // where the memory could not be shared
  std::vector<Problem> problems;
  std::optional<OverQuota> over_quota;
};

// Makes a living tree what a snapshot has, whatever of that is done already. A file whose bytes differ gets its name
// when all of it is there; who has the one of before open, or another name of it outside of the tree, keeps that.
// What only differs in attributes stays the same file. Times of directories come last. What is in the way of
// something goes when that is there. What cannot be done is noted, and the rest goes on. Single-threaded.
class Restorer {
 public:
  struct Options {
    bool remove_new = false;
    bool content = false;
  };
  using Progress = std::function<void(const std::string&)>;
  // Ends early, between two names, when `interrupted` gets true.
  Restorer(const Tree& snapshot, const Tree& living, Options options, const std::atomic<bool>& interrupted,
           Progress progress);

  void run();
  // Of the whole trees only what has these names, and is no directory.
  void run_of(const std::string& source_name, const std::string& target_name);
  const Restored& restored() const { return restored_; }

 private:
  struct Here {
    int source;
    int target;
    std::string path;
  };
  // A directory that is to be gone through; not present: to be made.
  struct Left {
    std::string path;
    bool present = true;
  };
  // One whose attributes and times are to be set.
  struct Unfinished {
    std::string path;
    uint64_t inode = 0;
  };
  // A file with several names.
  struct Linked {
    uint64_t living = 0;
    std::string path;  // its first name in the living tree
  };

  void restore_directory(const Left& left);
  bool restore_name(const Here& here, const std::string& name);
  Result<bool> restore_subdirectory(const Here& here, const Entry& source);
  Result<FileDescriptor> enter_directory(const std::string& path, const Entry& source);
  Result<FileDescriptor> make_directory(const std::string& path, const Entry& source);
  Result<bool> restore_entry(const Here& here, const Entry& source, const std::string& target_name);
  Result<bool> restore_link(const Here& here, const Linked& first, const std::string& target_name);
  Result<Status> make_anew(const Here& here, const Entry& source, const std::string& target_name);
  Result<Status> make_file(const Here& here, const Entry& source, const std::string& target_name);
  Result<> place(const Here& here, Beside& made, const std::string& target_name);
  bool leave_or_remove(const Here& here, const std::string& name);
  Result<> remove(const Here& here, const std::string& name);
  Result<> remove_directory(const std::string& path);
  Result<std::vector<std::string>> directories_in(const std::string& top) const;
  Result<bool> is_in_use(const std::string& path) const;
  void finish_directory(const Unfinished& unfinished);
  static bool is_the_same_file(const Status& source, const Status& target);
  bool is_of_another(const Status& source, const Status& target) const;
  void remember(const Status& source, const Status& living, const std::string& path);
  void trouble(const std::string& path, const Error& error);
  void trouble(const std::string& path, const Status& of, const Error& error);

  const Tree& snapshot_;
  const Tree& living_;
  const Options options_;
  const std::atomic<bool>& interrupted_;
  const Progress progress_;
  const bool for_others_;  // the caller may give owners
  std::vector<Left> left_;
  std::vector<Unfinished> unfinished_;
  std::unordered_map<uint64_t, Linked> linked_;         // by the inode in the snapshot
  std::unordered_map<uint64_t, uint64_t> snapshot_of_;  // by the living inode
  Restored restored_;
};

}  // namespace pnfsrdma::cli
