// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "server/mds/admin/config.h"
#include "server/mds/log/copy_server.h"
#include "server/mds/log/etcd_client.h"
#include "server/mds/log/log_member.h"
#include "shared/base/event_loop.h"
#include "shared/base/owned.h"
#include "shared/base/random.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// What the log of the metadata needs of the configuration and the host. `clock` outlives the result. EINVAL: a file
// that the configuration names is wrong. `status`: LogMember::Options.
Result<std::unique_ptr<LogMember>> metadata_log_member(EventLoop& loop, Random& random, const Clock& clock,
                                                       const Config& config,
                                                       std::function<void(const std::string&)> status);

// How the configuration reaches etcd.
EtcdOptions etcd_options(const Config& config);

// LogMember::lead() until a signal ends the daemon, or `failed` says so. False: it did.
Result<bool> follow_until_leading(EventLoop& loop, LogMember& member, KeyValueStore& store,
                                  const FileDescriptor& signals, const std::function<bool()>& failed);

// Behind an error of it, `why`, where LogMember::needs_copy(): a copy of the leader's store in the place of the
// metadata store, which is closed, as soon as there is one. `again`: what is there is a copy of this daemon's. False: a
// signal ends the daemon. Errors as of CopyWait.
Result<bool> wait_for_copy(EventLoop& loop, const Config& config, LogMember& member, const Error& why,
                           bool again, const FileDescriptor& signals);

// Copies of the store for others, while this server leads. Null: none are given, or nobody can listen there, which is
// no reason to keep clients from their files: it is logged. `store`: as of CopyServer.
std::unique_ptr<CopyServer> open_copies(EventLoop& loop, KeyValueStore& store, const Config& config);

// A store that belongs to a log must not be served without it: EINVAL, with what to do.
Result<> check_without_log(KeyValueStore& store);

// `pnfsrdma-mdsd --leave-log`: with the daemon not running, the metadata store belongs to no log from now on. Says,
// too, what etcd has of that log: takes four seconds. 0; 2: it cannot be opened.
int run_leave_log(const Config& config);

// `pnfsrdma-mdsd --cluster-status`: prints what the REST API says of the cluster, as JSON; on any of its hosts, whether
// the daemon runs or not. 0; 2: a file that the configuration names is wrong.
int run_cluster_status(const Config& config);

}  // namespace pnfsrdma::mds
