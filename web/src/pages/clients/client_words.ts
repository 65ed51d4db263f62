// SPDX-License-Identifier: Apache-2.0
import type { Client, ClientSession } from "../../api/generated";

// What people call a client; one without a name is called by its number.
export function clientName(client: Pick<Client, "name" | "id">): string {
  return client.name || client.id;
}

// By which transports its data goes, each once.
export function transports(client: Pick<Client, "bricks">): string[] {
  return [...new Set(client.bricks.map((brick) => brick.transport))].sort();
}

// Whether it can be asked for anything: the worst of its sessions counts as long as none is up.
export function callbacks(client: { sessions: Pick<ClientSession, "callbacks">[] }): ClientSession["callbacks"] {
  const states = client.sessions.map((session) => session.callbacks);
  return states.includes("up") ? "up" : states.includes("down") ? "down" : "none";
}
