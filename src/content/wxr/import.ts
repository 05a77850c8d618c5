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
import type { ContentBase } from "../content-base.js";
import type { FileStore } from "../files.js";
import type { StoredImages } from "../media/stored-images.js";
import type { User } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import type { Site } from "../site.js";
import { toSlug } from "../text/slug.js";
import type { Users } from "../users/users.js";
import { abortableIteration, createFileImport, type FileImport, openFetch } from "./import-files.js";
import { createPostImport, type PostImport } from "./import-posts.js";
import { createTermImport, type TermImport } from "./import-terms.js";
import {
  createImportSummary,
  type ImportOptions,
  type ImportProgress,
  type ImportSummary,
  type ImportSummaryBuilder,
} from "./options.js";
import type { WxrAuthor, WxrEntry, WxrItem, WxrRefusedEntry, WxrSite, WxrTerm } from "./types.js";
import { createWxrReader } from "./wxr-reader.js";

export type Import = (source: ReadableBody, options: ImportOptions) => Promise<ImportSummary>;

/** Limit of one entry of the file, in characters. */
const MAX_ENTRY = 16_777_216;
/** Bytes that are parsed at once. The signal is checked and entries are taken after each slice. */
const SLICE = 65_536;

const IMPORT_KEYS = ["as", "authors", "trust", "files", "bytesTotal", "onProgress", "signal"];

export function createImport(
  { clock, repository, site, users, callers }: ContentBase,
  {
    files,
    images,
    uploadBytes,
  }: {
    files: FileStore | undefined;
    /** Makes the smaller versions of imported images. */
    images: StoredImages | undefined;
    /** Limit of one file. */
    uploadBytes: number;
  },
): Import {
  return async (source, options) => {
    refuseUnknownKeys("content.import", options, IMPORT_KEYS);
    const { as, authors = {}, trust: isTrusted = false, files: wanted = "skip", signal } = options;
    // A stream may fail before its first byte is wanted, as one of a missing file does.
    ignoreErrors(source);
    const caller = await callers.load(as);
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
    const fetching = wanted === "fetch" ? openFetch(clock, uploadBytes) : undefined;
    const fileImport = createFileImport({
      clock,
      files,
      images,
      summary,
      signal,
      zone: site.zone,
      now: repository.now,
      maxBytes: uploadBytes,
      source: fetching?.source ?? (typeof wanted === "function" ? wanted : undefined),
    });
    const run = createImportRun({
      repository,
      site,
      caller,
      isTrusted,
      summary,
      files: fileImport,
      options,
      authors: authorMapping,
      terms: createTermImport({ repository, site, caller, summary }),
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
      if (reader.isBroken()) break;
      // A source may have its bytes at hand, and a store in memory never waits either.
      await nextTurn();
    }
    if (reader.isBroken()) break;
  }
  for (const entry of reader.end()) await run.take(entry);
  await run.finish();
}

// One run of an import: collects the entries of the file into batches, and imports each batch.

interface ImportRun {
  countBytes: (bytes: number) => void;
  take: (entry: WxrEntry) => Promise<void>;
  /** Imports what remains. */
  finish: () => Promise<void>;
  summarise: () => ImportSummary;
}

interface ImportRunOptions {
  repository: ContentRepository;
  site: Site;
  caller: Caller;
  isTrusted: boolean;
  summary: ImportSummaryBuilder;
  authors: AuthorMapping;
  terms: TermImport;
  files: FileImport;
  options: ImportOptions;
}

/** Limits of one commit, whichever comes first. */
const BATCH_ITEMS = 250;
const BATCH_CHARACTERS = 4_194_304;
/** Limit of all authors of a file, in characters: they stay in memory until its end. */
const MAX_AUTHORS = 4_194_304;

function createImportRun(run: ImportRunOptions): ImportRun {
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
      repository,
      summary,
      terms,
      files,
      isTrusted,
      source: entry,
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
      summary.count(repository.index.model.types.get(type)?.base ?? "others", "skipped");
    }
    const what = isItem ? "An item" : element === "wp:author" ? "An author" : "A term";
    summary.warn(line, `${what} was skipped: ${reason}. Correct it in the file, and import the file again.`);
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
      else if (entry.kind === "damage") summary.warn(entry.line, entry.message);
      else await addToBatch(entry);
    },
    async finish() {
      await importBatch();
      await terms.finish();
      await posts?.finish();
    },
    summarise() {
      onProgress?.(getProgress());
      return summary.summary(getProgress(), wxrSite as WxrSite);
    },
  };
}

// Maps the authors of a file to users of this site.

interface AuthorMapping {
  add: (author: WxrAuthor) => void;
  /** Returns the id of the user for a login in the file. */
  getUserId: (login: string) => number;
}

/**
 * Creates the mapping. `authors` has the ids that the host gives, by login. Other authors are found
 * by slug, by e-mail address, or by a name that only one user has. The rest become `as`.
 *
 * @throws `invalid_argument` if no user has an id that `authors` names.
 */
async function createAuthorMapping({
  users,
  authors,
  as,
}: {
  users: Users;
  authors: { [login: string]: number };
  as: number;
}): Promise<AuthorMapping> {
  for (const [login, id] of Object.entries(authors)) {
    if ((await users.get(id)) !== null) continue;
    throw new PostbellError("invalid_argument", `content.import: no user has the id ${id}.`, {
      field: `authors.${login}`,
    });
  }
  const authorIds = new Map(Object.entries(authors));
  const all = await users.all();
  const bySlug = new Map(all.toReversed().map((user) => [user.slug, user]));
  const byEmail = new Map(all.toReversed().map((user) => [user.email?.toLowerCase() ?? "", user]));
  const byName = new Map<string, User | "several">();
  for (const user of all) byName.set(user.name, byName.has(user.name) ? "several" : user);
  const added = new Map<string, WxrAuthor>();
  const found = new Map<string, number>();

  function findUser(login: string): User | undefined {
    const { email = "", name = "" } = added.get(login) ?? {};
    const namesake = name === "" ? undefined : byName.get(name);
    return (
      bySlug.get(login) ??
      bySlug.get(toSlug(login)) ??
      (email === "" ? undefined : byEmail.get(email.toLowerCase())) ??
      (namesake === "several" ? undefined : namesake)
    );
  }

  return {
    add: (author) => added.set(author.login, author),
    getUserId(login) {
      const existing = authorIds.get(login) ?? found.get(login);
      if (existing !== undefined) return existing;
      const id = findUser(login)?.id ?? as;
      // Cached for authors of the file only: items may name any number of other logins.
      if (added.has(login)) found.set(login, id);
      return id;
    },
  };
}
