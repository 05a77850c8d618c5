/** Takes an upload in: judges and stages the file while it arrives, and gives it a name when its record is about to be stored. Knows no record. */

import { createHash } from "node:crypto";
import { createByteBuffer } from "../../core/byte-buffer.js";
import type { BodyPace } from "../../http/body-chunks.js";
import type { HttpRequest, ReadableBody } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import type { FileStore, StagedFile } from "../files.js";
import type { MediaFile } from "../records/records.js";
import { RestError } from "../rest/error.js";
import { refuseCodedBody } from "../rest/request-input.js";
import { readFileName } from "./content-disposition.js";
import { titleFromFileName, toBaseName } from "./file-name.js";
import { type ImageSize, imageSize } from "./image-size.js";
import { detectMediaType, hasBinary, type MediaType } from "./media-type.js";
import { isMultipart, readMultipart } from "./multipart.js";
import { readStoredImageSize } from "./stored-bytes.js";
import { publishUnderFreeName, toUploadFolder } from "./stored-name.js";
import { readUploadBytes } from "./upload-bytes.js";

/** The dimensions of an image stand before the end of this, but for photographs with uncommonly much beside the picture: theirs are read once the file is stored. */
const HEAD_BYTES = 1_048_576;

export interface UploadOptions {
  readonly files: FileStore;
  /** Of the file. */
  readonly limit: number;
  /** How fast the body must arrive. Absent: it is waited for without end. */
  readonly pace?: BodyPace | undefined;
  /** Of an image, by its header. Default: no bound. */
  readonly maxPixels?: number | undefined;
}

/** A file that has arrived whole and was accepted. Nobody sees it before `publish`. */
export interface StagedUpload {
  /** The text fields of a multipart body, as a form's: not validated. Empty for a raw body. Without prototype. */
  readonly fields: JsonObject;
  /** By its bytes and its name; what the client declared does not count. */
  readonly mimeType: string;
  /**
   * Stores it under a name of its own: `2026/11/heart.png`, or `heart-1.png` where that is taken. Call it once.
   * `localTime` is the site's wall-clock time in epoch ms, as in `PostColumns.date`; the folder is its year and month.
   *
   * Errors: RestError 400 as those of `stageUpload`, for an image whose dimensions stand so far behind that they are not known before; what `files` throws.
   */
  readonly publish: (localTime: number) => Promise<PublishedUpload>;
  /** Removes what is stored of it, published or not. Must be called unless a record was stored that names the file; may be called again. */
  readonly discard: () => Promise<void>;
}

export interface PublishedUpload {
  /** Without an alternative text and smaller versions. */
  readonly file: MediaFile;
  /** What the item is titled where the client gives no title; plain text from the client. Its slug follows from the title. */
  readonly title: string;
}

/**
 * Reads the body of `POST /media`: multipart form data with the file in the field `file`, or the file itself, named by `Content-Disposition`.
 * To be called for somebody who may upload only. `Content-MD5`, in hexadecimal digits as the reference takes it or in base64 (RFC 1864), is the digest of the file.
 *
 * Guarantee: streamed; of what is refused or cut off nothing is left in `files`.
 * Errors: RestError 400 `rest_upload_sideload_error` for a file that is not accepted, or whose bytes do not fit its name (the reference answers 500);
 * 400 `rest_upload_image_too_large`; 400 `rest_upload_no_data`, `rest_upload_no_content_type`, `rest_upload_no_content_disposition`, `rest_upload_invalid_disposition`;
 * 412 `rest_upload_hash_mismatch`; 415 `rest_unsupported_media_type` for a body with a content coding; those of `readMultipart` and `readUploadBytes`; what `files` throws.
 */
export async function stageUpload(request: HttpRequest, options: UploadOptions): Promise<StagedUpload> {
  const { headers } = request;
  refuseCodedBody(request);
  const digest = headers["content-md5"];
  if (isMultipart(headers["content-type"])) {
    const { fields, file } = await readMultipart(request, {
      fileField: "file",
      limit: options.limit,
      pace: options.pace,
      take: async (fileName, bytes) => ({
        ...(await stageFile(bytes, fileName, digest, options)),
        title: titleFromFileName(fileName),
      }),
    });
    if (file === undefined) throw noData();
    return uploadOf(file, fields, options);
  }
  if (request.body === null || headers["content-length"] === "0") throw noData();
  const fileName = nameOfRawBody(headers);
  const file = await stageFile(
    readUploadBytes(request, options.limit, options.pace),
    fileName,
    digest,
    options,
  );
  return uploadOf({ ...file, title: "" }, Object.freeze(Object.create(null)), options);
}

/**
 * The same for a file that comes with no request, such as one that is imported.
 *
 * Errors: RestError 400 `rest_upload_sideload_error` or `rest_upload_no_data`; what `source` and `files` throw.
 */
export async function stageImportedFile(
  source: ReadableBody,
  fileName: string,
  options: Omit<UploadOptions, "limit" | "pace">,
): Promise<StagedUpload> {
  const file = await stageFile(source, fileName, undefined, options);
  return uploadOf(
    { ...file, title: titleFromFileName(fileName) },
    Object.freeze(Object.create(null)),
    options,
  );
}

/** A staged file and what is known of it. */
interface Staged {
  readonly staged: StagedFile;
  readonly type: MediaType;
  readonly size: ImageSize | undefined;
  readonly baseName: string;
  readonly discard: () => Promise<void>;
}

function nameOfRawBody(headers: HttpRequest["headers"]): string {
  if (headers["content-type"] === undefined) {
    throw new RestError(400, "rest_upload_no_content_type", "No Content-Type supplied.");
  }
  const disposition = headers["content-disposition"];
  if (disposition === undefined) {
    throw new RestError(400, "rest_upload_no_content_disposition", "No Content-Disposition supplied.");
  }
  const name = readFileName(disposition);
  if (name !== undefined) return name;
  throw new RestError(
    400,
    "rest_upload_invalid_disposition",
    'Invalid Content-Disposition supplied. Content-Disposition needs to be formatted as `attachment; filename="image.png"` or similar.',
  );
}

async function stageFile(
  source: ReadableBody,
  fileName: string,
  digest: string | undefined,
  { files, maxPixels }: Omit<UploadOptions, "limit" | "pace">,
): Promise<Staged> {
  const iterator = source[Symbol.asyncIterator]();
  try {
    const { head, isWhole } = await readHead(iterator);
    if (head.length === 0) throw noData();
    const type = detectMediaType(fileName, head);
    if (type === undefined) throw refused();
    const size = imageSize(type.mimeType, head);
    if ((size !== undefined || isWhole) && isImage(type)) judgeSize(size, maxPixels);
    const hash = digest === undefined ? undefined : createHash("md5");
    const staged = await files.stage(checked(head, iterator, type, (chunk) => hash?.update(chunk)));
    if (hash !== undefined && !isDigest(digest?.trim() ?? "", hash.digest())) {
      await staged.discard();
      throw new RestError(412, "rest_upload_hash_mismatch", "Content hash did not match expected.");
    }
    return { staged, type, size, baseName: toBaseName(fileName), discard: () => staged.discard() };
  } catch (error) {
    await iterator.return?.();
    throw error;
  }
}

const isImage = ({ mimeType }: MediaType): boolean => mimeType.startsWith("image/");

function judgeSize(size: ImageSize | undefined, maxPixels = Number.POSITIVE_INFINITY): void {
  if (size === undefined) throw refused();
  if (size.width * size.height > maxPixels) throw tooManyPixels(maxPixels);
}

async function readHead(
  iterator: AsyncIterator<Uint8Array>,
): Promise<{ readonly head: Uint8Array; readonly isWhole: boolean }> {
  const bytes = createByteBuffer();
  while (bytes.length() < HEAD_BYTES) {
    const step = await iterator.next();
    if (step.done === true) return { head: bytes.whole(), isWhole: true };
    bytes.add(step.value);
  }
  return { head: bytes.whole(), isWhole: false };
}

async function* checked(
  head: Uint8Array,
  iterator: AsyncIterator<Uint8Array>,
  { isText }: MediaType,
  look: (chunk: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  let chunk = head;
  for (;;) {
    if (isText && hasBinary(chunk)) throw refused();
    look(chunk);
    yield chunk;
    const step = await iterator.next();
    if (step.done === true) return;
    chunk = step.value;
  }
}

const isDigest = (given: string, actual: Buffer): boolean =>
  given.toLowerCase() === actual.toString("hex") || given === actual.toString("base64");

function uploadOf(
  { staged, type, size: early, baseName, title }: Staged & { readonly title: string },
  fields: JsonObject,
  { files, maxPixels }: Omit<UploadOptions, "limit" | "pace">,
): StagedUpload {
  let published: string | undefined;
  return {
    fields,
    mimeType: type.mimeType,
    async publish(localTime) {
      const { name, base } = await publishUnderFreeName(staged, {
        folder: toUploadFolder(localTime),
        base: baseName,
        extension: type.extension,
      });
      published = name;
      let size = early;
      if (size === undefined && isImage(type)) {
        size = await readStoredImageSize(files, { name, bytes: staged.bytes, mimeType: type.mimeType });
        judgeSize(size, maxPixels);
      }
      const { width = 0, height = 0, orientation = 1 } = size ?? {};
      const file = { name, bytes: staged.bytes, altText: "", width, height, sizes: {} };
      return {
        file: orientation === 1 ? file : { ...file, orientation },
        title: title === "" ? base : title,
      };
    },
    async discard() {
      if (published === undefined) await staged.discard();
      else await files.remove(published);
    },
  };
}

/** The reference answers the same code, with 500. */
const refused = (): RestError =>
  new RestError(
    400,
    "rest_upload_sideload_error",
    "Sorry, you are not allowed to upload this file type, or its content does not fit its name.",
  );

const tooManyPixels = (most: number): RestError =>
  new RestError(
    400,
    "rest_upload_image_too_large",
    `The image is too large: at most ${Math.floor(most / 1_000_000)} million pixels are accepted.`,
  );

export const noData = (): RestError => new RestError(400, "rest_upload_no_data", "No data supplied.");
