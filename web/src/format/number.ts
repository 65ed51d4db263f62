// SPDX-License-Identifier: Apache-2.0
// Numbers as storage engineers read them: binary units for sizes, decimal for counts, three significant digits.
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const DECIMAL = ["", "k", "M", "G", "T"];

function scaled(value: number, base: number, units: string[]): { digits: string; unit: string } {
  let step = 0;
  let rest = Math.abs(value);
  while (rest >= base && step < units.length - 1) {
    rest /= base;
    step++;
  }
  // 999.7 must not become "1000" of the smaller unit.
  if (Number(significant(rest, step)) >= base && step < units.length - 1) {
    rest /= base;
    step++;
  }
  return { digits: (value < 0 ? "−" : "") + significant(rest, step), unit: units[step] ?? "" };
}

function significant(value: number, step: number): string {
  if (step === 0) return Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 1 : 0);
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
}

export interface Quantity {
  digits: string;
  unit: string;
}

export function bytes(value: number): Quantity {
  return scaled(value, 1024, BINARY);
}

export function bytesText(value: number): string {
  const { digits, unit } = bytes(value);
  return `${digits} ${unit}`;
}

export function bytesPerSecond(value: number): Quantity {
  const { digits, unit } = bytes(value);
  return { digits, unit: `${unit}/s` };
}

export function countText(value: number): string {
  const { digits, unit } = scaled(value, 1000, DECIMAL);
  return digits + (unit ? ` ${unit}` : "");
}

export function perSecond(value: number): Quantity {
  const { digits, unit } = scaled(value, 1000, DECIMAL);
  return { digits, unit: `${unit}/s` };
}

export function microseconds(value: number): Quantity {
  if (value >= 1_000_000) return { digits: (value / 1_000_000).toFixed(2), unit: "s" };
  if (value >= 1000) return { digits: significant(value / 1000, 1), unit: "ms" };
  return { digits: significant(value, 0), unit: "µs" };
}

export function quantityText(quantity: Quantity): string {
  return `${quantity.digits} ${quantity.unit}`.trim();
}

export function percent(part: number, whole: number): string {
  if (whole <= 0) return "0 %";
  const value = (part / whole) * 100;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} %`;
}

// "1 file", "2 files".
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
