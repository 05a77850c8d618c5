/** Short requests to a content service in this process, as somebody in a role. */

import type { createContent } from "../../src/content/service.js";
import type { Json, JsonObject } from "../../src/schema/types.js";
import { idOf, type Role } from "./content-site.js";

export interface CallOptions {
  /** Default: anonymous. */
  readonly as?: Role | undefined;
  readonly query?: { readonly [name: string]: Json };
  readonly body?: JsonObject;
}

export interface CallAnswer {
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  readonly body: ReturnType<typeof JSON.parse>;
}

export type Call = (request: string, options?: CallOptions) => Promise<CallAnswer>;

/**
 * `call("POST /categories", { as: "editor", body: { name: "News" } })`, below the content
 * namespace.
 */
export const callsOf =
  (site: ReturnType<typeof createContent>, namespace = "core/v2"): Call =>
  async (request, { as, ...rest } = {}) => {
    const [method = "", path = ""] = request.split(" ");
    return site.request({
      method,
      path: `/${namespace}${path}`,
      as: as === undefined ? null : idOf(as),
      ...rest,
    });
  };
