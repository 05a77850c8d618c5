/** Two texts side by side, as a table. Signs and words mark differences, not only colours. */

import { h } from "../dom.js";
import { type DiffRow, differences } from "./diff.js";

/** Unchanged lines that are shown around a change. */
const AROUND = 3;

const isSame = ({ left, right }: DiffRow): boolean => left === right;

function cell(text: string | null, row: DiffRow, side: "left" | "right"): HTMLElement {
  if (text === null) return h("td", { class: "none" });
  if (isSame(row)) return h("td", {}, text);
  const [tag, word, sign] =
    side === "left" ? (["del", "Removed: ", "− "] as const) : (["ins", "Added: ", "+ "] as const);
  return h(
    "td",
    { class: side },
    h("span", { class: "unseen" }, word),
    h("span", { "aria-hidden": "true" }, sign),
    h(tag, {}, text),
  );
}

/** Creates a comparison of two texts, or returns `undefined` if they are equal. */
export function comparison(
  what: string,
  left: { readonly label: string; readonly text: string },
  right: { readonly label: string; readonly text: string },
): HTMLElement | undefined {
  const rows = differences(left.text, right.text);
  if (rows.every(isSame)) return undefined;
  const isShown = rows.map(
    (_, index) => !rows.slice(Math.max(0, index - AROUND), index + AROUND + 1).every(isSame),
  );
  const lines: HTMLElement[] = [];
  let hidden = 0;
  const closeGap = (): void => {
    if (hidden === 0) return;
    lines.push(
      h(
        "tr",
        {},
        h("td", { colspan: 2, class: "quiet" }, `${hidden} unchanged ${hidden === 1 ? "line" : "lines"}`),
      ),
    );
    hidden = 0;
  };
  for (const [index, row] of rows.entries()) {
    if (!isShown[index]) {
      hidden += 1;
      continue;
    }
    closeGap();
    lines.push(h("tr", {}, cell(row.left, row, "left"), cell(row.right, row, "right")));
  }
  closeGap();
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": `${what}, compared` },
    h(
      "table",
      { class: "compare" },
      h("caption", {}, what),
      h(
        "thead",
        {},
        h("tr", {}, h("th", { scope: "col" }, left.label), h("th", { scope: "col" }, right.label)),
      ),
      h("tbody", {}, lines),
    ),
  );
}
