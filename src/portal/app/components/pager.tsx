/** Moves back and forth through a list that is read by cursors. */

import { useState } from "preact/hooks";

export interface Pager {
  /** Where the page that is shown begins; `undefined` for the first one. */
  readonly cursor: string | undefined;
  readonly number: number;
  readonly back: () => void;
  readonly forth: (next: string) => void;
  readonly reset: () => void;
}

export function usePager(): Pager {
  /** Where the pages up to this one begin. */
  const [trail, setTrail] = useState<readonly (string | undefined)[]>([undefined]);
  return {
    cursor: trail.at(-1),
    number: trail.length,
    back: () => setTrail(trail.slice(0, -1)),
    forth: (next) => setTrail([...trail, next]),
    reset: () => setTrail([undefined]),
  };
}

/** The buttons of a pager. `next`: where the page after this one begins. */
export function PagerButtons({
  pager: { number, back, forth },
  next,
  labels: [backLabel, forthLabel],
}: {
  readonly pager: Pager;
  readonly next: string | null;
  readonly labels: readonly [back: string, forth: string];
}) {
  if (number === 1 && next === null) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" class="plain" disabled={number === 1} onClick={back}>
        {backLabel}
      </button>
      <span class="quiet">Page {number}</span>
      <button
        type="button"
        class="plain"
        disabled={next === null}
        onClick={() => next !== null && forth(next)}
      >
        {forthLabel}
      </button>
    </nav>
  );
}
