/** Two texts side by side, as a table. Signs and words mark differences, not only colours. */

import { useMemo } from "preact/hooks";
import { type LinePair, pairLines } from "./pair-lines.js";

/** Unchanged lines that are shown around a change. */
const AROUND = 3;

const isSame = ({ left, right }: LinePair): boolean => left === right;

/** A row of the table: a pair of lines, or how many unchanged lines are not shown. */
type Row = LinePair | number;

function toRows(pairs: readonly LinePair[]): readonly Row[] {
  const rows: Row[] = [];
  for (const [index, pair] of pairs.entries()) {
    const last = rows.at(-1);
    const isNear = !pairs.slice(Math.max(0, index - AROUND), index + AROUND + 1).every(isSame);
    if (isNear) rows.push(pair);
    else if (typeof last === "number") rows[rows.length - 1] = last + 1;
    else rows.push(1);
  }
  return rows;
}

function Line({ pair, side }: { readonly pair: LinePair; readonly side: "left" | "right" }) {
  const text = pair[side];
  if (text === null) return <td class="none" />;
  if (isSame(pair)) return <td>{text}</td>;
  const isLeft = side === "left";
  const Tag = isLeft ? "del" : "ins";
  return (
    <td class={side}>
      <span class="unseen">{isLeft ? "Removed: " : "Added: "}</span>
      <span aria-hidden="true">{isLeft ? "− " : "+ "}</span>
      <Tag>{text}</Tag>
    </td>
  );
}

/** Shows where two texts differ. */
export function Comparison({
  title,
  labels,
  texts: [left, right],
}: {
  readonly title: string;
  readonly labels: readonly [left: string, right: string];
  readonly texts: readonly [left: string, right: string];
}) {
  const rows = useMemo(() => toRows(pairLines(left, right)), [left, right]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what is too wide.
    <section class="scroll" aria-label={`${title}, compared`} tabIndex={0}>
      <table class="compare">
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col">{labels[0]}</th>
            <th scope="col">{labels[1]}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {typeof row === "number" ? (
                <td colSpan={2} class="quiet">{`${row} unchanged ${row === 1 ? "line" : "lines"}`}</td>
              ) : (
                <>
                  <Line pair={row} side="left" />
                  <Line pair={row} side="right" />
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
