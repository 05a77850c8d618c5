/** Checks the arguments of calls that the host's code makes. Pure. */

import { isDate } from "node:util/types";
import { PostbellError } from "../core/errors.js";
import type { Actor, Operator, Subscriber } from "./access.js";

const MAX_PAGE = 100;

export const notFound = (what: string): PostbellError =>
  new PostbellError("not_found", `There is no such ${what}.`);

/** `message` names the field and says what to change. */
export const invalidField = (field: string, message: string): PostbellError =>
  new PostbellError("invalid_request", message, { field });

/** Returns a page size from 1 to 100, by default 50. Throws `invalid_request`. */
export function readLimit(limit: number | undefined): number {
  if (limit === undefined) return MAX_PAGE / 2;
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE) return limit;
  throw invalidField("limit", `limit must be a whole number from 1 to ${MAX_PAGE}.`);
}

const MAX_NAME = 256;

/** Says what is wrong with a name, without showing it: a host may have passed a key by mistake. */
function findNameProblem(name: unknown): string | undefined {
  if (typeof name !== "string") return name === null ? "null" : `a value of type ${typeof name}`;
  if (name === "") return "an empty string";
  if (name.length > MAX_NAME) return `${name.length} characters`;
  if (name.includes("\u0000")) return "one with NUL";
  return name.isWellFormed() ? undefined : "one with a lone surrogate";
}

/**
 * Checks an account, the id of a key, or another name that is stored and compared. It must be
 * short, and have one form in UTF-8: encoders turn lone surrogates of different names into the same
 * character, and databases refuse NUL or end a text there. Throws `invalid_argument`.
 */
export function checkName(field: string, name: unknown): asserts name is string {
  const problem = findNameProblem(name);
  if (problem === undefined) return;
  throw new PostbellError(
    "invalid_argument",
    `${field} must be a string of 1 to ${MAX_NAME} characters without NUL and lone surrogates (got ${problem}).`,
    { field },
  );
}

/** The bounds of the tags of an event. */
export const TAG_BOUNDS = { tags: 20, characters: 64 } as const;

/** Checks a tag, which keeps the rules of names. Throws `invalid_argument`. */
export function checkTag(field: string, tag: unknown): asserts tag is string {
  checkName(field, tag);
  const { characters } = TAG_BOUNDS;
  if (tag.length <= characters) return;
  const message = `${field} must have at most ${characters} characters (got ${tag.length}).`;
  throw new PostbellError("invalid_argument", message, { field });
}

/** Returns a subscriber without further properties. Throws `invalid_argument`. */
export function readSubscriber(subscriber: Subscriber): Subscriber {
  if (typeof subscriber !== "object" || subscriber === null) {
    throw new PostbellError(
      "invalid_argument",
      "subscriber must be an object with id and account; without a subscriber, nothing is done in its name.",
      {
        field: "subscriber",
      },
    );
  }
  const { id, account } = subscriber;
  checkName("subscriber.id", id);
  checkName("subscriber.account", account);
  return { id, account };
}

/** Returns a subscriber or an operator without further properties. Throws `invalid_argument`. */
export function readActor(who: Subscriber | Operator): Subscriber | Operator {
  if (typeof who !== "object" || who === null || !("operator" in who)) return readSubscriber(who);
  const { operator, account } = who;
  // A session's user with a field of this name must not become an operator.
  if ("id" in who) {
    throw new PostbellError(
      "invalid_argument",
      "as() takes { id, account } of a subscriber or { operator, account }, not both.",
      { field: "operator" },
    );
  }
  checkName("operator", operator);
  checkName("account", account);
  return { operator, account };
}

/** True if the actor may know of what the account has. */
export const isOfAccount = (actor: Actor, account: string): boolean =>
  actor === "host" || actor.account === account;

/**
 * Returns the account to list: that of a subscriber by default. Throws `not_found` for an account
 * that is not the actor's, and `invalid_argument` for an invalid one.
 */
export function selectAccount(account: string | undefined, actor: Actor): string {
  const selected = account ?? (actor === "host" ? account : actor.account);
  checkName("account", selected);
  if (!isOfAccount(actor, selected)) throw notFound("account");
  return selected;
}

/** Throws `invalid_argument` unless exactly one of `webhookId` and `account` is present. */
export function requireOneScope(
  call: string,
  { webhookId, account }: { webhookId?: string | undefined; account?: string | undefined },
): void {
  if ((webhookId === undefined) !== (account === undefined)) return;
  const message = `${call}() takes either webhookId or account.`;
  const field = account === undefined ? "webhookId" : "account";
  throw new PostbellError("invalid_argument", message, { field });
}

const DATE_TIME = /^([0-9]{4}-[0-9]{2}-[0-9]{2})T[0-9:.]{5,18}(?:Z|[+-][0-9]{2}:[0-9]{2})$/;
/** Years outside this range need a sign in ISO 8601, and FHIR does not allow them. */
const FIRST_TIME = Date.parse("0000-01-01T00:00:00Z");
const LAST_TIME = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * Returns the epoch milliseconds of an ISO 8601 date and time; NaN for any other text. Checks the
 * day itself: `Date.parse` would read the 30th of February as the 2nd of March.
 */
function parseTime(text: string): number {
  if (text.length > TEXT_LENGTHS.time) return Number.NaN;
  const day = Date.parse(`${DATE_TIME.exec(text)?.[1]}T00:00:00Z`);
  return Number.isNaN(day) || !text.startsWith(new Date(day).toISOString().slice(0, 10))
    ? Number.NaN
    : Date.parse(text);
}

/**
 * Returns the epoch milliseconds of a Date, or of an ISO 8601 text with an offset.
 *
 * @throws `invalid_argument` for any other value.
 */
export function parseEventTime(field: string, value: Date | string): number {
  const time = typeof value === "string" ? parseTime(value) : isDate(value) ? value.getTime() : Number.NaN;
  if (time >= FIRST_TIME && time <= LAST_TIME) return time;
  const message = `${field} must be a Date or an ISO 8601 date and time with its offset.`;
  throw new PostbellError("invalid_argument", message, { field });
}

export const TEXT_LENGTHS = {
  /** Browsers accept no longer URL. `checkUrl` checks the length before it parses the text. */
  url: 2_048,
  /** ISO 8601 with milliseconds and an offset has 29 characters. */
  time: 64,
  /** The cursors of all storages are far shorter. */
  cursor: 256,
  /** A UUID, or two of them with a serial number. */
  id: 100,
  header: 8_192,
} as const;

// The description, the metadata and the secret that a webhook may have.

/** The largest sizes, in characters as JavaScript counts them. */
export const DETAIL_BOUNDS = {
  description: 256,
  metadataKeys: 20,
  metadataKey: 40,
  metadataValue: 500,
} as const;

/**
 * A text without control characters, ends of lines, and characters that change the direction of the
 * text: a name with those could look like another one.
 */
const LINE = /^[^\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]*$/u;

/** The same for JSON Schema. */
export const LINE_PATTERN = LINE.source;

/** True for a line that every storage keeps as it is, and that a page shows as it is. */
const isLine = (value: unknown, most: number): value is string =>
  typeof value === "string" && value.length <= most && value.isWellFormed() && LINE.test(value);

/** Returns a description, or `null` to remove it. Throws `invalid_request`. */
export function readDescription(description: unknown): string | null {
  if (description === null) return null;
  if (isLine(description, DETAIL_BOUNDS.description) && description !== "") return description;
  const expected = `one line of 1 to ${DETAIL_BOUNDS.description} characters, without control characters`;
  throw invalidField("description", `description must be ${expected}; null removes it.`);
}

/** `__proto__` would be lost, or worse, in code that copies the keys one by one. */
const isMetadataKey = (key: string): boolean =>
  key.length <= DETAIL_BOUNDS.metadataKey && /^[A-Za-z0-9_.-]+$/.test(key) && key !== "__proto__";

/** Returns metadata with its keys sorted, or `null` to remove it. Throws `invalid_request`. */
export function readMetadata(metadata: unknown): Record<string, string> | null {
  if (metadata === null) return null;
  // Also refuses maps, dates and lists, which would lose what they hold. Works across realms.
  if (Object.prototype.toString.call(metadata) !== "[object Object]")
    throw invalidField("metadata", "metadata must be an object of texts; null removes it.");
  const entries = Object.entries(metadata as object) as [string, unknown][];
  if (entries.length > DETAIL_BOUNDS.metadataKeys) {
    const seen = `${DETAIL_BOUNDS.metadataKeys} keys (got ${entries.length})`;
    throw invalidField("metadata", `metadata must have at most ${seen}.`);
  }
  if (!entries.every(([key]) => isMetadataKey(key))) {
    const characters = `1 to ${DETAIL_BOUNDS.metadataKey} letters, digits, '_', '.' or '-'`;
    throw invalidField("metadata", `The keys of metadata must have ${characters}, and not be __proto__.`);
  }
  const wrong = entries.find(([, value]) => !isLine(value, DETAIL_BOUNDS.metadataValue));
  if (wrong !== undefined) {
    const expected = `a text of at most ${DETAIL_BOUNDS.metadataValue} characters, without control characters`;
    throw invalidField("metadata", `metadata.${wrong[0]} must be ${expected}.`);
  }
  // In one order, because an idempotency key compares texts.
  const sorted = (entries as [string, string][]).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted);
}

const SECRET_PREFIX = "whsec_";
const SECRET_BYTES = { min: 24, max: 64 } as const;
/** Four characters for three bytes. */
const SECRET_LENGTH = SECRET_PREFIX.length + 4 * Math.ceil(SECRET_BYTES.max / 3);

/**
 * Returns a secret that another sender made. It has the form that the libraries of Standard
 * Webhooks and Svix accept. Throws `invalid_request`, without the value.
 */
export function readSecret(secret: unknown): string {
  if (typeof secret === "string" && secret.length <= SECRET_LENGTH && secret.startsWith(SECRET_PREFIX)) {
    const encoded = secret.slice(SECRET_PREFIX.length);
    const key = Buffer.from(encoded, "base64");
    const isKey = key.length >= SECRET_BYTES.min && key.length <= SECRET_BYTES.max;
    // Node also decodes other alphabets, and ignores what it does not know.
    if (isKey && key.toString("base64") === encoded) return secret;
  }
  throw invalidField(
    "secret",
    `secret must be ${SECRET_PREFIX} and ${SECRET_BYTES.min} to ${SECRET_BYTES.max} bytes in standard Base64 with its padding.`,
  );
}
