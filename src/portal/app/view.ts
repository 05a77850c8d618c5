/** The views of the page, and its path, which stands behind the `#` of its address. */

import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { parse } from "regexparam";
import type { SessionJson } from "../shapes.js";
import type { Api } from "./api.js";
import type { Target } from "./tone.js";

export interface ViewProps {
  params: Params;
  /** The query behind the path. */
  query: URLSearchParams;
}

export interface View {
  /** Below the `#`: `/webhooks/:webhookId`. */
  path: string;
  part: "accounts" | "webhooks" | "content";
  /** False if there is no such view in this session. Default: there is. */
  isOffered?: (session: SessionJson) => boolean;
  /** Returns its text in the navigation; absent: it is not in the navigation. */
  label?: () => string;
  /** The icon in front of its label. */
  icon?: FunctionComponent;
  /** Reads how many things on it need attention, for the badge behind its label. */
  readCount?: (api: Api) => Promise<number>;
  /** Reads what the jump box finds below the view. */
  readTargets?: (api: Api) => Promise<Target[]>;
  /** Returns the path at which the view shows what it has for a text. */
  searchPath?: (text: string) => string;
  component: FunctionComponent<ViewProps>;
  /**
   * Views with the same key are one view with several addresses: it keeps its state when the
   * visitor moves between them. Default: each address is a separate view.
   */
  key?: (params: Params) => string;
}

export type Params = Record<string, string>;

/** Returns the parameters of `path` if it matches `pattern`, such as `/webhooks/:id`. */
export function matchPath(pattern: string, path: string): Params | undefined {
  const { keys, pattern: expression } = parse(pattern);
  const found = expression.exec(path);
  if (found === null) return undefined;
  try {
    return Object.fromEntries(keys.map((key, index) => [key, decodeURIComponent(found[index + 1] ?? "")]));
  } catch {
    return undefined;
  }
}

/** The account that an operator looks at: it is part of the address of the page. */
export const readAccount = (): string | null => new URLSearchParams(location.search).get("account");

/** Returns the address of a view of the page for an account, or for none. */
export const pageOf = (account: string | undefined, path: string): string =>
  `${location.pathname}${account === undefined ? "" : `?${new URLSearchParams({ account })}`}#${path}`;

const readHash = (): string => location.hash.slice(1) || "/";

/** Returns the present path and the query behind it. Renders again when they change. */
export function useLocation(): { path: string; query: URLSearchParams } {
  const [hash, setHash] = useState(readHash);
  useEffect(() => {
    const update = (): void => setHash(readHash());
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  const [path = "/", query = ""] = hash.split("?", 2);
  return { path: path || "/", query: new URLSearchParams(query) };
}
