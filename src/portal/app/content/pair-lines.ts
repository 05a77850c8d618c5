/** Compares two texts line by line. Pure. */

import { diffArrays } from "diff";

/** A line on each side; `null` if a side has no such line. Equal texts are an unchanged line. */
export interface LinePair {
  readonly left: string | null;
  readonly right: string | null;
}

/** With more different lines than this, lines are not matched: it would take too long. */
const MAX_DIFFERENCES = 1_000;

const toLines = (text: string): string[] => (text === "" ? [] : text.split(/\r?\n/));

/** True if two texts are equal, apart from how their lines end. */
export const hasSameLines = (left: string, right: string): boolean =>
  left.replaceAll("\r\n", "\n") === right.replaceAll("\r\n", "\n");

/**
 * Returns the lines of both texts side by side, in order. Lines of one side only are paired with
 * those in the same place on the other side.
 */
export function pairLines(leftText: string, rightText: string): readonly LinePair[] {
  const [left, right] = [toLines(leftText), toLines(rightText)];
  const pairs: LinePair[] = [];
  const pair = (removed: readonly string[], added: readonly string[]): void => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1)
      pairs.push({ left: removed[at] ?? null, right: added[at] ?? null });
  };
  /** Removed lines whose counterparts follow. */
  let removed: readonly string[] = [];
  const changes = diffArrays(left, right, { maxEditLength: MAX_DIFFERENCES });
  if (changes === undefined) pair(left, right);
  for (const change of changes ?? []) {
    if (change.removed) {
      removed = change.value;
      continue;
    }
    if (!change.added) pair(removed, []);
    pair(change.added ? removed : change.value, change.value);
    removed = [];
  }
  pair(removed, []);
  return pairs;
}
