// SPDX-License-Identifier: Apache-2.0
import type { Quota, QuotaLimits, QuotaPatch } from "../../api/generated";
import type { Tone } from "../../parts/badge";

// Limits as the form holds them: sizes and numbers as people type them; empty: none.
export interface LimitTexts {
  space_soft_bytes: string;
  space_hard_bytes: string;
  inodes_soft: string;
  inodes_hard: string;
}
export type LimitName = keyof LimitTexts;

export const NO_LIMITS: LimitTexts = { space_soft_bytes: "", space_hard_bytes: "", inodes_soft: "", inodes_hard: "" };
const NAMES = Object.keys(NO_LIMITS) as LimitName[];

const UNITS = "KMGTP";
const DAY_SECONDS = 86400;
const TEN_YEARS_SECONDS = 10 * 365 * DAY_SECONDS;

function isSpace(name: LimitName): boolean {
  return name.startsWith("space");
}

// "10G", "512 MiB", "4096": a number and a unit, the next `step` times the one before. Empty: 0.
function numberOf(text: string, step: number, form: RegExp): number | undefined {
  if (text.trim() === "") return 0;
  const [, digits, unit = ""] = form.exec(text.trim()) ?? [];
  if (digits === undefined) return undefined;
  const value = Number(digits) * step ** (unit === "" ? 0 : UNITS.indexOf(unit.toUpperCase()) + 1);
  return Number.isSafeInteger(value) ? value : undefined;
}

export function sizeOf(text: string): number | undefined {
  return numberOf(text, 1024, /^(\d+(?:\.\d+)?)\s*(?:([KMGTP])(?:iB)?|B)?$/i);
}

export function countOf(text: string): number | undefined {
  return numberOf(text, 1000, /^(\d+(?:\.\d+)?)\s*([KMG])?$/i);
}

// Back, exactly: 10737418240 is "10G".
export function limitText(name: LimitName, limit: number): string {
  if (limit === 0) return "";
  const step = isSpace(name) ? 1024 : 1000;
  const units = isSpace(name) ? UNITS : "KM";
  let value = limit;
  let power = 0;
  while (value % step === 0 && power < units.length) {
    value /= step;
    power++;
  }
  return `${value}${power > 0 ? units[power - 1] : ""}`;
}

export function textsOf(quota: QuotaLimits): LimitTexts {
  return Object.fromEntries(NAMES.map((name) => [name, limitText(name, quota[name])])) as unknown as LimitTexts;
}

function valueOf(name: LimitName, text: string): number | undefined {
  return isSpace(name) ? sizeOf(text) : countOf(text);
}

export function limitFault(texts: LimitTexts, name: LimitName): string | undefined {
  const value = valueOf(name, texts[name]);
  if (value === undefined) return isSpace(name) ? "A size: 512M, 10G, 1T." : "A number: 50000, 50K, 1M.";
  if (!name.includes("soft")) return undefined;
  const hardName = name.replace("soft", "hard") as LimitName;
  const hard = valueOf(hardName, texts[hardName]) ?? 0;
  return hard !== 0 && value > hard ? "It is above the hard limit." : undefined;
}

export function anyFault(texts: LimitTexts): boolean {
  return NAMES.some((name) => limitFault(texts, name) !== undefined);
}

// Only what is other than before.
export function changesOf(before: LimitTexts, texts: LimitTexts): QuotaPatch {
  const changes: QuotaPatch = {};
  for (const name of NAMES) {
    const value = valueOf(name, texts[name]);
    if (value !== undefined && value !== valueOf(name, before[name])) changes[name] = value;
  }
  return changes;
}

// "space hard 10G, inodes soft 50K", "none".
export function limitsText(limits: QuotaLimits): string {
  const texts = textsOf(limits);
  const words = { space_soft_bytes: "space soft", space_hard_bytes: "space hard", inodes_soft: "inodes soft", inodes_hard: "inodes hard" };
  return NAMES.filter((name) => limits[name] > 0).map((name) => `${words[name]} ${texts[name]}`).join(", ") || "none";
}

export function quotaName(quota: Quota): string {
  return quota.name ?? String(quota.id);
}

type State = Quota["space_state"];
const STATES: State[] = ["ok", "over-soft", "grace-over", "full"];
const WORDS: Record<State, { word: string; tone: Tone; title: string }> = {
  "ok": { word: "ok", tone: "good", title: "Within its limits" },
  "over-soft": { word: "over soft limit", tone: "warn", title: "It may grow until the grace period ends" },
  "grace-over": { word: "grace period over", tone: "bad", title: "It cannot grow until it is below its soft limit" },
  "full": { word: "at hard limit", tone: "bad", title: "It cannot grow" },
};

// The worse of space and inodes.
export function worstState(quota: Quota): State {
  return STATES[Math.max(STATES.indexOf(quota.space_state), STATES.indexOf(quota.inodes_state))] ?? "ok";
}

export function stateWords(quota: Quota): { word: string; tone: Tone; title: string } {
  if (!quota.complete) return { word: "counting", tone: "warn", title: "Not all is counted: its limits do not hold yet" };
  const hasLimits = NAMES.some((name) => quota[name] !== 0);
  return hasLimits ? WORDS[worstState(quota)] : { word: "no limit", tone: "quiet", title: "It is counted only" };
}

// When the first of the two grace periods ends.
export function graceEnds(quota: Quota): string | null {
  const ends = [quota.space_grace_ends, quota.inodes_grace_ends].filter((end) => end !== null).sort();
  return ends[0] ?? null;
}

// "7d", "12h", "30m", "90s" in seconds.
export function graceOf(text: string): number | undefined {
  const [, digits, unit = ""] = /^(\d+)\s*([smhd])$/.exec(text.trim()) ?? [];
  if (digits === undefined) return text.trim() === "0" ? 0 : undefined;
  const seconds = Number(digits) * { s: 1, m: 60, h: 3600, d: DAY_SECONDS }[unit as "s" | "m" | "h" | "d"];
  return seconds <= TEN_YEARS_SECONDS ? seconds : undefined;
}

export function graceText(seconds: number): string {
  if (seconds === 0) return "0";
  if (seconds % DAY_SECONDS === 0) return `${seconds / DAY_SECONDS}d`;
  if (seconds % 3600 === 0) return `${seconds / 3600}h`;
  return seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`;
}
