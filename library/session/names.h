// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "library/connection.h"
#include "shared/base/result.h"
#include "shared/client/file_attributes.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::library::session {

// A path below the connected directory, component by component. ".." is one of them until what stands before it is
// known to be a directory.
using Path = std::vector<std::string>;

// Operations on paths: one COMPOUND each, from the connected directory down. Symbolic links on the way are
// followed, at the price of two COMPOUNDs each; a ".." costs one. Thread-safe. The session must outlive it.
class Names {
 public:
  using Operations = initiator::Session::Operations;
  // The operations behind the directory's handle, for the name in it.
  using Make = std::function<Operations(const std::string& name)>;

  // `umask_at_server`: it knows where a default ACL stands in the umask's place (client::Root::posix_acls).
  Names(initiator::Session& session, nfs4::FileHandle root, bool umask_at_server)
      : session_(session), root_(std::move(root)), umask_at_server_(umask_at_server) {}

  // Of what this process makes.
  nfs4::Attributes mode_of_new(mode_t mode) const;

  // The answer to what was made, and where it begins in it.
  struct Answer {
    initiator::CompoundReply reply;
    size_t at = 0;
    SteadyTime asked_at;
    Path path;  // without links on the way

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
  // renameat2(2), which servers of ours alone have (docs/protocol.md). EINVAL: another one.
  Result<> rename(std::string_view from, std::string_view to, Connection::Renaming how,
                  const initiator::Credential& who) const;

  // "d/", "d/." and "d/.." name a directory or nothing.
  static bool names_directory(std::string_view path);

 private:
  Result<Path> parse(std::string_view path) const;
  Operations walk(const Path& path, size_t count) const;
  // The first link among `count` components, all of which are there, and directories but for the last.
  Result<std::optional<size_t>> find_link(const Path& path, size_t count, const initiator::Credential& who,
                                          bool last_is_directory) const;
  // The path with the link at that place replaced by what it says.
  Result<Path> replace_link(Path path, size_t at, const initiator::Credential& who) const;
  Result<Path> without_parents(Path path, const initiator::Credential& who) const;
  Result<Answer> follow(Path path, size_t kept, const initiator::Credential& who, LastLink last,
                        const Make& make) const;
  // The directory of the path's last component, and that.
  struct Place {
    nfs4::FileHandle directory;
    std::string name;
  };
  Result<Place> place_of(std::string_view path, const initiator::Credential& who) const;
  // What a rename is of, and where to. Errors: EBUSY, ENOTDIR.
  Result<std::pair<Place, Place>> places_of(std::string_view from, std::string_view to,
                                            const initiator::Credential& who) const;
  Result<nfs4::FileHandle> handle_of(const Place& place, const initiator::Credential& who) const;
  // By a request whose answer was lost.
  bool has_moved(const nfs4::FileHandle& file, const Place& to, const initiator::Credential& who) const;
  Result<> rename_new(const Place& from, const Place& to, const initiator::Credential& who) const;
  // False: a name leads elsewhere by now.
  Result<bool> exchange(const Place& first, const Place& second, const initiator::Credential& who) const;

  initiator::Session& session_;
  const nfs4::FileHandle root_;
  const bool umask_at_server_;
};

}  // namespace pnfsrdma::library::session
