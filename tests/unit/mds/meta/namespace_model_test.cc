// SPDX-License-Identifier: Apache-2.0
// Random operations on the namespace and on a model of it that is simple enough to be believed.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "server/mds/meta/namespace.h"
#include "server/mds/meta/namespace_check.h"
#include "tests/doubles/manual_clock.h"
#include "tests/doubles/seeded_random.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

struct Node {
  InodeId id = kNoInode;
  bool directory = false;
  uint32_t names = 0;
  std::map<std::string, std::shared_ptr<Node>> entries;
};
using NodePointer = std::shared_ptr<Node>;

// What POSIX and the RFC say, over a tree of maps.
class Model {
 public:
  Model() { root_->id = kRootInode, root_->directory = true; }

  NodePointer root() const { return root_; }
  std::vector<NodePointer> all() const {
    std::vector<NodePointer> found{root_};
    for (size_t i = 0; i < found.size(); ++i) {
      const NodePointer node = found[i];
      for (const auto& [name, child] : node->entries) found.push_back(child);
    }
    return found;
  }
  static bool below(const Node& node, const Node& top) {
    if (&node == &top) return true;
    for (const auto& [name, child] : top.entries) {
      if (child->directory && below(node, *child)) return true;
    }
    return false;
  }

  Status create(const NodePointer& directory, const std::string& name) {
    if (!directory->directory) return Status::kNotDir;
    return directory->entries.contains(name) ? Status::kExist : Status::kOk;
  }
  Status remove(const NodePointer& directory, const std::string& name) {
    if (!directory->directory) return Status::kNotDir;
    const auto found = directory->entries.find(name);
    if (found == directory->entries.end()) return Status::kNoEnt;
    if (!found->second->entries.empty()) return Status::kNotEmpty;
    --found->second->names;
    directory->entries.erase(found);
    return Status::kOk;
  }
  Status link(const NodePointer& node, const NodePointer& directory, const std::string& name) {
    if (!directory->directory) return Status::kNotDir;
    if (node->directory) return Status::kIsDir;
    if (directory->entries.contains(name)) return Status::kExist;
    directory->entries[name] = node;
    ++node->names;
    return Status::kOk;
  }
  Status rename(const NodePointer& source, const std::string& from, const NodePointer& target,
                const std::string& to) {
    if (!source->directory || !target->directory) return Status::kNotDir;
    const auto found = source->entries.find(from);
    if (found == source->entries.end()) return Status::kNoEnt;
    const NodePointer moved = found->second;
    const auto present = target->entries.find(to);
    const NodePointer victim = present == target->entries.end() ? nullptr : present->second;
    if (victim == moved) return Status::kOk;
    if (moved->directory && below(*target, *moved)) return Status::kInval;
    if (victim && victim->directory != moved->directory) return Status::kExist;
    if (victim && !victim->entries.empty()) return Status::kNotEmpty;
    if (victim) --victim->names;
    source->entries.erase(from);
    target->entries[to] = moved;
    return Status::kOk;
  }

  Status exchange(const NodePointer& source, const std::string& from, const NodePointer& target,
                  const std::string& to) {
    if (!source->directory || !target->directory) return Status::kNotDir;
    if (!source->entries.contains(from) || !target->entries.contains(to)) return Status::kNoEnt;
    const NodePointer one = source->entries[from];
    const NodePointer other = target->entries[to];
    if (one == other) return Status::kOk;
    if (one->directory && below(*target, *one)) return Status::kInval;
    if (other->directory && below(*source, *other)) return Status::kInval;
    source->entries[from] = other;
    target->entries[to] = one;
    return Status::kOk;
  }

 private:
  NodePointer root_ = std::make_shared<Node>();
};

class NamespaceAgainstModel : public OverBothEngines {
 protected:
  NamespaceAgainstModel() { open(1); }

  void open(uint64_t boot) {
    boot_ = boot;
    names_ = Namespace::open(*store_, clock_, boot, {.cached_inodes = 8, .cached_names = 8}).value();
    names_->set_in_use([](InodeId id) { return id % 2 == 0; });
  }
  NodePointer any_node() {
    const auto nodes = model_.all();
    return nodes[random_.next_u64() % nodes.size()];
  }
  // Mostly a directory.
  NodePointer any_place() {
    for (int i = 0; i < 8; ++i) {
      if (const NodePointer node = any_node(); node->directory) return node;
    }
    return any_node();
  }
  std::string any_name() { return std::string(1, static_cast<char>('a' + random_.next_u64() % 6)); }
  template <typename T>
  static Status status(const Outcome<T>& outcome) {
    return outcome ? Status::kOk : outcome.error();
  }

  void create() {
    const NodePointer place = any_place();
    const std::string name = any_name();
    const bool directory = random_.next_u64() % 2 == 0;
    const auto made =
        names_->create(place->id, name, {.type = directory ? FileType::kDirectory : FileType::kRegular});
    ASSERT_EQ(status(made), model_.create(place, name));
    if (!made) return;
    auto node = std::make_shared<Node>();
    node->id = made->inode->id;
    node->directory = directory;
    node->names = 1;
    place->entries[name] = node;
  }
  void remove() {
    const NodePointer place = any_place();
    const std::string name = any_name();
    ASSERT_EQ(status(names_->remove(place->id, name)), model_.remove(place, name));
  }
  void link() {
    const NodePointer node = any_node();
    const NodePointer place = any_place();
    const std::string name = any_name();
    ASSERT_EQ(status(names_->link(node->id, place->id, name)), model_.link(node, place, name));
  }
  void rename() {
    const NodePointer source = any_place();
    const NodePointer target = random_.next_u64() % 3 == 0 ? source : any_place();
    const std::string from = any_name();
    const std::string to = any_name();
    ASSERT_EQ(status(names_->rename(source->id, from, target->id, to)),
              model_.rename(source, from, target, to));
  }
  void exchange() {
    const NodePointer source = any_place();
    const NodePointer target = random_.next_u64() % 3 == 0 ? source : any_place();
    const std::string from = any_name();
    const std::string to = any_name();
    ASSERT_EQ(status(names_->exchange(source->id, from, target->id, to)),
              model_.exchange(source, from, target, to));
  }
  void step() {
    switch (random_.next_u64() % 10) {
      case 0:
      case 1:
      case 2:
        return create();
      case 3:
        return remove();
      case 4:
        return link();
      case 5:
      case 6:
        return exchange();
      default:
        return rename();
    }
  }

  void compare() {
    for (const NodePointer& node : model_.all()) {
      const auto inode = names_->get(node->id);
      ASSERT_TRUE(inode) << node->id;
      ASSERT_EQ((*inode)->is_directory(), node->directory);
      if (!node->directory) {
        ASSERT_EQ((*inode)->nlink, node->names);
        continue;
      }
      const DirectoryPage page = names_->read_directory(node->id, 0, 1000).value();
      ASSERT_EQ(page.entries.size(), node->entries.size());
      for (const DirectoryEntry& entry : page.entries) {
        ASSERT_TRUE(node->entries.contains(entry.name));
        ASSERT_EQ(node->entries[entry.name]->id, entry.inode);
        ASSERT_EQ(names_->lookup(node->id, entry.name).value()->id, entry.inode);
      }
    }
    const auto report = check_namespace(*store_).value();
    for (const std::string& problem : report.problems) ADD_FAILURE() << problem;
  }

  ManualClock clock_;
  SeededRandom random_{42};
  uint64_t boot_ = 0;
  std::unique_ptr<Namespace> names_;
  Model model_;
};

TEST_P(NamespaceAgainstModel, AgreesAfterEveryOperation) {
  for (int i = 0; i < 1500 && !HasFailure(); ++i) {
    step();
    if (i % 50 == 0) compare();
    if (i % 400 == 399) {
      const auto orphans = names_->orphans().value();
      for (const InodeId id : orphans) EXPECT_TRUE(names_->destroy(id));
      names_.reset();
      store_.reopen();
      open(boot_ + 1);
    }
  }
  compare();
}

PNFSRDMA_OVER_BOTH_ENGINES(NamespaceAgainstModel);

}  // namespace
}  // namespace pnfsrdma::mds
