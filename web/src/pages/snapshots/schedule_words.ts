// SPDX-License-Identifier: Apache-2.0
import type { SnapshotSchedule, SnapshotSchedulePut } from "../../api/generated";

export const CLASSES = ["hourly", "daily", "weekly", "monthly"] as const;
export type SnapshotClass = (typeof CLASSES)[number];

export const KEPT_MAX = 4000;

// What stands in the fields of the form.
export type ScheduleForm = Record<SnapshotClass | "time", string>;

function two(number: number): string {
  return String(number).padStart(2, "0");
}

export function formOf(schedule: SnapshotSchedule): ScheduleForm {
  const { hourly, daily, weekly, monthly, hour, minute } = schedule;
  return { hourly: String(hourly), daily: String(daily), weekly: String(weekly), monthly: String(monthly), time: `${two(hour)}:${two(minute)}` };
}

export function numberFault(text: string): string | undefined {
  return /^\d{1,4}$/.test(text) && Number(text) <= KEPT_MAX ? undefined : `Enter a number from 0 to ${KEPT_MAX}.`;
}

export function timeFault(text: string): string | undefined {
  return /^([01]\d|2[0-3]):[0-5]\d$/.test(text) ? undefined : "Enter a time as 02:30.";
}

// Of all together, each for itself being good.
export function sumFault(form: ScheduleForm): string | undefined {
  const sum = CLASSES.reduce((all, each) => all + Number(form[each]), 0);
  return sum > KEPT_MAX ? `${sum} together: at most ${KEPT_MAX} can be kept.` : undefined;
}

export function isGood(form: ScheduleForm): boolean {
  return CLASSES.every((each) => numberFault(form[each]) === undefined) && timeFault(form.time) === undefined && sumFault(form) === undefined;
}

// Of a good form.
export function scheduleOf(form: ScheduleForm): SnapshotSchedulePut {
  const [hour, minute] = form.time.split(":").map(Number);
  return { hourly: Number(form.hourly), daily: Number(form.daily), weekly: Number(form.weekly), monthly: Number(form.monthly), hour, minute };
}

// "24 hourly, 7 daily"; "" when none are taken.
export function keptText(schedule: SnapshotSchedule): string {
  return CLASSES.filter((each) => schedule[each] > 0).map((each) => `${schedule[each]} ${each}`).join(", ");
}
