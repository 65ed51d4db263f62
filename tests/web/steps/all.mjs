// SPDX-License-Identifier: Apache-2.0
// The story in its order; each step finds the console as the step before left it.
import { firstStart, loadsFast } from "./entry.mjs";
import { addDevice, devicesEmpty, refuseWrongAddress, removeDevices, tendDevice } from "./devices.mjs";
import { createExport, editConflict, exportsEmpty, removeExport } from "./exports.mjs";
import { alertFires, webhookIsSet } from "./alerts.mjs";
import { chartMoves, historyIsShown, mountAndWork } from "./overview.mjs";
import { layoutAppears, revokeIdle, revokeUnderLoad, walkByKeyboard } from "./exposure.mjs";
import { expelClient, seeClient } from "./clients.mjs";
import { eventsArrive } from "./events.mjs";
import { editLimits, everybodysLimits, removeLimits, setLimits } from "./quotas.mjs";
import { pinSnapshot, removeSnapshot, scheduleSnapshots, takeSnapshot } from "./snapshots.mjs";
import { auditTells, changeLogLevel, makeToken, makeViewer } from "./settings.mjs";
import { logOut, viewerIsRefused } from "./roles.mjs";
import { tryOperations } from "./try_api.mjs";

export const steps = [
  ["the first start sets the password; a wrong token is refused", firstStart],
  ["the page is seen fast", loadsFast],
  ["without a device every page says what to do next", devicesEmpty],
  ["an address that leads nowhere is refused and changes nothing", refuseWrongAddress],
  ["a device is added", addDevice],
  ["without an export the page says so", exportsEmpty],
  ["an export is created", createExport],
  ["it is mounted and works", mountAndWork],
  ["the charts move", chartMoves],
  ["the last 15 minutes, who is busy, and the forecast", historyIsShown],
  ["the first limits switch quotas on", setLimits],
  ["who is above a soft limit is marked", editLimits],
  ["limits are removed, the name typed", removeLimits],
  ["each user gets limits, and all is counted again", everybodysLimits],
  ["a snapshot is taken", takeSnapshot],
  ["a pinned snapshot is not offered for removal", pinSnapshot],
  ["the schedule is changed and takes one", scheduleSnapshots],
  ["a snapshot is removed, its name typed", removeSnapshot],
  ["a layout appears in the exposure map within a second", layoutAppears],
  ["the map is walked by keyboard", walkByKeyboard],
  ["an idle layout is revoked and gone within a second", revokeIdle],
  ["a layout in use is revoked; the client recovers and no byte is wrong", revokeUnderLoad],
  ["two who edit an export do not overwrite each other", editConflict],
  ["events arrive as they happen", eventsArrive],
  ["the client is seen with its sessions and layouts", seeClient],
  ["the client is expelled, its name typed", expelClient],
  ["a second device is drained, checked (the first time cancelled) and formatted", tendDevice],
  ["a device dies: its alert fires, is acknowledged by keyboard, and over when it is back", alertFires],
  ["a device with data stays, an empty one goes", removeDevices],
  ["an export is removed, its path typed", removeExport],
  ["a viewer and a token are made", async (story) => { await makeViewer(story); await makeToken(story); }],
  ["a webhook is set, tried and taken away", webhookIsSet],
  ["the log level changes while it runs", changeLogLevel],
  ["the audit log tells who did what", auditTells],
  ["an operation of the API is tried", tryOperations],
  ["after logging out nothing is shown", logOut],
  ["a viewer is offered nothing it may not do, and refused", viewerIsRefused],
];
