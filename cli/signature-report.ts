/** Whether a request is a notification that a receiver may trust; if not, which check failed and what to change. Pure. */

import { type EventNotification, readNotification } from "../receiver/notification.js";
import { type SignatureProblem, verifySignature } from "../src/signature/signature.js";
import { getHeader, type HttpMessage } from "./http-message.js";

export interface ReportLine {
  readonly secrets: readonly string[];
  readonly toleranceSeconds: number;
  readonly signatureHeader: string;
  /** Epoch ms. */
  readonly now: number;
}

export interface SignatureReport {
  /** `unverified`: there is no secret to verify with. */
  readonly code: "valid" | "unverified" | "invalid_notification" | SignatureProblem;
  /** What was found; for all codes but `valid`, and what to change. */
  readonly message: string;
  /** Seconds since the signature was made; negative: it is from the future. Only where it belongs to the body. */
  readonly ageSeconds: number | null;
  /** What the body says it is; not to be trusted unless `valid`. */
  readonly notification: EventNotification | undefined;
}

export function checkSignature(request: HttpMessage, check: ReportLine): SignatureReport {
  const { secrets, toleranceSeconds, signatureHeader, now } = check;
  const { body } = request;
  const notification = readNotification(body);
  const found = (
    code: SignatureReport["code"],
    message: string,
    ageSeconds: number | null = null,
  ): SignatureReport => ({
    code,
    message,
    ageSeconds,
    notification,
  });
  if (secrets.length === 0) {
    return notification === undefined
      ? found("invalid_notification", "The body is no event notification.")
      : found("unverified", "There is no secret to verify with.");
  }
  const header = getHeader(request, signatureHeader);
  const age = (timestamp: number): number => Math.floor(now / 1000) - timestamp;
  const result = verifySignature({ body, header, secrets, toleranceSeconds, now });
  if (result.ok) {
    return notification === undefined
      ? found(
          "invalid_notification",
          "The signature is right, but the body is no event notification.",
          age(result.timestamp),
        )
      : found("valid", "The signature is right.", age(result.timestamp));
  }
  switch (result.code) {
    case "missing_header":
      return found(result.code, missingAdvice(request, signatureHeader));
    case "malformed_header":
      return found(
        result.code,
        `${signatureHeader} is not of the form 't=<seconds>, s=<64 lower-case hexadecimal digits>'. Take it over as it came, with both parts.`,
      );
    case "timestamp_out_of_tolerance": {
      const any = verifySignature({ body, header, secrets, toleranceSeconds: Number.MAX_VALUE, now });
      const seconds = any.ok ? age(any.timestamp) : 0;
      const [when, needed] = seconds < 0 ? ["in the future", -seconds] : ["ago", seconds];
      const cause =
        needed > 1e10
          ? "The time looks like milliseconds: the header has seconds."
          : "A receiver must refuse that: it may be a replay, or a clock is wrong. To leave the age of a saved request out, give its time with --at, or a larger --tolerance.";
      return found(
        result.code,
        `The signature is right, but was made ${needed} s ${when}, and ${toleranceSeconds} s are tolerated. ${cause}`,
        seconds,
      );
    }
    case "no_match":
      return found(result.code, mismatchAdvice(body, header, secrets, now));
  }
}

function missingAdvice({ headers }: HttpMessage, signatureHeader: string): string {
  const other = headers.find(([name]) => /signature/i.test(name))?.[0];
  const advice =
    other === undefined
      ? "Is this the whole head of the request, and did a proxy in between keep it?"
      : `There is ${other}: if the sender's option signature.header has that name, give it with --header.`;
  return `There is no header ${signatureHeader}. ${advice}`;
}

/** Tries what usually goes wrong, until one of it makes the signature right. */
function mismatchAdvice(
  body: Uint8Array,
  header: string | undefined,
  secrets: readonly string[],
  now: number,
): string {
  const matches = (changed: Uint8Array | string, keys: readonly string[] = secrets): boolean => {
    const usable = keys.filter((key) => key !== "" && key !== "whsec_");
    const toleranceSeconds = Number.MAX_VALUE;
    return (
      usable.length > 0 &&
      verifySignature({ body: changed, header, secrets: usable, toleranceSeconds, now }).ok
    );
  };
  const text = Buffer.from(body).toString("latin1");
  const bytes = (changed: string): Uint8Array => Buffer.from(changed, "latin1");
  const guesses: readonly (readonly [isIt: () => boolean, advice: string])[] = [
    [
      () => matches(bytes(text.replace(/\r?\n$/, ""))),
      "A line end was added at the end of the body: it is not part of it.",
    ],
    [
      () => matches(bytes(`${text}\n`)) || matches(bytes(`${text}\r\n`)),
      "The line end at the end of the body is missing: it is part of it.",
    ],
    [
      () => matches(bytes(text.replaceAll("\r\n", "\n"))) || matches(bytes(text.replace(/\r?\n/g, "\r\n"))),
      "The line ends of the body were changed.",
    ],
    [() => matches(bytes(text.replace(/^\xef\xbb\xbf/, ""))), "A byte order mark was put before the body."],
    [
      () => matches(rewritten(body)),
      "The body was parsed and written again: sign and verify the bytes as they came, before any body parser.",
    ],
    [
      () =>
        matches(
          body,
          secrets.map((secret) => secret.trim().replace(/^["']|["']$/g, "")),
        ),
      "The secret has spaces, a line end or quotation marks around it.",
    ],
    [
      () =>
        matches(
          body,
          secrets.map((secret) => `whsec_${secret}`),
        ),
      "The secret lacks its beginning: whsec_ is part of it.",
    ],
    [
      () =>
        matches(
          body,
          secrets.map((secret) => secret.replace(/^whsec_/, "")),
        ),
      "The sender signs with the secret without whsec_; Postbell signs with the whole.",
    ],
  ];
  const advice = guesses.find(([isIt]) => isIt())?.[1];
  return `The signature does not belong to this body and secret. ${advice ?? "Either it is the secret of another webhook or one that was rotated, or the body is not, byte for byte, what was sent."}`;
}

function rewritten(body: Uint8Array): string {
  try {
    return JSON.stringify(JSON.parse(Buffer.from(body).toString()));
  } catch {
    return "";
  }
}
