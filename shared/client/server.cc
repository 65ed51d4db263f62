// SPDX-License-Identifier: Apache-2.0
#include "shared/client/server.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "shared/nfs4/rename_wish.h"
#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::client {

using initiator::Session;

namespace {

// What whoever came from a port above 1023 can do about it on this host.
const char* advice_on_ports() {
  if (::geteuid() != 0) return "which root may bind: mount as root";
  return "and none of 665 to 1023 could be bound here: wait a minute, in which closed connections "
         "give theirs back, or give this container CAP_NET_BIND_SERVICE";
}

}  // namespace

Result<Root> find_root(Session& session, const std::string& path) {
  Session::Operations operations = {nfs4::PutRootFileHandleArguments{}};
  for (size_t start = 0; start < path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    if (end > start) operations.emplace_back(nfs4::LookupArguments{path.substr(start, end - start)});
    start = end + 1;
  }
  const size_t handle_at = operations.size();
  operations.emplace_back(nfs4::GetFileHandleArguments{});
  operations.emplace_back(nfs4::GetAttributesArguments{
      stat_attributes() |
      nfs4::Bitmap::of(nfs4::Attribute::kFsLayoutTypes, nfs4::Attribute::kSupportedAttributes)});
  const SteadyTime asked_at = steady_now();
  initiator::CallOptions call;
  call.deadline = asked_at + std::chrono::seconds(30);
  TRY_ASSIGN(const auto reply, session.call(std::move(operations), {::getuid(), ::getgid(), {}}, call));
  const auto* handle = reply.result<nfs4::GetFileHandleResponse>(handle_at);
  const auto* attributes = reply.result<nfs4::GetAttributesResponse>(handle_at + 1);
  if (reply.status == nfs4::Status::kPerm) {
    return fail(EPERM,
                fmt::format("{}:{}: the server serves this export to ports below 1024 only, {}, or set "
                            "\"insecure\" of the export on the server",
                            session.server(), path, advice_on_ports()));
  }
  if (handle == nullptr || attributes == nullptr) {
    return fail(nfs4::to_errno(reply.status),
                fmt::format("{}:{}: the server answers {}; is this path exported there?", session.server(),
                            path, nfs4::to_string(reply.status)));
  }
  const auto file = to_file_attributes(attributes->attributes);
  if (!file) return fail(EPROTO, "the server does not return the attributes of the root");
  if (!S_ISDIR(file->status.st_mode)) return fail(ENOTDIR, path + " is not a directory on the server");
  Root root{.handle = handle->object, .attributes = *file, .asked_at = asked_at};
  // Our own server offers none while it has no brick.
  const auto& types = attributes->attributes.fs_layout_types;
  root.layouts = session.implementation().starts_with("pnfsrdma") ||
                 (types && std::ranges::find(*types, nfs4::kLayoutTypePmem) != types->end());
  // Only ours says with the attributes which ACLs there are: elsewhere each `ls -l` would ask for each file.
  const nfs4::Bitmap wanted = nfs4::Bitmap::of(
      nfs4::Attribute::kPosixAccessAcl, nfs4::Attribute::kPosixDefaultAcl, nfs4::Attribute::kModeUmask);
  const auto& supported = attributes->attributes.supported_attributes;
  root.posix_acls =
      session.implementation().starts_with("pnfsrdma-mdsd/") && supported && supported->contains(wanted);
  return root;
}

std::string durability_told(std::string_view implementation) {
  constexpr std::string_view kKey = "durability=";
  const size_t at = implementation.find(kKey);
  if (at == std::string_view::npos) return "unknown";
  implementation.remove_prefix(at + kKey.size());
  return std::string(implementation.substr(0, implementation.find_first_of(" ,;")));
}

bool knows_rename_words(std::string_view implementation) {
  return implementation.starts_with("pnfsrdma-mdsd/") &&
         implementation.find(nfs4::kRenameWords) != std::string_view::npos;
}

Result<> check_durability(const ConnectOptions& options, const std::string& durability) {
  if (!options.require_persistent || durability == "power") return {};
  return fail(
      EPERM, fmt::format("require_durability=persistent: the server's memory is of class \"{}\" and does not "
                         "survive a loss of power; put the pool on PMEM or a disk file, or mount without "
                         "require_durability",
                         durability));
}

}  // namespace pnfsrdma::client
