// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { bodyOf, differences, fault, NEW_EXPORT, nfsPort, pathAround, pathFault, networks } from "../src/pages/exports/export_rules";
import { addressFault } from "../src/pages/devices/brick_address";
import { passwordFault } from "../src/pages/settings/password";

test.each([["/", true], ["/a/b", true], ["a", false], ["/a//b", false], ["/a/../b", false], ["/a/", false], ["/./a", false]])(
  "the path %s: %s", (path, good) => expect(pathFault(path) === undefined).toBe(good));

test.each([["/a/b/c", "/a/b"], ["/a/bc", "/a"], ["/x", "/"], ["/a", "/"], ["/", undefined], ["/a/b", "/a"]])(
  "a new export of %s lies in %s", (path, around) => expect(pathAround(path, ["/", "/a/b", "/a"])).toBe(around));
test.each([[["0.0.0.0:2050", "[::1]:7"], 2050], [["[::]:2051"], 2051], [["192.0.2.7"], 2049], [["::1"], 2049], [undefined, 2049]])(
  "a server that listens at %j is mounted from port %i", (listen, port) => expect(nfsPort(listen)).toBe(port));

test("where nothing else is exported it lies in none", () => expect(pathAround("/a", ["/ab", "/b"])).toBeUndefined());

test("networks may stand in lines, commas or blanks", () => {
  expect(networks(" 10.0.0.0/8,\n::1  127.0.0.1 ")).toEqual(["10.0.0.0/8", "::1", "127.0.0.1"]);
});
test("a form becomes what the API takes", () => {
  expect(bodyOf({ ...NEW_EXPORT, path: "/p", clients: "::1", anonuid: "7" })).toEqual({
    path: "/p", read_only: false, root_squash: true, all_squash: false, anonuid: 7, anongid: 65534, insecure: false, manage_gids: false, clients: ["::1"] });
});
test("ids that are no ids are refused before the server is asked", () => {
  for (const anonuid of ["", "-1", "4294967296", "x"]) expect(fault({ ...NEW_EXPORT, path: "/", anonuid })).toBeDefined();
});
test("only what differs is shown in a conflict", () => {
  expect(differences({ ...NEW_EXPORT, clients: "::1", read_only: true }, NEW_EXPORT)).toEqual([
    { name: "Read only", theirs: "yes", mine: "no" }, { name: "Client networks", theirs: "::1", mine: "(none)" }]);
});

test.each([["unix:/run/b.sock", true], ["unix:b", false], ["tcp:host:1", true], ["tcp:[::1]:20050", true], ["tcp:host", false],
  ["tcp:host:0", false], ["tcp::1", false], ["host:1", false]])(
  "the brick address %s: %s", (address, good) => expect(addressFault(address) === undefined).toBe(good));

test("a password is long enough and typed twice alike", () => {
  expect(passwordFault("short", "short")).toContain("10");
  expect(passwordFault("long enough", "long enougj")).toContain("do not match");
  expect(passwordFault("long enough", "long enough")).toBeUndefined();
});
