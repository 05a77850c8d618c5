/**
 * Reports whether a receiver may trust a request; if not, which check failed and what to change.
 * Pure.
 */

import {
  type EventNotification,
  type PlainNotification,
  readNotification,
  readPlainNotification,
} from "../../src/receiver/notification.js";
import { type SignatureProblem, verifySignature } from "../../src/signature/signature.js";
import { getHeader, type HttpMessage } from "./http-message.js";

export interface SignatureCheck {
  secrets: string[];
  toleranceMs: number;
  signatureHeader: string;
  /** Epoch milliseconds. */
  now: number;
}

export interface SignatureReport {
  /** `unverified`: there is no secret to verify with. */
  code: "valid" | "unverified" | "invalid_notification" | SignatureProblem;
  /** Says what was found, and what to change unless the code is `valid`. */
  message: string;
  /**
   * Age of the signature in seconds, negative if it is in the future. `null` if the signature does
   * not match the body.
   */
  ageSeconds: number | null;
  /** The content that the body claims. Do not trust it unless the code is `valid`. */
  notification: EventNotification | PlainNotification | undefined;
}

/** Returns the event type that a notification claims. */
export const typeOfNotification = (notification: NonNullable<SignatureReport["notification"]>): string =>
  "type" in notification ? notification.type : notification.event["hub.event"];

/** Describes an age in seconds, such as `7 s old`, or `3 s in the future` if it is negative. */
export const formatAge = (ageSeconds: number): string =>
  ageSeconds < 0 ? `${-ageSeconds} s in the future` : `${ageSeconds} s old`;

interface Finding {
  code: SignatureReport["code"];
  message: string;
  ageSeconds?: number | null;
}

export function checkSignature(request: HttpMessage, check: SignatureCheck): SignatureReport {
  const notification = readNotification(request.body) ?? readPlainNotification(request.body);
  const finding =
    check.secrets.length === 0
      ? reportWithoutSecret(notification)
      : reportSignature(request, check, notification);
  return { ageSeconds: null, ...finding, notification };
}

const reportWithoutSecret = (notification: SignatureReport["notification"]): Finding =>
  notification === undefined
    ? { code: "invalid_notification", message: "The body is not an event notification." }
    : { code: "unverified", message: "There is no secret to verify with." };

function reportSignature(
  request: HttpMessage,
  check: SignatureCheck,
  notification: SignatureReport["notification"],
): Finding {
  const { body } = request;
  const { secrets, signatureHeader, toleranceMs, now } = check;
  const header = getHeader(request, signatureHeader);
  const result = verifySignature({ body, header, secrets, toleranceMs, now });
  if (result.ok) {
    const ageSeconds = toAge(result.timestamp, now);
    return notification === undefined
      ? {
          code: "invalid_notification",
          message: "The signature is correct, but the body is not an event notification.",
          ageSeconds,
        }
      : { code: "valid", message: "The signature is correct.", ageSeconds };
  }
  switch (result.code) {
    case "missing_header":
      return { code: result.code, message: explainMissing(request, signatureHeader) };
    case "malformed_header":
      return {
        code: result.code,
        message: `${signatureHeader} is not of the form 't=<seconds>, s=<64 lower-case hexadecimal digits>'. Copy the header exactly, with both parts.`,
      };
    case "timestamp_out_of_tolerance":
      return { code: result.code, ...explainAge(body, header, check) };
    case "no_match":
      return { code: result.code, message: explainMismatch({ body, header, secrets, now }) };
  }
}

const toAge = (timestamp: number, now: number): number => Math.floor(now / 1000) - timestamp;

function explainMissing({ headers }: HttpMessage, signatureHeader: string): string {
  const other = headers.find(([name]) => /signature/i.test(name))?.[0];
  const advice =
    other === undefined
      ? "Check that the request has all its headers, and that no proxy in between removes any."
      : `There is ${other}: if the sender's option signature.header has that name, give it with --header.`;
  return `There is no header ${signatureHeader}. ${advice}`;
}

function explainAge(
  body: Uint8Array,
  header: string | undefined,
  { secrets, toleranceMs, now }: SignatureCheck,
): Omit<Finding, "code"> {
  const any = verifySignature({ body, header, secrets, toleranceMs: Number.MAX_VALUE, now });
  const ageSeconds = any.ok ? toAge(any.timestamp, now) : 0;
  const when = ageSeconds < 0 ? `${-ageSeconds} s in the future` : `${ageSeconds} s ago`;
  const cause =
    Math.abs(ageSeconds) > 1e10
      ? "The time seems to be in milliseconds, but the header has seconds."
      : "A receiver must refuse it: it may be a replay, or a clock is wrong. To verify a saved request despite its age, give its time with --at, or a larger --tolerance.";
  return {
    message: `The signature is correct, but was made ${when}; the tolerance is ${toleranceMs / 1_000} s. ${cause}`,
    ageSeconds,
  };
}

// Finds out why a signature does not match, by trying the usual mistakes. Pure.

interface SignedBody {
  body: Uint8Array;
  header: string | undefined;
  secrets: string[];
  now: number;
}

/** A body or secrets as they would be without the mistake. */
interface Correction {
  body?: string | undefined;
  secrets?: string[];
}

interface Mistake {
  /** `text` has one character for each byte of the body. */
  correct: (text: string, secrets: string[]) => Correction[];
  advice: string;
}

const MISTAKES: Mistake[] = [
  {
    correct: (text) => [{ body: text.replace(/\r?\n$/, "") }],
    advice: "A line end was added at the end of the body: it is not part of it.",
  },
  {
    correct: (text) => [{ body: `${text}\n` }, { body: `${text}\r\n` }],
    advice: "The line end at the end of the body is missing: it is part of it.",
  },
  {
    correct: (text) => [{ body: text.replaceAll("\r\n", "\n") }, { body: text.replace(/\r?\n/g, "\r\n") }],
    advice: "The line ends of the body were changed.",
  },
  {
    correct: (text) => [{ body: text.replace(/^\xef\xbb\xbf/, "") }],
    advice: "A byte order mark was added before the body.",
  },
  {
    correct: (text) => [{ body: reserialise(text) }],
    advice:
      "The body was parsed and written again: sign and verify the received bytes, before any body parser.",
  },
  {
    correct: (_, secrets) => [
      { secrets: secrets.map((secret) => secret.trim().replace(/^["']|["']$/g, "")) },
    ],
    advice: "The secret has spaces, a line end or quotation marks around it.",
  },
  {
    correct: (_, secrets) => [{ secrets: secrets.map((secret) => `whsec_${secret}`) }],
    advice: "The secret lacks its beginning: whsec_ is part of it.",
  },
  {
    correct: (_, secrets) => [{ secrets: secrets.map((secret) => secret.replace(/^whsec_/, "")) }],
    advice: "The sender signs with the secret without whsec_; Postbell signs with the complete secret.",
  },
];

const UNKNOWN =
  "Either the secret belongs to another webhook or was rotated, or the body is not, byte for byte, the one that was sent.";

function explainMismatch({ body, header, secrets, now }: SignedBody): string {
  const text = Buffer.from(body).toString("latin1");
  const isMatch = ({ body: changed, secrets: keys = secrets }: Correction): boolean => {
    const usable = keys.filter((key) => key !== "" && key !== "whsec_");
    return (
      usable.length > 0 &&
      verifySignature({
        body: changed === undefined ? body : Buffer.from(changed, "latin1"),
        header,
        secrets: usable,
        toleranceMs: Number.MAX_VALUE,
        now,
      }).ok
    );
  };
  const mistake = MISTAKES.find(({ correct }) => correct(text, secrets).some(isMatch));
  return `The signature does not match this body and secret. ${mistake?.advice ?? UNKNOWN}`;
}

/** Returns the JSON as `JSON.stringify` writes it; empty if the text is not JSON. */
function reserialise(text: string): string {
  try {
    const json = JSON.stringify(JSON.parse(Buffer.from(text, "latin1").toString()));
    return Buffer.from(json).toString("latin1");
  } catch {
    return "";
  }
}
