/** Splits work into batches of limited size. Pure. */

/**
 * Splits `entries`, in their order, into batches of at most `count` entries whose weights add up to
 * at most `weight`. An entry that weighs more than that is a separate batch.
 */
export function splitIntoBatches<T>(
  entries: T[],
  { count, weight }: { count: number; weight: number },
  getWeight: (entry: T) => number,
): T[][] {
  const batches: T[][] = [];
  let batch: T[] = [];
  let total = 0;
  for (const entry of entries) {
    const size = getWeight(entry);
    if (batch.length > 0 && (batch.length >= count || total + size > weight)) {
      batches.push(batch);
      [batch, total] = [[], 0];
    }
    batch.push(entry);
    total += size;
  }
  return batch.length === 0 ? batches : [...batches, batch];
}
