// SPDX-License-Identifier: Apache-2.0
import type { ComponentType } from "preact";
import { lazy } from "./parts/lazy";

export interface Page {
  // First part of the path; "" is the overview.
  path: string;
  title: string;
  component: ComponentType;
}

// The console's pages in the order of its navigation; each comes when it is first opened.
export const PAGES: Page[] = [
  { path: "", title: "Overview", component: lazy(async () => (await import("./pages/overview/overview")).Overview) },
  { path: "alerts", title: "Alerts", component: lazy(async () => (await import("./pages/alerts/alerts")).Alerts) },
  { path: "devices", title: "Devices", component: lazy(async () => (await import("./pages/devices/devices")).Devices) },
  { path: "cluster", title: "Cluster", component: lazy(async () => (await import("./pages/cluster/cluster")).Cluster) },
  { path: "exports", title: "Exports", component: lazy(async () => (await import("./pages/exports/exports")).Exports) },
  { path: "quotas", title: "Quotas", component: lazy(async () => (await import("./pages/quotas/quotas")).Quotas) },
  { path: "snapshots", title: "Snapshots", component: lazy(async () => (await import("./pages/snapshots/snapshots")).Snapshots) },
  { path: "clients", title: "Clients", component: lazy(async () => (await import("./pages/clients/clients")).Clients) },
  { path: "layouts", title: "Layouts", component: lazy(async () => (await import("./pages/clients/layouts")).Layouts) },
  { path: "exposure", title: "Exposure", component: lazy(async () => (await import("./pages/exposure/exposure")).Exposure) },
  { path: "events", title: "Events", component: lazy(async () => (await import("./pages/events/events")).Events) },
  { path: "api-operations", title: "REST API", component: lazy(async () => (await import("./pages/try_api/try_api")).TryApi) },
  { path: "settings", title: "Settings", component: lazy(async () => (await import("./pages/settings/settings")).Settings) },
];
