// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/copy_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "server/mds/log/log_keys.h"
#include "shared/base/bytes.h"

namespace pnfsrdma::mds {
namespace {

constexpr std::string_view kGreetingLine = "pnfsrdma-metadata 1";
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr size_t kLineBytesMax = 512;

bool good_part(std::string_view part) {
  return !part.empty() && part.front() != '.' && std::ranges::all_of(part, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  });
}

// It stays below the directory.
bool good_name(std::string_view name) {
  for (;;) {
    const size_t end = std::min(name.find('/'), name.size());
    if (!good_part(name.substr(0, end))) return false;
    if (end == name.size()) return true;
    name.remove_prefix(end + 1);
  }
}

Result<> sync_directory(const std::string& path) {
  const FileDescriptor directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || fsync(directory.get()) != 0) return std::unexpected(Error::from_errno("syncing " + path));
  return {};
}

std::unexpected<Error> no_stream(const std::string& line) {
  return fail(EPROTO, "this is no copy of metadata: \"" + line.substr(0, 80) + "\"");
}

}  // namespace

// SHA-256 of a file, as it passes by.
class CopyDigest {
 public:
  CopyDigest() { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  // Hexadecimal. Starts anew.
  std::string take() {
    std::array<std::byte, 32> digest{};
    EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
    return to_hex(digest);
  }

 private:
  Owned<EVP_MD_CTX, EVP_MD_CTX_free> context_{EVP_MD_CTX_new()};
};

// --- CopyWriter

CopyWriter::CopyWriter(std::string directory, std::vector<std::string> names)
    : directory_(std::move(directory)), names_(std::move(names)), digest_(std::make_unique<CopyDigest>()) {}

CopyWriter::~CopyWriter() = default;

Result<std::unique_ptr<CopyWriter>> CopyWriter::open(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::recursive_directory_iterator files(directory, error);
  for (; !error && files != std::filesystem::recursive_directory_iterator(); files.increment(error)) {
    if (files->is_regular_file(error))
      names.push_back(files->path().lexically_relative(directory).generic_string());
  }
  if (error) return fail(error.value(), "reading " + directory);
  std::ranges::sort(names);
  return std::unique_ptr<CopyWriter>(new CopyWriter(directory, std::move(names)));
}

Result<std::string> CopyWriter::begin_file() {
  const std::string path = directory_ + "/" + names_[next_];
  file_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file_ || fstat(file_.get(), &status) != 0)
    return std::unexpected(Error::from_errno("opening " + path));
  left_ = static_cast<uint64_t>(status.st_size);
  return fmt::format("file {} {}\n", left_, names_[next_]);
}

Result<std::string> CopyWriter::next() {
  if (!std::exchange(begun_, true)) return std::string(kGreetingLine) + "\n";
  if (!file_ && next_ < names_.size()) return begin_file();
  if (!file_) return std::exchange(ended_, true) ? std::string() : fmt::format("end {}\n", names_.size());
  if (left_ == 0) {
    file_ = FileDescriptor();
    ++next_;
    return "sha256 " + digest_->take() + "\n";
  }
  std::string piece(std::min<uint64_t>(left_, kPieceBytes), '\0');
  const ssize_t got = read(file_.get(), piece.data(), piece.size());
  if (got < 0) return std::unexpected(Error::from_errno("reading " + directory_ + "/" + names_[next_]));
  if (got == 0) return fail(EIO, directory_ + "/" + names_[next_] + " became shorter");
  piece.resize(static_cast<size_t>(got));
  left_ -= piece.size();
  digest_->add(piece);
  return piece;
}

// --- CopyReader

CopyReader::CopyReader(std::string directory)
    : directory_(std::move(directory)), digest_(std::make_unique<CopyDigest>()) {}

CopyReader::~CopyReader() = default;

Result<> CopyReader::take(std::string_view bytes) {
  while (!bytes.empty()) {
    if (next_ == Next::kBytes) {
      const size_t count = std::min<uint64_t>(left_, bytes.size());
      TRY(take_bytes(bytes.substr(0, count)));
      bytes.remove_prefix(count);
      continue;
    }
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    line_ += bytes.substr(0, end);
    if (line_.size() > kLineBytesMax) return no_stream(line_);
    bytes.remove_prefix(end);
    if (bytes.empty()) return {};
    bytes.remove_prefix(1);
    TRY(take_line(std::exchange(line_, {})));
  }
  return {};
}

Result<> CopyReader::take_line(const std::string& line) {
  const std::string_view text = line;
  if (next_ == Next::kGreeting && text == kGreetingLine) {
    next_ = Next::kFile;
    return {};
  }
  if (next_ == Next::kFile && text.starts_with("file ")) return begin_file(text.substr(5));
  if (next_ == Next::kDigest && text.starts_with("sha256 ")) return end_file(text.substr(7));
  if (next_ == Next::kFile && text == fmt::format("end {}", files_)) {
    next_ = Next::kNothing;
    return {};
  }
  return no_stream(line);
}

Result<> CopyReader::begin_file(std::string_view size_and_name) {
  const size_t space = size_and_name.find(' ');
  const auto size = parse_decimal(size_and_name.substr(0, space));
  if (space == std::string_view::npos || !size) return no_stream(std::string(size_and_name));
  name_ = size_and_name.substr(space + 1);
  if (!good_name(name_)) return no_stream(name_);
  const std::string path = directory_ + "/" + name_;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return fail(error.value(), "making the directory of " + path);
  file_ = FileDescriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640));
  if (!file_) return std::unexpected(Error::from_errno("making " + path));
  left_ = *size;
  next_ = left_ > 0 ? Next::kBytes : Next::kDigest;
  return {};
}

Result<> CopyReader::take_bytes(std::string_view bytes) {
  digest_->add(bytes);
  left_ -= bytes.size();
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t put = write(file_.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return std::unexpected(Error::from_errno("writing " + directory_ + "/" + name_));
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  if (left_ == 0) next_ = Next::kDigest;
  return {};
}

Result<> CopyReader::end_file(std::string_view digest) {
  if (digest_->take() != digest) return fail(EBADMSG, name_ + " is not what was sent");
  if (fsync(file_.get()) != 0)
    return std::unexpected(Error::from_errno("syncing " + directory_ + "/" + name_));
  file_ = FileDescriptor();
  ++files_;
  next_ = Next::kFile;
  return {};
}

Result<> CopyReader::end() {
  if (next_ != Next::kNothing) return fail(EPROTO, "the copy ended too early");
  std::error_code error;
  std::filesystem::recursive_directory_iterator entries(directory_, error);
  for (; !error && entries != std::filesystem::recursive_directory_iterator(); entries.increment(error)) {
    if (entries->is_directory(error)) TRY(sync_directory(entries->path()));
  }
  if (error) return fail(error.value(), "reading " + directory_);
  return sync_directory(directory_);
}

}  // namespace pnfsrdma::mds
