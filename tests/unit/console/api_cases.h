// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console::testing {

inline const Json kRules{{"path", "/new"}};
inline const std::string kBrickPath = "/bricks/" + kBrickId;
inline const std::string kAcknowledgement = "/alerts/1/acknowledgement";
// Where nobody listens.
inline const Json kReceiver{{"url", "http://127.0.0.1:1/in"}, {"secret", "sixteen or more of them"}};
inline const std::string kNoBrickId = "ff112233-4455-6677-8899-aabbccddeeff";
inline const std::string kNoBrickPath = "/bricks/" + kNoBrickId;

// One request and the status it must be answered with.
struct Case {
  std::string id;
  std::string method;
  std::string path;
  Json body;
  int status;
  std::string if_match;
};

// In this order: later ones see what earlier ones have changed.
inline std::vector<Case> cases() {
  return {
      {"getOpenApi", "GET", "/openapi.json", {}, 200, ""},
      {"getReference", "GET", "/", {}, 200, ""},
      {"getProblem", "GET", "/problems/busy", {}, 200, ""},
      {"getProblem", "GET", "/problems/nonsense", {}, 404, ""},
      {"getProblem", "GET", "/problems/NONSENSE", {}, 422, ""},
      {"getVersion", "GET", "/version", {}, 200, ""},
      {"getLive", "GET", "/health/live", {}, 200, ""},
      {"getHealth", "GET", "/health", {}, 200, ""},
      {"getSetup", "GET", "/setup", {}, 200, ""},
      {"postSetup", "POST", "/setup", {{"token", "wrong"}, {"password", "long enough"}}, 403, ""},
      {"postSetup", "POST", "/setup", {{"token", "wrong"}, {"password", "short"}}, 422, ""},
      {"putUser", "PUT", "/users/admin", {{"role", "admin"}}, 422, ""},
      {"putUser", "PUT", "/users/admin", {{"role", "admin"}, {"password", "long enough"}}, 412, "\"old\""},
      {"putUser", "PUT", "/users/admin", {{"role", "admin"}, {"password", "long enough"}}, 201, ""},
      {"putUser", "PUT", "/users/admin", {{"role", "admin"}}, 428, ""},
      {"putUser", "PUT", "/users/admin", {{"role", "admin"}}, 412, "\"old\""},
      {"putUser", "PUT", "/users/admin", {{"role", "viewer"}}, 409, "*"},
      {"putUser", "PUT", "/users/admin", {{"role", "admin"}}, 200, "*"},
      {"postSetup", "POST", "/setup", {{"token", "x"}, {"password", "long enough"}}, 409, ""},
      {"postSession", "POST", "/session", {{"user", "admin"}, {"password", "wrong"}}, 401, ""},
      {"postSession", "POST", "/session", {{"user", "admin"}, {"password", "long enough"}}, 201, ""},
      {"postSession", "POST", "/session", {{"user", "admin"}}, 422, ""},
      {"getSession", "GET", "/session", {}, 200, ""},
      {"deleteSession", "DELETE", "/session", {}, 204, ""},
      {"putPassword",
       "PUT",
       "/session/password",
       {{"old_password", "a"}, {"new_password", "long enough"}},
       409,
       ""},
      {"listUsers", "GET", "/users", {}, 200, ""},
      {"listUsers", "GET", "/users?limit=0", {}, 422, ""},
      {"getUser", "GET", "/users/admin", {}, 200, ""},
      {"getUser", "GET", "/users/nobody", {}, 404, ""},
      {"getUser", "GET", "/users/No", {}, 422, ""},
      {"deleteUser", "DELETE", "/users/admin", {}, 412, "\"old\""},
      {"deleteUser", "DELETE", "/users/admin", {}, 409, ""},
      {"deleteUser", "DELETE", "/users/nobody", {}, 404, ""},
      {"putUser", "PUT", "/users/eve", {{"role", "viewer"}, {"password", "long enough"}}, 201, ""},
      {"deleteUser", "DELETE", "/users/eve", {}, 204, "*"},
      {"listTokens", "GET", "/tokens", {}, 200, ""},
      {"postToken", "POST", "/tokens", {{"name", "scraper"}, {"role", "viewer"}}, 201, ""},
      {"postToken", "POST", "/tokens", {{"name", ""}, {"role", "viewer"}}, 422, ""},
      {"deleteToken", "DELETE", "/tokens/0000000000000000", {}, 404, ""},
      {"postToken", "POST", "/tokens", {{"name", "t"}}, 422, ""},
      {"getExportEffect", "GET", "/exports/effect?path=/data&clients=192.0.2.0/24,10.0.0.1", {}, 200, ""},
      {"listBricks", "GET", "/bricks", {}, 200, ""},
      {"postBrick", "POST", "/bricks", {{"address", "tcp:192.0.2.9:20050"}}, 201, ""},
      {"postBrick", "POST", "/bricks", {{"address", "unix:/run/brick.sock"}}, 409, ""},
      {"postBrick", "POST", "/bricks", {{"address", "tcp:192.0.2.1:1"}}, 422, ""},
      {"getBrick", "GET", kBrickPath, {}, 200, ""},
      {"getBrick", "GET", kNoBrickPath, {}, 404, ""},
      {"getBrick", "GET", "/bricks/x", {}, 422, ""},
      {"patchBrick", "PATCH", kBrickPath, {{"draining", true}}, 428, ""},
      {"patchBrick", "PATCH", kBrickPath, {{"draining", true}}, 412, "\"old\""},
      {"patchBrick", "PATCH", kBrickPath, {{"draining", true}}, 200, "*"},
      {"patchBrick", "PATCH", kBrickPath, {{"name", "taken"}}, 409, "*"},
      {"patchBrick", "PATCH", kNoBrickPath, {{"draining", true}}, 404, "*"},
      {"deleteBrick", "DELETE", kNoBrickPath, {}, 404, ""},
      {"deleteBrick", "DELETE", kBrickPath, {}, 409, ""},
      {"deleteBrick", "DELETE", kBrickPath, {}, 412, "\"old\""},
      {"getBlocks", "GET", kBrickPath + "/blocks", {}, 200, ""},
      {"getBlocks", "GET", kBrickPath + "/blocks?cursor=x", {}, 400, ""},
      {"getBlocks", "GET", kBrickPath + "/blocks?limit=0", {}, 422, ""},
      {"getBlocks", "GET", kNoBrickPath + "/blocks", {}, 404, ""},
      {"postBrickFormat", "POST", kNoBrickPath + "/format", {{"confirm", kNoBrickId}}, 404, ""},
      {"postBrickFormat", "POST", kBrickPath + "/format", {{"confirm", kBrickId}}, 409, ""},
      {"postBrickFormat", "POST", kBrickPath + "/format", {{"confirm", kNoBrickId}}, 422, ""},
      {"postBrickCheck", "POST", kBrickPath + "/check", {}, 202, ""},
      {"postBrickCheck", "POST", kBrickPath + "/check", {}, 409, ""},
      {"postBrickCheck", "POST", kNoBrickPath + "/check", {}, 404, ""},
      {"listExports", "GET", "/exports", {}, 200, ""},
      {"postExport", "POST", "/exports", kRules, 201, ""},
      {"postExport", "POST", "/exports", kRules, 409, ""},
      {"postExport", "POST", "/exports", {{"path", "/x"}, {"read_onyl", true}}, 422, ""},
      {"getExport", "GET", "/exports/2", {}, 200, ""},
      {"getExport", "GET", "/exports/77", {}, 404, ""},
      {"putExport", "PUT", "/exports/2", {{"path", "/new"}, {"read_only", true}}, 428, ""},
      {"putExport", "PUT", "/exports/2", {{"path", "/new"}, {"read_only", true}}, 412, "\"old\""},
      {"putExport", "PUT", "/exports/2", {{"path", "/new"}, {"read_only", true}}, 200, "*"},
      {"putExport", "PUT", "/exports/2", {{"path", "/other"}}, 422, "*"},
      {"putExport", "PUT", "/exports/77", {{"path", "/other"}}, 404, "*"},
      {"deleteExport", "DELETE", "/exports/2", {}, 412, "\"old\""},
      {"deleteExport", "DELETE", "/exports/2", {}, 204, ""},
      {"deleteExport", "DELETE", "/exports/2", {}, 404, ""},
      {"getFile", "GET", "/files?path=/data/file", {}, 200, ""},
      {"getFile", "GET", "/files?path=/none", {}, 404, ""},
      {"getFile", "GET", "/files", {}, 422, ""},
      {"listLayouts", "GET", "/layouts?path=/data/file", {}, 200, ""},
      {"listLayouts", "GET", "/layouts?inode=x", {}, 422, ""},
      {"listLayouts", "GET", "/layouts?path=/none", {}, 404, ""},
      {"getLayout", "GET", "/layouts/00000000000a11ce-42", {}, 200, ""},
      {"getLayout", "GET", "/layouts/00000000000a11ce-43", {}, 404, ""},
      {"deleteLayouts", "DELETE", "/layouts", {}, 422, ""},
      {"deleteLayout", "DELETE", "/layouts/00000000000a11ce-42", {}, 200, ""},
      {"deleteLayout", "DELETE", "/layouts/00000000000a11ce-42", {}, 404, ""},
      {"deleteLayouts", "DELETE", "/layouts?inode=42", {}, 200, ""},
      {"listClients", "GET", "/clients", {}, 200, ""},
      {"getClient", "GET", "/clients/00000000000a11ce", {}, 200, ""},
      {"deleteClient", "DELETE", "/clients/00000000000a11ce", {}, 204, ""},
      {"deleteClient", "DELETE", "/clients/00000000000a11ce", {}, 404, ""},
      {"getClient", "GET", "/clients/00000000000a11ce", {}, 404, ""},
      {"getConfiguration", "GET", "/configuration", {}, 200, ""},
      {"patchConfiguration", "PATCH", "/configuration", {{"log_level", "debug"}}, 428, ""},
      {"patchConfiguration", "PATCH", "/configuration", {{"log_level", "debug"}}, 412, "\"old\""},
      {"patchConfiguration", "PATCH", "/configuration", {{"log_level", "loud"}}, 422, "*"},
      {"patchConfiguration", "PATCH", "/configuration", {{"log_level", "debug"}}, 200, "*"},
      {"listEvents", "GET", "/events", {}, 200, ""},
      {"listEvents", "GET", "/events?level=loud", {}, 422, ""},
      {"streamEvents", "GET", "/events/stream", {}, 200, ""},
      {"listJobs", "GET", "/jobs", {}, 200, ""},
      {"getJob", "GET", "/jobs/1", {}, 200, ""},
      {"getJob", "GET", "/jobs/99", {}, 404, ""},
      {"deleteJob", "DELETE", "/jobs/1", {}, 200, ""},
      {"deleteJob", "DELETE", "/jobs/99", {}, 404, ""},
      {"listAlerts", "GET", "/alerts?state=firing&severity=critical", {}, 200, ""},
      {"listAlerts", "GET", "/alerts?cursor=x", {}, 400, ""},
      {"listAlerts", "GET", "/alerts?state=loud", {}, 422, ""},
      {"getAlert", "GET", "/alerts/1", {}, 200, ""},
      {"getAlert", "GET", "/alerts/99", {}, 404, ""},
      {"postAcknowledgement", "POST", kAcknowledgement, {{"comment", "seen"}, {"for_seconds", 60}}, 200, ""},
      {"postAcknowledgement", "POST", kAcknowledgement, {{"for_seconds", 0}}, 422, ""},
      {"postAcknowledgement", "POST", "/alerts/99/acknowledgement", Json::object(), 404, ""},
      {"deleteAcknowledgement", "DELETE", kAcknowledgement, {}, 200, ""},
      {"deleteAcknowledgement", "DELETE", "/alerts/99/acknowledgement", {}, 404, ""},
      {"getWebhook", "GET", "/webhook", {}, 200, ""},
      {"postWebhookTest", "POST", "/webhook/test", {}, 404, ""},
      {"putWebhook", "PUT", "/webhook", {{"url", "ftp://nobody"}}, 422, ""},
      {"putWebhook", "PUT", "/webhook", kReceiver, 200, ""},
      {"getWebhook", "GET", "/webhook", {}, 200, ""},
      {"postWebhookTest", "POST", "/webhook/test", {}, 200, ""},
      {"deleteWebhook", "DELETE", "/webhook", {}, 204, ""},
      {"listAudit", "GET", "/audit", {}, 200, ""},
      {"getThroughput", "GET", "/throughput", {}, 200, ""},
      {"getThroughput", "GET", "/throughput?seconds=601", {}, 422, ""},
  };
}

}  // namespace pnfsrdma::console::testing
