/** Gets the files of imported media, a few at a time, and stores them with the host's files. */

import type { Clock } from "../../core/clock.js";
import { parseUrl } from "../../core/parse-url.js";
import { retry } from "../../core/retry.js";
import type { ReadableBody } from "../../http/types.js";
import { createOutboundClient } from "../../outbound/client.js";
import { BodyError, createGuardedGet, type GuardedGet } from "../../outbound/guarded-get.js";
import type { OutboundFailure } from "../../outbound/types.js";
import type { FileStore } from "../files.js";
import { publishMedia } from "../media/create-media.js";
import { type StagedUpload, stageImportedFile } from "../media/staged-upload.js";
import type { StoredImages } from "../media/stored-images.js";
import type { MediaFile, Post } from "../records/records.js";
import type { SiteZone } from "../text/dates.js";
import { readItemDates } from "./item-to-post.js";
import { type FileSource, getItemFile, type ImportedFile, type ImportSummaryBuilder } from "./options.js";
import type { WxrItem } from "./types.js";

/** A stored file that no record names yet. */
export interface ImportedMediaFile {
  mimeType: string;
  media: MediaFile;
  discard: () => Promise<void>;
}

export interface FileImport {
  /** True if an attachment has no stored file and the import has a source of files. */
  isNeeded: (previous: Post | undefined) => boolean;
  /** Returns stored files by identity. A file that cannot be read becomes a warning. */
  take: (candidates: { item: WxrItem; identity: string }[]) => Promise<Map<string, ImportedMediaFile>>;
  withFile: (post: Post, previous: Post | undefined, file: ImportedMediaFile | undefined) => Post;
}

/** Files that are read at the same time. */
const CONCURRENCY = 4;

/** How often a file is requested again after a failure that may pass, and the first pause. */
const RETRIES = 2;
const PAUSE_MS = 1_000;
/** A site that is gone does not delay the import: after so many files in a row, none is retried. */
const MAX_IN_VAIN = 20;

export function createFileImport({
  clock,
  source,
  files,
  images,
  zone,
  now,
  summary,
  maxBytes,
  signal,
}: {
  clock: Clock;
  /** `undefined`: no file is imported. */
  source: FileSource | undefined;
  files: FileStore | undefined;
  images: StoredImages | undefined;
  zone: SiteZone;
  now: () => number;
  summary: ImportSummaryBuilder;
  /** Limit of one file. */
  maxBytes: number;
  signal: AbortSignal | undefined;
}): FileImport {
  const isEnabled = source !== undefined && files !== undefined;
  /** Files in a row that were retried in vain. */
  let inVain = 0;

  async function stageOnce(file: ImportedFile): Promise<StagedUpload | undefined> {
    if (source === undefined || files === undefined) return undefined;
    const bytes = await abortable(source(file), signal);
    if (bytes === null) return undefined;
    const name = file.path || (parseUrl(file.url)?.pathname ?? file.title);
    return stageImportedFile(limitBytes(bytes, maxBytes, signal), name, {
      files,
      maxPixels: images?.maxPixels,
    });
  }

  async function stage(file: ImportedFile): Promise<StagedUpload | undefined> {
    try {
      const upload = await retry(() => stageOnce(file), {
        clock,
        signal,
        retries: inVain < MAX_IN_VAIN ? RETRIES : 0,
        shouldRetry: mayPass,
        pauseMs: (count) => PAUSE_MS * 2 ** (count - 1) * (0.5 + clock.random()),
      });
      inVain = 0;
      return upload;
    } catch (error) {
      inVain = mayPass(error) ? inVain + 1 : 0;
      throw error;
    }
  }

  async function importFile(item: WxrItem): Promise<ImportedMediaFile | undefined> {
    const path = item.meta.find(({ name }) => name === "_wp_attached_file")?.value ?? "";
    try {
      const upload = await stage(getItemFile(item, path));
      if (upload === undefined) return undefined;
      const { file: media, discard } = await publishMedia(
        upload,
        readItemDates(item, zone, now()).date,
        images,
      );
      return { mimeType: upload.mimeType, media, discard };
    } catch (error) {
      signal?.throwIfAborted();
      summary.warn(item.line, `The file of the item ${item.id} could not be imported: ${toReason(error)}`);
      return undefined;
    }
  }

  return {
    isNeeded: (previous) => isEnabled && (previous === undefined || previous.media?.elsewhere !== undefined),
    async take(candidates) {
      const taken = new Map<string, ImportedMediaFile>();
      const waiting = [...candidates];
      const work = async (): Promise<void> => {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
          signal?.throwIfAborted();
          const file = await importFile(next.item);
          if (file !== undefined) taken.set(next.identity, file);
        }
      };
      const workers = await Promise.allSettled(Array.from({ length: CONCURRENCY }, work));
      const failed = workers.find((worker) => worker.status === "rejected");
      if (failed === undefined) return taken;
      await Promise.all([...taken.values()].map((file) => file.discard()));
      throw failed.reason;
    },
    withFile(post, previous, file) {
      if (post.media === null) return post;
      const { altText } = post.media;
      if (file !== undefined) return { ...post, mimeType: file.mimeType, media: { ...file.media, altText } };
      const stored = previous?.media;
      // A stored file stays, even if the WXR file describes another one now.
      if (!stored || stored.elsewhere !== undefined) return post;
      return { ...post, mimeType: previous.mimeType, media: { ...stored, altText } };
    },
  };
}

async function* limitBytes(
  bytes: ReadableBody | Uint8Array,
  maxBytes: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  let total = 0;
  for await (const chunk of bytes instanceof Uint8Array ? [bytes] : abortableIteration(bytes, signal)) {
    total += chunk.length;
    if (total > maxBytes) throw new RangeError(`it has more than ${maxBytes} bytes`);
    yield chunk;
  }
}

const toReason = (error: unknown): string =>
  (error instanceof Error ? error.message : "it was refused").slice(0, 200);

// Downloads the files that a WXR file names, from public hosts only.

const DEADLINE_MS = 60_000;

/** An import keeps connections to so many hosts: the files of a site lie on one or a few. */
const FETCHED_ORIGINS = 16;

/** The other site refuses or cannot be reached for a moment. */
class PassingError extends Error {}

const PASSING_STATUSES: Set<number> = new Set([408, 425, 429, 500, 502, 503, 504]);
const LASTING_KINDS: Set<string> = new Set(["refused", "tls"]);
/** There is no such host; the response has an encoding that cannot be read. */
const LASTING_CODES: Set<string> = new Set(["ENOTFOUND", "CONTENT_ENCODING"]);

const toError = ({ kind, code, message }: OutboundFailure): Error =>
  LASTING_KINDS.has(kind) || LASTING_CODES.has(code) ? new Error(message) : new PassingError(message);

const mayPass = (error: unknown): boolean =>
  error instanceof PassingError || (error instanceof BodyError && error.code === "BODY_CUT_OFF");

/**
 * Creates a source of files for imports. `maxBytes` limits one file. An `http:` URL is requested
 * over `https:`.
 *
 * The source throws an `Error` that says why it has no file. Its message never contains an address
 * of the host's network.
 */
export function createFetchFile(get: GuardedGet, maxBytes: number): FileSource {
  return async ({ url }) => {
    const secure = url.replace(/^http:/i, "https:");
    const result = await get({ url: secure, maxBytes, deadlineMs: DEADLINE_MS });
    if (result.kind !== "response") throw toError(result);
    if (result.status === 200) return result.body;
    result.body.destroy();
    const message = `its host responded with ${result.status}`;
    throw PASSING_STATUSES.has(result.status) ? new PassingError(message) : new Error(message);
  };
}

/** Opens a source that gets files from public hosts. */
export function openFetch(clock: Clock, maxBytes: number) {
  const client = createOutboundClient({ clock, maxOrigins: FETCHED_ORIGINS });
  return {
    source: createFetchFile(createGuardedGet({ client, clock }), maxBytes),
    close: () => client.close(),
  };
}

/**
 * Settles like `promise`, but rejects with the reason of `signal` once that is aborted. Removes its
 * listener from `signal`.
 */
async function abortable<T>(promise: T | PromiseLike<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  let stop = (): void => {};
  try {
    return await new Promise<T>((resolve, reject) => {
      stop = () => reject(signal.reason);
      signal.addEventListener("abort", stop);
      Promise.resolve(promise).then(resolve, reject);
      if (signal.aborted) stop();
    });
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/**
 * Yields the values of `source`. Once `signal` is aborted, it throws the reason without waiting for
 * the source.
 */
export async function* abortableIteration<T>(
  source: AsyncIterable<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T> {
  const steps = source[Symbol.asyncIterator]();
  let isOver = false;
  try {
    for (;;) {
      const step = await abortable(steps.next(), signal);
      isOver = step.done === true;
      if (step.done) return;
      yield step.value;
    }
  } catch (error) {
    isOver = !signal?.aborted;
    throw error;
  } finally {
    const ended = isOver ? undefined : steps.return?.();
    // A source that waits for its next bytes can only end after them.
    if (signal?.aborted) Promise.resolve(ended).catch(() => {});
    else await ended;
  }
}
