/** `emit`: prepares events, stores them in order, and reports how it went. */

import type { Clock } from "../../core/clock.js";
import { ignoreErrors } from "../../core/error-events.js";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import { type Span, type SpanAttributes, seconds, type Telemetry } from "../../core/telemetry.js";
import type { ServiceBase } from "../config/config.js";
import type { DeliveryWorker } from "../delivery/worker.js";
import { publishEvents } from "../diagnostics.js";
import type { StartReminder } from "../start-reminder.js";
import {
  type AppendedEvent,
  type AppendResponse,
  type AppendResult,
  type EventRecord,
  type EventToAppend,
  REMEMBER_MS,
  type WebhookStore,
} from "../store.js";
import { requireTransactionValue } from "../transaction.js";
import { EventAppender } from "./event-appender.js";
import type { EmitOptions, Emitted, EventInput } from "./event-input.js";
import { createPrepareEvent, readEmitOptions } from "./prepare-event.js";
import { createUnmatchedLog } from "./unmatched-webhooks.js";

/** Emits one event, or several in order. */
export type Emit = (input: EventInput | EventInput[], options?: EmitOptions) => Promise<Emitted | Emitted[]>;

export function createEmit(base: ServiceBase, append: AppendEvents): Emit {
  const { telemetry, config } = base;
  const prepare = createPrepareEvent(base);

  /** Prepares every event before the first is stored. */
  const prepareAll = async (inputs: EventInput[], trace: string | undefined): Promise<EventToAppend[]> => {
    const pending: Promise<EventToAppend>[] = [];
    const prepareItem = (input: EventInput, index: number): EventToAppend | Promise<EventToAppend> => {
      try {
        const event = prepare(input, trace);
        if (!(event instanceof Promise)) return event;
        const named = event.catch((error: unknown) => {
          throw toItemError(error, index);
        });
        pending.push(named);
        return named;
      } catch (error) {
        throw toItemError(error, index);
      }
    };
    try {
      // Array.from visits holes too, and a hole is not an event.
      const prepared = Array.from(inputs, prepareItem);
      if (pending.length === 0) return prepared as EventToAppend[];
      return await Promise.all(prepared.map(async (event) => event));
    } catch (error) {
      // Other lookups may still reject. Unhandled, that would end the process.
      void Promise.allSettled(pending);
      throw error;
    }
  };

  const emitOne = async (input: EventInput, options: EmitOptions, span?: EmitSpan): Promise<Emitted> => {
    const prepared = prepare(input, span?.traceparent);
    const event = prepared instanceof Promise ? await prepared : prepared;
    span?.prepared({ "messaging.destination.name": event.type, "messaging.message.id": event.id });
    const stored = await append([event], options);
    span?.stored(stored);
    const [emitted] = stored.emitted;
    if (emitted === undefined) throw toStoreError(stored.error, event);
    span?.note({
      "postbell.outcome": toOutcome(emitted),
      "postbell.deliveries": emitted.deliveries.length,
    });
    return emitted;
  };

  const emitAll = async (inputs: EventInput[], options: EmitOptions, span?: EmitSpan): Promise<Emitted[]> => {
    span?.note({ "messaging.batch.message_count": inputs.length });
    const events = await prepareAll(inputs, span?.traceparent);
    if (events.length === 0) return [];
    span?.prepared({});
    const stored = await append(events, options);
    span?.stored(stored);
    const { emitted, error } = stored;
    const next = events[emitted.length];
    if (next === undefined) return emitted;
    throw toStoreError(error, next, { index: emitted.length, count: events.length });
  };

  return async (input, settings) => {
    const options = readEmitOptions(settings);
    // A connection of the host may end while the event is prepared. Its next statement rejects.
    if (options.transaction !== undefined) ignoreErrors(options.transaction);
    const span = telemetry && new EmitSpan(telemetry, config.clock);
    const emit = () => (isList(input) ? emitAll(input, options, span) : emitOne(input, options, span));
    // In the span, so that spans of hooks and of the storage's client become its children.
    return span === undefined ? emit() : span.run<Emitted | Emitted[]>(emit);
  };
}

/** Adds the event's id, so that the caller can emit it again, and where a list stopped. */
function toStoreError(
  error: PostbellError | undefined,
  { id: eventId }: EventRecord,
  place?: { index: number; count: number },
): PostbellError {
  if (error === undefined) throw new TypeError("the storage returned no result for an event");
  const { code, message, field, effect, reason, isPermanent, isOutage } = error;
  const details = { field, effect, reason, isPermanent, isOutage, eventId, cause: error };
  if (place === undefined) return new PostbellError(code, message, details);
  const { index, count } = place;
  const stored = `${effect === "unknown" ? "At least " : ""}${index} of ${count} events were stored.`;
  return new PostbellError(code, `${message} ${stored}`, { ...details, field: `[${index}]` });
}

/** Converts the error of one item to an error of the list, whose field names the item. */
function toItemError(error: unknown, index: number): unknown {
  if (!isPostbellError(error)) return error;
  const { code, message, field } = error;
  const path = field === undefined ? `[${index}]` : `[${index}].${field}`;
  return new PostbellError(code, `[${index}]: ${message}`, { field: path, cause: error });
}

const isList = (input: EventInput | readonly EventInput[]): input is readonly EventInput[] =>
  Array.isArray(input);

/**
 * Stores events in order, until one is not stored. Resolves with a result for each that was stored,
 * and with the `error` of the next: `event_conflict`, or one of the storage. With `webhookId`, only
 * that webhook receives the events.
 */
export type AppendEvents = (
  events: EventToAppend[],
  options?: EmitOptions & { webhookId?: string | undefined },
) => Promise<{ emitted: Emitted[]; error?: PostbellError | undefined }>;

/** Errors: `invalid_argument` if the storage cannot write in a transaction of the host. */
function checkTransaction(store: WebhookStore, transaction: unknown): void {
  if (transaction === undefined) return;
  if (store.joinsTransactions !== true) {
    throw new PostbellError(
      "invalid_argument",
      "This storage cannot write in a transaction of the host. Use postgresStorage or sqliteStorage, or the outbox.",
      { field: "transaction" },
    );
  }
  requireTransactionValue(transaction, "transaction");
}

function toError(result: AppendResult | undefined): PostbellError | undefined {
  if (result?.result === "refused") return result.error;
  if (result?.result !== "conflict") return undefined;
  const message =
    "An event with this id, or this idempotencyKey, and other content was emitted in the last 24 hours.";
  return new PostbellError("event_conflict", message, { field: "id" });
}

const toEmitted = (
  { id }: EventRecord,
  { result, deliveries, webhooks, confirmed }: AppendedEvent,
): Emitted => ({
  id,
  duplicate: result === "duplicate",
  ...(confirmed === undefined ? {} : { confirmed }),
  deliveries,
  webhooks,
});

/**
 * Events that one call of the storage stores. The circuit's four seconds are for the whole call,
 * also where each event needs a separate round trip, as on a Redis with many partitions.
 */
const EVENTS_PER_CALL = 50;

export function createAppendEvents(
  base: ServiceBase,
  worker: DeliveryWorker,
  reminder: StartReminder,
): AppendEvents {
  const { store, sealer } = base;
  const appender = new EventAppender(base);
  const logUnmatched = createUnmatchedLog(base);
  const appendTogether: AppendEvents = async (events, { webhookId, transaction } = {}) => {
    // A list reserves nothing: its slots would stay empty until all of it is stored. Nobody can
    // claim the deliveries of a transaction before it commits.
    const reservation = events.length === 1 && transaction === undefined ? worker.reserve() : undefined;
    const claim = reservation?.request;
    let response: AppendResponse | undefined;
    try {
      const now = store.now();
      const request = { events, rememberMs: REMEMBER_MS, now, webhookId, transaction, claim };
      response = await (sealer.seals ? appender.append(request) : store.append(request));
      if (response.results.at(-1)?.result === "conflict")
        response = await appender.resolveConflict(request, response);
    } catch (error) {
      if (!isPostbellError(error)) throw error;
      return { emitted: [], error };
    } finally {
      reservation?.end(response?.claimed);
    }
    const emitted: Emitted[] = [];
    let scheduled = 0;
    let error: PostbellError | undefined;
    for (const [index, event] of events.entries()) {
      const result = response.results[index];
      if (result === undefined || !("deliveries" in result)) {
        error = toError(result);
        break;
      }
      const { deliveries, webhooks } = result;
      emitted.push(toEmitted(event, result));
      if (deliveries.length > 0) scheduled += 1;
      const isUnmatched = webhooks === 0 || deliveries.length < webhooks;
      if (isUnmatched && webhookId === undefined && result.result !== "duplicate")
        logUnmatched(event, result);
    }
    publishEvents(events, emitted);
    // With a reservation, the worker runs.
    if (scheduled > 0 && reservation === undefined) reminder.expectStart(scheduled);
    return { emitted, error };
  };

  return async (events, options = {}) => {
    checkTransaction(store, options.transaction);
    if (events.length <= EVENTS_PER_CALL) return appendTogether(events, options);
    const emitted: Emitted[] = [];
    while (emitted.length < events.length) {
      const next = events.slice(emitted.length, emitted.length + EVENTS_PER_CALL);
      const stored = await appendTogether(next, options);
      emitted.push(...stored.emitted);
      if (stored.emitted.length < next.length) return { emitted, error: stored.error };
    }
    return { emitted };
  };
}

const toErrorLabel = (error: unknown): string => (isPostbellError(error) ? error.code : "unexpected");

const toOutcome = ({ duplicate }: Emitted): string => (duplicate ? "duplicate" : "stored");

/** The span of one call, and how long it took to store its events. */
class EmitSpan {
  #telemetry: Telemetry;
  #clock: Clock;
  #span: Span | undefined;
  #attributes: Record<string, SpanAttributes[string]> = {};
  /** When the current step began: preparing, then storing. */
  #stepAt: number;
  /** True once the outcome of every event was recorded. */
  #isRecorded = false;

  constructor(telemetry: Telemetry, clock: Clock) {
    this.#telemetry = telemetry;
    this.#clock = clock;
    this.#stepAt = clock.monotonic();
    this.#span = telemetry.begin?.({
      name: "emit",
      kind: "producer",
      at: clock.now(),
      attributes: {
        "messaging.system": "postbell",
        "messaging.operation.name": "emit",
        "messaging.operation.type": "send",
      },
    });
  }

  /** Is stored with the events, so that their attempts link to this span. */
  get traceparent(): string | undefined {
    return this.#span?.traceparent;
  }

  note(attributes: SpanAttributes): void {
    Object.assign(this.#attributes, attributes);
  }

  prepared(attributes: SpanAttributes): void {
    this.note(attributes);
    this.#stepAt = this.#clock.monotonic();
  }

  /** Records each event that was stored, and the one that was not. */
  stored({ emitted, error }: Awaited<ReturnType<AppendEvents>>): void {
    for (const event of emitted) this.#record(toOutcome(event));
    if (error !== undefined) this.#record(error.code);
    this.#isRecorded = true;
  }

  /** Calls `work` with this span as the current one, and ends the span with its result. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    let label: string | undefined;
    try {
      return await (this.#span === undefined ? work() : this.#span.run(work));
    } catch (error) {
      label = toErrorLabel(error);
      if (!this.#isRecorded) this.#record(label);
      throw error;
    } finally {
      this.#span?.end({ at: this.#clock.now(), attributes: this.#attributes, error: label });
    }
  }

  #record(outcome: string): void {
    const ms = this.#clock.monotonic() - this.#stepAt;
    this.#telemetry.record("emitDuration", seconds(ms), { outcome });
  }
}
