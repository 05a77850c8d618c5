/**
 * Counts work without a clock: the look-ups in maps. Every scan of records makes at least
 * one for each. Changes the whole process while it counts.
 */

/** Returns the number of calls of `Map.prototype.get` while `work` runs. */
export async function countSteps(work: () => unknown): Promise<number> {
  const prototype: { get: (this: Map<unknown, unknown>, key: unknown) => unknown } = Map.prototype;
  const { get } = prototype;
  let steps = 0;
  prototype.get = function counted(key) {
    steps += 1;
    return get.call(this, key);
  };
  try {
    await work();
    return steps;
  } finally {
    prototype.get = get;
  }
}
