// SPDX-License-Identifier: Apache-2.0
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";
import { ProblemNote } from "./problem_note";

// A component whose code is fetched when it is first shown.
export function lazy(load: () => Promise<ComponentType>): ComponentType {
  let loaded: ComponentType | undefined;
  return function Lazy() {
    const [Component, setComponent] = useState<ComponentType | undefined>(() => loaded);
    const [problem, setProblem] = useState<Problem>();
    useEffect(() => {
      if (loaded) return;
      load().then((component) => {
        loaded = component;
        setComponent(() => component);
      }, (error: unknown) => setProblem(asProblem(error)));
    }, []);
    if (Component) return <Component />;
    return problem ? <ProblemNote problem={problem} retry={() => location.reload()} /> : <p class="loading" role="status">Loading…</p>;
  };
}
