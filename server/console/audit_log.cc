// SPDX-License-Identifier: Apache-2.0
#include "server/console/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>

namespace pnfsrdma::console {

namespace {

constexpr std::string_view kSequence = "{\"sequence\":";

// 0: no line of ours.
uint64_t sequence_of(std::string_view line) {
  uint64_t sequence = 0;
  if (line.starts_with(kSequence) && line.ends_with('}'))
    std::from_chars(line.data() + kSequence.size(), line.data() + line.size(), sequence);
  return sequence;
}

// The lines of a file from its last to its first, until `look` answers false. Only those asked for are
// parsed: the whole log is 40 MiB.
void read_backwards(const std::string& path, const std::function<bool(uint64_t, std::string_view)>& look) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::string_view left = text;
  while (!left.empty()) {
    if (left.ends_with('\n')) left.remove_suffix(1);
    const size_t begin = left.rfind('\n') + 1;  // npos + 1: the first line
    const std::string_view line = left.substr(begin);
    left = left.substr(0, begin);
    if (const uint64_t sequence = sequence_of(line); sequence != 0 && !look(sequence, line)) return;
  }
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
    read_backwards(log->path(age), [&](uint64_t sequence, std::string_view) {
      log->next_ = sequence + 1;
      return false;
    });
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
  if (written == static_cast<ssize_t>(line.size()) && fdatasync(file_.get()) == 0) {
    size_ += line.size();
    return next_++;
  }
  if (written >= 0 && written < static_cast<ssize_t>(line.size())) errno = ENOSPC;
  const Error why = Error::from_errno("writing " + path(0));
  // A piece of a line would take the next one with it.
  if (written > 0 && ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) return std::unexpected(why);
  return std::unexpected(why);
}

Result<std::vector<Json>> AuditLog::newest(uint64_t before, size_t limit) {
  std::vector<Json> found;
  const std::lock_guard lock(mutex_);
  for (int age = 0; age < kAges && found.size() < limit; ++age) {
    read_backwards(path(age), [&](uint64_t sequence, std::string_view line) {
      if (before != 0 && sequence >= before) return true;
      Json entry = Json::parse(line, nullptr, false);
      if (entry.is_object()) found.push_back(std::move(entry));
      return found.size() < limit;
    });
  }
  return found;
}

}  // namespace pnfsrdma::console
