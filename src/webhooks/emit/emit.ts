/** `emit`: prepares events, stores them in order, and reports how it went. */

import { ignoreErrors } from "../../core/error-events.js";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import { type SpanAttributes, seconds } from "../../core/telemetry.js";
import type { ServiceBase } from "../config/config.js";
import type { DeliveryWorker } from "../delivery/worker.js";
import {
  type AppendedEvent,
  type AppendResponse,
  type AppendResult,
  type EventRecord,
  REMEMBER_MS,
  type WebhookStore,
} from "../store.js";
import type { PrepareEvent } from "./prepare-event.js";
import { type EmitOptions, type Emitted, type EventInput, readEmitOptions } from "./prepare-event.js";
import type { LogUnmatched } from "./unmatched-webhooks.js";

/** Emits one event, or several in order. */
export type Emit = (
  input: EventInput | readonly EventInput[],
  options?: EmitOptions,
) => Promise<Emitted | readonly Emitted[]>;

export function createEmit(prepare: PrepareEvent, append: AppendEvents, report: EmitTelemetry): Emit {
  /** Prepares every event before the first is stored. */
  const prepareAll = async (
    inputs: readonly EventInput[],
    trace: string | undefined,
  ): Promise<readonly EventRecord[]> => {
    const pending: Promise<EventRecord>[] = [];
    const prepareItem = (input: EventInput, index: number): EventRecord | Promise<EventRecord> => {
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
      if (pending.length === 0) return prepared as readonly EventRecord[];
      return await Promise.all(prepared.map(async (event) => event));
    } catch (error) {
      // Other lookups may still reject. Unhandled, that would end the process.
      void Promise.allSettled(pending);
      throw error;
    }
  };

  const emitOne = (input: EventInput, options: EmitOptions): Promise<Emitted> =>
    report.call(async (trace, note) => {
      const prepared = await report.prepared(() => prepare(input, trace));
      note?.({ "messaging.destination.name": prepared.type, "messaging.message.id": prepared.id });
      const { emitted, error } = await report.stored(append([prepared], options));
      const [own] = emitted;
      if (own === undefined) throw toStoreError(error, prepared);
      note?.({
        "postbell.outcome": own.duplicate ? "duplicate" : "stored",
        "postbell.deliveries": own.deliveries.length,
      });
      return own;
    });

  const emitAll = (inputs: readonly EventInput[], options: EmitOptions): Promise<readonly Emitted[]> =>
    report.call(async (trace, note) => {
      note?.({ "messaging.batch.message_count": inputs.length });
      const prepared = await report.prepared(() => prepareAll(inputs, trace));
      if (prepared.length === 0) return [];
      const { emitted, error } = await report.stored(append(prepared, options));
      const next = prepared[emitted.length];
      if (next === undefined) return emitted;
      throw toStoreError(error, next, { index: emitted.length, count: prepared.length });
    });

  return async (input, given) => {
    const options = readEmitOptions(given);
    // A connection of the host may end while the event is prepared. Its next statement rejects.
    ignoreErrors(options.transaction);
    return isList(input) ? emitAll(input, options) : emitOne(input, options);
  };
}

/** Adds the event's id, so that the caller can emit it again, and where a list stopped. */
function toStoreError(
  error: PostbellError | undefined,
  { id: eventId }: EventRecord,
  place?: { readonly index: number; readonly count: number },
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
  events: readonly EventRecord[],
  options?: EmitOptions & { readonly webhookId?: string | undefined },
) => Promise<{ readonly emitted: readonly Emitted[]; readonly error?: PostbellError | undefined }>;

/** Errors: `invalid_argument` if the storage cannot write in a transaction of the host. */
function checkTransaction(store: Pick<WebhookStore, "joinsTransactions">, transaction: unknown): void {
  if (transaction === undefined) return;
  const problem =
    store.joinsTransactions !== true
      ? "This storage cannot write in a transaction of the host. Use postgresStorage or sqliteStorage, or the outbox."
      : typeof transaction !== "object" || transaction === null
        ? "transaction must be the connection on which the transaction was begun."
        : undefined;
  if (problem !== undefined) throw new PostbellError("invalid_argument", problem, { field: "transaction" });
}

function toError(result: AppendResult | undefined): PostbellError | undefined {
  if (result?.result === "refused") return result.error;
  if (result?.result !== "conflict") return undefined;
  const message = "An event with this id and other content was emitted in the last 24 hours.";
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
 * also where each event needs a round trip of its own, as on a Redis with many partitions.
 */
const EVENTS_PER_CALL = 50;

/**
 * @param options.onScheduled called if deliveries were stored, with the number of their events.
 * @param options.logUnmatched called with each event that is for the whole account.
 */
export function createAppendEvents(
  store: Pick<WebhookStore, "append" | "now" | "joinsTransactions">,
  worker: Pick<DeliveryWorker, "reserve">,
  options: { readonly onScheduled: (events: number) => void; readonly logUnmatched: LogUnmatched },
): AppendEvents {
  const appendTogether: AppendEvents = async (events, { webhookId, transaction } = {}) => {
    // A list reserves nothing: its slots would stay empty until all of it is stored. Nobody can
    // claim the deliveries of a transaction before it commits.
    const reservation = events.length === 1 && transaction === undefined ? worker.reserve() : undefined;
    const claim = reservation?.request;
    let response: AppendResponse | undefined;
    try {
      const now = store.now();
      response = await store.append({ events, rememberMs: REMEMBER_MS, now, webhookId, transaction, claim });
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
      const own = toEmitted(event, result);
      emitted.push(own);
      if (own.deliveries.length > 0) scheduled += 1;
      if (webhookId === undefined) options.logUnmatched(event, own);
    }
    if (scheduled > 0) options.onScheduled(scheduled);
    return { emitted, error };
  };

  return async (events, given = {}) => {
    checkTransaction(store, given.transaction);
    if (events.length <= EVENTS_PER_CALL) return appendTogether(events, given);
    const emitted: Emitted[] = [];
    while (emitted.length < events.length) {
      const next = events.slice(emitted.length, emitted.length + EVENTS_PER_CALL);
      const stored = await appendTogether(next, given);
      emitted.push(...stored.emitted);
      if (stored.emitted.length < next.length) return { emitted, error: stored.error };
    }
    return { emitted };
  };
}

const toErrorLabel = (error: unknown): string => (isPostbellError(error) ? error.code : "unexpected");

type Stored = Awaited<ReturnType<AppendEvents>>;

interface EmitTelemetry {
  /**
   * Runs `work` inside a span. `work` gets the `traceparent` to store with its events, and a
   * function that adds attributes to the span.
   */
  call<T>(
    work: (trace: string | undefined, note: ((attributes: SpanAttributes) => void) | undefined) => Promise<T>,
  ): Promise<T>;
  /** Runs `prepare`, and records how long it took if it fails, labelled with the error's code. */
  prepared<T>(prepare: () => T | Promise<T>): T | Promise<T>;
  /**
   * Records how long `storing` took for each event: those that were stored, and the one that was
   * not.
   */
  stored(storing: Promise<Stored>): Promise<Stored>;
}

/** Lists the label of each event that was stored, and the code of the error of the next. */
const toOutcomes = ({ emitted, error }: Stored): readonly string[] => [
  ...emitted.map(({ duplicate }) => (duplicate ? "duplicate" : "stored")),
  ...(error === undefined ? [] : [error.code]),
];

/** Adds nothing to `emit` if there is no telemetry. */
export function createEmitTelemetry({
  telemetry,
  config: { clock },
}: Pick<ServiceBase, "telemetry" | "config">): EmitTelemetry {
  if (telemetry === undefined) {
    return {
      call: (work) => work(undefined, undefined),
      prepared: (prepare) => prepare(),
      stored: (storing) => storing,
    };
  }
  /** Records how long `work` took, once for each outcome. */
  const measure = async <T>(
    work: () => T | Promise<T>,
    listOutcomes: (result: T) => readonly string[],
  ): Promise<T> => {
    const startedAt = clock.monotonic();
    const record = (outcome: string): void =>
      telemetry.record("emitDuration", seconds(clock.monotonic() - startedAt), { outcome });
    try {
      const result = await work();
      listOutcomes(result).forEach(record);
      return result;
    } catch (error) {
      record(toErrorLabel(error));
      throw error;
    }
  };

  return {
    async call(work) {
      const span = telemetry.begin?.({
        name: "emit",
        kind: "producer",
        at: clock.now(),
        attributes: {
          "messaging.system": "postbell",
          "messaging.operation.name": "emit",
          "messaging.operation.type": "send",
        },
      });
      if (span === undefined) return work(undefined, undefined);
      const attributes: Record<string, SpanAttributes[string]> = {};
      let error: string | undefined;
      try {
        return await span.run(() => work(span.traceparent, (noted) => Object.assign(attributes, noted)));
      } catch (thrown) {
        error = toErrorLabel(thrown);
        throw thrown;
      } finally {
        span.end({ at: clock.now(), attributes, error });
      }
    },
    prepared: (prepare) => measure(prepare, () => []),
    stored: (storing) => measure(() => storing, toOutcomes),
  };
}
