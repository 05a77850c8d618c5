/** Keeps what was typed and not saved for as long as the page is open. */

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import type { RecordJson } from "../../content-shapes.js";
import { usePage } from "../page-context.js";
import type { FieldTexts } from "./record-fields.js";

export interface Draft {
  /** The record that it was typed over; absent for a new one. */
  readonly record?: RecordJson;
  readonly typed: FieldTexts;
}

/** By the path of the record in the API. */
const drafts = new Map<string, Draft>();

/**
 * Returns the draft that was left at `path` before, and tells the visitor that it is still there.
 * `path` is absent for a visitor who may not save it.
 */
export function useEarlierDraft(path: string | undefined): Draft | undefined {
  const { say } = usePage();
  const [draft] = useState(() => (path === undefined ? undefined : drafts.get(path)));
  useEffect(() => {
    if (draft !== undefined) say("Your unsaved changes are still here.");
  }, [draft, say]);
  return draft;
}

const warn = (event: Event): void => event.preventDefault();

/**
 * Keeps `draft` for when the visitor comes back, and warns before the page is closed. `undefined`:
 * there is nothing to keep.
 */
export function useDraft(path: string, draft: Draft | undefined): void {
  // In the same step as the change: the visitor may leave the view next.
  useLayoutEffect(() => {
    if (draft === undefined) drafts.delete(path);
    else drafts.set(path, draft);
  });
  const isBegun = draft !== undefined;
  useEffect(() => {
    if (isBegun) addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isBegun]);
}
