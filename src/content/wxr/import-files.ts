/** Gets the bytes of media that are imported, a few at a time, and puts them among the host's files. Knows no record but an attachment's own. */

import { parseUrl } from "../../core/parse-url.js";
import type { ReadableBody } from "../../http/types.js";
import type { FileStore } from "../files.js";
import { publishMedia } from "../media/publish-media.js";
import { stageImportedFile } from "../media/staged-upload.js";
import type { StoredImages } from "../media/stored-images.js";
import type { MediaFile, Post } from "../records/records.js";
import type { SiteZone } from "../text/dates.js";
import { abortable, abortableIteration } from "./abortable.js";
import type { ImportSummaryBuilder } from "./import-summary.js";
import { readItemDates } from "./item-dates.js";
import { type FileSource, getItemFile } from "./options.js";
import type { WxrItem } from "./types.js";

/** A file that is among the host's, and that no record names yet. */
export interface ImportedMediaFile {
  readonly mimeType: string;
  readonly media: MediaFile;
  readonly discard: () => Promise<void>;
}

export interface FileImport {
  /** Whether an attachment lacks its bytes and somebody gives them. */
  readonly isWanted: (previous: Post | undefined) => boolean;
  /** By the identity. What cannot be had is a warning. */
  readonly take: (
    candidates: readonly { readonly item: WxrItem; readonly identity: string }[],
  ) => Promise<ReadonlyMap<string, ImportedMediaFile>>;
  readonly withFile: (post: Post, previous: Post | undefined, file: ImportedMediaFile | undefined) => Post;
}

/** Files under way at once. */
const AT_ONCE = 4;

export function createFileImport({
  source,
  files,
  images,
  zone,
  now,
  tally,
  limit,
  signal,
}: {
  /** `undefined`: no bytes are wanted. */
  readonly source: FileSource | undefined;
  readonly files: FileStore | undefined;
  readonly images: StoredImages | undefined;
  readonly zone: SiteZone;
  readonly now: () => number;
  readonly tally: ImportSummaryBuilder;
  /** Bytes of one file. */
  readonly limit: number;
  readonly signal: AbortSignal | undefined;
}): FileImport {
  const isAsked = source !== undefined && files !== undefined;

  async function takeOne(item: WxrItem): Promise<ImportedMediaFile | undefined> {
    if (source === undefined || files === undefined) return undefined;
    const path = item.meta.find(({ name }) => name === "_wp_attached_file")?.value ?? "";
    const file = getItemFile(item, path);
    try {
      const bytes = await abortable(source(file), signal);
      if (bytes === null) return undefined;
      const name = path || (parseUrl(file.url)?.pathname ?? file.title);
      const upload = await stageImportedFile(capped(bytes, limit, signal), name, {
        files,
        maxPixels: images?.maxPixels,
      });
      const { file: media, discard } = await publishMedia(
        upload,
        readItemDates(item, zone, now()).date,
        images,
      );
      return { mimeType: upload.mimeType, media, discard };
    } catch (error) {
      signal?.throwIfAborted();
      tally.warn(item.line, `The file of the item ${item.id} could not be had: ${reasonOf(error)}`);
      return undefined;
    }
  }

  return {
    isWanted: (previous) => isAsked && (previous === undefined || previous.media?.elsewhere !== undefined),
    async take(candidates) {
      const taken = new Map<string, ImportedMediaFile>();
      const waiting = [...candidates];
      const work = async (): Promise<void> => {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
          signal?.throwIfAborted();
          const file = await takeOne(next.item);
          if (file !== undefined) taken.set(next.identity, file);
        }
      };
      const workers = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
      const failed = workers.find((worker) => worker.status === "rejected");
      if (failed === undefined) return taken;
      await Promise.all([...taken.values()].map((file) => file.discard()));
      throw failed.reason;
    },
    withFile(post, previous, file) {
      if (post.media === null) return post;
      const { altText } = post.media;
      if (file !== undefined) return { ...post, mimeType: file.mimeType, media: { ...file.media, altText } };
      const kept = previous?.media;
      // The bytes that are here stay, whatever the file says of them now.
      if (!kept || kept.elsewhere !== undefined) return post;
      return { ...post, mimeType: previous.mimeType, media: { ...kept, altText } };
    },
  };
}

async function* capped(
  bytes: ReadableBody | Uint8Array,
  limit: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  let total = 0;
  for await (const chunk of bytes instanceof Uint8Array ? [bytes] : abortableIteration(bytes, signal)) {
    total += chunk.length;
    if (total > limit) throw new RangeError(`it has more than ${limit} bytes`);
    yield chunk;
  }
}

const reasonOf = (error: unknown): string =>
  (error instanceof Error ? error.message : "it was refused").slice(0, 200);
