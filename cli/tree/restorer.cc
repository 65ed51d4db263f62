// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/restorer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "cli/clone/clone_memory.h"
#include "cli/tree/beside.h"
#include "cli/tree/content.h"
#include "cli/tree/make_alike.h"

namespace pnfsrdma::cli {
namespace {

// Those of clone_memory() that are no reason not to copy.
bool may_copy(int error) {
  return error == ENOTTY || error == EOPNOTSUPP || error == EFBIG || error == EXDEV;
}

// Null: there is none.
Result<std::optional<Entry>> find_if_there(const Tree& tree, int directory, const std::string& name) {
  auto found = tree.find(directory, name);
  if (found) return *std::move(found);
  if (found.error().number() == ENOENT) return std::nullopt;
  return std::unexpected(found.error());
}

}  // namespace

Restorer::Restorer(const Tree& snapshot, const Tree& living, Options options,
                   const std::atomic<bool>& interrupted, Progress progress)
    : snapshot_(snapshot),
      living_(living),
      options_(options),
      interrupted_(interrupted),
      progress_(std::move(progress)) {}

void Restorer::run() {
  left_.emplace_back();
  while (!left_.empty() && !interrupted_) {
    const std::string path = std::exchange(left_.back(), {});
    left_.pop_back();
    restore_directory(path);
  }
  // Those below first: their modes may keep the caller out.
  while (!unfinished_.empty() && !interrupted_) {
    finish_directory(unfinished_.back());
    unfinished_.pop_back();
  }
}

void Restorer::run_of(const std::string& source_name, const std::string& target_name) {
  const auto from = snapshot_.directory("");
  const auto to = living_.directory("");
  if (!from || !to) return trouble("", !from ? from.error() : to.error());
  const auto source = snapshot_.find(from->get(), source_name);
  if (!source) return trouble(source_name, source.error());
  const auto done = restore_entry({from->get(), to->get(), ""}, *source, target_name);
  if (!done) trouble(target_name, done.error());
}

void Restorer::trouble(const std::string& path, const Error& error) {
  restored_.problems.push_back({path.empty() ? "." : path, error.to_string()});
}

// --- directories ---

void Restorer::restore_directory(const std::string& path) {
  progress_(path);
  const auto source = snapshot_.directory(path);
  if (!source) return trouble(path, source.error());
  const auto target = living_.directory(path);
  if (!target) return trouble(path, target.error());
  // Nothing is new before it is known what is old.
  const auto old_names = Tree::names(source->get());
  if (!old_names) return trouble(path, old_names.error());
  const auto new_names = Tree::names(target->get());
  if (!new_names) return trouble(path, new_names.error());
  const auto from = snapshot_.find(source->get(), ".");
  const auto to = living_.find(target->get(), ".");
  if (!from || !to) return trouble(path, !from ? from.error() : to.error());
  if (to->status.device != living_.root().device)
    return trouble(path, Error(EXDEV, "another file system is mounted here"));

  const Here here{source->get(), target->get(), path};
  const auto aspects = differences(*from, *to, options_.content);
  bool unfinished = !aspects || aspects->any();
  for (const std::string& name : *new_names) {
    if (interrupted_) return;
    if (!std::ranges::binary_search(*old_names, name)) unfinished |= leave_or_remove(here, name);
  }
  for (const std::string& name : *old_names) {
    if (interrupted_) return;
    unfinished |= restore_name(here, name);
  }
  if (unfinished) unfinished_.push_back(path);
}

// True: the directory has changed.
bool Restorer::restore_name(const Here& here, const std::string& name) {
  const std::string path = joined(here.path, name);
  const auto source = snapshot_.find(here.source, name);
  if (!source) {
    trouble(path, source.error());
    return false;
  }
  const auto changed = source->status.is_directory() ? restore_subdirectory(here, *source)
                                                     : restore_entry(here, *source, name);
  if (!changed) trouble(path, changed.error());
  return !changed || *changed;
}

Result<bool> Restorer::restore_subdirectory(const Here& here, const Entry& source) {
  const std::string path = joined(here.path, source.name);
  TRY_ASSIGN(const auto present, find_if_there(living_, here.target, source.name));
  if (present && present->status.is_directory()) {
    left_.push_back(path);
    return false;
  }
  if (present && unlinkat(here.target, source.name.c_str(), 0) != 0) return fail(errno, "unlink");
  if (mkdirat(here.target, source.name.c_str(), 0700) != 0) return fail(errno, "mkdir");
  ++restored_.directories;
  left_.push_back(path);
  return true;
}

void Restorer::finish_directory(const std::string& path) {
  const auto source = snapshot_.directory(path);
  const auto target = living_.directory(path);
  if (!source || !target) return trouble(path, !source ? source.error() : target.error());
  const auto from = snapshot_.find(source->get(), ".");
  const auto to = living_.find(target->get(), ".");
  if (!from || !to) return trouble(path, !from ? from.error() : to.error());
  const auto aspects = differences(*from, *to, options_.content);
  if (aspects && !aspects->any()) return;
  const auto made = make_alike(*to, *from);
  if (!made) return trouble(path, made.error());
  if (aspects && (aspects->has(Aspect::kMode) || aspects->has(Aspect::kOwner) || aspects->has(Aspect::kAcl) ||
                  aspects->has(Aspect::kAttributes)))
    ++restored_.attributes;
}

// --- all else ---

Result<bool> Restorer::restore_entry(const Here& here, const Entry& source, const std::string& target_name) {
  TRY_ASSIGN(const auto present, find_if_there(living_, here.target, target_name));
  if (present && present->status.is_directory()) {
    if (!options_.remove_new) return fail(EISDIR, "a directory is in the way (--delete removes it)");
    TRY(remove(here, target_name));
  }
  const auto first = source.status.links > 1 ? linked_.find(source.status.inode) : linked_.end();
  if (first != linked_.end()) {
    if (present && present->status.inode == first->second.living) return false;
    return restore_link(here, first->second, target_name);
  }
  const bool replaced =
      !present || present->status.is_directory() || is_of_another(source.status, present->status);
  Aspects aspects;
  if (!replaced) {
    TRY_ASSIGN(aspects, differences(source, *present, options_.content));
  }
  // Only the very file gets other attributes: one of the same size and time may be somebody's own, who has it open.
  const bool anew = replaced || aspects.are_of_content() ||
                    (aspects.any() && !is_the_same_file(source.status, present->status));
  if (anew) {
    TRY(make_anew(here, source, target_name));
    ++restored_.files;
  } else if (aspects.any()) {
    TRY(make_alike(*present, source));
    ++restored_.attributes;
  }
  remember(source.status, here, target_name);
  return anew;
}

bool Restorer::is_the_same_file(const Status& source, const Status& target) {
  return source.inode == target.inode && source.user == target.user && source.group == target.group;
}

// Names that were two files and are one now.
bool Restorer::is_of_another(const Status& source, const Status& target) const {
  if (target.links < 2) return false;
  const auto known = snapshot_of_.find(target.inode);
  return known != snapshot_of_.end() && known->second != source.inode;
}

void Restorer::remember(const Status& source, const Here& here, const std::string& target_name) {
  const auto now = living_.find(here.target, target_name);
  if (!now || (source.links < 2 && now->status.links < 2)) return;
  linked_.try_emplace(source.inode, Linked{now->status.inode, joined(here.path, target_name)});
  snapshot_of_.try_emplace(now->status.inode, source.inode);
}

Result<bool> Restorer::restore_link(const Here& here, const Linked& first, const std::string& target_name) {
  TRY_ASSIGN(const FileDescriptor directory, living_.directory(directory_of(first.path)));
  const std::string first_name = name_of(first.path);
  auto beside = Beside::make(here.target, [&](const char* name) {
    return linkat(directory.get(), first_name.c_str(), here.target, name, 0);
  });
  if (!beside && beside.error().number() == EXDEV)
    return fail(EXDEV, "a link to " + first.path + " would cross the edge of a quota tree or of an export");
  TRY_ASSIGN(Beside made, std::move(beside));
  TRY_ASSIGN(const Entry linked, living_.find(here.target, made.name()));
  if (linked.status.inode != first.living) return fail(ESTALE, first.path + " was replaced meanwhile");
  TRY(made.become(target_name));
  ++restored_.links;
  return true;
}

Result<> Restorer::make_anew(const Here& here, const Entry& source, const std::string& target_name) {
  if (source.status.is_file()) return make_file(here, source, target_name);
  std::string link_target;
  if (source.status.type() == S_IFLNK) {
    TRY_ASSIGN(link_target, target_of(source));
  }
  TRY_ASSIGN(Beside made, Beside::make(here.target, [&](const char* name) {
               return source.status.type() == S_IFLNK
                          ? symlinkat(link_target.c_str(), here.target, name)
                          : mknodat(here.target, name, source.status.type() | 0600, source.status.special);
             }));
  TRY_ASSIGN(const Entry target, living_.find(here.target, made.name()));
  TRY(make_alike(target, source));
  return made.become(target_name);
}

Result<> Restorer::make_file(const Here& here, const Entry& source, const std::string& target_name) {
  TRY_ASSIGN(const FileDescriptor from, open_file(source));
  FileDescriptor to;
  TRY_ASSIGN(Beside made, Beside::make(here.target, [&](const char* name) {
               to = FileDescriptor(
                   openat(here.target, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
               return to ? 0 : -1;
             }));
  const auto refusal = source.status.size == 0 ? std::nullopt : clone_memory(from.get(), to.get());
  if (refusal && !may_copy(refusal->error)) return fail(refusal->error, "clone");
  if (refusal) {
    TRY(copy_bytes(from.get(), to.get(), source.status.size));
    if (fdatasync(to.get()) != 0) return fail(errno, "fdatasync");
  }
  // Whatever writes behind the closing of a file would change its time.
  to.reset();
  TRY_ASSIGN(const Entry target, living_.find(here.target, made.name()));
  TRY(make_alike(target, source));
  TRY(made.become(target_name));
  (refusal ? restored_.bytes_copied : restored_.bytes_shared) += source.status.size;
  return {};
}

// --- what the snapshot does not have ---

// True: the directory has changed.
bool Restorer::leave_or_remove(const Here& here, const std::string& name) {
  // What an interrupted run has left is no directory.
  const auto present = living_.find(here.target, name);
  const bool leftover = Beside::is_leftover(name) && present && !present->status.is_directory();
  if (!options_.remove_new && !leftover) {
    ++restored_.kept;
    return false;
  }
  if (const auto removed = remove(here, name); !removed) trouble(joined(here.path, name), removed.error());
  return true;
}

Result<> Restorer::remove(const Here& here, const std::string& name) {
  std::vector<std::string> left{joined(here.path, name)};
  TRY_ASSIGN(const Entry top, living_.find(here.target, name));
  if (!top.status.is_directory()) {
    if (unlinkat(here.target, name.c_str(), 0) != 0) return fail(errno, "unlink");
    ++restored_.removed;
    return {};
  }
  std::vector<std::string> emptied;
  while (!left.empty()) {
    if (interrupted_) return fail(EINTR, "remove");
    const std::string path = std::exchange(left.back(), {});
    left.pop_back();
    progress_(path);
    TRY_ASSIGN(const FileDescriptor directory, living_.directory(path));
    TRY_ASSIGN(const std::vector<std::string> names, Tree::names(directory.get()));
    TRY_ASSIGN(const Entry own, living_.find(directory.get(), "."));
    if (own.status.device != living_.root().device)
      return fail(EXDEV, path + ": another file system is mounted here");
    for (const std::string& each : names) {
      if (interrupted_) return fail(EINTR, "remove");
      TRY_ASSIGN(const Entry entry, living_.find(directory.get(), each));
      if (entry.status.is_directory()) {
        left.push_back(joined(path, each));
        continue;
      }
      if (unlinkat(directory.get(), each.c_str(), 0) != 0) return fail(errno, joined(path, each));
      ++restored_.removed;
    }
    emptied.push_back(path);
  }
  for (; !emptied.empty(); emptied.pop_back()) {
    TRY_ASSIGN(const FileDescriptor parent, living_.directory(directory_of(emptied.back())));
    if (unlinkat(parent.get(), name_of(emptied.back()).c_str(), AT_REMOVEDIR) != 0)
      return fail(errno, emptied.back());
    ++restored_.removed;
  }
  return {};
}

}  // namespace pnfsrdma::cli
