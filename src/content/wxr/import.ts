/** `content.import`: reads a WXR file and brings it into the site, batch by batch. Repeatable: what is stored is known again by the next import. */

import { PostbellError } from "../../core/errors.js";
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
import { createPostImport, type PostImport } from "./import-posts.js";
import { createImportSummary } from "./import-summary.js";
import { createTermImport } from "./import-terms.js";
import type { FileSource, ImportOptions, ImportProgress, ImportSummary } from "./options.js";
import type { WxrEntry, WxrItem, WxrSite, WxrTerm } from "./types.js";
import { createWxrReader } from "./wxr-reader.js";

export type Import = (source: ReadableBody, options: ImportOptions) => Promise<ImportSummary>;

export interface ImportDependencies {
  readonly library: ContentRepository;
  readonly site: Site;
  readonly users: Users;
  readonly files: FileStore | undefined;
  /** Makes the smaller versions of imported images. */
  readonly images: StoredImages | undefined;
  /** Of one file. */
  readonly uploadBytes: number;
  readonly asUser: (id: number) => Promise<Caller>;
  /** Opens what gets files from public hosts; called for `files: "fetch"` alone. */
  readonly openFetch: () => { readonly source: FileSource; readonly close: () => Promise<void> };
}

/** Characters of one entry of the file. */
const MAX_ENTRY = 16_777_216;
/** Of one commit: whichever comes first. */
const BATCH_ITEMS = 250;
const BATCH_CHARACTERS = 4_194_304;
/** Of all authors of a file: they are kept until its end. */
const MAX_AUTHORS = 4_194_304;
/** Bytes that are read between two looks at what is complete. */
const SLICE = 65_536;

export function createImport(dependencies: ImportDependencies): Import {
  const { library, site, users, files, images, uploadBytes, asUser, openFetch } = dependencies;

  return async (source, options) => {
    const { as, authors = {}, trust: isTrusted = false, files: wanted = "skip", signal } = options;
    const caller = await asUser(as);
    if (wanted !== "skip" && files === undefined) {
      throw new PostbellError(
        "invalid_argument",
        "content.import: files can be imported only where createContent was given `files`.",
        { field: "files" },
      );
    }
    await library.current();
    const tally = createImportSummary();
    const fetching = wanted === "fetch" ? openFetch() : undefined;
    const media = createFileImport({
      source: fetching?.source ?? (typeof wanted === "function" ? wanted : undefined),
      files,
      images,
      zone: site.zone,
      now: library.now,
      tally,
      limit: uploadBytes,
      signal,
    });
    const people = await createAuthorMapping({ users, authors, as });
    const terms = createTermImport({ library, tally });
    const reader = createWxrReader({ maxEntry: MAX_ENTRY });
    let told: WxrSite | undefined;
    let posts: PostImport | undefined;
    let waitingTerms: WxrTerm[] = [];
    let waiting: WxrItem[] = [];
    let waitingSize = 0;
    let authorsSize = 0;
    const at = { bytesRead: 0, bytesTotal: options.bytesTotal, items: 0 };
    const progress = (): ImportProgress => tally.progress(at);

    async function flush(): Promise<void> {
      signal?.throwIfAborted();
      const [newTerms, items] = [waitingTerms, waiting];
      [waitingTerms, waiting, waitingSize] = [[], [], 0];
      await terms.take(newTerms);
      if (items.length > 0) await posts?.take(items);
      options.onProgress?.(progress());
    }

    async function take(entry: WxrEntry): Promise<void> {
      if (entry.kind === "site") {
        told = entry;
        posts = createPostImport({
          ...{ library, tally, terms, media, isTrusted, url: entry.url },
          write: { caller, site },
          authorOf: people.idOf,
        });
        return;
      }
      if (entry.kind === "author") {
        authorsSize += entry.size;
        if (authorsSize <= MAX_AUTHORS) people.note(entry);
        else if (authorsSize - entry.size <= MAX_AUTHORS)
          tally.warn(0, "There are too many authors: what they wrote is of the one who imports.");
        return;
      }
      waitingSize += entry.size;
      if (entry.kind === "term") waitingTerms.push(entry);
      else {
        at.items += 1;
        waiting.push(entry);
      }
      const count = waiting.length + waitingTerms.length;
      if (count >= BATCH_ITEMS || waitingSize >= BATCH_CHARACTERS) await flush();
    }

    try {
      for await (const chunk of abortableIteration(source, signal)) {
        for (let start = 0; start < chunk.length; start += SLICE) {
          signal?.throwIfAborted();
          const slice = chunk.subarray(start, start + SLICE);
          at.bytesRead += slice.length;
          for (const entry of reader.push(slice)) await take(entry);
        }
      }
      for (const entry of reader.end()) await take(entry);
      await flush();
      await terms.finish();
      await posts?.finish();
    } finally {
      await fetching?.close();
    }
    if (reader.dropped() > 0) {
      tally.warn(0, `${reader.dropped()} control characters were left out, which XML does not know.`);
    }
    options.onProgress?.(progress());
    return tally.summary(progress(), told as WxrSite);
  };
}
