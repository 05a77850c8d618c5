/** The views of the page: their interface, and the context that they get. */

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
  /** Fills `root`, which is empty. Its error is shown instead. */
  render(root: HTMLElement, params: Params, page: PageContext): Promise<void>;
}

export interface PageContext {
  /** Its requests are aborted when the view is left. */
  readonly api: Api;
  /** Aborts when the view is left. */
  readonly signal: AbortSignal;
  /** Sets the heading and the title of the document. */
  readonly title: (text: string) => void;
  /** Says an outcome, on the page and to a screen reader. */
  readonly say: (text: string, kind?: "done" | "failed") => void;
  /** Says an error. A form shows the errors of its fields itself. */
  readonly fail: (error: unknown) => void;
  readonly go: (path: string) => void;
  /** Calls `load` every few seconds while the page is visible. An error is said once. */
  readonly keepFresh: (load: () => Promise<void>) => void;
}

/** Returns the message for a visitor about something thrown. */
export const getMessage = (error: unknown): string =>
  error instanceof ApiError ? error.message : "Something went wrong on this page; reload it.";

/** Returns the parameters of `path` if it matches `pattern`. */
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
