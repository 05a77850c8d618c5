/** Requests of the page to the portal's API. */

import type { ErrorJson } from "../shapes.js";
import { texts } from "./texts.js";

/** A response without a 2xx status, or no response (`status` 0). The message is for the visitor. */
export class ApiError extends Error {
  override name = "ApiError";
  status: number;
  code: string;
  /** The field of the request at fault. */
  field: string | undefined;
  /** The message of the API, in English, if the one for the visitor is in another language. */
  detail: string | undefined;

  constructor(status: number, { code, message, field }: ErrorJson["error"], detail?: string) {
    super(message);
    this.detail = detail;
    this.status = status;
    this.code = code;
    this.field = field;
  }
}

const lookUp = (table: Partial<Record<string, string>>, name: string): string =>
  (Object.hasOwn(table, name) ? table[name] : undefined) ?? "";

/** Returns the text of the page for an error of the API; the empty text if it has none. */
function translateError(status: number, { code, field = "" }: ErrorJson["error"]): string {
  const { byField, byCode, byStatus } = texts.errors;
  const isInvalid = code === "invalid_request" || code === "rest_invalid_param";
  return (
    (isInvalid && lookUp(byField, getFieldName(field))) ||
    lookUp(byCode, code) ||
    lookUp(byStatus, String(status))
  );
}

/** Returns the field of a form that a path of the API is about: `filter` of `filter['data.a']`. */
export const getFieldName = (path: string): string => path.split(/[.[]/)[0] ?? "";

export interface Api {
  /** The absolute address of a path of the API: `webhooks`. For uploads and images. */
  url: (path: string) => string;
  /** Headers that every change must carry. */
  headers: Record<string, string>;
  /**
   * Omits parameters that are empty or `undefined`. Both calls throw an ApiError, or an AbortError
   * once the signal of `within` has aborted.
   */
  get: <T>(path: string, query?: Record<string, string | number | undefined>) => Promise<T>;
  /** `headers`: beside those that every change carries. */
  send: <T>(
    method: "POST" | "PUT" | "DELETE",
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => Promise<T>;
  /** The same API, with requests that `signal` aborts. */
  within: (signal: AbortSignal) => Api;
}

const PAGE_HEADER = { "x-postbell-portal": "1" };

/** After this time a request fails, so that a lost network is reported. Uploads are separate. */
const PATIENCE_MS = 30_000;

/** The session has ended. What is on the page, and typed into it, stays. */
const signedOut = (): ApiError =>
  new ApiError(401, {
    code: "unauthorized",
    message: texts.errors.signedOut,
  });

/** Returns the error that the body of a response describes. */
export function parseError(status: number, text: string): ApiError {
  if (status === 401) return signedOut();
  try {
    const { error } = JSON.parse(text) as ErrorJson;
    if (typeof error.message === "string") {
      const translated = translateError(status, error);
      if (translated === "") return new ApiError(status, error);
      return new ApiError(status, { ...error, message: translated }, error.message);
    }
  } catch {
    // The body is not ours: a proxy in front of the host has responded.
  }
  const message = texts.errors.answeredWith({ status: String(status) });
  return new ApiError(status, { code: "unavailable", message });
}

/**
 * Creates the client of the API below `base`. `account`: the one that an operator looks at.
 * `signal` aborts requests that are in flight.
 */
export function createApi(base: URL, account?: string | null, signal?: AbortSignal): Api {
  const accountHeader: Record<string, string> =
    account == null ? {} : { "x-postbell-account": encodeURIComponent(account) };
  const pageHeaders = { ...PAGE_HEADER, ...accountHeader };
  const call = async (path: string, init: RequestInit): Promise<unknown> => {
    const patience = AbortSignal.timeout(PATIENCE_MS);
    const ends = signal === undefined ? patience : AbortSignal.any([signal, patience]);
    let response: Response;
    let text: string;
    try {
      // Not followed: a host may redirect to its sign-in page.
      response = await fetch(new URL(path, base), { ...init, redirect: "manual", signal: ends });
      text = await response.text();
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError(0, { code: "unreachable", message: texts.errors.unreachable });
    }
    if (response.type === "opaqueredirect") throw signedOut();
    if (!response.ok) throw parseError(response.status, text);
    return text === "" ? {} : JSON.parse(text);
  };

  return {
    within: (narrower) => createApi(base, account, narrower),
    url: (path) => new URL(path, base).href,
    headers: pageHeaders,
    get<T>(path: string, query: Record<string, string | number | undefined> = {}) {
      const entries = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
      const search = new URLSearchParams(
        entries.map(([name, value]): [string, string] => [name, String(value)]),
      );
      return call(entries.length === 0 ? path : `${path}?${search}`, {
        headers: accountHeader,
      }) as Promise<T>;
    },
    send<T>(method: string, path: string, body: unknown = {}, extraHeaders: Record<string, string> = {}) {
      const headers = { ...extraHeaders, ...pageHeaders, "content-type": "application/json" };
      return call(path, { method, headers, body: JSON.stringify(body) }) as Promise<T>;
    },
  };
}
