/** Counts what an import does, and collects a limited number of warnings and names. */

import { trimEnd } from "../../core/trim-end.js";
import { toWebUrl } from "../text/urls.js";
import type { ImportCounts, ImportProgress, ImportSummary, ImportWarning } from "./options.js";
import type { WxrSite } from "./types.js";

export type ImportResult = keyof ImportCounts;

export interface ImportSummaryBuilder {
  /** Counts one record of a collection. */
  readonly count: (collection: string, result: ImportResult) => void;
  readonly leaveOut: (what: string, count?: number) => void;
  readonly warn: (line: number, message: string) => void;
  readonly progress: (at: Pick<ImportProgress, "bytesRead" | "bytesTotal" | "items">) => ImportProgress;
  readonly summary: (progress: ImportProgress, site: WxrSite) => ImportSummary;
}

const MAX_WARNINGS = 100;
const MAX_NAMES = 200;
const MAX_NAME = 100;
const NONE: ImportCounts = { created: 0, updated: 0, unchanged: 0, skipped: 0 };

export function createImportSummary(): ImportSummaryBuilder {
  const kinds = new Map<string, ImportCounts>();
  const notHeld = new Map<string, number>();
  const warnings: ImportWarning[] = [];
  let moreWarnings = 0;
  let all = NONE;
  const addOne = (counts: ImportCounts, result: ImportResult): ImportCounts => ({
    ...counts,
    [result]: counts[result] + 1,
  });

  return {
    count(collection, result) {
      kinds.set(collection, addOne(kinds.get(collection) ?? NONE, result));
      all = addOne(all, result);
    },
    leaveOut(what, count = 1) {
      if (count === 0) return;
      // Copied, because a substring keeps the whole string in memory.
      const short = Buffer.from(what.slice(0, MAX_NAME)).toString();
      const name = notHeld.has(short) || notHeld.size < MAX_NAMES ? short : "others";
      notHeld.set(name, (notHeld.get(name) ?? 0) + count);
    },
    warn(line, message) {
      if (warnings.length < MAX_WARNINGS) warnings.push({ line, message });
      else moreWarnings += 1;
    },
    progress: (at) => ({ ...at, ...all }),
    summary: (progress, { version, title, url }) => ({
      ...progress,
      version,
      site: { title, url: trimEnd(toWebUrl(url), "/") },
      kinds: Object.fromEntries(kinds),
      notHeld: Object.fromEntries(notHeld),
      warnings,
      moreWarnings,
    }),
  };
}
