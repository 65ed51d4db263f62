// SPDX-License-Identifier: Apache-2.0
// What is wrong with a brick's control address, before the server is asked.
export function addressFault(address: string): string | undefined {
  if (address.startsWith("unix:")) {
    return address.startsWith("unix:/") && address.length > 6 ? undefined : "A socket's path is absolute: unix:/run/….";
  }
  if (address.startsWith("tcp:")) {
    const port = Number(/:(\d+)$/.exec(address.slice(4))?.[1] ?? 0);
    return port >= 1 && port <= 65535 && address.slice(4).lastIndexOf(":") > 0 ? undefined : "A host and a port are needed: tcp:HOST:PORT.";
  }
  return "It begins with unix: or tcp:.";
}
