/** Describes a request that `postbell listen` received, as JSON and as text. Pure. */

import { type CliIo, createPainter, printable } from "./command.js";
import type { HttpMessage } from "./http-message.js";
import { formatAge, type SignatureReport } from "./signature-report.js";

/** A line of `--json`. */
export interface CapturedRequest {
  readonly at: string;
  readonly method: string;
  readonly path: string;
  readonly type: string | null;
  readonly id: string | null;
  readonly timestamp: string | null;
  /** Type of the focal resource. */
  readonly resourceType: string | null;
  readonly code: SignatureReport["code"] | "method_not_allowed";
  readonly message: string;
  readonly ageSeconds: number | null;
  /** True if the event was received before, since the command started. */
  readonly repeated: boolean;
  readonly bytes: number;
  readonly status: number;
  readonly saved?: string | undefined;
  readonly forwardError?: string | undefined;
  readonly body?: unknown;
}

/** Returns the id and type that the body claims; `null` if it is not an event notification. */
export const identify = ({ notification }: SignatureReport): Pick<CapturedRequest, "id" | "type"> => ({
  type: notification?.event["hub.event"] ?? null,
  id: notification?.id ?? null,
});

export function toReceived(
  { method, path, body }: HttpMessage,
  report: SignatureReport,
  now: number,
): Omit<CapturedRequest, "repeated" | "status"> {
  const isPost = method === "POST";
  return {
    at: new Date(now).toISOString(),
    ...{ method, path, ...identify(report) },
    timestamp: report.notification?.timestamp ?? null,
    resourceType: getFocalType(report),
    code: isPost ? report.code : "method_not_allowed",
    message: isPost ? report.message : "The method must be POST.",
    ageSeconds: report.ageSeconds,
    bytes: body.length,
  };
}

function getFocalType({ notification }: SignatureReport): string | null {
  const resource: unknown = notification?.event.context[0].resource.entry[0]?.resource;
  const type =
    typeof resource === "object" && resource !== null && "resourceType" in resource
      ? resource.resourceType
      : null;
  return typeof type === "string" ? type : null;
}

const COLOURS: { readonly [code in CapturedRequest["code"]]?: "green" | "yellow" } = {
  valid: "green",
  unverified: "yellow",
};

/** Formats a request as one line or a few for a person. */
export function formatReceived(received: CapturedRequest, io: CliIo): string {
  const paint = createPainter(io);
  const { code, type, id, resourceType, ageSeconds, repeated, bytes, status } = received;
  const colour = COLOURS[code] ?? "red";
  const facts = [
    type === null ? `${received.method} ${received.path}` : `${type} ${id}`,
    ...(resourceType === null ? [] : [resourceType]),
    ...(ageSeconds === null ? [] : [`signature ${formatAge(ageSeconds)}`]),
    `${bytes} bytes`,
    ...(repeated ? ["repeated"] : []),
    `response ${status}`,
  ];
  const lines = [
    `${paint("dim", received.at.slice(11, 19))} ${paint(colour, code)} ${printable(facts.join(", "))}`,
    ...(colour === "red" ? [`  ${printable(received.message)}`] : []),
    ...listDetails(received),
  ];
  return `${lines.join("\n")}\n`;
}

const listDetails = ({ saved, forwardError, body }: CapturedRequest): readonly string[] => [
  ...(saved === undefined ? [] : [`  saved as ${printable(saved)}`]),
  ...(forwardError === undefined ? [] : [`  not forwarded: ${printable(forwardError)}`]),
  ...(body === undefined ? [] : JSON.stringify(body, null, 2).split("\n").map(printable)),
];
