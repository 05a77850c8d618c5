/** An event as a row: checked and serialised in the host's transaction, read back when it is emitted. */

import { PostbellError } from "../src/core/errors.js";
import { isUuid, randomUUID } from "../src/core/uuid.js";
import { checkName } from "../src/webhooks/call-arguments.js";
import { readTimeFilter } from "../src/webhooks/delivery/delivery-log.js";
import type { EventInput } from "../src/webhooks/service.js";
import type { OutboxClaim } from "./outbox-source.js";

export interface EventRow {
  readonly id: string;
  /** JSON of everything but the id, in ASCII. */
  readonly event: string;
}

const KEYS: Readonly<Record<keyof EventInput, true>> = {
  type: true,
  account: true,
  resource: true,
  related: true,
  id: true,
  occurredAt: true,
};

const unusable = (field: string | undefined, message: string, cause?: unknown): PostbellError =>
  new PostbellError("invalid_argument", message, { field, cause });

/** In ASCII, so that no character is lost where a connection or a database has another character set. */
const escaped = (json: string): string =>
  json.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

const isObject = (given: unknown): given is object => typeof given === "object" && given !== null;

function rowOf(event: EventInput): EventRow {
  if (!isObject(event)) throw unusable(undefined, "add() takes an event, or an array of events.");
  const unknown = Object.keys(event).find((key) => !Object.hasOwn(KEYS, key));
  if (unknown !== undefined) throw unusable(unknown, `An event has no field '${unknown}'.`);
  const { type, account, resource, related, id = randomUUID(), occurredAt } = event;
  if (typeof type !== "string") throw unusable("type", "type must be a string, the name of an event type.");
  checkName("account", account);
  if (!isObject(resource)) throw unusable("resource", "resource must be a resource.");
  if (typeof id !== "string" || !isUuid(id)) throw unusable("id", "id must be a UUID.");
  const time =
    occurredAt === undefined ? undefined : new Date(readTimeFilter("occurredAt", occurredAt)).toISOString();
  try {
    const fields = { type, account, resource, related, occurredAt: time };
    return { id: id.toLowerCase(), event: escaped(JSON.stringify(fields)) };
  } catch (cause) {
    throw unusable("resource", "The event cannot be written as JSON.", cause);
  }
}

/**
 * The rows of one event or several, each with its id: the one given, or a new one.
 *
 * What depends on the options of the service (the catalogue, the limits) is judged when the event is emitted.
 * Errors: `invalid_argument`.
 */
export const toEventRows = (events: EventInput | readonly EventInput[]): readonly EventRow[] =>
  isList(events) ? Array.from(events, rowOf) : [rowOf(events)];

const isList = (events: EventInput | readonly EventInput[]): events is readonly EventInput[] =>
  Array.isArray(events);

/** What `add` returns: one id for one event, a list for a list. */
export const listRowIds = (
  events: EventInput | readonly EventInput[],
  rows: readonly EventRow[],
): string | readonly string[] => (isList(events) ? rows.map(({ id }) => id) : (rows[0]?.id ?? ""));

/** The event to emit, the same in every try. Errors: `invalid_argument` where the row holds none. */
export function toEvent({ id, event, addedAt }: OutboxClaim): EventInput {
  let fields: unknown;
  try {
    fields = JSON.parse(event);
  } catch {
    throw unusable(undefined, "The row holds no JSON.");
  }
  if (!isObject(fields)) throw unusable(undefined, "The row holds no event.");
  return { occurredAt: new Date(addedAt), ...(fields as EventInput), id };
}
