/** Tables that become lists on a narrow screen, and the pages of a list. */

import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { texts } from "../texts.js";

export interface Column<T> {
  name: string;
  /** The name is read by screen readers only. */
  isUnnamed?: boolean;
  /** Numbers stand on the right. */
  isNumber?: boolean;
  /** The class of its cells: a style sheet hides what a narrow screen has no room for. */
  class?: string;
  cell: (item: T) => ComponentChildren;
}

/** Returns true while the content of an element is wider than the element, which then scrolls. */
function useOverflow(): [RefObject<HTMLElement | null>, boolean] {
  const element = useRef<HTMLElement>(null);
  const [isWider, setWider] = useState(false);
  useEffect(() => {
    const outer = element.current;
    if (outer === null) return undefined;
    const observer = new ResizeObserver(() => setWider(outer.scrollWidth > outer.clientWidth));
    observer.observe(outer);
    if (outer.firstElementChild !== null) observer.observe(outer.firstElementChild);
    return () => observer.disconnect();
  }, []);
  return [element, isWider];
}

const CONTROLS = "a, button, input, label, select, summary";

/** Follows the link of a row that was pressed beside its controls, unless a text was selected. */
function openRow({ target }: MouseEvent): void {
  if (!(target instanceof Element) || target.closest(CONTROLS) !== null) return;
  if (getSelection()?.isCollapsed === false) return;
  target.closest("tr")?.querySelector<HTMLElement>("th a")?.click();
}

const joinClasses = (...names: (string | false | undefined)[]): string | undefined =>
  names.filter(Boolean).join(" ") || undefined;

/**
 * A table. The first column with `isHeader` names its row. On a narrow screen each row is a list of its
 * cells; the roles keep it a table for screen readers.
 */
export function Table<T extends { key: string }>({
  caption,
  columns,
  header,
  rows,
  opens = false,
}: {
  caption: string;
  columns: Column<T>[];
  /** The name of the column that names a row. */
  header: string;
  rows: T[];
  /** True if a press anywhere in a row follows the link in its header. */
  opens?: boolean;
}) {
  const [element, isWider] = useOverflow();
  return (
    // The keyboard scrolls what is too wide; otherwise there is nothing to stop at.
    <section class="scroll" aria-label={caption} ref={element} tabIndex={isWider ? 0 : undefined}>
      {/* biome-ignore lint/a11y/noRedundantRoles: a table whose display is changed loses its role. */}
      <table class="stacks" role="table">
        <caption class="unseen">{caption}</caption>
        {/* biome-ignore lint/a11y/noRedundantRoles: as above. */}
        <thead role="rowgroup">
          {/* biome-ignore lint/a11y/noRedundantRoles: as above. */}
          <tr role="row">
            {columns.map(({ name, isUnnamed, isNumber, class: css }) => (
              // biome-ignore lint/a11y/noRedundantRoles: as above.
              <th role="columnheader" scope="col" key={name} class={joinClasses(isNumber && "number", css)}>
                {isUnnamed ? <span class="unseen">{name}</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        {/* biome-ignore lint/a11y/noRedundantRoles: as above. */}
        {/* biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard has the link of the row. */}
        <tbody role="rowgroup" class={opens ? "opens" : undefined} onClick={opens ? openRow : undefined}>
          {rows.map((row) => (
            // biome-ignore lint/a11y/noRedundantRoles: as above.
            <tr role="row" key={row.key}>
              {columns.map(({ name, isUnnamed, isNumber, class: css, cell }) =>
                name === header ? (
                  // biome-ignore lint/a11y/noRedundantRoles: as above.
                  <th role="rowheader" scope="row" key={name} class={css}>
                    {cell(row)}
                  </th>
                ) : (
                  <td
                    // biome-ignore lint/a11y/noRedundantRoles: as above.
                    role="cell"
                    key={name}
                    data-column={isUnnamed ? undefined : name}
                    class={joinClasses(isNumber && "number", css)}
                  >
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

// Moves back and forth through a list that is read by cursors.

export interface Pager {
  /** Where the page that is shown begins; `undefined` for the first one. */
  cursor: string | undefined;
  number: number;
  back: () => void;
  forth: (next: string) => void;
  reset: () => void;
}

export function usePager(): Pager {
  /** Where the pages up to this one begin. */
  const [trail, setTrail] = useState<(string | undefined)[]>([undefined]);
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
  pager: Pager;
  next: string | null;
  labels: [back: string, forth: string];
}) {
  if (number === 1 && next === null) return null;
  return (
    <nav class="pager" aria-label={texts.common.pages}>
      <button type="button" class="plain" disabled={number === 1} onClick={back}>
        {backLabel}
      </button>
      <span class="quiet">{texts.common.page({ number })}</span>
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

const KEYS = [
  ["j", "nextRow"],
  ["k", "previousRow"],
  ["Enter", "open"],
  ["x", "selectRow"],
  ["Esc", "close"],
  ["?", "showKeys"],
] as const;

/** Says which keys a table has. */
export function KeysDialog({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="keys-title" onClose={onClose}>
      <h2 id="keys-title">{texts.parts.keys}</h2>
      <dl class="keys">
        {KEYS.map(([key, name]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{texts.parts[name]}</dd>
          </div>
        ))}
      </dl>
      <button type="button" class="plain" onClick={() => dialog.current?.close()}>
        {texts.common.close}
      </button>
    </dialog>
  );
}

const TYPING = "input:not([type=checkbox]), select, textarea, [contenteditable], dialog, [role=menu]";

/** Returns the link of a row, which has its id as `data-row`. */
export const findRowLink = (id: string | undefined): HTMLElement | null =>
  id === undefined ? null : document.querySelector(`[data-row="${CSS.escape(id)}"]`);

/**
 * Calls `onKey` with each key that is pressed and the id of the row with the focus, but not while
 * the visitor is typing. It returns true for a key that it has used.
 */
export function useRowKeys(onKey: (key: string, focusedId: string | undefined) => boolean): void {
  const newest = useRef(onKey);
  newest.current = onKey;
  useEffect(() => {
    const handle = (event: KeyboardEvent): void => {
      const { target, key, ctrlKey, metaKey, altKey } = event;
      if (ctrlKey || metaKey || altKey || !(target instanceof Element) || target.closest(TYPING)) return;
      // The rows behind an open dialog cannot be seen to move.
      if (document.querySelector("dialog[open]") !== null) return;
      const link = target.closest("tr")?.querySelector<HTMLElement>("[data-row]");
      if (newest.current(key, link?.dataset["row"])) event.preventDefault();
    };
    addEventListener("keydown", handle);
    return () => removeEventListener("keydown", handle);
  }, []);
}

/** Returns which of the rows that are shown are selected, and what changes that. */
export function useRowChoice<T extends { key: string }>(rows: T[]) {
  const [ids, setIds] = useState<Set<string>>(new Set());
  const set = (id: string, isChosen: boolean): void =>
    setIds((before) => new Set(isChosen ? [...before, id] : [...before].filter((other) => other !== id)));
  const chosen = rows.filter(({ key }) => ids.has(key));
  return {
    chosen,
    isChosen: (key: string) => ids.has(key),
    toggle: (id: string) => set(id, !ids.has(id)),
    deselect: (id: string) => set(id, false),
    toggleAll: () => setIds(new Set(chosen.length === rows.length ? [] : rows.map(({ key }) => key))),
  };
}
