// SPDX-License-Identifier: Apache-2.0
#include "server/console/kept_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "shared/base/owned.h"

namespace pnfsrdma::console {

Result<std::optional<Json>> KeptFile::load() const {
  std::ifstream file(path_, std::ios::binary);
  if (!file) {
    if (errno == ENOENT) return std::optional<Json>();
    return std::unexpected(Error::from_errno("read " + path_));
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return fail(EUCLEAN, path_ + " cannot be read");
  return std::optional<Json>(std::move(json));
}

Result<> KeptFile::sync_folder() const {
  const std::string folder = std::filesystem::path(path_).parent_path();
  const FileDescriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || fsync(opened.get()) != 0) return std::unexpected(Error::from_errno("sync " + folder));
  return {};
}

Result<> KeptFile::store(const Json& json) const {
  const std::string text = to_text(json) + "\n";
  const std::string temporary = path_ + ".new";
  const FileDescriptor file(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return std::unexpected(Error::from_errno("write " + path_));
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  if (written >= 0 && written < static_cast<ssize_t>(text.size())) errno = ENOSPC;
  if (written != static_cast<ssize_t>(text.size()) || fsync(file.get()) != 0 ||
      rename(temporary.c_str(), path_.c_str()) != 0) {
    const Error why = Error::from_errno("write " + path_);
    ::unlink(temporary.c_str());
    return std::unexpected(why);
  }
  return sync_folder();
}

Result<> KeptFile::remove() const {
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT)
    return std::unexpected(Error::from_errno("remove " + path_));
  return sync_folder();
}

}  // namespace pnfsrdma::console
