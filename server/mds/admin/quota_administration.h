// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/console/administration.h"
#include "server/mds/admin/job_table.h"
#include "server/mds/admin/quota_counter.h"
#include "server/mds/admin/quota_recounter.h"
#include "server/mds/admin/quota_tree_walk.h"
#include "server/mds/meta/namespace.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// What an administrator sees of quotas and can do with them. Control loop only; what it is made of outlives it.
class QuotaAdministration {
 public:
  template <typename T = void>
  using Done = console::Administration::Done<T>;
  using Place = console::Administration::QuotaPlace;

  // Goes on with what is still to be counted.
  QuotaAdministration(EventLoop& loop, const Clock& clock, Namespace& names);

  void page(std::optional<console::QuotaKind> kind, const std::optional<Place>& after, size_t most,
            Done<console::QuotaPage> done);
  void one(const Place& place, Done<console::Quota> done);
  void limit(const Place& place, const std::optional<console::QuotaLimits>& limits,
             Done<console::Quota> done);
  void add_tree(const std::string& path, Done<console::Quota> done);
  void remove_tree(uint64_t id, Done<> done);
  void change(const console::Administration::QuotaChanges& changes, Done<console::QuotaSettings> done);
  Result<console::Job> recount(JobTable& jobs, const std::string& user);

 private:
  Result<std::vector<console::Quota>> look(const QuotaId& from, std::optional<QuotaKind> kind, size_t most);
  Result<console::Quota> look(const QuotaId& id);
  Result<console::Quota> shown(const QuotaId& id, const QuotaUsage& usage);
  std::string path_of(const QuotaTree& tree);
  console::QuotaSettings settings() const;
  Result<> begin();
  Result<> set(const QuotaId& id, const std::optional<QuotaLimits>& limits);
  Result<Quotas::Changes> wanted_changes(const console::Administration::QuotaChanges& changes) const;
  Result<InodeId> future_root(const std::string& path);
  Result<QuotaTree> make_tree(const std::string& path, InodeId directory);
  // When all that was committed is durable.
  void when_durable(std::function<void()> then);
  void show(const QuotaId& id, Done<console::Quota> done);

  const Clock& clock_;
  Namespace& names_;
  QuotaCounter counter_;
  QuotaTreeWalk walk_;
  QuotaRecounter recounter_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
