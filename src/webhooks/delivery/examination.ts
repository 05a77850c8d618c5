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
 * The problem that a check has found, or the reason why it could not decide.
 *
 * - `unreachable`: no response to the first notification. `dropped`: none to a later one. `late`:
 *   none before the deadline of deliveries, or for `prompt` one after three seconds.
 * - `accepted`: a 2xx to a request that it must refuse. `refused`: a 4xx to one that it must
 *   accept. `redirected`: a 3xx, which is not followed. `broken`: a 5xx.
 * - `unverified`: a 4xx such as 404, which does not show that the signature was checked.
 *   `throttled`: a 429. `unavailable`: the service itself can resolve no name. With these three,
 *   the check is `skipped`.
 */
export type ExaminationProblem = (typeof EXAMINATION_PROBLEMS)[number];

/** A step of the advice of a check: what to do about its problem, or about the check itself. */
export type ExaminationAdvice =
  | ExaminationCheckName
  | Exclude<ExaminationProblem, "accepted" | "refused">
  | "broken_refusal"
  | "redirected_refusal";

/** The result of one check. */
export interface ExaminationCheck {
  readonly name: ExaminationCheckName;
  /**
   * `skipped`: the response decided nothing, as its `problem` says. Without a problem it was not
   * made: because the endpoint does not accept correct notifications, because the time is over, or
   * for `slow_body` because `delivery.send` sends the requests.
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
  /** How to repair it, for people; `null` without a problem. */
  readonly fix: string | null;
  /** The steps of `fix`, for pages in other languages; empty without a problem. */
  readonly advice: readonly ExaminationAdvice[];
}

/** The report of an examination. */
export interface Examination {
  readonly at: Date;
  /**
   * True if every check was made and passed; only `slow_body` may be missing, if `delivery.send`
   * sends the requests.
   */
  readonly isPassed: boolean;
  readonly checks: readonly ExaminationCheck[];
}

/** The call that examines an endpoint. */
export interface ExaminationCalls {
  /**
   * Examines an endpoint: sends it up to nine test notifications, good and bad ones, and reports in
   * ten checks what it does wrong and how to repair it. They are a correct one, wrong, missing and
   * old signatures, a repetition, an unknown type, a slow and a large body. All are marked as
   * tests, as those of `test`. Nothing is stored, counted for the health of the endpoint, or
   * retried. It takes at most 25 s. `stop()` ends it.
   *
   * The requests are like attacks, so an ENABLED webhook, which may be in production, has to be
   * confirmed. One examination of an account runs at a time in each process.
   *
   * @param request.evenIfEnabled examines an ENABLED webhook, too. Default false.
   * @param request.signal ends the examination, which then rejects with the reason of the signal.
   *
   * @throws `webhook_enabled` without `evenIfEnabled`; `rate_limited` beyond
   * `limits.repairsPerMinute` for a webhook, and while another examination runs, both counted per
   * process; `access_unavailable` if a hook fails; `not_started` after `stop()`.
   *
   * @example
   * const { isPassed, checks } = await webhooks.deliveries.examine({ webhookId });
   * for (const { title, fix } of checks) if (fix !== null) console.log(`${title}: ${fix}`);
   */
  examine(request: {
    webhookId: string;
    evenIfEnabled?: boolean | undefined;
    signal?: AbortSignal | undefined;
  }): Promise<Examination>;
}

/** A response within this time is prompt. */
const PROMPT_MS = 3_000;

interface CheckWords {
  title: string;
  expected: string;
  fix: string;
}

const ACCEPTS = "a 2xx";
const REFUSES = "a 4xx, such as 400 or 401";
const VERIFY =
  "Compute the signature over the raw bytes of the body and compare it before anything else. createReceiver({ secrets, onEvent }) does, and responds 400";
const RESPOND_FIRST =
  "Respond first, then work: let onEvent of createReceiver({ onEvent }) put the event into a queue and return.";

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
    fix: `It is slow, but it works: deliveries wait longer than ${PROMPT_MS / 1_000} s. ${RESPOND_FIRST}`,
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
    expected: `${ACCEPTS}. Only the endpoint can tell that it does not act a second time`,
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

export const EXAMINATION_PROBLEMS = [
  "unreachable",
  "dropped",
  "late",
  "accepted",
  "refused",
  "redirected",
  "broken",
  "unverified",
  "throttled",
  "unavailable",
] as const;

/** With these problems, the response decides nothing. */
const UNDECIDED: ReadonlySet<ExaminationProblem> = new Set(["unverified", "throttled", "unavailable"]);

/** 4xx statuses that a server responds with before it verifies a signature. */
const UNVERIFIED_STATUSES: ReadonlySet<number> = new Set([404, 405, 408, 410]);

export const EXAMINATION_CHECKS: readonly ExaminationCheckName[] = Object.keys(
  CHECKS,
) as ExaminationCheckName[];

/** The response to a check, or why it is missing, as the reader of the report may see it. */
type CheckedResponse = Pick<Attempt, "kind" | "status" | "code" | "durationMs">;

/** The most requests of an examination: each check sends one, except for `prompt`. */
export const EXAMINATION_REQUESTS = EXAMINATION_CHECKS.length - 1;

/** Returns the problem of a response, or of a missing one; `null` without a problem. */
function findProblem(
  name: ExaminationCheckName,
  { kind, status, durationMs }: CheckedResponse,
): ExaminationProblem | null {
  if (name === "prompt") return durationMs > PROMPT_MS ? "late" : null;
  if (status !== null) return findStatusProblem(status, REFUSED.has(name));
  if (kind === "timeout") return "late";
  return name === "signed" ? "unreachable" : "dropped";
}

function findStatusProblem(status: number, isToBeRefused: boolean): ExaminationProblem | null {
  if (status === 429) return "throttled";
  if (status >= 500) return "broken";
  if (status >= 300 && status < 400) return "redirected";
  const isAccepted = status >= 200 && status < 300;
  if (!isToBeRefused) return isAccepted ? null : "refused";
  if (isAccepted) return "accepted";
  return UNVERIFIED_STATUSES.has(status) ? "unverified" : null;
}

const FIXES: Record<Exclude<ExaminationAdvice, ExaminationCheckName>, string> = {
  unreachable: "There was no response: check the address, its certificate and its firewall.",
  dropped:
    "The connection ended without a response, although the first notification got one: look into the log of the endpoint and of its proxy.",
  late: `There was no response before the deadline of deliveries. ${RESPOND_FIRST}`,
  redirected: "Register the address that it redirects to: redirects are not followed.",
  redirected_refusal:
    "A redirect does not show that the signature was refused, and is not followed: respond 400 or 401.",
  broken:
    "A 5xx means that the endpoint failed, and the notification is sent again: look for the error in its log.",
  broken_refusal:
    "It did not accept the event. But a 5xx means that the endpoint failed, and what gets one is sent again: respond 400 or 401 to a bad signature, as createReceiver does.",
  unverified:
    "This status does not show that the signature was checked: respond 400 or 401 to a bad signature, as createReceiver does, then examine again.",
  throttled:
    "The endpoint limits the rate of requests, so this was not decided: let it accept ten requests within 25 s, or examine it again later.",
  unavailable:
    "The service itself can resolve no host name at the moment, which says nothing about the endpoint: examine it again later.",
};

/** The problems that the likely cause of a check explains, after what they say by themselves. */
const LIKELY: ReadonlySet<ExaminationProblem> = new Set(["dropped", "late", "redirected", "broken"]);

/** Chooses the advice by the problem first: only a wrong verdict has the cause of its check. */
function chooseAdvice(name: ExaminationCheckName, problem: ExaminationProblem): ExaminationAdvice[] {
  if (problem === "accepted" || problem === "refused" || name === "prompt") return [name];
  const isRefusal = REFUSED.has(name);
  if (isRefusal && problem === "broken") return ["broken_refusal"];
  if (isRefusal && problem === "redirected") return ["redirected_refusal"];
  return isRefusal || name === "signed" || !LIKELY.has(problem) ? [problem] : [problem, name];
}

const isCheckName = (advice: ExaminationAdvice): advice is ExaminationCheckName => advice in CHECKS;

/** @param problem replaces the one of the response. */
export function judgeCheck(
  name: ExaminationCheckName,
  response: CheckedResponse,
  problem: ExaminationProblem | null = findProblem(name, response),
): ExaminationCheck {
  const { status, code, durationMs } = response;
  const { title, expected } = CHECKS[name];
  const advice = problem === null ? [] : chooseAdvice(name, problem);
  const fixes = advice.map((step) => (isCheckName(step) ? CHECKS[step].fix : FIXES[step]));
  return {
    name,
    result: problem === null ? "passed" : UNDECIDED.has(problem) ? "skipped" : "failed",
    problem,
    status,
    code: status === null ? code : null,
    durationMs,
    title,
    expected,
    fix: problem === null ? null : fixes.join(" "),
    advice,
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
    advice: [],
  };
}
