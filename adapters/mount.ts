/** Splits a request target at the mount point into the host's part and the service's part. */

import { PostbellError } from "../src/core/errors.js";
import { type Option, readOptions, value } from "../src/core/options.js";
import type { Service } from "../src/http/types.js";

/** The options that every adapter with a prefix shares. */
export interface MountOptions {
  /**
   * The path below which the service is mounted, such as `/api`. Default: `""`, the root. Set it if
   * the host serves other paths too.
   */
  prefix?: string | undefined;
}

/** A request target, split at the mount point. */
export interface Mount {
  /** Below the mount point, still encoded, with its leading slash. */
  path: string;
  query: string;
  /**
   * The mount point's path as the client sent it, without a trailing slash; empty at the root.
   */
  basePath: string;
}

export const prefixOption: Option<string> = value(
  "a path such as '/api', or ''",
  (value) => typeof value === "string" && /^(?:\/[^?#]*)?$/.test(value),
  "",
);

export const withoutTrailingSlash = (path: string): string => path.replace(/\/$/, "");

/** @throws PostbellError `invalid_option` unless `service` has a `handle` method */
export function checkService(factory: string, service: unknown): asserts service is Service {
  const isService = typeof service === "object" && service !== null && "handle" in service;
  if (isService && typeof service.handle === "function") return;
  throw new PostbellError(
    "invalid_option",
    `${factory}: service must be a service, such as the result of createWebhooks().`,
    { field: "service" },
  );
}

/** @throws PostbellError `invalid_option` for an unknown key or a prefix that is not a path */
export const readPrefix = (factory: string, options: MountOptions | undefined): string =>
  withoutTrailingSlash(readOptions(factory, { prefix: prefixOption }, options).prefix);

/** Splits a request target into path and query, also one in absolute form (RFC 9112 §3.2). */
function splitTarget(target: string): { path: string; query: string } {
  const path = target.startsWith("/") ? target : target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?]*/i, "");
  const mark = path.indexOf("?");
  return mark < 0 ? { path, query: "" } : { path: path.slice(0, mark), query: path.slice(mark + 1) };
}

/**
 * Splits `target` at `prefix`. Returns `undefined` if it is not below it: `/apix` is not below
 * `/api`.
 *
 * @param wholeTarget the target before the host cut off its mount point, as Express, connect
 *   and koa-mount do
 */
export function mountAt(prefix: string, target: string, wholeTarget = target): Mount | undefined {
  const { path, query } = splitTarget(target);
  if (path !== prefix && !path.startsWith(`${prefix}/`)) return undefined;
  const whole = splitTarget(wholeTarget).path;
  // A host that cuts `/hooks` off `/hooks` leaves `/`, which the whole target does not end with.
  const cutOff = whole.endsWith(path)
    ? whole.slice(0, whole.length - path.length)
    : path === "/"
      ? whole
      : "";
  // Express 4 cuts `/api/` off `/api//posts`. That slash belongs to the service's path.
  if (prefix === "" && cutOff.endsWith("/"))
    return { path: `/${path}`, query, basePath: cutOff.slice(0, -1) };
  return { path: path.slice(prefix.length) || "/", query, basePath: cutOff + prefix };
}

/**
 * Cuts as many segments off the target as the prefix has, for a host that matched the prefix
 * itself: with other rules for case, encoding and parameters, the text need not be the same.
 */
export function cutSegments(prefix: string, target: string): Mount {
  const { path, query } = splitTarget(target);
  let cut = 0;
  for (let at = prefix.indexOf("/"); at >= 0; at = prefix.indexOf("/", at + 1)) {
    const next = path.indexOf("/", cut + 1);
    cut = next < 0 ? path.length : next;
  }
  return { path: path.slice(cut) || "/", query, basePath: path.slice(0, cut) };
}
