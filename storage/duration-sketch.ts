/**
 * Sketches of durations: how many attempts were in each of a hundred classes. A quantile that is
 * read from a sketch differs from the exact one by at most 5 %, and is rounded to a millisecond.
 * Durations above 73 s are in the last class.
 *
 * A sketch is a text, `bd3ch1`: two letters name a class, and the number is how many attempts were
 * in it. A class may occur several times, so that attempts are added by appending them. Every
 * storage keeps this text; delivery-functions.ts appends as `addToSketch` does, and recent.lua adds
 * to the entry of the class.
 */

const CLASSES = 100;

/** Up to here, each millisecond has a class of its own. */
const EXACT_MS = 10;
/** How much larger the end of a class is than that of the class before. */
const GROWTH = 1.05 / 0.95;
const LOG_GROWTH = Math.log(GROWTH);

/** A sketch that would be longer is compacted. Then it has at most one entry for each class. */
export const SKETCH_CHARACTERS = 512;

const LETTER_A = 97;
const NAMES: readonly string[] = Array.from({ length: CLASSES }, (_, index) =>
  String.fromCharCode(LETTER_A + Math.floor(index / 10), LETTER_A + (index % 10)),
);
/** The sketches of one attempt. */
const SINGLE: readonly string[] = NAMES.map((name) => `${name}1`);

function toClass(durationMs: number): number {
  if (!(durationMs > 0)) return 0;
  if (durationMs <= EXACT_MS) return Math.round(durationMs);
  return Math.min(CLASSES - 1, EXACT_MS + Math.ceil(Math.log(durationMs / EXACT_MS) / LOG_GROWTH));
}

/** The middle of a class: as far from its beginning as from its end, in per cent. */
const toMs = (index: number): number =>
  index <= EXACT_MS ? index : Math.round((EXACT_MS * GROWTH ** (index - EXACT_MS) * 2) / (GROWTH + 1));

/** Writes the sketch of attempts that took so many milliseconds. */
export function sketchDurations(durations: readonly number[]): string {
  const [first] = durations;
  if (first !== undefined && durations.length === 1) return SINGLE[toClass(first)] ?? "";
  const counts = new Map<number, number>();
  for (const durationMs of durations) {
    const index = toClass(durationMs);
    counts.set(index, (counts.get(index) ?? 0) + 1);
  }
  return writeSketch(counts);
}

const writeSketch = (counts: ReadonlyMap<number, number>): string =>
  [...counts]
    .sort(([one], [other]) => one - other)
    .map(([index, count]) => `${NAMES[index]}${count}`)
    .join("");

/** Reads how many attempts were in each class. Leaves out what is not an entry. */
function readSketch(sketch: string): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const [, name = "", count] of sketch.matchAll(/([a-j]{2})([0-9]{1,15})/g)) {
    const index = (name.charCodeAt(0) - LETTER_A) * 10 + name.charCodeAt(1) - LETTER_A;
    counts.set(index, (counts.get(index) ?? 0) + Number(count));
  }
  return counts;
}

/** Adds the attempts of another sketch. */
export function addToSketch(sketch: string, added: string): string {
  const sum = sketch + added;
  return sum.length <= SKETCH_CHARACTERS ? sum : writeSketch(readSketch(sum));
}

/** The durations that half, and 95 of 100 attempts did not exceed, in milliseconds. */
export interface Quantiles {
  /** `null` without attempts. */
  readonly p50: number | null;
  readonly p95: number | null;
}

export function readQuantiles(sketch: string): Quantiles {
  const counts = [...readSketch(sketch)].sort(([one], [other]) => one - other);
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  const find = (percent: number): number | null => {
    let reached = 0;
    const found = counts.find(([, count]) => {
      reached += count;
      return reached * 100 >= total * percent;
    });
    return found === undefined ? null : toMs(found[0]);
  };
  return { p50: find(50), p95: find(95) };
}

/** Reads a class by its name; `null` for any other text. */
export function readClass(name: string | undefined): number | null {
  const index = NAMES.indexOf(name ?? "");
  return index < 0 ? null : toMs(index);
}
