// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "library/session/names.h"
#include "shared/client/server.h"
#include "shared/nfs4/rename_wish.h"
#include "shared/nfs4/status_errno.h"

// RENAME that does not replace, and RENAME that exchanges (docs/protocol.md).
namespace pnfsrdma::library::session {

using initiator::CompoundReply;
using nfs4::Status;

namespace {

// Each other try means that another client has renamed one of them in between.
constexpr int kExchangeTries = 100;
constexpr size_t kRenameAt = 9;

std::unexpected<Error> rename_refused(Status status, std::string_view name) {
  return fail(nfs4::to_errno(status),
              fmt::format("{}: the server answers {}", name, nfs4::to_string(status)));
}

nfs4::VerifyArguments is(const nfs4::FileHandle& file) {
  nfs4::VerifyArguments verify;
  verify.attributes.file_handle = file;
  return verify;
}

}  // namespace

Result<> Names::rename(std::string_view from, std::string_view to, Connection::Renaming how,
                       const initiator::Credential& who) const {
  if (!client::knows_rename_words(session_.implementation()))
    return fail(EINVAL, "the server knows no rename with flags");
  TRY_ASSIGN(const auto places, places_of(from, to, who));
  const auto& [first, second] = places;
  if (how == Connection::Renaming::kExchange && names_directory(to)) {
    TRY_ASSIGN(const struct stat status, this->status(to, who));
    if (!S_ISDIR(status.st_mode)) return fail(ENOTDIR, std::string(to));
  }
  if (how == Connection::Renaming::kNoReplace) return rename_new(first, second, who);
  for (int tries = 0; tries < kExchangeTries; ++tries) {
    TRY_ASSIGN(const bool exchanged, exchange(first, second, who));
    if (exchanged) return {};
  }
  return fail(EBUSY, fmt::format("{} and {} are renamed by others all the time", from, to));
}

// PUTFH, LOOKUP, GETFH.
Result<nfs4::FileHandle> Names::handle_of(const Place& place, const initiator::Credential& who) const {
  TRY_ASSIGN(const CompoundReply reply,
             session_.call({nfs4::PutFileHandleArguments{place.directory}, nfs4::LookupArguments{place.name},
                            nfs4::GetFileHandleArguments{}},
                           who));
  const auto* handle = reply.result<nfs4::GetFileHandleResponse>(2);
  if (handle == nullptr) return rename_refused(reply.status, place.name);
  return handle->object;
}

bool Names::has_moved(const nfs4::FileHandle& file, const Place& to, const initiator::Credential& who) const {
  const auto there = handle_of(to, who);
  return there && *there == file;
}

// PUTFH, SAVEFH, PUTFH, RENAME.
Result<> Names::rename_new(const Place& from, const Place& to, const initiator::Credential& who) const {
  TRY_ASSIGN(const nfs4::FileHandle file, handle_of(from, who));
  TRY_ASSIGN(const CompoundReply reply,
             session_.call({nfs4::PutFileHandleArguments{from.directory}, nfs4::SaveFileHandleArguments{},
                            nfs4::PutFileHandleArguments{to.directory},
                            nfs4::RenameArguments{from.name,
                                                  nfs4::to_new_name({to.name, nfs4::RenameHow::kNoReplace})}},
                           who, {.cache_reply = true}));
  if (reply.ok()) return {};
  const bool perhaps_done =
      reply.repeated && (reply.status == Status::kNoEnt || reply.status == Status::kExist);
  if (perhaps_done && has_moved(file, to, who) && !has_moved(file, from, who)) return {};
  return rename_refused(reply.status, from.name);
}

// PUTFH, LOOKUP, VERIFY of each: repeated in another session, what was done is not taken back. PUTFH, SAVEFH, PUTFH,
// RENAME.
Result<bool> Names::exchange(const Place& first, const Place& second,
                             const initiator::Credential& who) const {
  TRY_ASSIGN(const nfs4::FileHandle first_file, handle_of(first, who));
  TRY_ASSIGN(const nfs4::FileHandle second_file, handle_of(second, who));
  const nfs4::PutFileHandleArguments here{first.directory}, there{second.directory};
  TRY_ASSIGN(
      const CompoundReply reply,
      session_.call(
          {here, nfs4::LookupArguments{first.name}, is(first_file), there, nfs4::LookupArguments{second.name},
           is(second_file), here, nfs4::SaveFileHandleArguments{}, there,
           nfs4::RenameArguments{first.name, nfs4::to_new_name({second.name, nfs4::RenameHow::kExchange})}},
          who, {.cache_reply = true}));
  if (reply.ok() || reply.succeeded(kRenameAt)) return true;
  const bool led_elsewhere = reply.status == Status::kNotSame;
  if (reply.repeated && (led_elsewhere || reply.status == Status::kNoEnt)) {
    // Who has moved one of them since has left the other.
    if (has_moved(first_file, second, who) || has_moved(second_file, first, who)) return true;
  }
  if (led_elsewhere) return false;
  return rename_refused(reply.status, first.name);
}

}  // namespace pnfsrdma::library::session
