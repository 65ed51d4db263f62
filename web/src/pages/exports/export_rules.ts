// SPDX-License-Identifier: Apache-2.0
import type { Export, ExportPut } from "../../api/generated";

// An export as the form holds it: every member, networks as one text.
export interface ExportRules {
  path: string;
  read_only: boolean;
  root_squash: boolean;
  all_squash: boolean;
  anonuid: string;
  anongid: string;
  insecure: boolean;
  manage_gids: boolean;
  clients: string;
}

export const NOBODY = "65534";

export const NEW_EXPORT: ExportRules = {
  path: "", read_only: false, root_squash: true, all_squash: false, anonuid: NOBODY, anongid: NOBODY, insecure: false,
  manage_gids: false, clients: "",
};

const NAMES: Record<keyof ExportRules, string> = {
  path: "Path", read_only: "Read only", root_squash: "root squash", all_squash: "all squash",
  anonuid: "Anonymous user", anongid: "Anonymous group", insecure: "insecure", manage_gids: "manage gids",
  clients: "Client networks",
};

export function rulesOf(of: Export): ExportRules {
  return {
    path: of.path, read_only: of.read_only, root_squash: of.root_squash, all_squash: of.all_squash,
    anonuid: String(of.anonuid), anongid: String(of.anongid), insecure: of.insecure,
    manage_gids: of.manage_gids, clients: of.clients.join("\n"),
  };
}

export function networks(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

export function bodyOf(rules: ExportRules): ExportPut {
  return { ...rules, anonuid: Number(rules.anonuid), anongid: Number(rules.anongid), clients: networks(rules.clients) };
}

export function pathFault(path: string): string | undefined {
  if (!path.startsWith("/")) return "A path starts with /.";
  const parts = path.slice(1).split("/");
  if (path !== "/" && parts.some((part) => part === "" || part === "." || part === "..")) {
    return "No empty, . or .. parts, and no / at the end.";
  }
  return undefined;
}

// The path of the export that a new one of this path would lie in: the longest there is.
export function pathAround(path: string, paths: string[]): string | undefined {
  const holds = (outer: string) => path !== outer && path.startsWith(outer === "/" ? "/" : `${outer}/`);
  return paths.filter(holds).sort((one, other) => other.length - one.length)[0];
}

const NFS_PORT = 2049;

// The port clients mount from, of the configuration's "listen": "0.0.0.0:2049", "[::]:2049", or without a port.
export function nfsPort(listen: unknown): number {
  const first = Array.isArray(listen) ? String(listen[0] ?? "") : "";
  const port = /^(?:\[[^\]]*\]|[^:]*):(\d+)$/.exec(first)?.[1];
  return port === undefined ? NFS_PORT : Number(port);
}

export function idFault(id: string): string | undefined {
  return /^\d{1,10}$/.test(id) && Number(id) <= 4294967295 ? undefined : "A number from 0 to 4294967295.";
}

export function fault(rules: ExportRules): string | undefined {
  return pathFault(rules.path) ?? idFault(rules.anonuid) ?? idFault(rules.anongid);
}

export function squashText(of: Export): string {
  const who = of.all_squash ? "everybody is" : of.root_squash ? "root is" : "";
  return who ? `${who} ${of.anonuid}:${of.anongid}` : "not squashed, not even root";
}

export interface Difference {
  name: string;
  theirs: string;
  mine: string;
}

function word(value: string | boolean): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return networks(value).join(", ") || "(none)";
}

// What stands differently on the server and in the form.
export function differences(theirs: ExportRules, mine: ExportRules): Difference[] {
  return (Object.keys(NAMES) as (keyof ExportRules)[])
    .map((key) => ({ name: NAMES[key], theirs: word(theirs[key]), mine: word(mine[key]) }))
    .filter(({ theirs: a, mine: b }) => a !== b);
}
