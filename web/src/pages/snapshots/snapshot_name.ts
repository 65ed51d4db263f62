// SPDX-License-Identifier: Apache-2.0
const BYTES_MAX = 128;

// A name of a directory; none: the server takes the time.
export function nameFault(name: string): string | undefined {
  if (name === "") return undefined;
  if (name === "." || name === "..") return "It names a directory: neither . nor ..";
  if (/[/\u0000-\u001f\u007f]/.test(name)) return "No / and no control characters.";
  if (new TextEncoder().encode(name).length > BYTES_MAX) return `At most ${BYTES_MAX} bytes.`;
  return undefined;
}
