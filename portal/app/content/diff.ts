/** Compares two texts line by line. Pure. */

/** A line on each side; `null` if a side has no such line. Equal texts are an unchanged line. */
export interface DiffRow {
  readonly left: string | null;
  readonly right: string | null;
}

/** Beyond this many different lines, lines are not matched: it would take too long. */
const MOST_DIFFERENCES = 1_000;

type Pair = readonly [left: number, right: number];

/**
 * Returns the rows of both texts side by side, in order. Lines of one side only are paired with
 * those in the same place on the other side.
 *
 * Source: Myers, "An O(ND) Difference Algorithm and Its Variations", 1986.
 */
export function differences(left: string, right: string): readonly DiffRow[] {
  const a = left === "" ? [] : left.split(/\r?\n/);
  const b = right === "" ? [] : right.split(/\r?\n/);
  const rows: DiffRow[] = [];
  let [x, y] = [0, 0];
  for (const [nextX, nextY] of [...pairsOf(a, b), [a.length, b.length] as const]) {
    while (x < nextX || y < nextY) {
      rows.push({
        left: x < nextX ? (a[x++] as string) : null,
        right: y < nextY ? (b[y++] as string) : null,
      });
    }
    if (x < a.length) rows.push({ left: a[x++] as string, right: b[y++] as string });
  }
  return rows;
}

/** The lines that are the same on both sides, ascending. */
function pairsOf(a: readonly string[], b: readonly string[]): readonly Pair[] {
  const most = Math.min(a.length, b.length);
  let start = 0;
  while (start < most && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < most - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const pairs: Pair[] = [];
  for (let at = 0; at < start; at += 1) pairs.push([at, at]);
  const middle = matched(a.slice(start, a.length - end), b.slice(start, b.length - end));
  for (const [x, y] of middle) pairs.push([x + start, y + start]);
  for (let at = end; at > 0; at -= 1) pairs.push([a.length - at, b.length - at]);
  return pairs;
}

/** A longest common subsequence; none where the two differ too much. */
function matched(a: readonly string[], b: readonly string[]): readonly Pair[] {
  const most = Math.min(a.length + b.length, MOST_DIFFERENCES);
  const zero = most + 1;
  /** By diagonal, how far into `a` the paths with so many differences reach. */
  const reach = new Int32Array(2 * most + 3);
  const at = (diagonal: number, of: Int32Array): number => of[zero + diagonal] as number;
  const isDown = (diagonal: number, count: number, of: Int32Array): boolean =>
    diagonal === -count || (diagonal !== count && at(diagonal - 1, of) < at(diagonal + 1, of));

  const before: Int32Array[] = [];
  for (let count = 0; count <= most; count += 1) {
    before.push(reach.slice());
    for (let diagonal = -count; diagonal <= count; diagonal += 2) {
      let x = isDown(diagonal, count, reach) ? at(diagonal + 1, reach) : at(diagonal - 1, reach) + 1;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x += 1;
      reach[zero + diagonal] = x;
      if (x >= a.length && x - diagonal >= b.length) return path(before);
    }
  }
  return [];

  function path(steps: readonly Int32Array[]): readonly Pair[] {
    const pairs: Pair[] = [];
    let [x, y] = [a.length, b.length];
    for (let count = steps.length - 1; count >= 0; count -= 1) {
      const reached = steps[count] as Int32Array;
      const from = isDown(x - y, count, reached) ? x - y + 1 : x - y - 1;
      const fromX = count === 0 ? 0 : at(from, reached);
      const fromY = count === 0 ? 0 : fromX - from;
      while (x > fromX && y > fromY) {
        x -= 1;
        y -= 1;
        pairs.push([x, y]);
      }
      [x, y] = [fromX, fromY];
    }
    return pairs.reverse();
  }
}
