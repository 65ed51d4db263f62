// SPDX-License-Identifier: Apache-2.0
#include "library/names.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "library/process.h"
#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::library {

using initiator::CompoundReply;
using nfs4::Status;

namespace {

constexpr int kLinksMax = 40;  // as the kernel
constexpr size_t kPathBytesMax = 4096;

// Appends the components of `text`: "." is dropped, ".." takes the last one away. EXDEV: it leads out of the
// directory connected to.
Result<> append(std::string_view text, Path& path) {
  while (!text.empty()) {
    const size_t slash = std::min(text.find('/'), text.size());
    const std::string_view component = text.substr(0, slash);
    text.remove_prefix(std::min(slash + 1, text.size()));
    if (component.empty() || component == ".") continue;
    if (component == "..") {
      if (path.empty()) return fail(EXDEV, "the path leads out of the directory connected to");
      path.pop_back();
    } else {
      path.emplace_back(component);
    }
  }
  return {};
}

// Does the answer tell that something on the way was no directory?
bool met_something_else(const CompoundReply& reply) {
  return reply.status == Status::kSymlink || reply.status == Status::kNotDir;
}

Error error_of(const CompoundReply& reply, const Path& path) {
  std::string text;
  for (const std::string& component : path) text += "/" + component;
  if (text.empty()) text = "/";
  return {nfs4::to_errno(reply.status),
          fmt::format("{}: the server answers {}", text, nfs4::to_string(reply.status))};
}

}  // namespace

Result<Path> Names::parse(std::string_view text) const {
  if (text.empty()) return fail(ENOENT, "the path is empty");
  if (text.size() >= kPathBytesMax) return fail(ENAMETOOLONG, "the path has 4096 bytes or more");
  Path path;
  TRY(append(text, path));
  // What stands around the walk is at most eight operations.
  if (path.size() + 8 > session_.operations_max())
    return fail(ENAMETOOLONG, fmt::format("the path has {} components", path.size()));
  return path;
}

Names::Operations Names::walk(const Path& path, size_t count) const {
  Operations operations = {nfs4::PutFileHandleArguments{root_}};
  for (size_t i = 0; i < count; ++i) operations.emplace_back(nfs4::LookupArguments{path[i]});
  return operations;
}

Result<Path> Names::without_link(Path path, size_t count, const initiator::Credential& who) const {
  Operations operations = {nfs4::PutFileHandleArguments{root_}};
  for (size_t i = 0; i < count; ++i) {
    operations.emplace_back(nfs4::LookupArguments{path[i]});
    operations.emplace_back(nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kType)});
  }
  TRY_ASSIGN(const CompoundReply types, session_.call(std::move(operations), who));
  size_t at = 0;
  for (; at < count; ++at) {
    const auto* told = types.result<nfs4::GetAttributesResponse>(2 + 2 * at);
    if (told == nullptr) return fail(EINVAL, "no link");
    if (told->attributes.type == nfs4::FileType::kLink) break;
  }
  if (at == count) return fail(EINVAL, "no link");
  operations = walk(path, at + 1);
  operations.emplace_back(nfs4::ReadLinkArguments{});
  TRY_ASSIGN(const CompoundReply read, session_.call(std::move(operations), who));
  const auto* link = read.result<nfs4::ReadLinkResponse>(at + 2);
  if (link == nullptr) return std::unexpected(error_of(read, path));
  const std::string_view target(link->link.c_str());
  if (target.starts_with('/'))
    return fail(
        EXDEV, fmt::format("{}: the link leads to {}, a place of the host it was made on", path[at], target));
  Path replaced(path.begin(), path.begin() + static_cast<ptrdiff_t>(at));
  TRY(append(target, replaced));
  replaced.insert(replaced.end(), path.begin() + static_cast<ptrdiff_t>(at) + 1, path.end());
  return replaced;
}

// The first `path.size() - kept` components are walked.
Result<Names::Answer> Names::follow(Path path, size_t kept, const initiator::Credential& who, LastLink last,
                                    const Make& make) const {
  for (int links = 0; links <= kLinksMax; ++links) {
    if (path.size() < kept) return fail(EISDIR, "the path names the directory connected to");
    const size_t walked = path.size() - kept;
    Operations operations = walk(path, walked);
    Operations made = make(kept > 0 ? path.back() : std::string());
    operations.insert(operations.end(), std::make_move_iterator(made.begin()),
                      std::make_move_iterator(made.end()));
    Answer answer{.at = 1 + walked, .asked_at = steady_now()};
    TRY_ASSIGN(answer.reply, session_.call(std::move(operations), who, {.cache_reply = true}));
    if (answer.reply.ok()) return answer;
    if (!met_something_else(answer.reply)) return std::unexpected(error_of(answer.reply, path));
    const size_t may_be_links = last == LastLink::kFollow ? path.size() : walked;
    auto without = without_link(path, may_be_links, who);
    if (!without && without.error().number() == EINVAL) return std::unexpected(error_of(answer.reply, path));
    if (!without) return std::unexpected(std::move(without).error());
    path = *std::move(without);
  }
  return fail(ELOOP, "too many symbolic links");
}

Result<Names::Answer> Names::in_directory(std::string_view path, const initiator::Credential& who,
                                          LastLink last, const Make& make) const {
  TRY_ASSIGN(Path parsed, parse(path));
  return follow(std::move(parsed), 1, who, last, make);
}

Result<Names::Answer> Names::at(std::string_view path, const initiator::Credential& who,
                                Operations operations) const {
  TRY_ASSIGN(Path parsed, parse(path));
  // A link at its end answers everything: so it has to say first that it is none.
  for (int links = 0; links <= kLinksMax; ++links) {
    TRY_ASSIGN(Answer answer, follow(parsed, 0, who, LastLink::kFollow, [&](const std::string&) {
                 Operations all = {nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kType)}};
                 all.insert(all.end(), operations.begin(), operations.end());
                 return all;
               }));
    const auto* told = answer.result<nfs4::GetAttributesResponse>(0);
    if (told == nullptr) return fail(EPROTO, "GETATTR");
    ++answer.at;
    if (told->attributes.type != nfs4::FileType::kLink) return answer;
    TRY_ASSIGN(parsed, without_link(parsed, parsed.size(), who));
  }
  return fail(ELOOP, "too many symbolic links");
}

Result<std::pair<nfs4::FileHandle, std::string>> Names::parent(std::string_view path,
                                                               const initiator::Credential& who) const {
  std::string last;
  TRY_ASSIGN(const Answer answer, in_directory(path, who, LastLink::kKeep, [&](const std::string& name) {
               last = name;
               return Operations{nfs4::GetFileHandleArguments{}};
             }));
  const auto* handle = answer.result<nfs4::GetFileHandleResponse>(0);
  if (handle == nullptr) return fail(EPROTO, "GETFH");
  return std::pair(handle->object, last);
}

Result<struct stat> Names::status(std::string_view path, const initiator::Credential& who) const {
  TRY_ASSIGN(const Answer answer, at(path, who, {nfs4::GetAttributesArguments{client::stat_attributes()}}));
  const auto* told = answer.result<nfs4::GetAttributesResponse>(0);
  if (told == nullptr) return fail(EPROTO, "GETATTR");
  const auto attributes = client::to_file_attributes(told->attributes);
  if (!attributes) return fail(nfs4::to_errno(attributes.error()), "GETATTR");
  return attributes->status;
}

// REMOVE takes both: what the name is has to be asked for.
Result<> Names::remove(std::string_view path, What what, const initiator::Credential& who) const {
  TRY_ASSIGN(const auto target, parent(path, who));
  const auto& [directory, name] = target;
  TRY_ASSIGN(const CompoundReply type,
             session_.call({nfs4::PutFileHandleArguments{directory}, nfs4::LookupArguments{name},
                            nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kType)}},
                           who));
  const auto* told = type.result<nfs4::GetAttributesResponse>(2);
  if (told == nullptr) return std::unexpected(error_of(type, {name}));
  const bool is_directory = told->attributes.type == nfs4::FileType::kDirectory;
  if (is_directory && what == What::kFile) return fail(EISDIR, name);
  if (!is_directory && what == What::kDirectory) return fail(ENOTDIR, name);
  TRY_ASSIGN(const CompoundReply reply,
             session_.call({nfs4::PutFileHandleArguments{directory}, nfs4::RemoveArguments{name}}, who,
                           {.cache_reply = true}));
  // Sent again under a new session: the first one may have done it.
  if (reply.status == Status::kNoEnt && reply.repeated) return {};
  if (!reply.ok()) return std::unexpected(error_of(reply, {name}));
  return {};
}

Result<> Names::make_directory(std::string_view path, mode_t mode, const initiator::Credential& who) const {
  TRY(in_directory(path, who, LastLink::kKeep, [&](const std::string& name) {
    nfs4::CreateArguments create;
    create.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
    create.name = name;
    create.attributes = client::mode_of_new(mode & ~process_umask());
    return Operations{std::move(create)};
  }));
  return {};
}

Result<> Names::rename(std::string_view from, std::string_view to, const initiator::Credential& who) const {
  TRY_ASSIGN(const auto source, parent(from, who));
  TRY_ASSIGN(const auto target, parent(to, who));
  Operations operations = {nfs4::PutFileHandleArguments{source.first}, nfs4::SaveFileHandleArguments{},
                           nfs4::PutFileHandleArguments{target.first},
                           nfs4::RenameArguments{source.second, target.second}};
  TRY_ASSIGN(const CompoundReply reply, session_.call(std::move(operations), who, {.cache_reply = true}));
  // Sent again under a new session: the first one may have done it.
  if (reply.status == Status::kNoEnt && reply.repeated) return {};
  if (!reply.ok()) return std::unexpected(error_of(reply, {source.second}));
  return {};
}

}  // namespace pnfsrdma::library
