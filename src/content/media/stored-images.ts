/** Images in the host's files: makes versions of them with the host's tool, and stores these. Knows no record but the part of one that tells of the file. */

import { isPostbellError } from "../../core/errors.js";
import type { Logger } from "../../core/logger.js";
import type { FileStore } from "../files.js";
import { listFileNames } from "../records/media-file-names.js";
import type { MediaFile } from "../records/records.js";
import type { PixelOperation } from "./image-edits.js";
import { frameCount } from "./image-frames.js";
import type { ImageRefusal, ImageSource, ImageTool, MadeImage } from "./image-tool.js";
import { missingSizes, shownVersion, uploadedImage } from "./image-versions.js";
import { readStoredBytes, readStoredImageSize } from "./stored-bytes.js";
import { type NameParts, publishUnderFreeName, splitFileName } from "./stored-name.js";

export interface StoredImage {
  readonly file: MediaFile;
  /** Removes what was stored for it and is not among the files of `kept`. To be called where no record came to name them; never rejects. */
  readonly discard: (kept?: MediaFile | null) => Promise<void>;
}

export interface StoredImages {
  readonly maxPixels: number;
  /** With its dimensions: where the record does not tell them, they are read from the file. The same object where there is nothing to add. */
  readonly measured: (file: MediaFile, mimeType: string) => Promise<MediaFile>;
  /** Makes and stores the versions that `file` lacks. Where the tool refuses, or fails, the file stays as it is, and it is logged. */
  readonly complete: (file: MediaFile, mimeType: string) => Promise<StoredImage>;
  /** Edits what was uploaded, and stores the result, with its versions, as `…-edited` in `folder`. Without an alternative text. */
  readonly edit: (
    file: MediaFile,
    edit: {
      readonly mimeType: string;
      readonly operations: readonly PixelOperation[];
      readonly folder: string;
    },
  ) => Promise<StoredImage | ImageRefusal | "unavailable">;
}

/** Tells of a WebP or AVIF image whether it moves. */
const HEAD_BYTES = 65_536;

export function createStoredImages({
  files,
  tool,
  logger,
}: {
  readonly files: FileStore;
  readonly tool: ImageTool;
  readonly logger: Logger;
}): StoredImages {
  async function remove(names: readonly string[]): Promise<void> {
    try {
      await Promise.all(names.map((name) => files.remove(name)));
    } catch (error) {
      logger.warn({ error, names }, "versions of an image that no record names were not removed");
    }
  }

  async function store(bytes: Uint8Array, parts: NameParts): Promise<string> {
    const staged = await files.stage(once(bytes));
    try {
      return (await publishUnderFreeName(staged, parts)).name;
    } finally {
      await staged.discard();
    }
  }

  const sourceOf = (file: MediaFile, mimeType: string): ImageSource => {
    const { name, bytes } = uploadedImage(file);
    return { mimeType, read: () => readStoredBytes(files, name, { start: 0, end: bytes }) };
  };

  async function madeVersions(
    source: ImageSource,
    wanted: Parameters<ImageTool["resize"]>[1],
  ): Promise<readonly MadeImage[] | undefined> {
    try {
      const made = await tool.resize(source, wanted);
      if (typeof made !== "string") return made;
      logger.warn({ refusal: made }, "an image was stored without smaller versions");
    } catch (error) {
      logger.error({ error }, "the smaller versions of an image could not be made");
    }
    return undefined;
  }

  async function complete(file: MediaFile, mimeType: string): Promise<StoredImage> {
    const whole = shownVersion(file, mimeType);
    const shown = whole !== undefined && !(await moves(file, mimeType)) ? whole : undefined;
    const sizes = missingSizes(file);
    const nothing: StoredImage = { file, discard: async () => {} };
    if (shown === undefined && sizes.length === 0) return nothing;
    const wanted = [...(shown ? [shown] : []), ...sizes];
    const made = await madeVersions(sourceOf(file, mimeType), wanted);
    if (made === undefined) return nothing;
    const parts = splitFileName(uploadedImage(file).name);
    const stored: string[] = [];
    try {
      let completed = file;
      for (const [at, { bytes, width, height }] of made.entries()) {
        const isShown = shown !== undefined && at === 0;
        const suffix = isShown ? shown.suffix : `${width}x${height}`;
        const name = await store(bytes, { ...parts, base: `${parts.base}-${suffix}` });
        stored.push(name);
        const version = { name, width, height, bytes: bytes.length };
        const size = sizes[shown === undefined ? at : at - 1]?.size ?? "";
        completed = isShown
          ? shownInstead(completed, version)
          : { ...completed, sizes: { ...completed.sizes, [size]: { ...version, mimeType } } };
      }
      return { file: completed, discard: (kept) => remove(unnamed(stored, kept)) };
    } catch (error) {
      await remove(stored);
      throw error;
    }
  }

  async function measured(file: MediaFile, mimeType: string): Promise<MediaFile> {
    const { name, bytes, width, original, elsewhere } = file;
    if (width !== 0 || original !== undefined || elsewhere !== undefined) return file;
    const size = await readStoredImageSize(files, { name, bytes, mimeType });
    if (size === undefined) return file;
    const { orientation, ...sides } = size;
    return { ...file, ...sides, ...(orientation === 1 ? {} : { orientation }) };
  }

  async function moves(file: MediaFile, mimeType: string): Promise<boolean> {
    const { name, bytes } = uploadedImage(file);
    const head = await readStoredBytes(files, name, { start: 0, end: Math.min(bytes, HEAD_BYTES) });
    return frameCount(mimeType, head, 1) > 1;
  }

  return {
    maxPixels: tool.maxPixels,
    measured,
    complete,
    async edit(file, { mimeType, operations, folder }) {
      const made = await tool.edit(sourceOf(file, mimeType), operations).catch((error: unknown) => {
        if (!isPostbellError(error, "invalid_option")) throw error;
        logger.error({ error }, "the host's tool cannot edit images");
        return "unavailable" as const;
      });
      if (typeof made === "string") return made;
      const { bytes, width, height } = made;
      const { base, extension } = splitFileName(uploadedImage(file).name);
      const name = await store(bytes, { folder, base: editedBase(base), extension });
      try {
        const edited = { name, bytes: bytes.length, altText: "", width, height, sizes: {} };
        const whole = await complete(edited, mimeType);
        return {
          file: whole.file,
          discard: async (kept) => {
            await whole.discard(kept);
            await remove(unnamed([name], kept));
          },
        };
      } catch (error) {
        await remove([name]);
        throw error;
      }
    },
  };
}

const unnamed = (names: readonly string[], kept: MediaFile | null | undefined): readonly string[] => {
  const owned = new Set(kept ? listFileNames(kept) : []);
  return names.filter((name) => !owned.has(name));
};

/** However often an image is edited, its name says so once. */
const editedBase = (base: string): string => `${base.replace(/-edited(?:-\d+)?$/, "")}-edited`;

function shownInstead(
  { orientation, ...file }: MediaFile,
  version: { readonly name: string; readonly bytes: number; readonly width: number; readonly height: number },
): MediaFile {
  const { name, bytes, width, height } = file;
  const original = { name, bytes, width, height, ...(orientation === undefined ? {} : { orientation }) };
  return { ...file, ...version, original };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
