/** Shows how far an import is: a bar on a terminal, else a line now and then. */

import type { Clock } from "../src/clock.js";
import type { ImportProgress } from "../src/content/wxr/options.js";

export interface Screen {
  readonly write: (text: string) => unknown;
  readonly isTTY?: boolean | undefined;
}

export interface ProgressBar {
  readonly show: (progress: ImportProgress) => void;
  /** Leaves the line to whatever is written next. */
  readonly end: () => void;
}

const WIDTH = 30;
const BAR_EVERY_MS = 100;
const LINE_EVERY_MS = 5_000;

const megabytes = (bytes: number): string => (bytes / 1_000_000).toFixed(1);

/** Pure. */
export function progressText(progress: ImportProgress): string {
  const { bytesRead, bytesTotal, items, created, updated, unchanged, skipped } = progress;
  const share =
    bytesTotal === undefined || bytesTotal === 0 ? undefined : Math.min(bytesRead / bytesTotal, 1);
  const filled = Math.round((share ?? 0) * WIDTH);
  const bar =
    share === undefined
      ? ""
      : `[${"#".repeat(filled)}${"-".repeat(WIDTH - filled)}] ${String(Math.floor(share * 100)).padStart(3)} % `;
  return `${bar}${megabytes(bytesRead)} MB, ${items} items: ${created} new, ${updated} changed, ${unchanged} unchanged, ${skipped} left out`;
}

export function createProgressBar(screen: Screen, clock: Pick<Clock, "monotonic">): ProgressBar {
  const everyMs = screen.isTTY ? BAR_EVERY_MS : LINE_EVERY_MS;
  let shownAt = screen.isTTY ? Number.NEGATIVE_INFINITY : clock.monotonic();
  let isOpen = false;
  let last: ImportProgress | undefined;

  const draw = (progress: ImportProgress): void => {
    if (screen.isTTY) screen.write(`\r\u001b[K${progressText(progress)}`);
    else screen.write(`${progressText(progress)}\n`);
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
