/**
 * Receives an upload: stages the file while it arrives, and publishes it under a name when its
 * record is about to be stored. Knows no record.
 */

import { createByteBuffer } from "../../core/bytes.js";
import type { BodyPace } from "../../http/body-chunks.js";
import { readFileName } from "../../http/content-disposition.js";
import type { HttpRequest, ReadableBody } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import type { FileStore } from "../files.js";
import type { MediaFile } from "../records/records.js";
import { RestError } from "../rest/error.js";
import { isMultipart, readMultipart, readUploadBytes } from "../rest/multipart.js";
import { refuseCodedBody } from "../rest/request-input.js";
import { publishUnderFreeName, titleFromFileName, toUploadFolder } from "./file-name.js";
import { type ImageSize, imageSizeWalk, PIECE_BYTES } from "./image-size.js";
import {
  assertImageSize,
  isImage,
  noData,
  type StagedMedia,
  type StageFileOptions,
  stageFile,
} from "./stage-file.js";

/** A file that arrived as a whole and was accepted. It is not visible before `publish`. */
export interface StagedUpload {
  /** The text fields of a multipart body, not validated; empty for a raw body. No prototype. */
  fields: JsonObject;
  /** The type detected from bytes and name. The type that the client declared is ignored. */
  mimeType: string;
  /**
   * Stores the file under a free name: `2026/11/heart.png`, or `heart-1.png` if that is taken. Must
   * be called once. `localTime` is the site's wall-clock time in epoch ms, as in
   * `PostColumns.date`; the folder is its year and month.
   *
   * @throws RestError 400 as `stageUpload` does, if only now the dimensions of an image are known;
   * errors of `files`.
   */
  publish: (localTime: number) => Promise<PublishedUpload>;
  /**
   * Removes the file, published or not. Must be called unless a stored record names the file.
   * Calling it again is safe.
   */
  discard: () => Promise<void>;
}

export interface PublishedUpload {
  /** Has no alternative text and no smaller versions. */
  file: MediaFile;
  /** The title if the client gives none: plain text from the client. It also makes the slug. */
  title: string;
}

/**
 * Reads the body of `POST /media`: multipart form data with the file in the field `file`, or the
 * file itself, named by `Content-Disposition`. The caller must be allowed to upload. `Content-MD5`
 * is the digest of the file, in hexadecimal digits as in WordPress or in base64 (RFC 1864).
 *
 * Guarantee: the file is streamed; a refused or incomplete one leaves nothing in `files`.
 *
 * @throws RestError 400 `rest_upload_sideload_error` for a file that is not accepted, or whose
 * bytes contradict its name (WordPress responds with 500); 400 `rest_upload_image_too_large`,
 * `rest_upload_no_data`, `rest_upload_no_content_type`, `rest_upload_no_content_disposition`,
 * `rest_upload_invalid_disposition`; 412 `rest_upload_hash_mismatch`; 415
 * `rest_unsupported_media_type` for a body with a content coding; errors of `readMultipart`,
 * `readUploadBytes` and `files`.
 */
export async function stageUpload(
  request: HttpRequest,
  options: StageFileOptions & {
    /** The most bytes of the file. */
    limit: number;
    /** How fast the body must arrive. Default: no limit. */
    pace?: BodyPace | undefined;
  },
): Promise<StagedUpload> {
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
    return createUpload(file, fields, options);
  }
  if (request.body === null || headers["content-length"] === "0") throw noData();
  const bytes = readUploadBytes(request, options.limit, options.pace);
  const fileName = readRawFileName(headers);
  if (fileName instanceof RestError) {
    // Like WordPress, reports a body without data before its headers.
    throw "parsed" in request.body || (await hasData(bytes)) ? fileName : noData();
  }
  const file = await stageFile(bytes, fileName, digest, options);
  return createUpload({ ...file, title: "" }, Object.freeze(Object.create(null)), options);
}

/**
 * Stages a file that does not come with a request, such as an imported one.
 *
 * @throws RestError 400 `rest_upload_sideload_error` or `rest_upload_no_data`; errors of `source`
 * and `files`.
 */
export async function stageImportedFile(
  source: ReadableBody,
  fileName: string,
  options: StageFileOptions,
): Promise<StagedUpload> {
  const file = await stageFile(source, fileName, undefined, options);
  return createUpload(
    { ...file, title: titleFromFileName(fileName) },
    Object.freeze(Object.create(null)),
    options,
  );
}

/** Reads nothing after the first chunk that has a byte. */
async function hasData(bytes: AsyncIterable<Uint8Array>): Promise<boolean> {
  for await (const chunk of bytes) if (chunk.length > 0) return true;
  return false;
}

/** Returns the error if the headers name no file. */
function readRawFileName(headers: HttpRequest["headers"]): string | RestError {
  if (headers["content-type"] === undefined) {
    return new RestError(400, "rest_upload_no_content_type", "No Content-Type supplied.");
  }
  const disposition = headers["content-disposition"];
  if (disposition === undefined) return noContentDisposition();
  return (
    readFileName(disposition) ??
    new RestError(
      400,
      "rest_upload_invalid_disposition",
      'Invalid Content-Disposition supplied. Content-Disposition needs to be formatted as `attachment; filename="image.png"` or similar.',
    )
  );
}

export const noContentDisposition = (): RestError =>
  new RestError(400, "rest_upload_no_content_disposition", "No Content-Disposition supplied.");

function createUpload(
  { staged, type, size: early, metadata, baseName, title }: StagedMedia & { title: string },
  fields: JsonObject,
  { files, maxPixels }: StageFileOptions,
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
        assertImageSize(size, maxPixels);
      }
      const { width = 0, height = 0, orientation = 1 } = size ?? {};
      return {
        file: {
          name,
          bytes: staged.bytes,
          altText: "",
          width,
          height,
          sizes: {},
          ...(orientation === 1 ? {} : { orientation }),
          ...(metadata === undefined ? {} : { metadata }),
        },
        title: title === "" ? base : title,
      };
    },
    async discard() {
      if (published === undefined) await staged.discard();
      else await files.remove(published);
    },
  };
}

/** Read at a time. */
const PART_BYTES = 4 * PIECE_BYTES;

/**
 * The bytes from `start` to before `end`, which is at most the size of the file. Errors: what
 * `files` throws.
 */
export async function readStoredBytes(
  files: FileStore,
  name: string,
  { start, end }: { start: number; end: number },
): Promise<Uint8Array> {
  const bytes = createByteBuffer();
  for await (const chunk of files.read(name, { start, end })) bytes.add(chunk);
  return bytes.whole();
}

/**
 * The size of an image in a file of `bytes`, however much stands before what tells it; `undefined`
 * where nothing does.
 *
 * Guarantee: holds one part of 256 KiB at a time. Errors: what `files` throws.
 */
export async function readStoredImageSize(
  files: FileStore,
  { name, bytes, mimeType }: { name: string; bytes: number; mimeType: string },
): Promise<ImageSize | undefined> {
  const walk = imageSizeWalk(mimeType);
  let part: Uint8Array = new Uint8Array();
  let start = 0;
  let step = walk.next();
  while (step.done !== true) {
    const at = step.value;
    const partEnd = start + part.length;
    if (at + PIECE_BYTES > partEnd && partEnd < bytes) {
      start = Math.min(at, bytes);
      const end = Math.min(start + PART_BYTES, bytes);
      part = start < end ? await readStoredBytes(files, name, { start, end }) : new Uint8Array();
    }
    const asked = part.subarray(at - start);
    step = walk.next(new DataView(asked.buffer, asked.byteOffset, asked.byteLength));
  }
  return step.value;
}
