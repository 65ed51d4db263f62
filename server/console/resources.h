// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/console/backend.h"
#include "server/console/call.h"

// Who answers each operation: named as operationId, one file per kind of resource. The caller may do it and
// the arguments are as the document has them when these are called; from many threads at once.
namespace pnfsrdma::console {

using Response = Answer<HttpResponse>;

// about_resource.cc
Response get_open_api(Backend& backend, Call& call);
Response get_reference(Backend& backend, Call& call);
Response get_problem(Backend& backend, Call& call);
Response get_version(Backend& backend, Call& call);
Response get_live(Backend& backend, Call& call);
Response get_health(Backend& backend, Call& call);
Response get_cluster(Backend& backend, Call& call);
// session_resource.cc
Response get_setup(Backend& backend, Call& call);
Response post_setup(Backend& backend, Call& call);
Response post_session(Backend& backend, Call& call);
Response get_session(Backend& backend, Call& call);
Response delete_session(Backend& backend, Call& call);
Response put_password(Backend& backend, Call& call);
// user_resource.cc
Response list_users(Backend& backend, Call& call);
Response get_user(Backend& backend, Call& call);
Response put_user(Backend& backend, Call& call);
Response delete_user(Backend& backend, Call& call);
Response list_tokens(Backend& backend, Call& call);
Response post_token(Backend& backend, Call& call);
Response delete_token(Backend& backend, Call& call);
// brick_resource.cc
Response list_bricks(Backend& backend, Call& call);
Response post_brick(Backend& backend, Call& call);
Response get_brick(Backend& backend, Call& call);
Response patch_brick(Backend& backend, Call& call);
Response delete_brick(Backend& backend, Call& call);
Response get_blocks(Backend& backend, Call& call);
Response post_brick_format(Backend& backend, Call& call);
Response post_brick_check(Backend& backend, Call& call);
// export_resource.cc
Response list_exports(Backend& backend, Call& call);
Response post_export(Backend& backend, Call& call);
Response get_export(Backend& backend, Call& call);
Response get_export_effect(Backend& backend, Call& call);
Response put_export(Backend& backend, Call& call);
Response delete_export(Backend& backend, Call& call);
// quota_resource.cc
Response list_quotas(Backend& backend, Call& call);
Response get_quota(Backend& backend, Call& call);
Response patch_quota(Backend& backend, Call& call);
Response delete_quota(Backend& backend, Call& call);
Response post_quota_tree(Backend& backend, Call& call);
// 202 with the job that has begun.
Response started(Result<Result<Job>> answer);

Response post_quota_recount(Backend& backend, Call& call);
Response get_quota_settings(Backend& backend, Call& call);
Response patch_quota_settings(Backend& backend, Call& call);
// snapshot_resource.cc
Response list_snapshots(Backend& backend, Call& call);
Response post_snapshot(Backend& backend, Call& call);
Response get_snapshot(Backend& backend, Call& call);
Response delete_snapshot(Backend& backend, Call& call);
Response patch_snapshot(Backend& backend, Call& call);
Response get_snapshot_schedule(Backend& backend, Call& call);
Response put_snapshot_schedule(Backend& backend, Call& call);
// holdings_resource.cc
Response get_file(Backend& backend, Call& call);
Response list_layouts(Backend& backend, Call& call);
Response delete_layouts(Backend& backend, Call& call);
Response get_layout(Backend& backend, Call& call);
Response delete_layout(Backend& backend, Call& call);
Response list_clients(Backend& backend, Call& call);
Response get_client(Backend& backend, Call& call);
Response delete_client(Backend& backend, Call& call);
// configuration_resource.cc
Response get_configuration(Backend& backend, Call& call);
Response patch_configuration(Backend& backend, Call& call);
// alert_resource.cc
Response list_alerts(Backend& backend, Call& call);
Response get_alert(Backend& backend, Call& call);
Response post_acknowledgement(Backend& backend, Call& call);
Response delete_acknowledgement(Backend& backend, Call& call);
// webhook_resource.cc
Response get_webhook(Backend& backend, Call& call);
Response put_webhook(Backend& backend, Call& call);
Response delete_webhook(Backend& backend, Call& call);
Response post_webhook_test(Backend& backend, Call& call);
// activity_resource.cc
Response list_events(Backend& backend, Call& call);
Response stream_events(Backend& backend, Call& call);
Response list_jobs(Backend& backend, Call& call);
Response get_job(Backend& backend, Call& call);
Response delete_job(Backend& backend, Call& call);
Response list_audit(Backend& backend, Call& call);
Response get_throughput(Backend& backend, Call& call);
// history_resource.cc
Response get_history(Backend& backend, Call& call);
Response get_top(Backend& backend, Call& call);
Response get_capacity(Backend& backend, Call& call);

}  // namespace pnfsrdma::console
