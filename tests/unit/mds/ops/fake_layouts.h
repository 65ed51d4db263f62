// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "server/mds/meta/namespace.h"
#include "server/mds/state/conflicts.h"

namespace pnfsrdma::mds {

// Layouts that nobody holds: sizes are set at once, or when the test says so.
class FakeLayouts final : public LayoutConflicts {
 public:
  explicit FakeLayouts(Namespace& names) : names_(names) {}

  void set_size(uint64_t inode, uint64_t size, uint64_t, Done done) override {
    ++size_changes;
    auto change = [this, inode, size, done] {
      InodeUpdate update;
      update.size = size;
      const auto updated = names_.update(inode, update);
      done(updated ? nfs4::Status::kOk : updated.error());
    };
    hold ? held.push_back(change) : change();
  }
  void before_access_change(uint64_t, uint64_t, Done done) override {
    ++access_changes;
    done(nfs4::Status::kOk);
  }
  void before_owner_change(uint64_t, const InodeUpdate& owners, Done done) override {
    owner_changes.push_back(owners);
    done(owner_status);
  }
  void before_set_id(uint64_t, uint64_t, Done done) override {
    ++set_ids;
    done(nfs4::Status::kOk);
  }
  void before_open_to_write(uint64_t, uint64_t, Done done) override { done(nfs4::Status::kOk); }
  bool has_sole_writer(uint64_t, uint64_t) const override { return false; }
  bool may_be_written_by_others(uint64_t inode, uint64_t) const override { return written.contains(inode); }
  bool may_be_used_by_others(uint64_t inode, uint64_t) const override {
    return written.contains(inode) || read.contains(inode);
  }
  void on_orphaned(uint64_t inode) override { orphaned.push_back(inode); }
  void on_last_close(std::vector<uint64_t> files, std::function<void()> done) override {
    closed.insert(closed.end(), files.begin(), files.end());
    done();
  }
  void on_client_gone(uint64_t client, std::function<void()> done) override {
    gone.push_back(client);
    hold ? held.push_back(done) : done();
  }
  void before_delegation_revoked(uint64_t client, uint64_t inode, std::function<void(Fence)> done) override {
    fenced.emplace_back(client, inode);
    const auto made = std::make_shared<const int>(0);
    fence = made;
    hold ? held.push_back([done, made] { done(made); }) : done(made);
  }
  nfs4::Status test_stateid(uint64_t, const LayoutStateid&) const override {
    return nfs4::Status::kBadStateid;
  }
  nfs4::Status free_stateid(uint64_t, const LayoutStateid&) override { return nfs4::Status::kBadStateid; }
  bool client_holds_layouts(uint64_t) const override { return false; }
  bool file_in_use(uint64_t) const override { return false; }

  // Lets go what was held, as a brick's late answer does.
  void release() {
    hold = false;
    for (auto& each : std::exchange(held, {})) each();
  }

  bool hold = false;
  std::vector<std::function<void()>> held;
  std::set<uint64_t> written;  // by layouts of others
  std::set<uint64_t> read;
  int size_changes = 0;
  int access_changes = 0;
  std::vector<InodeUpdate> owner_changes;
  nfs4::Status owner_status = nfs4::Status::kOk;
  int set_ids = 0;
  std::vector<uint64_t> orphaned;
  std::vector<uint64_t> closed;
  std::vector<uint64_t> gone;
  std::vector<std::pair<uint64_t, uint64_t>> fenced;  // client, file
  std::weak_ptr<const void> fence;                    // the last one

 private:
  Namespace& names_;
};

}  // namespace pnfsrdma::mds
