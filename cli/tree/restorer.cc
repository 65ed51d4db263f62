// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/restorer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "cli/clone/clone_memory.h"
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

std::unexpected<Error> in_use(const std::string& path) {
  return fail(EBUSY, path + " is an export of its own, or has one in it, or something is mounted there");
}

}  // namespace

Restorer::Restorer(const Tree& snapshot, const Tree& living, Options options,
                   const std::atomic<bool>& interrupted, Progress progress)
    : snapshot_(snapshot),
      living_(living),
      options_(options),
      interrupted_(interrupted),
      progress_(std::move(progress)),
      for_others_(geteuid() == 0) {}

void Restorer::run() {
  left_.emplace_back();
  while (!left_.empty() && !interrupted_) {
    const Left left = std::exchange(left_.back(), {});
    left_.pop_back();
    restore_directory(left);
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
  // What the mount remembers of it may be older than the snapshot.
  static_cast<void>(living_.find_now(to->get(), target_name));
  const auto done = restore_entry({from->get(), to->get(), ""}, *source, target_name);
  if (!done) trouble(target_name, source->status, done.error());
}

void Restorer::trouble(const std::string& path, const Error& error) {
  restored_.problems.push_back({path.empty() ? "." : path, error.to_string()});
}

void Restorer::trouble(const std::string& path, const Status& of, const Error& error) {
  if (error.number() == EDQUOT && !restored_.over_quota)
    restored_.over_quota = OverQuota{.path = path, .user = of.user, .group = of.group};
  trouble(path, error);
}

// --- directories ---

void Restorer::restore_directory(const Left& left) {
  const std::string& path = left.path;
  progress_(path);
  const auto source = snapshot_.directory(path);
  if (!source) return trouble(path, source.error());
  // Nothing is new, and nothing is made, before it is known what is old.
  const auto old_names = Tree::names(source->get());
  if (!old_names) return trouble(path, old_names.error());
  const auto from = snapshot_.find(source->get(), ".");
  if (!from) return trouble(path, from.error());
  const auto target = left.present ? enter_directory(path, *from) : make_directory(path, *from);
  if (!target) return trouble(path, from->status, target.error());
  const auto new_names = Tree::names(target->get());
  if (!new_names) return trouble(path, new_names.error());
  const auto to = living_.find(target->get(), ".");
  if (!to) return trouble(path, to.error());
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
  if (unfinished) unfinished_.push_back({.path = path, .inode = to->status.inode});
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
  if (!changed) trouble(path, source->status, changed.error());
  return !changed || *changed;
}

Result<bool> Restorer::restore_subdirectory(const Here& here, const Entry& source) {
  TRY_ASSIGN(const auto present, find_if_there(living_, here.target, source.name));
  const bool is_there = present && present->status.is_directory();
  left_.push_back({.path = joined(here.path, source.name), .present = is_there});
  return !is_there;
}

// Another directory than the old one may have its name: whoever may rename here could have moved somebody else's there.
// It gets no other rights, and nothing is put into it that its owner could not have read in the old one.
Result<FileDescriptor> Restorer::enter_directory(const std::string& path, const Entry& source) {
  TRY_ASSIGN(FileDescriptor directory, living_.directory(path));
  if (!for_others_) return directory;
  TRY_ASSIGN(const Entry present, living_.find(directory.get(), "."));
  if (present.status.inode == source.status.inode) return directory;
  TRY_ASSIGN(const Aspects aspects, differences(source, present, options_.content));
  if (!aspects.has(Aspect::kOwner) && !aspects.has(Aspect::kMode) && !aspects.has(Aspect::kAcl))
    return directory;
  TRY_ASSIGN(const std::vector<std::string> names, Tree::names(directory.get()));
  if (names.empty()) return path.empty() ? std::move(directory) : make_directory(path, source);
  return fail(
      EEXIST,
      "another directory has this name, with another owner, mode or ACL: move it away, or give it those "
      "that the snapshot's has");
}

Result<FileDescriptor> Restorer::make_directory(const std::string& path, const Entry& source) {
  TRY_ASSIGN(const FileDescriptor parent, living_.directory(directory_of(path)));
  const std::string name = name_of(path);
  const auto make = [&](const char* as) { return mkdirat(parent.get(), as, 0700); };
  TRY_ASSIGN(const auto in_the_way, find_if_there(living_, parent.get(), name));
  if (in_the_way) {
    TRY_ASSIGN(Beside made, Beside::make(parent.get(), make));
    TRY(made.exchange(name));
  } else if (make(name.c_str()) != 0) {
    return fail(errno, "mkdir");
  }
  ++restored_.directories;
  TRY_ASSIGN(FileDescriptor directory, living_.directory(path));
  if (!for_others_) return directory;  // a mode may keep the caller out
  // At once: the next run, if this one is interrupted, takes it for what it is.
  TRY_ASSIGN(const Entry made, living_.find(directory.get(), "."));
  TRY_ASSIGN(const Held held, living_.hold(made));
  TRY_ASSIGN(const std::vector<std::string> names, Tree::names(directory.get()));
  if (!names.empty()) return fail(ESTALE, "it was replaced meanwhile");
  TRY(make_alike(held, source));
  return directory;
}

void Restorer::finish_directory(const Unfinished& unfinished) {
  const std::string& path = unfinished.path;
  const auto source = snapshot_.directory(path);
  const auto target = living_.directory(path);
  if (!source || !target) return trouble(path, !source ? source.error() : target.error());
  const auto from = snapshot_.find(source->get(), ".");
  const auto to = living_.find(target->get(), ".");
  if (!from || !to) return trouble(path, !from ? from.error() : to.error());
  if (to->status.inode != unfinished.inode) return trouble(path, Error(ESTALE, "it was replaced meanwhile"));
  const auto aspects = differences(*from, *to, options_.content);
  if (aspects && !aspects->any()) return;
  const auto held = living_.hold(*to);
  const auto made = held ? make_alike(*held, *from) : std::unexpected(held.error());
  if (!made) return trouble(path, from->status, made.error());
  if (aspects && (aspects->has(Aspect::kMode) || aspects->has(Aspect::kOwner) || aspects->has(Aspect::kAcl) ||
                  aspects->has(Aspect::kAttributes)))
    ++restored_.attributes;
}

// --- all else ---

Result<bool> Restorer::restore_entry(const Here& here, const Entry& source, const std::string& target_name) {
  TRY_ASSIGN(const auto present, find_if_there(living_, here.target, target_name));
  if (present && present->status.is_directory()) {
    if (!options_.remove_new) return fail(EISDIR, "a directory is in the way (--delete removes it)");
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
  // Not what has the name now: whoever may rename here could have exchanged it.
  Status living;
  if (anew) {
    TRY_ASSIGN(living, make_anew(here, source, target_name));
    ++restored_.files;
  } else {
    living = present->status;
  }
  if (!anew && aspects.any()) {
    TRY_ASSIGN(const Held held, living_.hold(*present));
    TRY(make_alike(held, source));
    ++restored_.attributes;
  }
  remember(source.status, living, joined(here.path, target_name));
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

void Restorer::remember(const Status& source, const Status& living, const std::string& path) {
  if (source.links < 2 && living.links < 2) return;
  linked_.try_emplace(source.inode, Linked{living.inode, path});
  snapshot_of_.try_emplace(living.inode, source.inode);
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
  TRY(place(here, made, target_name));
  ++restored_.links;
  return true;
}

Result<Status> Restorer::make_anew(const Here& here, const Entry& source, const std::string& target_name) {
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
  TRY_ASSIGN(const Held held, living_.hold(target));
  // Whoever may rename here could have exchanged it for another name of something else.
  const Status& is = held.status;
  if (is.type() != source.status.type() || is.special != source.status.special || is.links != 1)
    return fail(ESTALE, "it was replaced meanwhile");
  TRY(make_alike(held, source));
  TRY(place(here, made, target_name));
  return is;
}

Result<Status> Restorer::make_file(const Here& here, const Entry& source, const std::string& target_name) {
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
  TRY_ASSIGN(const Held held, living_.hold(to.get()));
  // Whatever writes behind the closing of a file would change its time.
  to.reset();
  TRY(make_alike(held, source));
  TRY(place(here, made, target_name));
  (refusal ? restored_.bytes_copied : restored_.bytes_shared) += source.status.size;
  return held.status;
}

// A directory that is in the way goes when what is to be there has its name.
Result<> Restorer::place(const Here& here, Beside& made, const std::string& target_name) {
  const auto became = made.become(target_name);
  if (became || became.error().number() != EISDIR || !options_.remove_new) return became;
  if (const auto all = directories_in(joined(here.path, target_name)); !all)
    return std::unexpected(all.error());
  TRY(made.exchange(target_name));
  if (const auto removed = remove(here, made.name()); !removed)
    trouble(joined(here.path, made.name()), removed.error());
  return {};
}

// --- what the snapshot does not have ---

// True: the directory has changed.
bool Restorer::leave_or_remove(const Here& here, const std::string& name) {
  // What an interrupted run has left: a directory that was being made, or what was in the way of one.
  if (Beside::is_leftover(name) && unlinkat(here.target, name.c_str(), AT_REMOVEDIR) == 0) {
    ++restored_.removed;
    return true;
  }
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
  TRY_ASSIGN(const Entry top, living_.find(here.target, name));
  if (!top.status.is_directory()) {
    if (unlinkat(here.target, name.c_str(), 0) != 0) return fail(errno, "unlink");
    ++restored_.removed;
    return {};
  }
  TRY_ASSIGN(std::vector<std::string> left, directories_in(joined(here.path, name)));
  for (; !left.empty(); left.pop_back()) TRY(remove_directory(left.back()));
  return {};
}

// All that is in it has gone, or is no directory.
Result<> Restorer::remove_directory(const std::string& path) {
  progress_(path);
  TRY_ASSIGN(const FileDescriptor directory, living_.directory(path));
  TRY_ASSIGN(const std::vector<std::string> names, Tree::names(directory.get()));
  for (const std::string& each : names) {
    if (interrupted_) return fail(EINTR, "remove");
    if (unlinkat(directory.get(), each.c_str(), 0) != 0) return fail(errno, joined(path, each));
    ++restored_.removed;
  }
  TRY_ASSIGN(const FileDescriptor parent, living_.directory(directory_of(path)));
  if (unlinkat(parent.get(), name_of(path).c_str(), AT_REMOVEDIR) != 0)
    return errno == EBUSY ? in_use(path) : fail(errno, path);
  ++restored_.removed;
  return {};
}

// Itself first, each in front of what is in it. Nothing goes unless all of it can be looked at and may go.
Result<std::vector<std::string>> Restorer::directories_in(const std::string& top) const {
  std::vector<std::string> found{top};
  std::string used;  // the deepest one that is
  for (size_t at = 0; at < found.size(); ++at) {
    if (interrupted_) return fail(EINTR, "remove");
    const std::string path = found[at];
    progress_(path);
    TRY_ASSIGN(const FileDescriptor directory, living_.directory(path));
    TRY_ASSIGN(const Entry own, living_.find(directory.get(), "."));
    if (own.status.device != living_.root().device) return in_use(path);
    TRY_ASSIGN(const std::vector<std::string> names, Tree::names(directory.get()));
    if (!names.empty() && (at == 0 || !used.empty())) {
      TRY_ASSIGN(const bool is_used, is_in_use(path));
      if (is_used) used = path;
    }
    for (const std::string& each : names) {
      TRY_ASSIGN(const Entry entry, living_.find(directory.get(), each));
      if (entry.status.is_directory()) found.push_back(joined(path, each));
    }
  }
  if (!used.empty()) return in_use(used);
  return found;
}

// Of one that is not empty. Nothing tells exports from other directories, but the server removes neither one nor what
// has one somewhere in it, and says so before it says that there is something in it.
Result<bool> Restorer::is_in_use(const std::string& path) const {
  TRY_ASSIGN(const FileDescriptor parent, living_.directory(directory_of(path)));
  return unlinkat(parent.get(), name_of(path).c_str(), AT_REMOVEDIR) != 0 && errno == EBUSY;
}

}  // namespace pnfsrdma::cli
