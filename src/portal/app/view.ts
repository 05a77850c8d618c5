/** The views of the page, as the table of views lists them. */

import type { FunctionComponent } from "preact";
import type { Params } from "./router.js";

export interface ViewProps {
  readonly params: Params;
  /** The query behind the path. */
  readonly query: URLSearchParams;
}

export interface View {
  /** Below the `#`: `/webhooks/:webhookId`. */
  readonly path: string;
  readonly part: "webhooks" | "content";
  /** Its text in the navigation; absent: it is not in the navigation. */
  readonly label?: string;
  readonly component: FunctionComponent<ViewProps>;
  /**
   * Views with the same key are one view with several addresses: it keeps its state when the
   * visitor moves between them. Default: each address is a view of its own.
   */
  readonly key?: (params: Params) => string;
}
