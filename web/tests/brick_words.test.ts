// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { controlText, controlTone } from "../src/pages/devices/brick_words";

const BRICK = { address: "tcp:192.0.2.7:20050", tls: true, state: "ready" } as const;

test("who may control a brick is a word, and a warning where anybody may", () => {
  expect([controlText(BRICK), controlTone(BRICK)]).toEqual(["TLS", "good"]);
  const plain = { ...BRICK, tls: false };
  expect([controlText(plain), controlTone(plain)]).toEqual(["no TLS", "warn"]);
  const local = { ...plain, address: "unix:/run/pnfsrdma/brick.sock" };
  expect([controlText(local), controlTone(local)]).toEqual(["this host only", "good"]);
});

test("of a brick that was never reached nothing is claimed", () => {
  const never = { ...BRICK, tls: false, state: "connecting" } as const;
  expect([controlText(never), controlTone(never)]).toEqual(["not known", "quiet"]);
});
