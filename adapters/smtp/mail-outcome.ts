/** Interprets the responses of a mail server for each recipient. Pure. */

/**
 * A recipient that the server did not accept. `status` is the SMTP reply code, or 0 without one.
 */
export interface Unserved {
  readonly address: string;
  readonly status: number;
}

export interface MailOutcome {
  readonly accepted: readonly string[];
  /** 5xx: a retry would get the same response. */
  readonly refused: readonly Unserved[];
  /** 4xx: greylisting, a full mailbox. */
  readonly deferred: readonly Unserved[];
}

/** Fields of nodemailer's results and errors. */
interface SmtpResponse {
  readonly code?: unknown;
  readonly responseCode?: unknown;
  readonly command?: unknown;
  readonly rejectedErrors?: unknown;
}

const getStatus = ({ responseCode }: SmtpResponse): number =>
  typeof responseCode === "number" ? responseCode : 0;

const toResponse = (given: unknown): SmtpResponse =>
  typeof given === "object" && given !== null ? (given as SmtpResponse) : {};

/**
 * Interprets the result of `sendMail`. Recipients that it does not name as rejected are accepted.
 */
export function toMailOutcome(result: unknown, recipients: readonly string[]): MailOutcome {
  const { rejectedErrors } = toResponse(result);
  const unserved = new Map(
    (Array.isArray(rejectedErrors) ? (rejectedErrors as readonly unknown[]) : []).map((error) => {
      const { recipient } = error as { readonly recipient?: unknown };
      return [String(recipient).toLowerCase(), getStatus(toResponse(error))];
    }),
  );
  const responses = recipients.map((address) => ({ address, status: unserved.get(address.toLowerCase()) }));
  const withStatus = (isWanted: (status: number) => boolean): readonly Unserved[] =>
    responses.flatMap(({ address, status }) =>
      status !== undefined && isWanted(status) ? [{ address, status }] : [],
    );
  return {
    accepted: responses.filter(({ status }) => status === undefined).map(({ address }) => address),
    refused: withStatus((status) => status >= 500),
    deferred: withStatus((status) => status < 500),
  };
}

/**
 * Interprets an error of `sendMail`, if it concerns the recipients: all were rejected one by one,
 * or the message itself was refused. Returns `undefined` if the server was not reached, refuses the
 * credentials or the sender, or has a transient problem.
 */
export function toFailedOutcome(error: unknown, recipients: readonly string[]): MailOutcome | undefined {
  const response = toResponse(error);
  if (Array.isArray(response.rejectedErrors) && response.rejectedErrors.length > 0) {
    const outcome = toMailOutcome(response, recipients);
    return outcome.accepted.length === 0 ? outcome : undefined;
  }
  const status = getStatus(response);
  if (response.command !== "DATA" || status < 500) return undefined;
  return { accepted: [], refused: recipients.map((address) => ({ address, status })), deferred: [] };
}

/**
 * Returns a code such as `ETIMEDOUT` or `EAUTH 535`. The server's own words may not be safe to log.
 */
export function describeProblem(error: unknown): string {
  const response = toResponse(error);
  const code =
    typeof response.code === "string" && /^[A-Z][A-Z0-9_]{0,31}$/.test(response.code) ? response.code : "";
  return [code || "an error", getStatus(response) || ""].join(" ").trim();
}
