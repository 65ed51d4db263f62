// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/result.h"
#include "shared/client/file_attributes.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::library {

// A path below the connected directory, component by component.
using Path = std::vector<std::string>;

// Operations on paths: one COMPOUND each, from the connected directory down. Symbolic links on the way are
// followed, at the price of two COMPOUNDs each. Thread-safe. The session must outlive it.
class Names {
 public:
  using Operations = initiator::Session::Operations;
  // The operations behind the directory's handle, for the name in it.
  using Make = std::function<Operations(const std::string& name)>;

  Names(initiator::Session& session, nfs4::FileHandle root) : session_(session), root_(std::move(root)) {}

  // The answer to what was made, and where it begins in it.
  struct Answer {
    initiator::CompoundReply reply;
    size_t at = 0;
    SteadyTime asked_at;

    template <typename Response>
    const typename Response::Result* result(size_t index) const {
      return reply.result<Response>(at + index);
    }
  };
  enum class LastLink { kFollow, kKeep };
  // In the directory of the path's last component. Any status of the server's is an Error (its errno).
  Result<Answer> in_directory(std::string_view path, const initiator::Credential& who, LastLink last,
                              const Make& make) const;
  // Behind the handle of what the path leads to.
  Result<Answer> at(std::string_view path, const initiator::Credential& who, Operations operations) const;

  // stat(2), unlink(2) and rmdir(2), mkdir(2), rename(2). A link at the end of the path is followed by status() only.
  enum class What { kFile, kDirectory };
  Result<struct stat> status(std::string_view path, const initiator::Credential& who) const;
  Result<> remove(std::string_view path, What what, const initiator::Credential& who) const;
  Result<> make_directory(std::string_view path, mode_t mode, const initiator::Credential& who) const;
  Result<> rename(std::string_view from, std::string_view to, const initiator::Credential& who) const;

 private:
  Result<Path> parse(std::string_view path) const;
  Operations walk(const Path& path, size_t count) const;
  // The path with the first link among `count` components replaced by what it says; EINVAL: there is none.
  Result<Path> without_link(Path path, size_t count, const initiator::Credential& who) const;
  Result<Answer> follow(Path path, size_t kept, const initiator::Credential& who, LastLink last,
                        const Make& make) const;
  // The directory of the path's last component, and that.
  Result<std::pair<nfs4::FileHandle, std::string>> parent(std::string_view path,
                                                          const initiator::Credential& who) const;

  initiator::Session& session_;
  const nfs4::FileHandle root_;
};

}  // namespace pnfsrdma::library
