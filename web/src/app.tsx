// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useState } from "preact/hooks";
import type { Session, Setup } from "./api/generated";
import { call, setCsrfToken, whenLoggedOut } from "./api/call";
import { asProblem, type Problem } from "./api/problem";
import { Login } from "./pages/entry/login";
import { FirstStart } from "./pages/entry/first_start";
import { Away } from "./pages/entry/away";
import { SessionContext } from "./session";
import { Shell } from "./shell";

type State =
  | { at: "start" }
  | { at: "away"; problem: Problem }
  | { at: "first-start"; setup: Setup }
  | { at: "login"; ended: boolean }
  | { at: "in"; session: Session };

// Who is there decides what is shown: the first start, the login, or the console.
export function App() {
  const [state, setState] = useState<State>({ at: "start" });

  const enter = useCallback((session: Session) => {
    setCsrfToken(session.csrf_token);
    setState({ at: "in", session });
  }, []);

  const find = useCallback(async () => {
    try {
      const setup = await call("GET /setup");
      if (setup.needed) return setState({ at: "first-start", setup });
      enter(await call("GET /session"));
    } catch (error) {
      const problem = asProblem(error);
      setState(problem.status === 401 ? { at: "login", ended: false } : { at: "away", problem });
    }
  }, [enter]);

  useEffect(() => {
    whenLoggedOut(() => {
      setCsrfToken(null);
      setState({ at: "login", ended: true });
    });
    void find();
  }, [find]);

  const logOut = useCallback(async () => {
    await call("DELETE /session");
    setCsrfToken(null);
    setState({ at: "login", ended: false });
  }, []);

  switch (state.at) {
    case "start": return <p class="loading" role="status">Loading…</p>;
    case "away": return <Away problem={state.problem} retry={find} />;
    case "first-start": return <FirstStart setup={state.setup} onDone={enter} onSetUpElsewhere={find} />;
    case "login": return <Login ended={state.ended} onDone={enter} />;
    case "in": return (
      <SessionContext.Provider value={{ session: state.session, logOut }}>
        <Shell />
      </SessionContext.Provider>
    );
  }
}
