// SPDX-License-Identifier: Apache-2.0
export const PASSWORD_LENGTH_MIN = 10;

// What is wrong with a new password typed twice; the server has the last word.
export function passwordFault(password: string, again: string): string | undefined {
  if (password.length < PASSWORD_LENGTH_MIN) return `Use at least ${PASSWORD_LENGTH_MIN} characters.`;
  if (password !== again) return "The passwords do not match.";
  return undefined;
}
