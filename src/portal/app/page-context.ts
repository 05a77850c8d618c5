/** The context of all views: the session, the API, the status line and the time zone. */

import { type Context, createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { SessionJson } from "../shapes.js";
import type { Api } from "./api.js";
import type { Zone } from "./times.js";

export interface PageContext {
  session: SessionJson;
  api: Api;
  /** Returns the time of the server in epoch ms. */
  now: () => number;
  /** Announces a result, on the page and to screen readers. */
  say: (text: string, kind?: "done" | "failed") => void;
  /** Announces an error. A form shows the errors of its fields itself. */
  fail: (error: unknown) => void;
  /** Shows another path. The status line keeps what was announced just before. */
  go: (path: string) => void;
  /** The zone in which times are shown. */
  zone: Zone;
}

export const PageContext: Context<PageContext | undefined> = createContext<PageContext | undefined>(
  undefined,
);

export function usePage(): PageContext {
  const page = useContext(PageContext);
  if (page === undefined) throw new Error("usePage is called outside the page");
  return page;
}

/** Returns a signal that aborts when the component is removed from the page. */
export function useLeaveSignal(): AbortSignal {
  const [controller] = useState(() => new AbortController());
  useEffect(() => () => controller.abort(), [controller]);
  return controller.signal;
}
