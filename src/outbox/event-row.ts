/** Converts events to rows of the outbox, and rows back to events. */

import { PostbellError } from "../core/errors.js";
import { checkName, parseEventTime } from "../webhooks/call-arguments.js";
import { checkKeepMs, readTags, toEventId } from "../webhooks/emit/prepare-event.js";
import type { AnyEventInput, EventInput, PlainEventInput } from "../webhooks/service.js";
import type { OutboxClaim } from "./outbox-source.js";

export interface EventRow {
  id: string;
  /** JSON of all fields except the id, in ASCII. */
  event: string;
}

const KEYS: Record<keyof EventInput | keyof PlainEventInput, true> = {
  type: true,
  account: true,
  resource: true,
  related: true,
  data: true,
  id: true,
  idempotencyKey: true,
  occurredAt: true,
  subject: true,
  tags: true,
  keepMs: true,
};

const createInvalid = (field: string | undefined, message: string, cause?: unknown): PostbellError =>
  new PostbellError("invalid_argument", message, { field, cause });

/**
 * Escapes to ASCII, so that no connection or database with another character set loses a character.
 */
const toAscii = (json: string): string =>
  json.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

function toEventRow(event: AnyEventInput): EventRow {
  if (!isObject(event)) throw createInvalid(undefined, "add() takes an event, or an array of events.");
  const unknown = Object.keys(event).find((key) => !Object.hasOwn(KEYS, key));
  if (unknown !== undefined) throw createInvalid(unknown, `An event has no field '${unknown}'.`);
  const input = event as EventInput & PlainEventInput;
  const { type, account, resource, related, data, occurredAt, subject, keepMs } = input;
  if (typeof type !== "string")
    throw createInvalid("type", "type must be a string, the name of an event type.");
  checkName("account", account);
  if (data === undefined && !isObject(resource))
    throw createInvalid("resource", "resource must be an object, or data a value.");
  const id = toEventId(account, input);
  if (subject !== undefined) checkName("subject", subject);
  const tags = readTags(input.tags);
  checkKeepMs(keepMs);
  const time =
    occurredAt === undefined ? undefined : new Date(parseEventTime("occurredAt", occurredAt)).toISOString();
  try {
    const fields = { type, account, resource, related, data, occurredAt: time, subject, tags, keepMs };
    return { id, event: toAscii(JSON.stringify(fields)) };
  } catch (cause) {
    throw createInvalid(
      data === undefined ? "resource" : "data",
      "The event cannot be written as JSON.",
      cause,
    );
  }
}

/**
 * Converts one event or several to rows. A row has the id of its event, or a new one.
 *
 * Checks that depend on options of the service (the catalogue, the limits) are made when the event
 * is emitted.
 *
 * @throws `invalid_argument`
 */
export const toEventRows = (events: AnyEventInput | readonly AnyEventInput[]): EventRow[] =>
  isList(events) ? Array.from(events, toEventRow) : [toEventRow(events)];

const isList = (events: AnyEventInput | readonly AnyEventInput[]): events is readonly AnyEventInput[] =>
  Array.isArray(events);

/** Returns the result of `add`: one id for one event, a list for a list. */
export const listRowIds = (
  events: AnyEventInput | readonly AnyEventInput[],
  rows: EventRow[],
): string | string[] => (isList(events) ? rows.map(({ id }) => id) : (rows[0]?.id ?? ""));

/**
 * Converts a row to the event to emit, which is the same in every try.
 *
 * @throws `invalid_argument` if the row has no event.
 */
export function toEvent({ id, event, addedAt }: OutboxClaim): AnyEventInput {
  let fields: unknown;
  try {
    fields = JSON.parse(event);
  } catch {
    throw createInvalid(undefined, "The row does not contain JSON.");
  }
  if (!isObject(fields)) throw createInvalid(undefined, "The row does not contain an event.");
  return { occurredAt: new Date(addedAt), ...(fields as AnyEventInput), id };
}
