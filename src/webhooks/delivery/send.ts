/**
 * Puts a host's own way of sending behind the rules that ours keeps by itself: an answer in any
 * case, of the right shape, and in time.
 */

import { type Clock, withTimeout } from "../../core/clock.js";
import type { OutboundFailure, OutboundResult, Send } from "../../outbound/types.js";

/** Time that a host's send may take to notice the deadline by itself. */
const GRACE_MS = 1_000;

const failure = (kind: OutboundFailure["kind"], code: string, message: string): OutboundFailure => ({
  kind,
  code,
  message,
});

const KINDS: ReadonlySet<unknown> = new Set(["refused", "dns", "connect", "tls", "timeout", "http"]);

/** The headers that are text; anything else there would break whoever reads it later. */
const readHeaders = (given: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(typeof given === "object" && given !== null ? given : {}).filter(
      (header): header is [string, string] => typeof header[1] === "string",
    ),
  );

/** What a host's function gave, if it is a result; otherwise a failed attempt, never a success. */
function readResult(given: unknown): OutboundResult {
  const result = (typeof given === "object" && given !== null ? given : {}) as Partial<
    Record<string, unknown>
  >;
  const { kind, status, headers, body, code, message } = result;
  if (kind === "response" && Number.isInteger(status)) {
    return {
      kind,
      status: status as number,
      headers: readHeaders(headers),
      body: body instanceof Uint8Array ? body : new Uint8Array(0),
      complete: result["complete"] === true,
    };
  }
  if (KINDS.has(kind)) return failure(kind as OutboundFailure["kind"], String(code), String(message));
  return failure("http", "SEND_NONSENSE", "delivery.send gave neither a response nor a failure.");
}

/**
 * `send` of the host, made to keep the contract: never rejects, ends soon after the deadline, and
 * whatever is no response is a failure.
 */
export function guardSend(send: Send, clock: Clock): Send {
  return async (request) => {
    try {
      const answer = (async () => send(request))();
      const late = (): Error => new Error("deadline");
      return readResult(await withTimeout(clock, request.deadlineMs + GRACE_MS, answer, late));
    } catch (error) {
      return error instanceof Error && error.message === "deadline"
        ? failure("timeout", "DEADLINE", "delivery.send did not answer before the deadline.")
        : failure("connect", "SEND_THREW", "delivery.send threw.");
    }
  };
}
