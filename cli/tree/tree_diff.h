// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/tree/comparison.h"
#include "cli/tree/tree.h"

namespace pnfsrdma::cli {

struct Difference {
  enum class Kind { kAdded, kRemoved, kModified, kAttributes, kRenamed };
  Kind kind = Kind::kAdded;
  std::string path;  // in the tree that has it; with a slash behind it if it is a directory
  std::string to;    // kRenamed: in the second tree
  Aspects aspects;   // kModified, kAttributes
};
const char* word_of(Difference::Kind kind);

// What could not be looked at, or done.
struct Problem {
  std::string path;
  std::string error;
};

// How two trees differ. What has another name is found by its inode, if both are on one mount. Single-threaded.
class TreeDiff {
 public:
  // Called with each path that is looked at.
  using Progress = std::function<void(const std::string&)>;
  TreeDiff(const Tree& before, const Tree& after, bool content, Progress progress);

  void run();
  // Of the whole trees only these, which are no directories.
  void run_of(const std::string& old_name, const std::string& new_name);
  // Sorted by path.
  const std::vector<Difference>& differences() const { return differences_; }
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  // What only one of the trees has, all that is below its directories as well.
  using Lonely = std::map<std::string, Status>;

  void compare_directories(const std::string& path);
  bool compare_names(const Entry& before, const Entry& after, const std::string& path);
  void report(const std::string& path, const Status& after, const Aspects& aspects);
  void expand(const Tree& tree, const std::string& path, const Status& status, Lonely& lonely);
  void match_by_inode();
  void match_by_name();
  void pair(const std::string& old_path, const std::string& new_path);
  void compare_renamed(const std::string& old_path, const std::string& new_path);
  bool is_renamed_with_parent(const std::string& old_path, const std::string& new_path) const;
  void trouble(const std::string& path, const Error& error);

  const Tree& before_;
  const Tree& after_;
  const bool content_;
  const Progress progress_;
  std::vector<std::string> left_;  // directories of both that are to be compared
  LinkedFiles linked_;
  Lonely gone_;
  Lonely come_;
  std::map<std::string, std::string> renamed_;
  std::vector<Difference> differences_;
  std::vector<Problem> problems_;
};

}  // namespace pnfsrdma::cli
