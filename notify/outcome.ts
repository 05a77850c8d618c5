/** What the answers of a mail server mean for each recipient. Pure. */

/** Of one recipient that the server did not take. `status` is the SMTP reply code, 0 where there was none. */
export interface Unserved {
  readonly address: string;
  readonly status: number;
}

export interface MailOutcome {
  readonly accepted: readonly string[];
  /** 5xx: asking again would get the same answer. */
  readonly refused: readonly Unserved[];
  /** 4xx: greylisting, a full mailbox. */
  readonly putOff: readonly Unserved[];
}

/** As nodemailer gives it, in its result and in its errors. */
interface Answer {
  readonly code?: unknown;
  readonly responseCode?: unknown;
  readonly command?: unknown;
  readonly rejectedErrors?: unknown;
}

const statusOf = ({ responseCode }: Answer): number => (typeof responseCode === "number" ? responseCode : 0);

const answerOf = (given: unknown): Answer =>
  typeof given === "object" && given !== null ? (given as Answer) : {};

/** What `sendMail` resolved with: those of `recipients` accepted that are not named as rejected. */
export function toMailOutcome(result: unknown, recipients: readonly string[]): MailOutcome {
  const { rejectedErrors } = answerOf(result);
  const unserved = new Map(
    (Array.isArray(rejectedErrors) ? (rejectedErrors as readonly unknown[]) : []).map((error) => {
      const { recipient } = error as { readonly recipient?: unknown };
      return [String(recipient).toLowerCase(), statusOf(answerOf(error))];
    }),
  );
  const answers = recipients.map((address) => ({ address, status: unserved.get(address.toLowerCase()) }));
  const withStatus = (isWanted: (status: number) => boolean): readonly Unserved[] =>
    answers.flatMap(({ address, status }) =>
      status !== undefined && isWanted(status) ? [{ address, status }] : [],
    );
  return {
    accepted: answers.filter(({ status }) => status === undefined).map(({ address }) => address),
    refused: withStatus((status) => status >= 500),
    putOff: withStatus((status) => status < 500),
  };
}

/**
 * What `sendMail` rejected with, where it says something of the recipients: all of them rejected one by one, or the message itself refused.
 * `undefined`: the server was not reached, wants other credentials or another sender, or has a passing trouble.
 */
export function toFailedOutcome(error: unknown, recipients: readonly string[]): MailOutcome | undefined {
  const answer = answerOf(error);
  if (Array.isArray(answer.rejectedErrors) && answer.rejectedErrors.length > 0) {
    const outcome = toMailOutcome(answer, recipients);
    return outcome.accepted.length === 0 ? outcome : undefined;
  }
  const status = statusOf(answer);
  if (answer.command !== "DATA" || status < 500) return undefined;
  return { accepted: [], refused: recipients.map((address) => ({ address, status })), putOff: [] };
}

/** `ETIMEDOUT`, `EAUTH 535`: safe to log, as the server's own words may not be. */
export function describeProblem(error: unknown): string {
  const answer = answerOf(error);
  const code =
    typeof answer.code === "string" && /^[A-Z][A-Z0-9_]{0,31}$/.test(answer.code) ? answer.code : "";
  return [code || "an error", statusOf(answer) || ""].join(" ").trim();
}
