/** Pages of a list that is read by cursors. */

import { type Child, h } from "./dom.js";
import { button } from "./forms.js";
import type { PageContext } from "./view.js";

/** Moves back and forth through a list that is read by cursors. */
export interface Pager {
  /** Where the page that is shown begins. */
  readonly cursor: () => string | undefined;
  readonly number: () => number;
  readonly reset: () => void;
  /** Its buttons; `next`: where the page after this one begins. */
  readonly buttons: (next: string | null) => Child;
}

/** Creates a pager. `turned` is called when another page must be shown. */
export function createPager(
  page: Pick<PageContext, "fail">,
  turned: () => Promise<void>,
  [back, forth]: readonly [back: string, forth: string],
): Pager {
  /** Where the pages up to this one begin. */
  let trail: readonly (string | undefined)[] = [undefined];
  const turn = (to: readonly (string | undefined)[]) => async (): Promise<void> => {
    trail = to;
    await turned();
    // The button that was pressed may be gone, at either end.
    if (document.activeElement === document.body)
      document.querySelector<HTMLElement>(".pager button")?.focus();
  };
  const attributes = (key: string) => ({ class: "plain", "data-key": key });
  return {
    cursor: () => trail.at(-1),
    number: () => trail.length,
    reset() {
      trail = [undefined];
    },
    buttons: (next) =>
      h(
        "div",
        { class: "pager" },
        trail.length > 1 && button(back, page, turn(trail.slice(0, -1)), attributes("back")),
        next !== null && button(forth, page, turn([...trail, next]), attributes("forth")),
      ),
  };
}
