/**
 * The records that a storage keeps: webhooks, events, deliveries and their attempts. Also the rules
 * about them that are the same in every storage: ids of deliveries, and rotations of secrets.
 */

import type { EventFilter } from "../event-types/event-filter.js";

/** Only ENABLED webhooks get deliveries of new events. */
export type WebhookStatus = "ENABLED" | "DISABLED";

/** A webhook as it is stored. */
export interface WebhookRecord {
  readonly id: string;
  readonly account: string;
  /**
   * Identifies the API key that owns the webhook; it is not the key. `canRead` is called for it.
   */
  readonly subscriberId: string;
  readonly url: string;
  readonly status: WebhookStatus;
  /** `null`: every type, including future ones. Otherwise exact types, `prefix.*` or `*`. */
  readonly eventTypes: readonly string[] | null;
  readonly createdAt: number;
  /** Increases with each change by a user or by the service, even within one millisecond. */
  readonly updatedAt: number;
  readonly secret: string;
  /** The secret before a rotation; it signs until `rotateAt`. */
  readonly previousSecret: string | null;
  readonly rotateAt: number | null;
  /**
   * Counts new URLs and re-enablings. A report on an attempt under an older generation says nothing
   * about the health of this endpoint.
   */
  readonly generation: number;
  /** The first failure since the last 2xx, or since creation, re-enabling or a new URL. */
  readonly failingSince: number | null;
  /** When the host was told that the endpoint is failing, or when that was abandoned. */
  readonly warnedAt: number | null;
  /** When the next health step is due; see `claimHealthNotifications`. */
  readonly noticeAt: number | null;
  /** A name for people, in one line. Absent if it has none. */
  readonly description?: string | undefined;
  /** Texts of the host or the subscriber by name. Absent if it has none. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** The conditions on the data of plain events that it gets. Absent if it has none. */
  readonly filter?: EventFilter | undefined;
  /** Secret headers of its deliveries, by name in lower case. Absent if it has none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** How many deliveries may be claimed in one second. Absent: as many as those of others. */
  readonly perSecond?: number | undefined;
}

/**
 * A new secret: the secret that signs now continues to sign until `rotateAt`, even if another
 * rotation is in progress. If `rotateAt` is not after `now`, the new secret signs at once.
 *
 * `finish` ends a rotation in progress: the secret that was to sign from `rotateAt` signs at once.
 */
export type SecretRotation =
  | { readonly secret: string; readonly rotateAt: number }
  | { readonly finish: true };

/** The changes of a webhook that a user may request. An absent key leaves the field unchanged. */
export interface WebhookChange {
  url?: string | undefined;
  status?: WebhookStatus | undefined;
  eventTypes?: readonly string[] | null | undefined;
  /** Starts or finishes a rotation of the secret; `rotateSecret` computes what is stored. */
  rotation?: SecretRotation | undefined;
  /** Transfers the webhook to another key of its account. */
  subscriberId?: string | undefined;
  /** `null` removes it. */
  description?: string | null | undefined;
  /** Replaces all of it. `null` removes it. */
  metadata?: Readonly<Record<string, string>> | null | undefined;
  /** Replaces all of it. `null` removes it. */
  filter?: EventFilter | null | undefined;
  /** Replaces all of them. `null` removes them. */
  headers?: Readonly<Record<string, string>> | null | undefined;
  /** `null` removes it. */
  perSecond?: number | null | undefined;
}

/** The fields that a webhook need not have. `null` stands for an absent one. */
type WebhookDetails = Pick<WebhookChange, "description" | "metadata" | "filter" | "headers" | "perSecond">;

/** Returns the details that have a value, and no key for the others. For storages. */
export const pickDetails = ({
  description,
  metadata,
  filter,
  headers,
  perSecond,
}: WebhookDetails): Pick<WebhookRecord, keyof WebhookDetails> => ({
  ...(description != null && { description }),
  ...(metadata != null && { metadata: Object.freeze({ ...metadata }) }),
  ...(filter != null && { filter: Object.freeze({ ...filter }) }),
  ...(headers != null && { headers: Object.freeze({ ...headers }) }),
  ...(perSecond != null && { perSecond }),
});

/** Returns a webhook with the details that a change gives it. For storages. */
export function changeDetails(record: WebhookRecord, change: WebhookDetails): WebhookRecord {
  const { description, metadata, filter, headers, perSecond, ...others } = record;
  return {
    ...others,
    ...pickDetails({
      description: change.description === undefined ? description : change.description,
      metadata: change.metadata === undefined ? metadata : change.metadata,
      filter: change.filter === undefined ? filter : change.filter,
      headers: change.headers === undefined ? headers : change.headers,
      perSecond: change.perSecond === undefined ? perSecond : change.perSecond,
    }),
  };
}

/** An event as it is stored. */
export interface EventRecord {
  /** A UUID, unique within its account. */
  readonly id: string;
  readonly account: string;
  readonly type: string;
  /**
   * The record or the thing that the event is about: `Patient/123`, `order/A-1`. At least one
   * character. Absent if it has none.
   */
  readonly subject?: string | undefined;
  /** At least one, each once and with at least one character. Absent if it has none. */
  readonly tags?: readonly string[] | undefined;
  /** A digest of what the host emitted. The same id with another digest is a conflict. */
  readonly digest: string;
  /**
   * The serialised event. A store returns it unchanged, character by character, and never parses
   * it.
   */
  readonly payload: string;
}

/**
 * Returns a function that tests filters against one stored event: true if the event passes. It
 * reads the payload at most once.
 */
export type CreateFilterTest = (
  event: Pick<EventRecord, "id" | "payload">,
) => (filter: EventFilter) => boolean;

/**
 * `pending` is waiting or in flight. The others are final, except that a 2xx overrides `failed`.
 */
export type DeliveryState = "pending" | "delivered" | "failed" | "withheld";

/**
 * Why an event can be recovered for a webhook: `failed` if all its deliveries to the webhook
 * failed, `missed` if it has none, `withheld` if at least one was withheld and the others failed.
 */
export type RecoverableState = "failed" | "missed" | "withheld";

/**
 * How an event stands for a webhook: `pending` if one of its deliveries to the webhook is pending;
 * otherwise `delivered` if one was delivered; otherwise a {@link RecoverableState}.
 */
export type EventStanding = RecoverableState | "delivered" | "pending";

/** The states that `recover` creates deliveries for, unless it gets others. */
export const RECOVERED_STATES: readonly EventStanding[] = ["failed", "missed"];

/**
 * How often an event may be sent again to one webhook: the highest serial number of a delivery.
 * Each one is a further record, so a client that resends or recovers in a loop must end.
 */
export const MAX_RESENT = 100;

/** The reason of a test that the endpoint did not accept: it is no failed delivery. */
export const TEST_FAILED = "test_failed";

/** One HTTP exchange, or one that failed before it began. */
export interface Attempt {
  readonly at: number;
  readonly durationMs: number;
  /** The step of the schedule, from 0. */
  readonly step: number;
  /** True if a user requested the attempt in addition to the schedule. */
  readonly isExtra: boolean;
  readonly kind: "delivered" | "http" | "dns" | "connect" | "tls" | "timeout" | "refused";
  readonly status: number | null;
  /** A short stable word: `ECONNREFUSED`, `NO_USABLE_ADDRESS`, `HTTP_500` … */
  readonly code: string;
  /** The first characters of the response to a failed attempt. */
  readonly excerpt: string | null;
}

/** The result of the latest attempt. */
export type AttemptSummary = Pick<Attempt, "at" | "kind" | "status" | "code">;

/** A delivery in the delivery log: one event for one webhook. */
export interface DeliveryRecord {
  /** `<webhook id>.<event id>`, plus `.<n>` for the n-th one that `resend` or `recover` created. */
  readonly id: string;
  readonly webhookId: string;
  readonly eventId: string;
  readonly type: string;
  /** `subject` of its event; `null` if it has none. */
  readonly subject: string | null;
  /** `tags` of its event; an empty list if it has none. */
  readonly tags: readonly string[];
  readonly state: DeliveryState;
  /**
   * Why the delivery completed without being delivered: `exhausted`, `test_failed`, `disabled`,
   * `access_denied`, `access_unknown`, `crashed`, `payload_unreadable`, `payload_missing`,
   * `record_unreadable`, `key_erased`.
   */
  readonly reason: string | null;
  readonly createdAt: number;
  /**
   * When its first attempt was due and a process made or skipped it. The schedule counts from here.
   */
  readonly startedAt: number | null;
  /** The step that it waits for. */
  readonly step: number;
  /**
   * True while it is leased: a process attempts it, or does so next. If that process has died,
   * until a claim finds that the lease has expired.
   */
  readonly isInFlight: boolean;
  /** When that step is due; `null` once the delivery is completed. */
  readonly dueAt: number | null;
  readonly endedAt: number | null;
  /** The latest 50, oldest first. The default schedule has at most 14; `resend` adds more. */
  readonly attempts: readonly Attempt[];
}

/** How long, and how many, completed deliveries are kept. */
export interface Retention {
  /**
   * Milliseconds for which an event is kept, with all its deliveries and their attempts, after the
   * last of them completed. Later calls then free it, a few events at a time. 0 frees at once. An
   * event that was appended with a `keepMs` of its own is kept for that time.
   */
  readonly keepMs: number;
  /**
   * Events without a pending delivery that an account may have. Beyond that, later calls free the
   * oldest first, with their deliveries, a few at a time: those without a `keepMs` of their own,
   * and only then those with one, in the order in which their time ends.
   */
  readonly events: number;
}

/**
 * The parts of a delivery's id: it contains webhook and event, so no storage needs an index. Opaque
 * to users. `serial` is 0 for the delivery of an emit; `resend` and `recover` count up.
 */
export interface DeliveryKey {
  readonly webhookId: string;
  readonly eventId: string;
  readonly serial: number;
}

/** Returns `<webhook id>.<event id>`, followed by `.<serial>` unless it is 0. For storages. */
export const formatDeliveryId = ({ webhookId, eventId, serial }: DeliveryKey): string =>
  serial === 0 ? `${webhookId}.${eventId}` : `${webhookId}.${eventId}.${serial}`;

/** Parses the id of a delivery; returns `undefined` for any other text. For storages. */
export function parseDeliveryId(id: string): DeliveryKey | undefined {
  const match = /^([0-9a-f-]{36})\.([0-9a-f-]{36})(?:\.([1-9][0-9]{0,8}))?$/.exec(id);
  const [, webhookId, eventId, serial] = match ?? [];
  return webhookId && eventId ? { webhookId, eventId, serial: Number(serial ?? 0) } : undefined;
}

type Secrets = Pick<WebhookRecord, "secret" | "previousSecret" | "rotateAt">;

/**
 * Returns when the new secret begins to sign, and the secret that signs until then; `null` if no
 * rotation is in progress.
 */
export const getRotation = (
  { previousSecret, rotateAt }: Secrets,
  now: number,
): { previousSecret: string; rotateAt: number } | null =>
  previousSecret !== null && rotateAt !== null && now < rotateAt ? { previousSecret, rotateAt } : null;

/**
 * Returns the fields of a rotated webhook: the secret that signs now continues until `rotateAt`. A
 * finished rotation leaves only the new secret.
 */
export function rotateSecret(webhook: Secrets, rotation: SecretRotation, now: number): Secrets {
  if ("finish" in rotation) return { secret: webhook.secret, previousSecret: null, rotateAt: null };
  if (rotation.rotateAt <= now) return { secret: rotation.secret, previousSecret: null, rotateAt: null };
  return { ...rotation, previousSecret: getRotation(webhook, now)?.previousSecret ?? webhook.secret };
}

/** Which part of a list a call reads. */
export interface Page {
  /** The `next` of the page before. Any other value is refused with `invalid_argument`. */
  readonly cursor?: string | undefined;
  readonly limit: number;
}
