/** Errors in words for the visitor. */

import { ApiError } from "./api.js";

/** Returns the message for a visitor about something thrown. */
export const getMessage = (error: unknown): string =>
  error instanceof ApiError ? error.message : "Something went wrong on this page; reload it.";

/** True for requests that were aborted because the view was left. */
export const isAbort = (error: unknown): boolean =>
  error instanceof DOMException && error.name === "AbortError";
