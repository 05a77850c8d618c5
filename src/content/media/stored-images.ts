/**
 * Creates versions of stored images with the host's image tool and stores them. Knows of a record
 * only the part about its file.
 */

import { isPostbellError } from "../../core/errors.js";
import type { Logger } from "../../core/logger.js";
import type { FileStore } from "../files.js";
import type { MediaFile } from "../records/records.js";
import { listFileNames } from "../records/unique-names.js";
import { type NameParts, publishUnderFreeName, splitFileName } from "./file-name.js";
import type { PixelOperation } from "./image-edits.js";
import { frameCount } from "./image-frames.js";
import type { ImageRefusal, ImageSource, ImageTool, MadeImage, WantedImage } from "./image-tool.js";
import { missingSizes, type ShownVersion, shownVersion, uploadedImage } from "./image-versions.js";
import { readStoredBytes, readStoredImageSize } from "./staged-upload.js";

export interface StoredImage {
  file: MediaFile;
  /**
   * Removes the files that were stored for it, except those of `except`. Must be called if no
   * record names them. Never rejects.
   */
  discard: (except?: MediaFile | null) => Promise<void>;
}

export interface StoredImages {
  maxPixels: number;
  /**
   * Resolves with the file and its dimensions, read from the bytes if the record lacks them.
   * Returns the same object if there is nothing to add.
   */
  measured: (file: MediaFile, mimeType: string) => Promise<MediaFile>;
  /**
   * Creates and stores the versions that `file` lacks. If the tool refuses or fails, logs it and
   * leaves the file as it is.
   */
  complete: (file: MediaFile, mimeType: string) => Promise<StoredImage>;
  /**
   * Edits the uploaded image and stores the result and its versions as `…-edited` in `folder`. The
   * result has no alternative text.
   */
  edit: (
    file: MediaFile,
    edit: {
      mimeType: string;
      operations: PixelOperation[];
      folder: string;
    },
  ) => Promise<StoredImage | ImageRefusal | "unavailable">;
}

/** Enough bytes to tell if a WebP or AVIF image is animated. */
const HEAD_BYTES = 65_536;

export function createStoredImages({
  files,
  tool,
  logger,
}: {
  files: FileStore;
  tool: ImageTool;
  logger: Logger;
}): StoredImages {
  async function remove(names: string[]): Promise<void> {
    try {
      await Promise.all(names.map((name) => files.remove(name)));
    } catch (error) {
      logger.warn({ error, names }, "versions of an image that no record names were not removed");
    }
  }

  async function store(bytes: Uint8Array, parts: NameParts): Promise<string> {
    const staged = await files.stage(toStream(bytes));
    try {
      return (await publishUnderFreeName(staged, parts)).name;
    } finally {
      await staged.discard();
    }
  }

  const createSource = (file: MediaFile, mimeType: string): ImageSource => {
    const { name, bytes } = uploadedImage(file);
    return { mimeType, read: () => readStoredBytes(files, name, { start: 0, end: bytes }) };
  };

  async function createVersions(
    source: ImageSource,
    wanted: Parameters<ImageTool["resize"]>[1],
  ): Promise<MadeImage[] | undefined> {
    try {
      const created = await tool.resize(source, wanted);
      if (typeof created !== "string") return created;
      logger.warn({ refusal: created }, "an image was stored without smaller versions");
    } catch (error) {
      logger.error({ error }, "the smaller versions of an image could not be made");
    }
    return undefined;
  }

  /** Stores the created versions in the order of `wanted`, and adds them to the file. */
  async function storeVersions(
    file: MediaFile,
    mimeType: string,
    { wanted, created }: { wanted: WantedVersion[]; created: MadeImage[] },
  ): Promise<StoredImage> {
    const parts = splitFileName(uploadedImage(file).name);
    const stored: string[] = [];
    try {
      let completed = file;
      for (const [at, { bytes, width, height }] of created.entries()) {
        const { suffix = `${width}x${height}`, size } = wanted[at] ?? { size: "" };
        const name = await store(bytes, { ...parts, base: `${parts.base}-${suffix}` });
        stored.push(name);
        const version = { name, width, height, bytes: bytes.length };
        completed =
          size === undefined
            ? replaceShown(completed, version)
            : { ...completed, sizes: { ...completed.sizes, [size]: { ...version, mimeType } } };
      }
      return { file: completed, discard: (except) => remove(listUnnamed(stored, except)) };
    } catch (error) {
      await remove(stored);
      throw error;
    }
  }

  async function complete(file: MediaFile, mimeType: string): Promise<StoredImage> {
    const shown = shownVersion(file, mimeType);
    const isReplaced = shown !== undefined && !(await isAnimated(files, file, mimeType));
    const wanted: WantedVersion[] = [...(isReplaced ? [shown] : []), ...missingSizes(file)];
    const created =
      wanted.length === 0 ? undefined : await createVersions(createSource(file, mimeType), wanted);
    if (created === undefined) return { file, discard: async () => {} };
    return storeVersions(file, mimeType, { wanted, created });
  }

  return {
    maxPixels: tool.maxPixels,
    measured: (file, mimeType) => measureImage(files, file, mimeType),
    complete,
    async edit(file, { mimeType, operations, folder }) {
      const edited = await tool.edit(createSource(file, mimeType), operations).catch((error: unknown) => {
        if (!isPostbellError(error, "invalid_option")) throw error;
        logger.error({ error }, "the host's tool cannot edit images");
        return "unavailable" as const;
      });
      if (typeof edited === "string") return edited;
      const { bytes, width, height } = edited;
      const { base, extension } = splitFileName(uploadedImage(file).name);
      const name = await store(bytes, { folder, base: toEditedBase(base), extension });
      try {
        const image = { name, bytes: bytes.length, altText: "", width, height, sizes: {} };
        const whole = await complete(image, mimeType);
        return {
          file: whole.file,
          discard: async (except) => {
            await whole.discard(except);
            await remove(listUnnamed([name], except));
          },
        };
      } catch (error) {
        await remove([name]);
        throw error;
      }
    },
  };
}

/** A version of an image: one of the sizes, or without `size` the one shown instead of it. */
interface WantedVersion extends WantedImage {
  suffix?: ShownVersion["suffix"];
  size?: string;
}

async function measureImage(files: FileStore, file: MediaFile, mimeType: string): Promise<MediaFile> {
  const { name, bytes, width, original, elsewhere } = file;
  if (width !== 0 || original !== undefined || elsewhere !== undefined) return file;
  const size = await readStoredImageSize(files, { name, bytes, mimeType });
  if (size === undefined) return file;
  const { orientation, ...sides } = size;
  return { ...file, ...sides, ...(orientation === 1 ? {} : { orientation }) };
}

async function isAnimated(files: FileStore, file: MediaFile, mimeType: string): Promise<boolean> {
  const { name, bytes } = uploadedImage(file);
  const head = await readStoredBytes(files, name, { start: 0, end: Math.min(bytes, HEAD_BYTES) });
  return frameCount(mimeType, head, 1) > 1;
}

const listUnnamed = (names: string[], except: MediaFile | null | undefined): string[] => {
  const owned = new Set(except ? listFileNames(except) : []);
  return names.filter((name) => !owned.has(name));
};

/** Returns the name of an edited image, with the suffix once however often it was edited. */
const toEditedBase = (base: string): string => `${base.replace(/-edited(?:-\d+)?$/, "")}-edited`;

/** Shows `version` instead of the uploaded file, which becomes the original. */
function replaceShown(
  { orientation, ...file }: MediaFile,
  version: { name: string; bytes: number; width: number; height: number },
): MediaFile {
  const { name, bytes, width, height } = file;
  const original = { name, bytes, width, height, ...(orientation === undefined ? {} : { orientation }) };
  return { ...file, ...version, original };
}

async function* toStream(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
