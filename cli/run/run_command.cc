// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_command.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace pnfsrdma::cli {
namespace {

constexpr const char* kName = "libpnfsrdma-preload.so";

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// "": nowhere.
std::string find_library() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "";
  const auto prefix = self.parent_path().parent_path();
  // As it was built; as it is installed; as an rpm installs it.
  for (const char* folder : {"lib", PNFSRDMA_LIBRARIES "/pnfsrdma", "lib64/pnfsrdma", "lib/pnfsrdma"}) {
    const auto path = prefix / folder / kName;
    if (::access(path.c_str(), R_OK) == 0) return path;
  }
  return "";
}

// As execvp(3) finds it; "": nowhere.
std::string find_program(const std::string& word) {
  if (word.find('/') != std::string::npos) return word;
  std::string path = variable("PATH");
  if (path.empty()) path = "/bin:/usr/bin";
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    std::string candidate = path.substr(at, end - at);
    candidate = (candidate.empty() ? "." : candidate) + "/" + word;
    struct stat status{};
    if (::access(candidate.c_str(), X_OK) == 0 && ::stat(candidate.c_str(), &status) == 0 &&
        S_ISREG(status.st_mode))
      return candidate;
    at = end + 1;
  }
  return "";
}

bool is_static(std::ifstream& file, const Elf64_Ehdr& header) {
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + uint64_t{i} * header.e_phentsize));
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return false;
    if (segment.p_type == PT_INTERP) return false;
  }
  return true;
}

// "#!/usr/bin/env python3": what is started first.
std::string interpreter_of(const std::string& line) {
  const size_t begin = line.find_first_not_of(" \t", 2);
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_first_of(" \t\n", begin) - begin);
}

}  // namespace

std::optional<std::string> why_not_preloaded(const std::string& path) {
  std::string at = path;
  for (int depth = 0; depth < 4; ++depth) {
    struct stat status{};
    if (::stat(at.c_str(), &status) != 0) return std::nullopt;
    if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid()) return at + " is set-user-id";
    if ((status.st_mode & S_ISGID) != 0 && status.st_gid != ::getgid()) return at + " is set-group-id";
    std::ifstream file(at, std::ios::binary);
    Elf64_Ehdr header{};
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    if (file.gcount() == sizeof header && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0) {
      if (header.e_ident[EI_CLASS] != ELFCLASS64) return at + " is a program of 32 bits";
      return is_static(file, header) ? std::optional(at + " is linked statically") : std::nullopt;
    }
    if (file.gcount() < 3 || std::memcmp(header.e_ident, "#!", 2) != 0) return std::nullopt;
    file.clear();
    file.seekg(0);
    std::string line;
    std::getline(file, line);
    at = interpreter_of(line);
  }
  return std::nullopt;
}

ExitCode run_program(const RunOptions& options, Output& output) {
  const auto refuse = [&](ExitCode code, std::string title, std::string fix = {}) {
    return output.complain({code, std::move(title), {}, std::move(fix)});
  };
  const std::string library = options.library.empty() ? find_library() : options.library;
  if (library.empty() || ::access(library.c_str(), R_OK) != 0)
    return refuse(
        ExitCode::kCannotRun,
        library.empty() ? std::string(kName) + " is not installed" : library + ": " + std::strerror(errno),
        "install libpnfsrdma0 (pnfsrdma-libs), or say --library PATH");
  const std::string absolute = std::filesystem::absolute(library);
  if (absolute.find_first_of(" :") != std::string::npos)
    return refuse(ExitCode::kCannotRun, absolute + ": LD_PRELOAD takes no path with a space or a colon");
  const std::string program = find_program(options.words.front());
  if (program.empty() || (::access(program.c_str(), F_OK) != 0 && errno == ENOENT))
    return refuse(ExitCode::kNoProgram, options.words.front() + ": no such program");
  if (const auto why = why_not_preloaded(program))
    output.note("pnfsrdma: " + *why + ": it will do without the library");
  const std::string before = variable("LD_PRELOAD");
  (void)::setenv("LD_PRELOAD", (before.empty() ? absolute : absolute + ":" + before).c_str(), 1);
  if (options.statistics) (void)::setenv("PNFSRDMA_PRELOAD_STATISTICS", "1", 1);
  if (options.kernel_reads) (void)::setenv("PNFSRDMA_PRELOAD_READS", "kernel", 1);
  std::vector<char*> words;
  for (const std::string& word : options.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  (void)::execv(program.c_str(), words.data());
  const int error = errno;
  return refuse(error == ENOENT ? ExitCode::kNoProgram : ExitCode::kCannotRun,
                program + ": " + std::strerror(error));
}

}  // namespace pnfsrdma::cli
