/** Options, progress and summary of an import, and the counts that the summary is made of. */

import { trimEnd } from "../../core/trim-end.js";
import type { ReadableBody } from "../../http/types.js";
import type { Caller } from "../auth/caller.js";
import type { PostType, Taxonomy } from "../records/records.js";
import { toWebUrl } from "../text/urls.js";
import type { WxrItem, WxrSite } from "./types.js";

/** A media file of the site that is imported. */
export interface ImportedFile {
  /**
   * An `http:` or `https:` URL of the file on the other site, as the URL parser writes it. Empty if
   * the file of the import has no such URL.
   */
  readonly url: string;
  /**
   * Path below the uploads of that site, such as `2026/11/heart.png`. It has no segment `..` or
   * `.`, no `\\` and no control characters, and does not begin with `/`. Empty if the file of the
   * import has no such path.
   */
  readonly path: string;
  /** The title in the file, unchecked. */
  readonly title: string;
}

/**
 * Returns the bytes of a file, or `null` if there is no such file. An error that it throws becomes
 * a warning.
 */
export type FileSource = (
  file: ImportedFile,
) => ReadableBody | Uint8Array | null | PromiseLike<ReadableBody | Uint8Array | null>;

/**
 * Options of `content.import`.
 *
 * @example
 * await content.import(createReadStream("site.xml"), {
 *   as: 1,
 *   authors: { "jane.doe": 7 },
 *   files: "fetch",
 * });
 */
export interface ImportOptions {
  /** Id of the importing user, who becomes the author of posts whose own author is not found. */
  as: number;
  /**
   * Ids of users, by the login in the file. Other authors are found by slug, e-mail address or
   * name; otherwise `as` is the author.
   */
  authors?: { [login: string]: number } | undefined;
  /**
   * Keeps scripts, styles and frames in texts. Set it only for a file of your own. Default: false;
   * texts are sanitised as if an author had written them.
   */
  trust?: boolean | undefined;
  /**
   * Where the files of media come from. `skip` stores the record with the URL of its file. `fetch`
   * downloads each file from its URL, from public hosts only. A function returns the bytes. A file
   * that cannot be read is treated as with `skip`: it adds a warning, and the next import tries it
   * again. Default: `skip`.
   */
  files?: "skip" | "fetch" | FileSource | undefined;
  /** Size of the WXR file in bytes, if known. It is passed on with the progress. */
  bytesTotal?: number | undefined;
  /** Called after every batch. Must not throw. */
  onProgress?: ((progress: ImportProgress) => void) | undefined;
  /** Stops the import, which then rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
}

/** Number of records by result. */
export interface ImportCounts {
  readonly created: number;
  readonly updated: number;
  /** Same in the file as at the last import. Edits made here since are kept. */
  readonly unchanged: number;
  /** Left out because this site has no place for them; see `notHeld`. */
  readonly skipped: number;
}

/** Progress of an import. */
export interface ImportProgress extends ImportCounts {
  readonly bytesRead: number;
  readonly bytesTotal: number | undefined;
  /** Posts of any type that were read so far. */
  readonly items: number;
}

/** Something that was left out or not found. */
export interface ImportWarning {
  /** Line of the file; 0 if the warning concerns no single line. */
  readonly line: number;
  readonly message: string;
}

/** Result of an import. */
export interface ImportSummary extends ImportProgress {
  /** Version of WXR. */
  readonly version: string;
  /** Title and URL of the site in the file. */
  readonly site: { readonly title: string; readonly url: string };
  /** Counts by `posts`, `pages`, `media`, `categories` … */
  readonly kinds: { readonly [collection: string]: ImportCounts };
  /**
   * Counts of what this site has no place for, such as `comments`, `type product`, `meta
   * _edit_lock` and `taxonomy genre`. At most 200 names.
   */
  readonly notHeld: { readonly [what: string]: number };
  /** The first 100 warnings. */
  readonly warnings: readonly ImportWarning[];
  /** Number of further warnings. */
  readonly moreWarnings: number;
}

const MAX_PATH = 1024;

/** A host may join the path with a separate folder: the path must not lead out of it. */
export const isRelativePath = (path: string): boolean =>
  path.length <= MAX_PATH &&
  !/[\\:\p{C}]/u.test(path) &&
  path.split("/").every((segment) => !["", ".", ".."].includes(segment));

export const getItemFile = ({ attachmentUrl, title }: WxrItem, path: string): ImportedFile => ({
  url: toWebUrl(attachmentUrl),
  path: isRelativePath(path) ? path : "",
  title,
});

/**
 * Checks a capability of a type or taxonomy, by its general name. As in WordPress, administrators
 * may import everything; others may do what they may do over REST.
 */
export const mayImport = (caller: Caller, of: PostType | Taxonomy, capability: string): boolean =>
  caller.has("manage_options") || caller.canOf(of, capability);

// Counts what an import does, and collects a limited number of warnings and names.

export type ImportResult = keyof ImportCounts;

export interface ImportSummaryBuilder {
  /** Counts one record of a collection. */
  count: (collection: string, result: ImportResult) => void;
  leaveOut: (what: string, count?: number) => void;
  warn: (line: number, message: string) => void;
  progress: (at: { bytesRead: number; bytesTotal: number | undefined; items: number }) => ImportProgress;
  summary: (progress: ImportProgress, site: WxrSite) => ImportSummary;
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
