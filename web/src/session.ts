// SPDX-License-Identifier: Apache-2.0
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { roleOf, type Role, type Session } from "./api/generated";
import type { OperationName } from "./api/call";

export const RANK: Record<Role | "public", number> = { public: 0, viewer: 1, operator: 2, admin: 3 };

export interface SessionState {
  session: Session;
  logOut: () => Promise<void>;
}

export const SessionContext = createContext<SessionState | null>(null);

export function useSession(): SessionState {
  const state = useContext(SessionContext);
  if (state === null) throw new Error("outside of a session");
  return state;
}

// Whether the API lets this role do it. What it does not, is not offered; the server refuses it anyway.
export function permits(role: Role, operation: OperationName): boolean {
  return RANK[role] >= RANK[roleOf[operation]];
}

export function useMay(): (operation: OperationName) => boolean {
  const { session } = useSession();
  return (operation) => permits(session.role, operation);
}
