/** Cuts what waits into batches. Pure. */

/** In the order of `entries`: each of at most `count`, their weights together at most `weight`; what weighs more by itself is a batch of its own. */
export function splitIntoBatches<T>(
  entries: readonly T[],
  { count, weight }: { readonly count: number; readonly weight: number },
  weightOf: (entry: T) => number,
): readonly (readonly T[])[] {
  const batches: T[][] = [];
  let batch: T[] = [];
  let total = 0;
  for (const entry of entries) {
    const own = weightOf(entry);
    if (batch.length > 0 && (batch.length >= count || total + own > weight)) {
      batches.push(batch);
      [batch, total] = [[], 0];
    }
    batch.push(entry);
    total += own;
  }
  return batch.length === 0 ? batches : [...batches, batch];
}
