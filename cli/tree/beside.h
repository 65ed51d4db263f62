// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "shared/base/owned.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {

// What is being made in a directory, beside the name that it will have: that name leads to what was there or to the
// whole of what comes, at any time. Goes if it never comes so far, as does what was exchanged for it, but for a
// directory that is not empty; after a crash it is left (is_leftover).
class Beside {
 public:
  // Tries `make`, which returns 0 or -1 with errno, with names until one is free. Errors: those of `make`.
  static Result<Beside> make(int directory, const std::function<int(const char* name)>& make);
  Beside(Beside&& other) noexcept;
  Beside& operator=(Beside&&) = delete;
  ~Beside();

  const std::string& name() const { return name_; }
  // Replaces what has the name, if that is no directory. Errors: as rename(2).
  Result<> become(const std::string& name);
  // Takes the name, and what had it has ours. Errors: as renameat2(2).
  Result<> exchange(const std::string& name);

  static bool is_leftover(const std::string& name);

 private:
  Beside(int directory, std::string name) : directory_(directory), name_(std::move(name)) {}

  int directory_;
  std::string name_;  // "": nothing is left to go
};

}  // namespace pnfsrdma::cli
