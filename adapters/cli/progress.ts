/** Shows the progress of an import or export: a bar on a terminal, or a line now and then. */

import type { ExportProgress } from "../../src/content/wxr/export.js";
import type { ImportProgress } from "../../src/content/wxr/options.js";
import type { Clock } from "../../src/core/clock.js";

export interface Screen {
  write: (text: string) => unknown;
  isTTY?: boolean | undefined;
}

export interface ProgressBar<P> {
  show: (progress: P) => void;
  /** Ends the line, so that the next output begins a new one. */
  end: () => void;
}

const WIDTH = 30;
const BAR_EVERY_MS = 100;
const LINE_EVERY_MS = 5_000;

const toMegabytes = (bytes: number): string => (bytes / 1_000_000).toFixed(1);

/** Pure. */
function formatBar(done: number, total: number | undefined): string {
  if (total === undefined || total === 0) return "";
  const share = Math.min(done / total, 1);
  const filled = Math.round(share * WIDTH);
  return `[${"#".repeat(filled)}${"-".repeat(WIDTH - filled)}] ${String(Math.floor(share * 100)).padStart(3)} % `;
}

/** Pure. */
export const formatExport = ({ items, itemsTotal }: ExportProgress): string =>
  `${formatBar(items, itemsTotal)}${items} of ${itemsTotal} items written`;

/** Pure. */
export function formatImport(progress: ImportProgress): string {
  const { bytesRead, bytesTotal, items, created, updated, unchanged, skipped } = progress;
  return `${formatBar(bytesRead, bytesTotal)}${toMegabytes(bytesRead)} MB, ${items} items: ${created} new, ${updated} changed, ${unchanged} unchanged, ${skipped} left out`;
}

export function createProgressBar<P>(
  screen: Screen,
  clock: { monotonic: Clock["monotonic"] },
  format: (progress: P) => string,
): ProgressBar<P> {
  const everyMs = screen.isTTY ? BAR_EVERY_MS : LINE_EVERY_MS;
  let shownAt = screen.isTTY ? Number.NEGATIVE_INFINITY : clock.monotonic();
  let isOpen = false;
  let last: P | undefined;

  const draw = (progress: P): void => {
    if (screen.isTTY) screen.write(`\r\u001b[K${format(progress)}`);
    else screen.write(`${format(progress)}\n`);
    isOpen = screen.isTTY === true;
  };

  return {
    show(progress) {
      last = progress;
      const now = clock.monotonic();
      if (now - shownAt < everyMs) return;
      shownAt = now;
      draw(progress);
    },
    end() {
      if (last !== undefined && screen.isTTY) draw(last);
      if (isOpen) screen.write("\n");
      isOpen = false;
    },
  };
}
