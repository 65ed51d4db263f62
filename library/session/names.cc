// SPDX-License-Identifier: Apache-2.0
#include "library/session/names.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "library/process.h"
#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::library::session {

using initiator::CompoundReply;
using nfs4::Status;

namespace {

constexpr int kLinksMax = 40;  // as the kernel
constexpr size_t kPathBytesMax = 4096;

// Appends the components of `text`; "." is none.
void append(std::string_view text, Path& path) {
  while (!text.empty()) {
    const size_t slash = std::min(text.find('/'), text.size());
    const std::string_view component = text.substr(0, slash);
    text.remove_prefix(std::min(slash + 1, text.size()));
    if (!component.empty() && component != ".") path.emplace_back(component);
  }
}

std::string_view last_component(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
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

bool Names::names_directory(std::string_view path) {
  const std::string_view last = last_component(path);
  return !path.empty() && (last.empty() || last == "." || last == "..");
}

Result<Path> Names::parse(std::string_view text) const {
  if (text.empty()) return fail(ENOENT, "the path is empty");
  if (text.size() >= kPathBytesMax) return fail(ENAMETOOLONG, "the path has 4096 bytes or more");
  Path path;
  append(text, path);
  return path;
}

Names::Operations Names::walk(const Path& path, size_t count) const {
  Operations operations = {nfs4::PutFileHandleArguments{root_}};
  for (size_t i = 0; i < count; ++i) operations.emplace_back(nfs4::LookupArguments{path[i]});
  return operations;
}

// PUTFH, and LOOKUP, GETATTR of each component.
Result<std::optional<size_t>> Names::find_link(const Path& path, size_t count,
                                               const initiator::Credential& who,
                                               bool last_is_directory) const {
  Operations operations = {nfs4::PutFileHandleArguments{root_}};
  for (size_t i = 0; i < count; ++i) {
    operations.emplace_back(nfs4::LookupArguments{path[i]});
    operations.emplace_back(nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kType)});
  }
  if (operations.size() + 1 > session_.operations_max())
    return fail(ENAMETOOLONG, fmt::format("the path has {} components", path.size()));
  TRY_ASSIGN(const CompoundReply types, session_.call(std::move(operations), who));
  for (size_t i = 0; i < count; ++i) {
    const auto* told = types.result<nfs4::GetAttributesResponse>(2 + 2 * i);
    if (told == nullptr) return std::unexpected(error_of(types, path));
    if (told->attributes.type == nfs4::FileType::kLink) return i;
    const bool is_directory = told->attributes.type == nfs4::FileType::kDirectory;
    if (!is_directory && (last_is_directory || i + 1 < count))
      return fail(ENOTDIR, fmt::format("{} is not a directory", path[i]));
  }
  return std::nullopt;
}

Result<Path> Names::replace_link(Path path, size_t at, const initiator::Credential& who) const {
  Operations operations = walk(path, at + 1);
  operations.emplace_back(nfs4::ReadLinkArguments{});
  TRY_ASSIGN(const CompoundReply read, session_.call(std::move(operations), who));
  const auto* link = read.result<nfs4::ReadLinkResponse>(at + 2);
  if (link == nullptr) return std::unexpected(error_of(read, path));
  const std::string_view target(link->link.c_str());
  if (target.starts_with('/')) {
    return fail(
        EXDEV, fmt::format("{}: the link leads to {}, a place of the host it was made on", path[at], target));
  }
  const auto place = path.begin() + static_cast<ptrdiff_t>(at);
  Path replaced(path.begin(), place);
  append(target, replaced);
  replaced.insert(replaced.end(), place + 1, path.end());
  return replaced;
}

// ".." leads to where the directory before it is, which a link may have led to elsewhere.
Result<Path> Names::without_parents(Path path, const initiator::Credential& who) const {
  for (int links = 0; links <= kLinksMax;) {
    const auto up = std::ranges::find(path, "..");
    if (up == path.end()) return path;
    if (up == path.begin()) return fail(EXDEV, "the path leads out of the directory connected to");
    TRY_ASSIGN(const auto link, find_link(path, static_cast<size_t>(up - path.begin()), who, true));
    if (link) {
      TRY_ASSIGN(path, replace_link(std::move(path), *link, who));
      ++links;
    } else {
      path.erase(up - 1, up + 1);
    }
  }
  return fail(ELOOP, "too many symbolic links");
}

// The first `path.size() - kept` components are walked.
Result<Names::Answer> Names::follow(Path path, size_t kept, const initiator::Credential& who, LastLink last,
                                    const Make& make) const {
  for (int links = 0; links <= kLinksMax; ++links) {
    TRY_ASSIGN(path, without_parents(std::move(path), who));
    if (path.size() < kept) return fail(EISDIR, "the path names the directory connected to");
    const size_t walked = path.size() - kept;
    Operations operations = walk(path, walked);
    Operations made = make(kept > 0 ? path.back() : std::string());
    operations.insert(operations.end(), std::make_move_iterator(made.begin()),
                      std::make_move_iterator(made.end()));
    if (operations.size() + 1 > session_.operations_max())
      return fail(ENAMETOOLONG, fmt::format("the path has {} components", path.size()));
    Answer answer{.at = 1 + walked, .asked_at = steady_now()};
    TRY_ASSIGN(answer.reply, session_.call(std::move(operations), who, {.cache_reply = true}));
    if (answer.reply.ok()) {
      answer.path = std::move(path);
      return answer;
    }
    if (!met_something_else(answer.reply)) return std::unexpected(error_of(answer.reply, path));
    const size_t may_be_links = last == LastLink::kFollow ? path.size() : walked;
    TRY_ASSIGN(const auto link, find_link(path, may_be_links, who, false));
    if (!link) return std::unexpected(error_of(answer.reply, path));
    TRY_ASSIGN(path, replace_link(std::move(path), *link, who));
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
    const size_t last = answer.path.size() - 1;
    TRY_ASSIGN(parsed, replace_link(std::move(answer.path), last, who));
  }
  return fail(ELOOP, "too many symbolic links");
}

// A link answers everything: so it has to say first what it is.
Result<Names::Place> Names::place_of(std::string_view path, const initiator::Credential& who) const {
  TRY_ASSIGN(Path parsed, parse(path));
  for (int links = 0; links <= kLinksMax; ++links) {
    Place place;
    TRY_ASSIGN(Answer answer,
               follow(std::move(parsed), 1, who, LastLink::kKeep, [&](const std::string& name) {
                 place.name = name;
                 return Operations{nfs4::GetFileHandleArguments{},
                                   nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kType)}};
               }));
    const auto* handle = answer.result<nfs4::GetFileHandleResponse>(0);
    const auto* type = answer.result<nfs4::GetAttributesResponse>(1);
    if (handle == nullptr || type == nullptr) return fail(EPROTO, "GETFH, GETATTR");
    place.directory = handle->object;
    if (type->attributes.type == nfs4::FileType::kDirectory) return place;
    const size_t last = answer.path.size() - 2;
    if (type->attributes.type != nfs4::FileType::kLink)
      return fail(ENOTDIR, fmt::format("{} is not a directory", answer.path[last]));
    TRY_ASSIGN(parsed, replace_link(std::move(answer.path), last, who));
  }
  return fail(ELOOP, "too many symbolic links");
}

Result<struct stat> Names::status(std::string_view path, const initiator::Credential& who) const {
  TRY_ASSIGN(const Answer answer, at(path, who, {nfs4::GetAttributesArguments{client::stat_attributes()}}));
  const auto* told = answer.result<nfs4::GetAttributesResponse>(0);
  if (told == nullptr) return fail(EPROTO, "GETATTR");
  const auto attributes = client::to_file_attributes(told->attributes);
  if (!attributes) return fail(nfs4::to_errno(attributes.error()), "GETATTR");
  if (names_directory(path) && !S_ISDIR(attributes->status.st_mode))
    return fail(ENOTDIR, fmt::format("{}: not a directory", path));
  return attributes->status;
}

// REMOVE takes both: what the name is has to be asked for.
Result<> Names::remove(std::string_view path, What what, const initiator::Credential& who) const {
  const std::string_view last = last_component(path);
  if (last == ".") return fail(what == What::kDirectory ? EINVAL : EISDIR, "the path ends with \".\"");
  if (last == "..") return fail(what == What::kDirectory ? ENOTEMPTY : EISDIR, "the path ends with \"..\"");
  TRY_ASSIGN(const Place place, place_of(path, who));
  TRY_ASSIGN(const CompoundReply type,
             session_.call({nfs4::PutFileHandleArguments{place.directory}, nfs4::LookupArguments{place.name},
                            nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kType)}},
                           who));
  const auto* told = type.result<nfs4::GetAttributesResponse>(2);
  if (told == nullptr) return std::unexpected(error_of(type, {place.name}));
  const bool is_directory = told->attributes.type == nfs4::FileType::kDirectory;
  if (is_directory && what == What::kFile) return fail(EISDIR, place.name);
  if (!is_directory && (what == What::kDirectory || names_directory(path))) return fail(ENOTDIR, place.name);
  TRY_ASSIGN(const CompoundReply reply,
             session_.call({nfs4::PutFileHandleArguments{place.directory}, nfs4::RemoveArguments{place.name}},
                           who, {.cache_reply = true}));
  // Sent again under a new session: the first one may have done it.
  if (reply.status == Status::kNoEnt && reply.repeated) return {};
  if (!reply.ok()) return std::unexpected(error_of(reply, {place.name}));
  return {};
}

nfs4::Attributes Names::mode_of_new(mode_t mode) const {
  const mode_t umask = process_umask();
  return umask_at_server_ ? client::mode_of_new(mode, umask) : client::mode_of_new(mode & ~umask);
}

Result<> Names::make_directory(std::string_view path, mode_t mode, const initiator::Credential& who) const {
  auto place = place_of(path, who);
  // It is there: the directory connected to.
  if (!place && place.error().number() == EISDIR) return fail(EEXIST, std::string(path));
  if (!place) return std::unexpected(std::move(place).error());
  nfs4::CreateArguments create;
  create.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  create.name = place->name;
  create.attributes = mode_of_new(mode);
  TRY_ASSIGN(const CompoundReply reply,
             session_.call({nfs4::PutFileHandleArguments{place->directory}, std::move(create)}, who,
                           {.cache_reply = true}));
  if (reply.status == Status::kExist && reply.repeated) return {};
  if (!reply.ok()) return std::unexpected(error_of(reply, {place->name}));
  return {};
}

Result<std::pair<Names::Place, Names::Place>> Names::places_of(std::string_view from, std::string_view to,
                                                               const initiator::Credential& who) const {
  for (const std::string_view path : {from, to}) {
    const std::string_view last = last_component(path);
    if (last == "." || last == "..") return fail(EBUSY, "a path ends with \".\" or \"..\"");
  }
  if (names_directory(from) || names_directory(to)) {
    TRY_ASSIGN(const struct stat status, this->status(from, who));
    if (!S_ISDIR(status.st_mode)) return fail(ENOTDIR, std::string(from));
  }
  TRY_ASSIGN(const Place source, place_of(from, who));
  TRY_ASSIGN(const Place target, place_of(to, who));
  return std::pair(source, target);
}

Result<> Names::rename(std::string_view from, std::string_view to, const initiator::Credential& who) const {
  TRY_ASSIGN(const auto places, places_of(from, to, who));
  const auto& [source, target] = places;
  Operations operations = {nfs4::PutFileHandleArguments{source.directory}, nfs4::SaveFileHandleArguments{},
                           nfs4::PutFileHandleArguments{target.directory},
                           nfs4::RenameArguments{source.name, target.name}};
  TRY_ASSIGN(const CompoundReply reply, session_.call(std::move(operations), who, {.cache_reply = true}));
  if (reply.status == Status::kNoEnt && reply.repeated) return {};
  if (!reply.ok()) return std::unexpected(error_of(reply, {source.name}));
  return {};
}

}  // namespace pnfsrdma::library::session
