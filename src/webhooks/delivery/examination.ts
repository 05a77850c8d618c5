/** The checks of an examination: their names, their words, and the verdict on a response. */

import type { Attempt } from "../store.js";

/** A check of an examination, in the order in which they are made. */
export type ExaminationCheckName =
  | "signed"
  | "prompt"
  | "wrong_signature"
  | "changed_body"
  | "unsigned"
  | "old_signature"
  | "duplicate"
  | "unknown_type"
  | "slow_body"
  | "large_body";

/**
 * The mistake of an endpoint. `unreachable`: no response. `late`: none in time. `accepted`: a 2xx
 * to a request that it must refuse. `refused`: a 4xx to one that it must accept. `redirected`: a
 * 3xx, which is not followed. `broken`: a 5xx.
 */
export type ExaminationProblem = "unreachable" | "late" | "accepted" | "refused" | "redirected" | "broken";

/** The result of one check. */
export interface ExaminationCheck {
  readonly name: ExaminationCheckName;
  /**
   * `skipped`: not made, because the endpoint does not accept correct notifications, because the
   * time is over, or for `slow_body` because `delivery.send` sends the requests.
   */
  readonly result: "passed" | "failed" | "skipped";
  readonly problem: ExaminationProblem | null;
  /** The status of the response; `null` without one. */
  readonly status: number | null;
  /** Why there is no response, as in the delivery log; `null` if there is one. */
  readonly code: string | null;
  /** `null` if it was skipped. */
  readonly durationMs: number | null;
  /** Names the request, for people. */
  readonly title: string;
  /** The response of a good endpoint, for people. */
  readonly expected: string;
  /** How to repair it, for people; `null` unless it failed. */
  readonly fix: string | null;
}

/** The report of an examination. */
export interface Examination {
  readonly at: Date;
  /** True if no check failed. */
  readonly isPassed: boolean;
  readonly checks: readonly ExaminationCheck[];
}

/** The call that examines an endpoint. */
export interface ExaminationCalls {
  /**
   * Sends ten test notifications to an endpoint, good and bad ones, and reports what it does wrong
   * and how to repair it: a correct one, wrong and old signatures, a repetition, an unknown type, a
   * slow and a large body. All are marked as tests, as those of `test`. Nothing is stored, counted
   * for the health of the endpoint, or retried. It takes at most 25 s.
   *
   * The requests are like attacks, so an ENABLED webhook, which may be in production, has to be
   * confirmed. One examination of an account runs at a time.
   *
   * @param request.evenIfEnabled examines an ENABLED webhook, too. Default false.
   *
   * @throws `webhook_enabled` without `evenIfEnabled`; `rate_limited` beyond
   * `limits.repairsPerMinute` for a webhook, and while another examination runs.
   *
   * @example
   * const { isPassed, checks } = await webhooks.deliveries.examine({ webhookId });
   * for (const { title, fix } of checks) if (fix !== null) console.log(`${title}: ${fix}`);
   */
  examine(request: { webhookId: string; evenIfEnabled?: boolean | undefined }): Promise<Examination>;
}

/** A response within this time is prompt. */
const PROMPT_MS = 3_000;

/** How long one request may take. */
export const REQUEST_MS = 5_000;

interface CheckWords {
  title: string;
  expected: string;
  fix: string;
}

const ACCEPTS = "a 2xx";
const REFUSES = "a 4xx, such as 400 or 401";
const VERIFY =
  "Compute the signature over the raw bytes of the body and compare it before anything else. createReceiver({ secrets, onEvent }) does, and responds 400";

/** The words of each check. Those of the portal are in its own languages. */
const CHECKS: Record<ExaminationCheckName, CheckWords> = {
  signed: {
    title: "A correct notification",
    expected: ACCEPTS,
    fix: "Check the URL and the secret: the endpoint must respond 2xx to every notification whose signature is right. With createReceiver, pass the secret of this webhook as secrets, and mount it at this path.",
  },
  prompt: {
    title: "The time of the response",
    expected: `a response within ${PROMPT_MS / 1_000} s`,
    fix: "Respond first, then work: let onEvent of createReceiver({ onEvent }) put the event into a queue and return.",
  },
  wrong_signature: {
    title: "A signature with another secret",
    expected: REFUSES,
    fix: `Anybody can send it events. ${VERIFY}.`,
  },
  changed_body: {
    title: "The signature of another body",
    expected: REFUSES,
    fix: `Events can be changed on their way. ${VERIFY}. Mount it before body parsers, because JSON that was parsed and written again has other bytes.`,
  },
  unsigned: {
    title: "No signature",
    expected: REFUSES,
    fix: `A missing signature must not count as a right one. ${VERIFY}.`,
  },
  old_signature: {
    title: "A right signature that is an hour old",
    expected: REFUSES,
    fix: "Whoever recorded a notification can send it again. Refuse signatures that are older than five minutes, and keep the clock of the server right. createReceiver({ toleranceMs: 300_000 }) does by default.",
  },
  duplicate: {
    title: "The first notification once more",
    expected: `${ACCEPTS}, without acting a second time`,
    fix: "An event may arrive twice. Remember the ids of events, and respond 2xx to those that you have handled. createReceiver({ duplicates: { ttlMs } }) does; with several processes, pass storage too, such as pgReceived({ pool }).",
  },
  unknown_type: {
    title: "An event of an unknown type",
    expected: `${ACCEPTS}: it is ignored`,
    fix: "New types are added over time, and whatever gets no 2xx is sent for days. Let onEvent of createReceiver({ onEvent }) return for types that it does not handle, and not throw.",
  },
  slow_body: {
    title: "A body that arrives over two seconds",
    expected: ACCEPTS,
    fix: "Senders on bad lines are slow. Let the server and its proxy wait ten seconds for a body, as createReceiver({ onEvent }) does.",
  },
  large_body: {
    title: "A body of the largest size",
    expected: ACCEPTS,
    fix: "Raise the limit of the body in the server, its proxy and its body parser. createReceiver({ limits: { requestBytes: 1_048_576 } }) takes 1 MiB by default.",
  },
};

/** The checks that the endpoint must refuse. */
const REFUSED: ReadonlySet<ExaminationCheckName> = new Set([
  "wrong_signature",
  "changed_body",
  "unsigned",
  "old_signature",
]);

export const EXAMINATION_PROBLEMS: readonly ExaminationProblem[] = [
  "unreachable",
  "late",
  "accepted",
  "refused",
  "redirected",
  "broken",
];

export const EXAMINATION_CHECKS: readonly ExaminationCheckName[] = Object.keys(
  CHECKS,
) as ExaminationCheckName[];

/** The response to a check, or why there is none, as the reader of the report may see it. */
type CheckedResponse = Pick<Attempt, "kind" | "status" | "code" | "durationMs">;

/** Returns the mistake in the response to a check; `null` without one. */
function findProblem(
  name: ExaminationCheckName,
  { kind, status }: CheckedResponse,
): ExaminationProblem | null {
  if (status === null) return kind === "timeout" ? "late" : "unreachable";
  if (status >= 500) return "broken";
  if (status >= 300 && status < 400) return "redirected";
  const isAccepted = status >= 200 && status < 300;
  if (REFUSED.has(name)) return isAccepted ? "accepted" : null;
  return isAccepted ? null : "refused";
}

const FIXES: Partial<Record<ExaminationProblem, string>> = {
  redirected: "Register the address that it redirects to: redirects are not followed.",
  unreachable: "There was no response: check the address, its certificate and its firewall.",
  broken: "A 5xx means that it failed, and the notification is sent again.",
};

/** Judges the response to a check. */
export function judgeCheck(name: ExaminationCheckName, response: CheckedResponse): ExaminationCheck {
  const { status, code, durationMs } = response;
  const isLate = name === "prompt" && durationMs > PROMPT_MS;
  const problem = isLate ? "late" : findProblem(name, response);
  const { title, expected, fix } = CHECKS[name];
  const hint = problem === null ? undefined : FIXES[problem];
  return {
    name,
    result: problem === null ? "passed" : "failed",
    problem,
    status,
    code: status === null ? code : null,
    durationMs,
    title,
    expected,
    fix: problem === null ? null : hint === undefined ? fix : `${hint} ${fix}`,
  };
}

/** The result of a check that was not made. */
export function skipCheck(name: ExaminationCheckName): ExaminationCheck {
  const { title, expected } = CHECKS[name];
  return {
    name,
    result: "skipped",
    problem: null,
    status: null,
    code: null,
    durationMs: null,
    title,
    expected,
    fix: null,
  };
}
