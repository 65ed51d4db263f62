// SPDX-License-Identifier: Apache-2.0
// Times: how long ago for the eye, to the second and in UTC for the record.

export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

// In the coarsest unit: "3 min ago". A clock that differs from the server's never makes a "−2 s ago".
export function agoText(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 2) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

export function inText(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 60) return `in ${Math.max(0, seconds)} s`;
  if (seconds < 3600) return `in ${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `in ${Math.floor(seconds / 3600)} h`;
  return `in ${Math.floor(seconds / 86400)} d`;
}

// 2026-11-21 21:16:05 UTC
export function absoluteText(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

// 21:16:05, in the reader's own time zone: for axes and lists of one day.
export function clockText(time: string | number): string {
  return new Date(time).toLocaleTimeString("en-GB", { hour12: false });
}
