// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import type { Event as ServerEvent } from "../../api/generated";
import { call, urlOf } from "../../api/call";
import { asProblem, type Problem } from "../../api/problem";
import { joinedEvents } from "./event_list";

export type Level = ServerEvent["level"];

export interface EventFilter {
  level: Level;
  component: string;
  name: string;
}

export interface LiveEvents {
  events: ServerEvent[];
  // live: as they happen; away: the stream broke and is tried again; paused: by the reader.
  state: "opening" | "live" | "away" | "paused";
  problem: Problem | undefined;
}

const OLD_SHOWN = 1000;

// What has happened, then what happens, by one stream; a break is repaired by the browser, which says where it was.
export function useEvents({ level, component, name }: EventFilter, paused: boolean): LiveEvents {
  const [events, setEvents] = useState<ServerEvent[]>([]);
  const [state, setState] = useState<LiveEvents["state"]>("opening");
  const [problem, setProblem] = useState<Problem>();

  useEffect(() => setEvents([]), [level, component, name]);

  useEffect(() => {
    if (paused) {
      setState("paused");
      return undefined;
    }
    const controller = new AbortController();
    const query = { level, component: component || undefined, name: name || undefined };
    const join = (fresh: ServerEvent[]) => setEvents((shown) => joinedEvents(shown, fresh));
    const readOld = () => call("GET /events", { query: { ...query, limit: OLD_SHOWN }, signal: controller.signal }).then(
      ({ items }) => {
        setProblem(undefined);
        join(items);
      },
      (error: unknown) => {
        if (!controller.signal.aborted) setProblem(asProblem(error));
      });
    setState("opening");
    const stream = new EventSource(urlOf("GET /events/stream", undefined, query));
    stream.addEventListener("open", () => {
      setState("live");
      void readOld();
    });
    stream.addEventListener("event", (message) => join([JSON.parse(message.data as string) as ServerEvent]));
    stream.addEventListener("lost", () => void readOld());
    stream.addEventListener("error", () => {
      setState("away");
      // Closed for good: the server refused. A plain request says why.
      if (stream.readyState === EventSource.CLOSED) void readOld();
    });
    return () => {
      controller.abort();
      stream.close();
    };
  }, [level, component, name, paused]);

  return { events, state, problem };
}
