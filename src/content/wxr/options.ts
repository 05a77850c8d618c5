/** What an import is asked for, and what it says of its work. */

import type { ReadableBody } from "../../http/types.js";
import type { WxrItem } from "./types.js";

/** A file of the site that is imported. */
export interface ImportedFile {
  /** Where the file says that it is; may be empty. */
  readonly url: string;
  /** `2026/11/heart.png`, below the uploads of that site; may be empty. */
  readonly path: string;
  readonly title: string;
}

/** The bytes of a file, or `null` for one that there is none of. What it throws becomes a warning. */
export type FileSource = (
  file: ImportedFile,
) => ReadableBody | Uint8Array | null | PromiseLike<ReadableBody | Uint8Array | null>;

/** What `content.import` takes beside the file. */
export interface ImportOptions {
  /** Id of the user on whose behalf: the author of what is nobody else's. */
  readonly as: number;
  /** Ids of users by the login in the file. Others are found by their slug, their address or their name; else it is `as`. */
  readonly authors?: { readonly [login: string]: number } | undefined;
  /** Keeps scripts, styles and frames in texts: for a file of your own. Default: false, texts are filtered as those of an author are. */
  readonly trust?: boolean | undefined;
  /**
   * The bytes of media: `skip` keeps the record with the address of its file, `fetch` gets each from its address, of public hosts only; a
   * function gives them. What cannot be had is kept as with `skip`, with a warning, and tried again by the next import. Default: `skip`.
   */
  readonly files?: "skip" | "fetch" | FileSource | undefined;
  /** Size of the file, where it is known: told with the progress. */
  readonly bytesTotal?: number | undefined;
  /** Told after every batch. Must not throw. */
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What came of the things read, in numbers. */
export interface ImportCounts {
  readonly created: number;
  readonly updated: number;
  /** As the import left them before; edits made here since are kept. */
  readonly unchanged: number;
  /** Not held by this site; see `notHeld`. */
  readonly skipped: number;
}

/** How far an import has come. */
export interface ImportProgress extends ImportCounts {
  readonly bytesRead: number;
  readonly bytesTotal: number | undefined;
  /** Posts of any type that were read. */
  readonly items: number;
}

/** Something that was left out, or not found, and where. */
export interface ImportWarning {
  /** Of the file; 0 where it is about no place in it. */
  readonly line: number;
  readonly message: string;
}

/** What came of an import. */
export interface ImportSummary extends ImportProgress {
  readonly version: string;
  /** Title and address of the site in the file. */
  readonly site: { readonly title: string; readonly url: string };
  /** By `posts`, `pages`, `media`, `categories` … */
  readonly kinds: { readonly [collection: string]: ImportCounts };
  /** How much of what there is no place for here was left out: `comments`, `type product`, `meta _edit_lock`, `taxonomy genre`. The first 200 names. */
  readonly notHeld: { readonly [what: string]: number };
  /** The first 100. */
  readonly warnings: readonly ImportWarning[];
  readonly moreWarnings: number;
}

export const getItemFile = ({ attachmentUrl, title }: WxrItem, path: string): ImportedFile => ({
  url: attachmentUrl,
  path,
  title,
});
