/** The live region of the page: what it announces is read by screen readers. */

import { useEffect, useState } from "preact/hooks";
import { texts } from "../texts.js";
import { X } from "./icons.js";

export interface Status {
  text: string;
  kind: "done" | "failed";
}

export const NO_STATUS: Status = { text: "", kind: "done" };

let show: (text: string) => void = () => {};

/**
 * Tells screen readers what changed without a sign of it at the place of the focus, such as the
 * number of rows that a filter leaves. Nothing is shown; `say` of the page also shows its text.
 *
 * @example
 * announce("12 deliveries");
 */
export const announce = (text: string): void => show(text);

/**
 * The one live region. It is part of the page from the start, since a region that arrives together
 * with its text is not read. `status` is shown, the text of `announce` is only read.
 */
export function LiveRegion({
  status: { text, kind },
  dismiss,
}: {
  status: Status;
  /** Removes what is shown. */
  dismiss: () => void;
}) {
  const [announced, setAnnounced] = useState({ text: "", count: 0 });
  useEffect(() => {
    show = (next) => setAnnounced(({ count }) => ({ text: next, count: count + 1 }));
    return () => {
      show = () => {};
    };
  }, []);
  return (
    <div role="status" aria-atomic="false" class="status">
      <p class={text === "" ? "outcome" : `outcome ${kind}`}>{text}</p>
      {text !== "" && (
        <button
          type="button"
          class="bare icon-only small"
          aria-label={texts.common.dismiss}
          onClick={dismiss}
        >
          <X />
        </button>
      )}
      {/* A key of its own makes a repeated text a change, which is read again. */}
      <p class="unseen" key={announced.count}>
        {announced.text}
      </p>
    </div>
  );
}
