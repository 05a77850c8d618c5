/**
 * `content.import`: reads a WXR file and imports it into the site, batch by batch. An import can be
 * repeated: it finds the records that an earlier one stored.
 */

import { ignoreErrors } from "../../core/error-events.js";
import { PostbellError } from "../../core/errors.js";
import { refuseUnknownKeys } from "../../core/known-names.js";
import { nextTurn } from "../../core/next-turn.js";
import type { ReadableBody } from "../../http/types.js";
import type { Caller } from "../auth/caller.js";
import type { FileStore } from "../files.js";
import type { StoredImages } from "../media/stored-images.js";
import type { ContentRepository } from "../repository/content-repository.js";
import type { Site } from "../site.js";
import type { Users } from "../users/users.js";
import { abortableIteration } from "./abortable.js";
import { createAuthorMapping } from "./author-mapping.js";
import { createFileImport } from "./import-files.js";
import { createImportRun, type ImportRun } from "./import-run.js";
import { createImportSummary } from "./import-summary.js";
import { createTermImport } from "./import-terms.js";
import type { FileSource, ImportOptions, ImportSummary } from "./options.js";
import { createWxrReader } from "./wxr-reader.js";

export type Import = (source: ReadableBody, options: ImportOptions) => Promise<ImportSummary>;

export interface ImportDependencies {
  readonly repository: ContentRepository;
  readonly site: Site;
  readonly users: Users;
  readonly files: FileStore | undefined;
  /** Makes the smaller versions of imported images. */
  readonly images: StoredImages | undefined;
  /** Limit of one file. */
  readonly uploadBytes: number;
  readonly asUser: (id: number) => Promise<Caller>;
  /** Opens a source that gets files from public hosts. Called for `files: "fetch"` only. */
  readonly openFetch: () => { readonly source: FileSource; readonly close: () => Promise<void> };
}

/** Limit of one entry of the file, in characters. */
const MAX_ENTRY = 16_777_216;
/** Bytes that are parsed at once. The signal is checked and entries are taken after each slice. */
const SLICE = 65_536;

const IMPORT_KEYS = ["as", "authors", "trust", "files", "bytesTotal", "onProgress", "signal"];

export function createImport(dependencies: ImportDependencies): Import {
  const { repository, site, users, files, images, uploadBytes, asUser, openFetch } = dependencies;

  return async (source, options) => {
    refuseUnknownKeys("content.import", options, IMPORT_KEYS);
    const { as, authors = {}, trust: isTrusted = false, files: wanted = "skip", signal } = options;
    // A stream may fail before its first byte is wanted, as one of a missing file does.
    ignoreErrors(source);
    const caller = await asUser(as);
    if (wanted !== "skip" && files === undefined) {
      throw new PostbellError(
        "invalid_argument",
        "content.import: files can be imported only if createContent was given `files`.",
        { field: "files" },
      );
    }
    await repository.current();
    const summary = createImportSummary();
    const authorMapping = await createAuthorMapping({ users, authors, as });
    const fetching = wanted === "fetch" ? openFetch() : undefined;
    const fileImport = createFileImport({
      ...{ files, images, summary, signal, zone: site.zone, now: repository.now, maxBytes: uploadBytes },
      source: fetching?.source ?? (typeof wanted === "function" ? wanted : undefined),
    });
    const run = createImportRun({
      ...{ repository, site, caller, isTrusted, summary, files: fileImport, options },
      authors: authorMapping,
      terms: createTermImport({ repository, site, summary }),
    });
    try {
      await readInto(run, source, signal);
    } finally {
      await fetching?.close();
    }
    return run.summarise();
  };
}

async function readInto(
  run: ImportRun,
  source: ReadableBody,
  signal: AbortSignal | undefined,
): Promise<void> {
  const reader = createWxrReader({ maxEntry: MAX_ENTRY });
  for await (const chunk of abortableIteration(source, signal)) {
    for (let start = 0; start < chunk.length; start += SLICE) {
      signal?.throwIfAborted();
      const slice = chunk.subarray(start, start + SLICE);
      run.countBytes(slice.length);
      for (const entry of reader.push(slice)) await run.take(entry);
      // A source may have its bytes at hand, and a store in memory never waits either.
      await nextTurn();
    }
  }
  for (const entry of reader.end()) await run.take(entry);
  await run.finish(reader.dropped());
}
