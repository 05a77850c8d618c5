/** Yields to the event loop, for work that would otherwise block it. */

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

/** Characters to process before yielding: a few milliseconds of parsing or writing JSON. */
export const TURN_CHARACTERS = 262_144;

/** Yields the records in order, and the event loop after each {@link TURN_CHARACTERS} of bodies. */
export async function* yieldBetween<T extends { readonly body: string } | undefined>(
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
