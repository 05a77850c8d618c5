/**
 * The identity of an event, the keys by which its host finds it again (the subject of plain events,
 * and tags), and how long it is kept.
 */

import { hash } from "node:crypto";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import { isUuid, nameUuid, randomUUID } from "../../core/uuid.js";
import { checkName, checkTag, TAG_BOUNDS } from "../call-arguments.js";
import type { PlainEntry } from "../event-types/plain-event-type.js";
import { type EventRecord, type EventToAppend, MAX_KEEP_MS } from "../store.js";

const invalid = (field: string, message: string, cause?: unknown): PostbellError =>
  new PostbellError("invalid_argument", message, { field, cause });

/** The namespace of the UUIDs of idempotency keys. It may never change. */
const KEY_NAMESPACE = "5b5c1b0e-6e5f-4d0c-9a1f-3b8f6a2c7d41";

/**
 * Returns the id of an event, in lower case: `id`; or the name-based UUID of its account and
 * `idempotencyKey`, the same in every process; or a new one.
 *
 * @throws `invalid_argument` if one of them cannot be used, or both are present.
 */
export function toEventId(
  account: string,
  { id, idempotencyKey }: { id?: unknown; idempotencyKey?: unknown },
): string {
  if (idempotencyKey === undefined) {
    if (id === undefined) return randomUUID();
    if (typeof id === "string" && isUuid(id)) return id.toLowerCase();
    throw invalid("id", "id must be a UUID; for any other text, use idempotencyKey.");
  }
  if (id !== undefined)
    throw invalid("idempotencyKey", "An event has either id or idempotencyKey: leave out one of them.");
  checkName("idempotencyKey", idempotencyKey);
  // Neither may contain NUL, so no two pairs have one name.
  return nameUuid(KEY_NAMESPACE, `${account}\u0000${idempotencyKey}`);
}

/** Returns tags, each once; `undefined` for none. Throws `invalid_argument`. */
export function readTags(tags: unknown): readonly string[] | undefined {
  if (tags === undefined) return undefined;
  const { tags: most } = TAG_BOUNDS;
  if (!Array.isArray(tags) || tags.length > most) {
    const seen = Array.isArray(tags) ? `a list of ${tags.length}` : typeof tags;
    throw invalid("tags", `tags must be a list of at most ${most} texts (got ${seen}).`);
  }
  const list = tags.map((tag: unknown, index) => {
    checkTag(`tags[${index}]`, tag);
    return tag;
  });
  return list.length === 0 ? undefined : [...new Set(list)];
}

/** Checks how long an event is to be kept. Throws `invalid_argument`. */
export function checkKeepMs(keepMs: unknown): asserts keepMs is number | undefined {
  if (keepMs === undefined) return;
  if (Number.isInteger(keepMs) && Number(keepMs) >= 1 && Number(keepMs) <= MAX_KEEP_MS) return;
  const seen = typeof keepMs === "number" ? keepMs : keepMs === null ? "null" : `a ${typeof keepMs}`;
  throw invalid(
    "keepMs",
    `keepMs must be a whole number of milliseconds from 1 to ${MAX_KEEP_MS}, which is a year (got ${seen}).`,
  );
}

/** Returns the event to store. `keepMs` is no part of its digest: a repetition may have another. */
export const addKeepMs = (record: EventRecord, keepMs: number | undefined): EventToAppend =>
  keepMs === undefined ? record : { ...record, keepMs };

/** Returns the subject that the type of a plain event gives it. Throws `invalid_argument`. */
function deriveSubject(type: string, subjectOf: NonNullable<PlainEntry["subject"]>, data: unknown): string {
  const place = `The subject of '${type}' in the events option`;
  let subject: unknown;
  try {
    subject = subjectOf(data);
  } catch (cause) {
    const reason = cause instanceof Error ? `: ${cause.message.slice(0, 200)}` : "";
    throw invalid("subject", `${place} threw${reason}. Nothing was stored.`, cause);
  }
  try {
    checkName("subject", subject);
  } catch (cause) {
    const reason = isPostbellError(cause) ? cause.message : "";
    throw invalid(
      "subject",
      `${place} returned no text that can be one: ${reason} Nothing was stored.`,
      cause,
    );
  }
  return subject;
}

/**
 * Returns the record of an event with its keys. The same id with other keys is a conflict, so those
 * that the host gave are part of the digest. A subject that the type gives follows from the data.
 */
export function addKeys(
  record: EventRecord,
  subject: string | undefined,
  tags: readonly string[] | undefined,
): EventRecord {
  if (subject === undefined && tags === undefined) return record;
  const { id, account, type, payload } = record;
  const digest = hash("sha256", `${record.digest}\n${JSON.stringify([subject ?? null, tags ?? []])}`);
  return {
    id,
    account,
    type,
    digest,
    payload,
    ...(subject === undefined ? record.subject !== undefined && { subject: record.subject } : { subject }),
    ...(tags !== undefined && { tags }),
  };
}

/** Returns the record of a plain event with its keys. Throws `invalid_argument`. */
export function addPlainKeys(
  record: EventRecord,
  { subject, data }: { subject?: string | undefined; data: unknown },
  tags: readonly string[] | undefined,
  { subject: subjectOf }: PlainEntry,
): EventRecord {
  const keyed = addKeys(record, subject, tags);
  if (subject !== undefined || subjectOf === undefined) return keyed;
  return { ...keyed, subject: deriveSubject(record.type, subjectOf, data) };
}
