/**
 * Puts every content call behind the circuit. `core/storage-circuit.ts` describes the behaviour
 * during an outage.
 */

import type { StorageCircuit } from "../../core/storage-circuit.js";
import type { ContentStore } from "../store.js";

/** The key of a record that does not exist. */
const NO_RECORD = "post/0";

/**
 * Returns the same store with a time limit on each call and each batch of a load, and without calls
 * during an outage. A call that returns its result synchronously still does.
 */
export function guardContentStore(store: ContentStore, circuit: StorageCircuit): ContentStore {
  const bounded = circuit.connect({
    ping: () => store.read([NO_RECORD]),
    connectionProblem: () => store.connectionProblem?.(),
  });
  const refuse = bounded((since: number) => Promise.resolve(store.changes(since)));

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
      if (circuit.isOpen()) return refuse(since);
      const answer = store.changes(since);
      return answer instanceof Promise ? bounded(() => answer)() : answer;
    },
  });
}
