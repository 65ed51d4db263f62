// SPDX-License-Identifier: Apache-2.0
#include "server/console/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>

namespace pnfsrdma::console {

namespace {

// Oldest first; lines that are no JSON are skipped.
std::vector<Json> read_entries(const std::string& path) {
  std::vector<Json> entries;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    Json entry = Json::parse(line, nullptr, false);
    if (entry.is_object() && entry.contains("sequence") && entry["sequence"].is_number_unsigned())
      entries.push_back(std::move(entry));
  }
  return entries;
}

Result<> sync_directory(const std::string& path) {
  const FileDescriptor directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || fsync(directory.get()) != 0) return std::unexpected(Error::from_errno("fsync " + path));
  return {};
}

}  // namespace

std::string AuditLog::path(int age) const {
  return directory_ + "/audit.log" + (age == 0 ? "" : "." + std::to_string(age));
}

Result<std::unique_ptr<AuditLog>> AuditLog::open(const std::string& directory, size_t bytes_max) {
  std::unique_ptr<AuditLog> log(new AuditLog(directory, bytes_max));
  for (int age = 0; age < kAges && log->next_ == 1; ++age) {
    const auto entries = read_entries(log->path(age));
    if (!entries.empty()) log->next_ = entries.back()["sequence"].get<uint64_t>() + 1;
  }
  TRY(log->open_file());
  return log;
}

Result<> AuditLog::open_file() {
  file_ = FileDescriptor(::open(path(0).c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat status{};
  if (!file_ || fstat(file_.get(), &status) != 0)
    return std::unexpected(Error::from_errno("open " + path(0)));
  size_ = static_cast<size_t>(status.st_size);
  char last = '\n';
  if (size_ > 0 && pread(file_.get(), &last, 1, status.st_size - 1) == 1 && last != '\n')
    size_ += static_cast<size_t>(std::max<ssize_t>(::write(file_.get(), "\n", 1), 0));
  return sync_directory(directory_);
}

Result<> AuditLog::rotate() {
  for (int age = kAges - 1; age > 0; --age) {
    if (rename(path(age - 1).c_str(), path(age).c_str()) != 0 && errno != ENOENT)
      return std::unexpected(Error::from_errno("rename " + path(age - 1)));
  }
  return open_file();
}

Result<uint64_t> AuditLog::add(Json entry) {
  const std::lock_guard lock(mutex_);
  if (size_ >= bytes_max_) TRY(rotate());
  Json numbered{{"sequence", next_}};
  numbered.update(entry);
  const std::string line = to_text(numbered) + "\n";
  const ssize_t written = ::write(file_.get(), line.data(), line.size());
  if (written > 0) size_ += static_cast<size_t>(written);
  if (written != static_cast<ssize_t>(line.size())) {
    if (written >= 0) errno = ENOSPC;
    return std::unexpected(Error::from_errno("write " + path(0)));
  }
  if (fdatasync(file_.get()) != 0) return std::unexpected(Error::from_errno("fdatasync " + path(0)));
  return next_++;
}

Result<std::vector<Json>> AuditLog::newest(uint64_t before, size_t limit) {
  std::vector<Json> found;
  const std::lock_guard lock(mutex_);
  for (int age = 0; age < kAges && found.size() < limit; ++age) {
    std::vector<Json> entries = read_entries(path(age));
    std::ranges::reverse(entries);
    for (Json& entry : entries) {
      if (found.size() >= limit) break;
      if (before == 0 || entry["sequence"].get<uint64_t>() < before) found.push_back(std::move(entry));
    }
  }
  return found;
}

}  // namespace pnfsrdma::console
