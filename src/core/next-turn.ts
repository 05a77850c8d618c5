/** Lets everything else that is waiting run: for work that would otherwise occupy the event loop. */

export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Characters that are worked on before others have their turn: a few milliseconds of parsing or writing JSON. */
export const TURN_CHARACTERS = 262_144;

/** The records in order; others have their turn after each {@link TURN_CHARACTERS} of their bodies. */
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
