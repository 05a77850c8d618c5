/** Yields to the event loop, for work that would otherwise block it, and tells what to await. */

/** True if `value` has to be awaited, also for promises of other realms and libraries. */
export const isPromiseLike = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  typeof value === "object" && value !== null && "then" in value;

/** Resolves in the next turn of the event loop. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Work in small steps: a generator that yields wherever other work may run, at least every few
 * milliseconds, and returns the result. Whoever runs it decides if other work runs in between.
 */
export type Steps<T> = Generator<void, T>;

/** Does the work at once and returns its result. */
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

let lastTurn: Promise<void> = Promise.resolve();

/** Resolves in a turn of the event loop that no other caller has. */
function ownTurn(): Promise<void> {
  lastTurn = lastTurn.then(nextTurn);
  return lastTurn;
}

/** Characters of texts that are worked on in one turn if each text is short. */
const SHORT_TEXTS = 4_096;

let sinceTurn = 0;

/**
 * Does the work on a text of `characters` characters, one step in each turn of the event loop.
 * Short texts take a fraction of a millisecond each, so several of them share a turn. Steps of
 * different callers never share one: a turn takes no longer if many requests have long texts.
 */
export async function runInTurns<T>(steps: Steps<T>, characters: number): Promise<T> {
  sinceTurn += characters;
  if (sinceTurn < SHORT_TEXTS) return runSteps(steps);
  sinceTurn = 0;
  for (;;) {
    await ownTurn();
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Characters to process before yielding: a few milliseconds of parsing or writing JSON. */
export const TURN_CHARACTERS = 262_144;

/** Yields the records in order, and the event loop after each {@link TURN_CHARACTERS} of bodies. */
export async function* yieldBetween<T extends { body: string } | undefined>(
  records: readonly T[],
): AsyncGenerator<T> {
  let sinceTurn = 0;
  for (const record of records) {
    yield record;
    sinceTurn += record?.body.length ?? 0;
    if (sinceTurn < TURN_CHARACTERS) continue;
    sinceTurn = 0;
    await nextTurn();
  }
}
