/** Where a service is mounted: which part of a request target is the host's, and which the service's. */

import { PostbellError } from "../src/core/errors.js";
import { type Option, readOptions, value } from "../src/core/options.js";
import type { Service } from "../src/http/types.js";

/** Where a service is mounted. */
export interface MountOptions {
  /** The path under which the service answers: `/api`. Default: the root. */
  readonly prefix?: string | undefined;
}

/** A request target, cut at the mount point. */
export interface Mount {
  /** Below the mount point, still encoded, with its leading slash. */
  readonly path: string;
  readonly query: string;
  /** The mount point's own path as the client sent it, without a trailing slash; empty at the root. */
  readonly basePath: string;
}

export const prefixOption: Option<string> = value(
  "a path such as '/api', or ''",
  (given) => typeof given === "string" && /^(?:\/[^?#]*)?$/.test(given),
  "",
);

export const withoutTrailingSlash = (path: string): string => path.replace(/\/$/, "");

/** Refuses, when it is mounted, what could answer no request later. Errors: `invalid_option`. */
export function checkService(factory: string, service: unknown): asserts service is Service {
  const isService = typeof service === "object" && service !== null && "handle" in service;
  if (isService && typeof service.handle === "function") return;
  throw new PostbellError(
    "invalid_option",
    `${factory}: service must be a service, such as createWebhooks() makes.`,
    { field: "service" },
  );
}

/** The prefix in `options`. Errors: `invalid_option` for another key or a prefix that is no path. */
export const readPrefix = (factory: string, options: MountOptions | undefined): string =>
  withoutTrailingSlash(readOptions(factory, { prefix: prefixOption }, options).prefix);

/** Path and query of a request target, of one in absolute form too (RFC 9112 §3.2). */
export function splitTarget(target: string): { readonly path: string; readonly query: string } {
  const own = target.startsWith("/") ? target : target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?]*/i, "");
  const mark = own.indexOf("?");
  return mark < 0 ? { path: own, query: "" } : { path: own.slice(0, mark), query: own.slice(mark + 1) };
}

/**
 * `target` seen from `prefix`; `undefined` where it is not below it: `/apix` is not below `/api`.
 * `wholeTarget` is the target before the host cut off a mount point of its own, as Express, connect and koa-mount do.
 */
export function mountAt(prefix: string, target: string, wholeTarget = target): Mount | undefined {
  const { path, query } = splitTarget(target);
  if (path !== prefix && !path.startsWith(`${prefix}/`)) return undefined;
  const whole = splitTarget(wholeTarget).path;
  // A host that cuts `/hooks` off `/hooks` leaves `/`, in which the whole does not end.
  const cutOff = whole.endsWith(path)
    ? whole.slice(0, whole.length - path.length)
    : path === "/"
      ? whole
      : "";
  // Express 4 cuts off `/api/` where the client sent `/api//posts`: that slash is the service's.
  if (prefix === "" && cutOff.endsWith("/"))
    return { path: `/${path}`, query, basePath: cutOff.slice(0, -1) };
  return { path: path.slice(prefix.length) || "/", query, basePath: cutOff + prefix };
}
