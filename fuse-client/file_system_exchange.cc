// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>

#include "fuse-client/file_system.h"

// renameat2(2) with RENAME_EXCHANGE (docs/protocol.md).
namespace pnfsrdma::fuse_client {

using nfs4::Status;

namespace {

// Each other try means that another client has exchanged or renamed one of them in between.
constexpr int kExchangeTries = 100;
constexpr size_t kRenameAt = 9, kSecondDirectoryAt = 10, kFirstFileAt = 12, kSecondFileAt = 14,
                 kFirstDirectoryAt = 16;

nfs4::VerifyArguments is(const nfs4::FileHandle& file) {
  nfs4::VerifyArguments verify;
  verify.attributes.file_handle = file;
  return verify;
}

}  // namespace

struct FileSystem::ExchangeEnd {
  std::shared_ptr<Inode> directory;
  std::string name;
  nfs4::FileHandle file;  // that the name leads to, as far as is known
};

struct FileSystem::ExchangeAnswer {
  int error = 0;
  CompoundReply reply;
  std::optional<nfs4::RenameResult> renamed;
  std::array<Question, 2> asked;  // of the files
  bool done_before = false;       // by the same request in an earlier session
};

std::expected<nfs4::FileHandle, int> FileSystem::ask_handle(fuse_req_t request, const Inode& directory,
                                                            std::string_view name) {
  CompoundReply reply;
  const int error = call(request,
                         {nfs4::PutFileHandleArguments{directory.handle},
                          nfs4::LookupArguments{std::string(name)}, nfs4::GetFileHandleArguments{}},
                         reply);
  const auto* handle = reply.result<nfs4::GetFileHandleResponse>(2);
  if (error != 0 || handle == nullptr) return std::unexpected(error != 0 ? error : EIO);
  return handle->object;
}

// PUTFH, LOOKUP, VERIFY of each: repeated in another session, what was done is not taken back. PUTFH, SAVEFH, PUTFH,
// RENAME; GETATTR of the second directory; PUTFH, GETATTR of each file; RESTOREFH, GETATTR of the first directory.
FileSystem::ExchangeAnswer FileSystem::try_exchange(fuse_req_t request, const ExchangeEnd& first,
                                                    const ExchangeEnd& second) {
  ExchangeAnswer answer;
  for (size_t i = 0; i < 2; ++i)
    answer.asked[i] = ask(parts_.inodes.find((i == 0 ? first : second).file).get());
  const nfs4::PutFileHandleArguments here{first.directory->handle}, there{second.directory->handle};
  const nfs4::GetAttributesArguments attributes{client::stat_attributes()};
  // If an operation behind it is answered DELAY, the VERIFYs are sent again, and fail: what is told then is not how it
  // went.
  const std::function<void(const CompoundReply&)> take_result = [&](const CompoundReply& so_far) {
    const auto* renamed = so_far.result<nfs4::RenameResponse>(kRenameAt);
    if (renamed != nullptr) answer.renamed = *renamed;
  };
  initiator::CallOptions options;
  options.cache_reply = true;
  options.on_repetition = &take_result;
  answer.error = call(
      request,
      {here, nfs4::LookupArguments{first.name}, is(first.file), there, nfs4::LookupArguments{second.name},
       is(second.file), here, nfs4::SaveFileHandleArguments{}, there,
       nfs4::RenameArguments{first.name, nfs4::to_new_name({second.name, nfs4::RenameHow::kExchange})},
       attributes, nfs4::PutFileHandleArguments{first.file}, attributes,
       nfs4::PutFileHandleArguments{second.file}, attributes, nfs4::RestoreFileHandleArguments{}, attributes},
      answer.reply, options);
  take_result(answer.reply);
  const Status status = answer.reply.status;
  if (answer.renamed) {
    answer.error = 0;
  } else if (answer.reply.repeated && (status == Status::kNotSame || status == Status::kNoEnt)) {
    // Who has moved one of them since has left the other.
    answer.done_before = ask_handle(request, *second.directory, second.name) == first.file ||
                         ask_handle(request, *first.directory, first.name) == second.file;
    if (answer.done_before) answer.error = 0;
  }
  return answer;
}

void FileSystem::exchange(fuse_req_t request, const std::shared_ptr<Inode>& first, const char* first_name,
                          const std::shared_ptr<Inode>& second, const char* second_name) {
  const pid_t caller = fuse_req_ctx(request)->pid;
  const bool is_second = second_exchanges_.take(caller);
  std::array<ExchangeEnd, 2> ends = {ExchangeEnd{first, first_name, {}},
                                     ExchangeEnd{second, second_name, {}}};
  for (int tries = 0; tries < kExchangeTries; ++tries) {
    for (ExchangeEnd& end : ends) {
      const std::shared_ptr<Inode> known =
          tries == 0 ? parts_.inodes.find(*end.directory, end.name) : nullptr;
      const auto file = known ? known->handle : ask_handle(request, *end.directory, end.name);
      if (!file) {
        fuse_reply_err(request, file.error());
        return;
      }
      end.file = *file;
    }
    const ExchangeAnswer answer = try_exchange(request, ends[0], ends[1]);
    learn_exchange(ends[0], ends[1], answer);
    const bool led_elsewhere = answer.error != 0 && answer.reply.status == Status::kNotSame;
    if (!led_elsewhere) {
      fuse_reply_err(request, answer.error);
      return;
    }
    // The kernel believes what is known here: let it look again, once, so that it exchanges the right ones itself.
    if (tries == 0 && !is_second) {
      second_exchanges_.expect(caller);
      fuse_reply_err(request, ESTALE);
      return;
    }
  }
  fuse_reply_err(request, EBUSY);
}

void FileSystem::learn_exchange(const ExchangeEnd& first, const ExchangeEnd& second,
                                const ExchangeAnswer& answer) {
  const nfs4::RenameResult* const done = answer.renamed ? &*answer.renamed : nullptr;
  // Two names of one file stay as they are.
  const bool moved = done != nullptr && done->target.before != done->target.after;
  std::vector<Touched> touched = {{second.directory, kSecondDirectoryAt}};
  if (first.directory == second.directory) {
    learn_names(*second.directory, moved ? &done->target : nullptr,
                [&](DirectoryNames& names) { names.exchanged({first.name, second.name}, done->target); });
  } else {
    touched.push_back({first.directory, kFirstDirectoryAt});
    learn_names(*first.directory, moved ? &done->source : nullptr,
                [&](DirectoryNames& names) { names.exchanged({first.name}, done->source); });
    learn_names(*second.directory, moved ? &done->target : nullptr,
                [&](DirectoryNames& names) { names.exchanged({second.name}, done->target); });
  }
  const uint64_t number = names_changed(touched, answer.asked[0], answer.reply);
  // What the kernel takes for one of them has another name by now.
  for (const ExchangeEnd* end : {&first, &second}) {
    const std::shared_ptr<Inode> believed = parts_.inodes.find(*end->directory, end->name);
    if (!believed || believed->handle == end->file) continue;
    if (const auto name = believed->name()) believed->lose_name(name);
  }
  const bool exchanged = moved || answer.done_before;
  for (size_t i = 0; i < 2; ++i) {
    const ExchangeEnd& from = i == 0 ? first : second;
    const ExchangeEnd& to = i == 0 ? second : first;
    const std::shared_ptr<Inode> file = parts_.inodes.find(from.file);
    if (!file) continue;
    const nfs4::ChangeInfo unknown;
    if (exchanged)
      named(*file, to.directory, to.name, done ? (i == 0 ? done->target : done->source) : unknown);
    const bool alone = file->name_changed(answer.asked[i].name_changes, number);
    const auto* said =
        answer.reply.result<nfs4::GetAttributesResponse>(i == 0 ? kFirstFileAt : kSecondFileAt);
    if (alone && moved && said != nullptr)
      learn_moved(*file, answer.asked[i], number, said->attributes, *done);
  }
}

}  // namespace pnfsrdma::fuse_client
