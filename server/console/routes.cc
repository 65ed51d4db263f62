// SPDX-License-Identifier: Apache-2.0
#include "server/console/api.h"
#include "server/console/resources.h"

namespace pnfsrdma::console {

namespace {

constexpr Route kRoutes[] = {
    {"GET", "/openapi.json", "getOpenApi", Role::kPublic, get_open_api},
    {"GET", "/", "getReference", Role::kPublic, get_reference},
    {"GET", "/problems/{name}", "getProblem", Role::kPublic, get_problem},
    {"GET", "/version", "getVersion", Role::kViewer, get_version, Answers::kShared},
    {"GET", "/health/live", "getLive", Role::kPublic, get_live},
    {"GET", "/health", "getHealth", Role::kViewer, get_health, Answers::kShared},
    {"GET", "/setup", "getSetup", Role::kPublic, get_setup},
    {"POST", "/setup", "postSetup", Role::kPublic, post_setup},
    {"POST", "/session", "postSession", Role::kPublic, post_session},
    {"GET", "/session", "getSession", Role::kViewer, get_session},
    {"DELETE", "/session", "deleteSession", Role::kViewer, delete_session},
    {"PUT", "/session/password", "putPassword", Role::kViewer, put_password},
    {"GET", "/users", "listUsers", Role::kAdmin, list_users},
    {"GET", "/users/{name}", "getUser", Role::kAdmin, get_user},
    {"PUT", "/users/{name}", "putUser", Role::kAdmin, put_user},
    {"DELETE", "/users/{name}", "deleteUser", Role::kAdmin, delete_user},
    {"GET", "/tokens", "listTokens", Role::kViewer, list_tokens},
    {"POST", "/tokens", "postToken", Role::kViewer, post_token},
    {"DELETE", "/tokens/{id}", "deleteToken", Role::kViewer, delete_token},
    {"GET", "/bricks", "listBricks", Role::kViewer, list_bricks, Answers::kShared},
    {"POST", "/bricks", "postBrick", Role::kAdmin, post_brick},
    {"GET", "/bricks/{brick}", "getBrick", Role::kViewer, get_brick, Answers::kShared},
    {"PATCH", "/bricks/{brick}", "patchBrick", Role::kAdmin, patch_brick},
    {"DELETE", "/bricks/{brick}", "deleteBrick", Role::kAdmin, delete_brick},
    {"GET", "/bricks/{brick}/blocks", "getBlocks", Role::kViewer, get_blocks, Answers::kShared},
    {"POST", "/bricks/{brick}/format", "postBrickFormat", Role::kAdmin, post_brick_format},
    {"POST", "/bricks/{brick}/check", "postBrickCheck", Role::kOperator, post_brick_check},
    {"GET", "/exports", "listExports", Role::kViewer, list_exports, Answers::kShared},
    {"POST", "/exports", "postExport", Role::kAdmin, post_export},
    {"GET", "/exports/effect", "getExportEffect", Role::kViewer, get_export_effect},
    {"GET", "/exports/{id}", "getExport", Role::kViewer, get_export, Answers::kShared},
    {"PUT", "/exports/{id}", "putExport", Role::kAdmin, put_export},
    {"DELETE", "/exports/{id}", "deleteExport", Role::kAdmin, delete_export},
    {"GET", "/snapshots", "listSnapshots", Role::kViewer, list_snapshots, Answers::kShared},
    {"POST", "/snapshots", "postSnapshot", Role::kAdmin, post_snapshot},
    {"GET", "/snapshots/schedule", "getSnapshotSchedule", Role::kViewer, get_snapshot_schedule,
     Answers::kShared},
    {"PUT", "/snapshots/schedule", "putSnapshotSchedule", Role::kAdmin, put_snapshot_schedule},
    {"GET", "/snapshots/{id}", "getSnapshot", Role::kViewer, get_snapshot, Answers::kShared},
    {"PATCH", "/snapshots/{id}", "patchSnapshot", Role::kAdmin, patch_snapshot},
    {"DELETE", "/snapshots/{id}", "deleteSnapshot", Role::kAdmin, delete_snapshot},
    {"GET", "/files", "getFile", Role::kViewer, get_file},
    {"GET", "/layouts", "listLayouts", Role::kViewer, list_layouts, Answers::kShared},
    {"DELETE", "/layouts", "deleteLayouts", Role::kOperator, delete_layouts},
    {"GET", "/layouts/{id}", "getLayout", Role::kViewer, get_layout, Answers::kShared},
    {"DELETE", "/layouts/{id}", "deleteLayout", Role::kOperator, delete_layout},
    {"GET", "/clients", "listClients", Role::kViewer, list_clients, Answers::kShared},
    {"GET", "/clients/{id}", "getClient", Role::kViewer, get_client, Answers::kShared},
    {"DELETE", "/clients/{id}", "deleteClient", Role::kOperator, delete_client},
    {"GET", "/configuration", "getConfiguration", Role::kViewer, get_configuration, Answers::kShared},
    {"PATCH", "/configuration", "patchConfiguration", Role::kAdmin, patch_configuration},
    {"GET", "/events", "listEvents", Role::kViewer, list_events, Answers::kShared},
    {"GET", "/events/stream", "streamEvents", Role::kViewer, stream_events},
    {"GET", "/jobs", "listJobs", Role::kViewer, list_jobs, Answers::kShared},
    {"GET", "/jobs/{id}", "getJob", Role::kViewer, get_job, Answers::kShared},
    {"DELETE", "/jobs/{id}", "deleteJob", Role::kOperator, delete_job},
    {"GET", "/alerts", "listAlerts", Role::kViewer, list_alerts, Answers::kShared},
    {"GET", "/alerts/{id}", "getAlert", Role::kViewer, get_alert, Answers::kShared},
    {"POST", "/alerts/{id}/acknowledgement", "postAcknowledgement", Role::kOperator, post_acknowledgement},
    {"DELETE", "/alerts/{id}/acknowledgement", "deleteAcknowledgement", Role::kOperator,
     delete_acknowledgement},
    {"GET", "/webhook", "getWebhook", Role::kAdmin, get_webhook},
    {"PUT", "/webhook", "putWebhook", Role::kAdmin, put_webhook},
    {"DELETE", "/webhook", "deleteWebhook", Role::kAdmin, delete_webhook},
    {"POST", "/webhook/test", "postWebhookTest", Role::kAdmin, post_webhook_test},
    {"GET", "/audit", "listAudit", Role::kAdmin, list_audit},
    {"GET", "/throughput", "getThroughput", Role::kViewer, get_throughput, Answers::kShared},
    {"GET", "/history", "getHistory", Role::kViewer, get_history, Answers::kShared},
    {"GET", "/top", "getTop", Role::kViewer, get_top, Answers::kShared},
    {"GET", "/capacity", "getCapacity", Role::kViewer, get_capacity, Answers::kShared},
};

}  // namespace

std::span<const Route> routes() {
  return kRoutes;
}

}  // namespace pnfsrdma::console
