/**
 * Stores events on Redis, many in one call: with the short script if all are common, else the
 * general one.
 */

import type { WebhookStore } from "../../src/webhooks/store.js";
import { createBatcher } from "../batcher.js";
import type { Appended, AppendItem, ClaimingItem } from "./append-codec.js";
import { createAppendCommon } from "./append-common.js";
import { type AppendContext, type AppendOptions, createClaimInTime } from "./append-context.js";
import { createAppendGeneral } from "./append-general.js";
import type { Partition } from "./partition.js";
import { encodeUuid } from "./text-codec.js";

/** The most events in a script, so that none holds Redis up for more than a few milliseconds. */
const APPENDED_PER_CALL = 32;
const APPENDED_BYTES_PER_CALL = 1_048_576;
/** The most calls in flight. Meanwhile the next call gathers items, so batches grow under load. */
const CONCURRENT_CALLS = 2;

export function createAppend(options: AppendOptions): WebhookStore["append"] {
  const { context, claims, nonce } = options;
  const { partitions, limits, isReplicated, clock } = context;
  const appendContext: AppendContext = {
    ...options,
    bounds: [limits.pending, limits.pendingPerAccount],
    claimInTime: createClaimInTime(options),
  };
  const appendCommon = createAppendCommon(appendContext);
  const appendGeneral = createAppendGeneral(appendContext);

  const append = async (
    partition: Partition,
    items: readonly AppendItem[],
  ): Promise<readonly (Appended | Error)[]> => {
    const now = await context.at(Math.max(...items.map((item) => item.now)));
    // One claim is enough for all items. A replicated call waits for a replica, and its leases
    // would too.
    const claimer = isReplicated
      ? undefined
      : items.find((item): item is ClaimingItem => item.claim !== undefined);
    const hasTest = items.some(({ webhookId }) => webhookId !== undefined);
    const appended = hasTest ? undefined : await appendCommon(partition, items, claimer, now);
    if (appended) return appended;
    return appendGeneral(partition, items, claimer, now).catch((error: unknown) => {
      if (claimer) void claims.release(partition, { ...claimer.claim, now });
      throw error;
    });
  };

  const batchers = partitions.all.map((partition) =>
    createBatcher<AppendItem, Appended | Error>({
      run: (items) => append(partition, items),
      most: APPENDED_PER_CALL,
      concurrency: CONCURRENT_CALLS,
      getBytes: ({ event }) => event.payload.length,
      mostBytes: APPENDED_BYTES_PER_CALL,
    }),
  );

  return async ({ event, rememberMs, now, claim, webhookId }) => {
    const batcher = batchers[partitions.ofAccount(event.account).number];
    if (batcher === undefined) throw new RangeError("every account has a partition");
    const result = await batcher.add({
      event: Object.freeze({ ...event }),
      short: encodeUuid(event.id),
      rememberMs,
      now,
      calledAt: clock.monotonic(),
      nonce: nonce(),
      claim,
      webhookId,
    });
    if (result instanceof Error) throw result;
    return result;
  };
}
