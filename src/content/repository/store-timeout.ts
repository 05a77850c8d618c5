/**
 * Limits the time of every content call. `core/call-timeout.ts` describes the behaviour during an
 * outage.
 */

import { withCallTimeout } from "../../core/call-timeout.js";
import type { Clock } from "../../core/clock.js";
import type { ContentStore } from "../store.js";

/**
 * Wraps a store so that each call, and each batch of a load, has the limit of `withCallTimeout`. A
 * call that returns its result synchronously still does.
 */
export function withContentStoreTimeout(store: ContentStore, clock: Clock): ContentStore {
  const bounded = withCallTimeout(clock);

  async function* inTime<T>(batches: AsyncIterable<T>): AsyncIterable<T> {
    const iterator = batches[Symbol.asyncIterator]();
    const next = bounded(() => iterator.next());
    for (let step = await next(); step.done !== true; step = await next()) yield step.value;
  }

  return Object.freeze<ContentStore>({
    now: () => store.now(),
    load: bounded(async () => {
      const { sequence, batches } = await store.load();
      return { sequence, batches: inTime(batches) };
    }),
    read: bounded((keys) => store.read(keys)),
    allocate: bounded((kind, count) => store.allocate(kind, count)),
    commit: bounded((writes, basis) => store.commit(writes, basis)),
    changes(since) {
      const answer = store.changes(since);
      return answer instanceof Promise ? bounded(() => answer)() : answer;
    },
  });
}
