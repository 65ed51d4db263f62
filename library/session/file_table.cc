// SPDX-License-Identifier: Apache-2.0
#include "library/session/file_table.h"

#include <cerrno>
#include <mutex>

#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::library::session {

std::shared_ptr<File> FileTable::join(const nfs4::FileHandle& handle, const std::shared_ptr<Open>& open,
                                      uint64_t size) {
  std::shared_ptr<File> file;
  bool was_open = true;
  {
    std::unique_lock lock(mutex_);
    settled_.wait(lock, [&] {
      const auto found = files_.find(handle);
      return found == files_.end() || !found->second.settling;
    });
    Entry& entry = files_[handle];
    was_open = entry.file != nullptr;
    if (!was_open) {
      entry.file = std::make_shared<File>(handle);
      entry.file->data = data_path_.open(handle, *entry.file, size);
    }
    file = entry.file;
    file->add(open);
  }
  // Which of what the OPEN said and what was written here meanwhile is newer is not known.
  if (was_open) (void)ask_size(*file, open->credential);
  return file;
}

void FileTable::leave(const std::shared_ptr<File>& file, const Open& open) {
  Open closed = file->copy(open);
  bool is_last = false;
  {
    const std::lock_guard lock(mutex_);
    // The open itself stays until the data is settled: that may have to write.
    const auto opens = file->opens();
    is_last = opens.size() == 1 && opens.front().first.get() == &open;
    if (is_last) {
      files_[file->handle].settling = true;
    } else {
      (void)file->remove(open);
    }
  }
  if (is_last) {
    file->data->release();
    closed = file->copy(open);  // a reclaim may have renewed it
    (void)file->remove(open);
    file->data.reset();
    {
      const std::lock_guard lock(mutex_);
      files_.erase(file->handle);
    }
    settled_.notify_all();
  }
  if (closed.broken) return;
  nfs4::CloseArguments close;
  close.open_stateid = closed.stateid;
  // Whatever is answered: a server that has lost the open has closed it.
  session_.post({nfs4::PutFileHandleArguments{file->handle}, close}, closed.credential, {.cache_reply = true},
                {});
}

Result<> FileTable::ask_size(File& file, const initiator::Credential& who) {
  const uint64_t version = file.data->local_version();
  const SteadyTime asked = steady_now();
  TRY_ASSIGN(const auto reply,
             session_.call({nfs4::PutFileHandleArguments{file.handle},
                            nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kSize)}},
                           who));
  const auto* told = reply.result<nfs4::GetAttributesResponse>(1);
  if (told == nullptr || !told->attributes.size)
    return fail(reply.ok() ? EPROTO : nfs4::to_errno(reply.status), "asking for the size of the file");
  file.data->server_size(*told->attributes.size, version, asked);
  return {};
}

std::vector<std::shared_ptr<File>> FileTable::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<File>> files;
  for (const auto& [handle, entry] : files_) files.push_back(entry.file);
  return files;
}

bool FileTable::empty() const {
  const std::lock_guard lock(mutex_);
  return files_.empty();
}

}  // namespace pnfsrdma::library::session
