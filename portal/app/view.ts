/** What a view of the page is, and what it is given. */

import type { Api } from "./api.js";
import { ApiError } from "./api.js";

export type Params = Readonly<Record<string, string>>;

export interface View {
  /** Below the `#`: `/webhooks/:webhookId`. Each parameter is one whole segment. */
  readonly path: string;
  /** Heading and title of the document until the view sets another one. */
  readonly title: string;
  readonly part: "webhooks" | "content";
  /** Where the view stands in the navigation; absent: nowhere. */
  readonly label?: string;
  /** Fills `root`, which is empty. What it rejects with is shown in its place. */
  render(root: HTMLElement, params: Params, page: PageContext): Promise<void>;
}

export interface PageContext {
  /** What it has under way ends with the view. */
  readonly api: Api;
  /** Aborts when the view is left. */
  readonly signal: AbortSignal;
  /** Sets the heading and the title of the document. */
  readonly title: (text: string) => void;
  /** Says an outcome, on the page and to a screen reader. */
  readonly say: (text: string, kind?: "done" | "failed") => void;
  /** The same for an error; one of a field is said by the form it belongs to. */
  readonly fail: (error: unknown) => void;
  readonly go: (path: string) => void;
  /** Calls `load` every few seconds while the page is visible; what it rejects with is said once. */
  readonly keepFresh: (load: () => Promise<void>) => void;
}

/** What a visitor is told of something thrown. */
export const getMessage = (error: unknown): string =>
  error instanceof ApiError ? error.message : "Something went wrong on this page; reload it.";

/** The parameters of `path`, where it has the form of `pattern`. */
export function match(pattern: string, path: string): Params | undefined {
  const names = pattern.split("/");
  const segments = path.split("/");
  if (names.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, name] of names.entries()) {
    const segment = segments[index] ?? "";
    if (!name.startsWith(":")) {
      if (name !== segment) return undefined;
      continue;
    }
    try {
      params[name.slice(1)] = decodeURIComponent(segment);
    } catch {
      return undefined;
    }
  }
  return params;
}
