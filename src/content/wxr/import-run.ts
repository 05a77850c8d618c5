/** One run of an import: collects the entries of the file into batches, and imports each batch. */

import type { Caller } from "../auth/caller.js";
import { findCollection } from "../collections.js";
import type { ContentRepository } from "../repository/content-repository.js";
import type { Site } from "../site.js";
import type { AuthorMapping } from "./author-mapping.js";
import type { FileImport } from "./import-files.js";
import { createPostImport, type PostImport } from "./import-posts.js";
import type { ImportSummaryBuilder } from "./import-summary.js";
import type { TermImport } from "./import-terms.js";
import type { ImportOptions, ImportProgress, ImportSummary } from "./options.js";
import type { WxrAuthor, WxrEntry, WxrItem, WxrRefusedEntry, WxrSite, WxrTerm } from "./types.js";

export interface ImportRun {
  readonly countBytes: (bytes: number) => void;
  readonly take: (entry: WxrEntry) => Promise<void>;
  /** Imports what remains. `dropped`: characters that the reader removed. */
  readonly finish: (dropped: number) => Promise<void>;
  readonly summarise: () => ImportSummary;
}

export interface ImportRunOptions {
  readonly repository: ContentRepository;
  readonly site: Site;
  readonly caller: Caller;
  readonly isTrusted: boolean;
  readonly summary: ImportSummaryBuilder;
  readonly authors: AuthorMapping;
  readonly terms: TermImport;
  readonly files: FileImport;
  readonly options: Pick<ImportOptions, "signal" | "bytesTotal" | "onProgress">;
}

/** Limits of one commit, whichever comes first. */
const BATCH_ITEMS = 250;
const BATCH_CHARACTERS = 4_194_304;
/** Limit of all authors of a file, in characters: they stay in memory until its end. */
const MAX_AUTHORS = 4_194_304;

export function createImportRun(run: ImportRunOptions): ImportRun {
  const { repository, site, caller, isTrusted, summary, authors, terms, files, options } = run;
  const { signal, bytesTotal, onProgress } = options;
  let wxrSite: WxrSite | undefined;
  let posts: PostImport | undefined;
  let waitingTerms: WxrTerm[] = [];
  let waitingItems: WxrItem[] = [];
  let waitingSize = 0;
  let authorsSize = 0;
  const position = { bytesRead: 0, bytesTotal, items: 0 };
  const getProgress = (): ImportProgress => summary.progress(position);

  function startPosts(entry: WxrSite): void {
    wxrSite = entry;
    posts = createPostImport({
      ...{ repository, summary, terms, files, isTrusted, source: entry },
      write: { caller, site },
      getAuthorId: authors.getUserId,
    });
  }

  function takeAuthor(author: WxrAuthor): void {
    const isFirstBeyond = authorsSize <= MAX_AUTHORS;
    authorsSize += author.size;
    if (authorsSize <= MAX_AUTHORS) authors.add(author);
    else if (isFirstBeyond)
      summary.warn(0, "The file has too many authors: posts of the others get the importing user as author.");
  }

  function skip({ element, line, type, reason }: WxrRefusedEntry): void {
    const isItem = element === "item";
    if (isItem) {
      position.items += 1;
      summary.count(findCollection(type)?.base ?? "others", "skipped");
    }
    const what = isItem ? "An item" : element === "wp:author" ? "An author" : "A term";
    summary.warn(
      line,
      `${what} was skipped: ${reason}. Remove what it does not need from the file, and import the file again.`,
    );
  }

  async function importBatch(): Promise<void> {
    signal?.throwIfAborted();
    const [newTerms, items] = [waitingTerms, waitingItems];
    [waitingTerms, waitingItems, waitingSize] = [[], [], 0];
    await terms.take(newTerms);
    if (items.length > 0) await posts?.take(items);
    onProgress?.(getProgress());
  }

  async function addToBatch(entry: WxrTerm | WxrItem): Promise<void> {
    waitingSize += entry.size;
    if (entry.kind === "term") waitingTerms.push(entry);
    else {
      position.items += 1;
      waitingItems.push(entry);
    }
    const count = waitingItems.length + waitingTerms.length;
    if (count >= BATCH_ITEMS || waitingSize >= BATCH_CHARACTERS) await importBatch();
  }

  return {
    countBytes: (bytes) => (position.bytesRead += bytes),
    async take(entry) {
      if (entry.kind === "site") startPosts(entry);
      else if (entry.kind === "author") takeAuthor(entry);
      else if (entry.kind === "refused") skip(entry);
      else await addToBatch(entry);
    },
    async finish(dropped) {
      await importBatch();
      await terms.finish();
      await posts?.finish();
      if (dropped > 0)
        summary.warn(0, `${dropped} control characters were removed: XML does not allow them.`);
    },
    summarise() {
      onProgress?.(getProgress());
      return summary.summary(getProgress(), wxrSite as WxrSite);
    },
  };
}
