/** The path of the page, which stands behind the `#` of its address. */

import { useEffect, useState } from "preact/hooks";
import { parse } from "regexparam";

export type Params = Readonly<Record<string, string>>;

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

const readHash = (): string => location.hash.slice(1) || "/";

/** Returns the present path and the query behind it. Renders again when they change. */
export function useLocation(): { readonly path: string; readonly query: URLSearchParams } {
  const [hash, setHash] = useState(readHash);
  useEffect(() => {
    const update = (): void => setHash(readHash());
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  const [path = "/", query = ""] = hash.split("?", 2);
  return { path: path || "/", query: new URLSearchParams(query) };
}
