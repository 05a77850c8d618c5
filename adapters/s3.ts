/**
 * `postbell/s3`: keeps the bytes of media in a bucket of S3 or of a compatible store.
 *
 * @module postbell/s3
 */

import { type FileHandle, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type ByteRange,
  type FileEntry,
  type FileStore,
  isFileName,
  type StagedFile,
} from "../src/content/files.js";
import { findMimeType } from "../src/content/media/media-type.js";
import type { Clock } from "../src/core/clock.js";
import { isPostbellError, PostbellError } from "../src/core/errors.js";
import { hostOptions } from "../src/core/host-options.js";
import { readOptions, value, wholeNumber } from "../src/core/options.js";
import { retry } from "../src/core/retry.js";
import { randomUUID } from "../src/core/uuid.js";
import type { ReadableBody } from "../src/http/types.js";
import { createS3Sender, readElement, readText, type S3Config, unavailable } from "./s3-requests.js";

/** The options of {@link s3Files}. */
export interface S3FilesOptions {
  /** Required. The address of the service, such as `https://s3.eu-central-1.amazonaws.com`. */
  endpoint: string;
  /** The region of the bucket. Default: `us-east-1`, which most compatible stores expect. */
  region?: string | undefined;
  /** Required. The bucket, which must exist. It is addressed as the first segment of the path. */
  bucket: string;
  /** A folder in the bucket, such as `media/2026`. Default: the bucket itself. */
  prefix?: string | undefined;
  /** Required. The id of the access key. */
  accessKeyId: string;
  /** Required. The secret of the access key. It is never sent. */
  secretAccessKey: string;
  /** The token of temporary credentials. Default: none. */
  sessionToken?: string | undefined;
  /** How long a request may make no progress. Default: 30 seconds. */
  timeoutMs?: number | undefined;
  /** As in `createWebhooks`. */
  clock?: Clock | undefined;
}

/** A file store on S3, which can also be checked. */
export interface S3Files extends FileStore {
  /**
   * Checks that the bucket can be read. Call it when the host starts.
   *
   * @throws PostbellError `storage_unavailable`, with what to change
   */
  readonly check: () => Promise<void>;
}

const isName = (value: unknown): boolean => typeof value === "string" && /^[\x21-\x7e]{1,4096}$/.test(value);

const isEndpoint = (value: unknown): boolean => {
  if (typeof value !== "string" || !URL.canParse(value)) return false;
  const { protocol, pathname, search, hash, username } = new URL(value);
  return /^https?:$/.test(protocol) && pathname === "/" && `${search}${hash}${username}` === "";
};

/** Names, defaults and ranges; the table in docs/options.md is checked against it. */
export const s3FilesOptions = {
  endpoint: value<string | undefined>(
    "an address such as 'https://s3.eu-central-1.amazonaws.com'",
    isEndpoint,
    undefined,
    "URL",
  ),
  region: value("a name such as 'eu-central-1'", isName, "us-east-1", "a name"),
  bucket: value<string | undefined>(
    "the name of a bucket",
    (value) => typeof value === "string" && /^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$/.test(value),
    undefined,
    "a name",
  ),
  prefix: value<string | undefined>(
    "a folder such as 'media/2026'",
    (value) => typeof value === "string" && isFileName(value),
    undefined,
    "a folder",
  ),
  accessKeyId: value<string | undefined>("the id of a key", isName, undefined, "text"),
  secretAccessKey: value<string | undefined>("a secret key", isName, undefined, "text"),
  sessionToken: value<string | undefined>("a token", isName, undefined, "text"),
  timeoutMs: wholeNumber("ms", 30_000, { min: 100, max: 3_600_000 }),
  clock: hostOptions.clock,
};

const REQUIRED = ["endpoint", "bucket", "accessKeyId", "secretAccessKey"] as const;

/** The largest body of one upload on S3. */
const MAX_BYTES = 5 * 2 ** 30;
const CHUNK_BYTES = 262_144;
/** A page of a list has up to 1000 keys. */
const MAX_LIST_BYTES = 16 * 2 ** 20;
const RETRIES = 3;
const UPLOAD_ID = "x-amz-meta-postbell-upload";

/**
 * Keeps files in a bucket, under their names below `prefix`. Needs the package `aws4fetch`.
 *
 * An upload is first kept in a temporary file of this machine and then sent as one request, on the
 * condition that the name is free (`If-None-Match: *`). On a store that ignores the condition, two
 * processes must not publish under the same name at the same time.
 *
 * Connection errors and responses that tell to slow down are retried three times. After that, and
 * for refusals, calls reject with `storage_unavailable`, with the status and the code of S3 as
 * `reason`.
 *
 * @example
 * ```ts
 * const files = s3Files({
 *   endpoint: "https://s3.eu-central-1.amazonaws.com",
 *   region: "eu-central-1",
 *   bucket: "clinic-media",
 *   accessKeyId: process.env.S3_KEY_ID,
 *   secretAccessKey: process.env.S3_SECRET,
 * });
 * await files.check();
 * ```
 *
 * @throws PostbellError `invalid_option`, with the path of the option as `field`
 */
export function s3Files(options: S3FilesOptions): S3Files {
  const config = readOptions("s3Files", s3FilesOptions, options);
  for (const field of REQUIRED) {
    if (config[field] === undefined)
      throw new PostbellError("invalid_option", `s3Files: ${field} is missing.`, { field });
  }
  const { prefix, clock } = config;
  const send = createS3Sender(config as S3Config);
  const folder = prefix === undefined ? "" : `${prefix}/`;
  const publishing = new Set<string>();

  const again = <T>(call: () => Promise<T>): Promise<T> =>
    retry(call, {
      clock,
      retries: RETRIES,
      shouldRetry: (error) => isPostbellError(error, "storage_unavailable") && !error.isPermanent,
      pauseMs: (count) => 100 * 2 ** count * (0.5 + clock.random()),
    });

  /** Describes an object, with the id of the upload that made it. */
  async function head(name: string): Promise<{ entry: FileEntry; uploadId: string | null } | undefined> {
    const { status, headers } = await send({ method: "HEAD", key: folder + name, accept: [200, 404] });
    if (status === 404) return undefined;
    const entry = toEntry(name, headers.get("content-length"), headers.get("last-modified"));
    return { entry, uploadId: headers.get(UPLOAD_ID) };
  }

  /** An earlier attempt may have stored the file although its response was lost. */
  async function put(name: string, id: string, { handle, bytes }: TemporaryFile): Promise<boolean> {
    const found = await head(name);
    if (found !== undefined) return found.uploadId === id;
    const { status } = await send({
      method: "PUT",
      key: folder + name,
      headers: { "if-none-match": "*", [UPLOAD_ID]: id },
      upload: {
        bytes,
        type: findMimeType(name) ?? "application/octet-stream",
        read: () => readHandle(handle),
      },
      accept: [200, 201, 204, 412],
    });
    return status !== 412 || (await head(name))?.uploadId === id;
  }

  async function stage(bytes: ReadableBody): Promise<StagedFile> {
    const file = await writeTemporary(bytes);
    const id = randomUUID();
    let isOver = false;
    return Object.freeze<StagedFile>({
      bytes: file.bytes,
      async publish(name) {
        if (!isFileName(name)) throw invalidName();
        if (isOver || publishing.has(name)) return false;
        publishing.add(name);
        try {
          if (!(await again(() => put(name, id, file)))) return false;
          isOver = true;
          await file.remove();
          return true;
        } finally {
          publishing.delete(name);
        }
      },
      async discard() {
        if (isOver) return;
        isOver = true;
        await file.remove();
      },
    });
  }

  async function* read(name: string, range?: ByteRange) {
    if (range !== undefined && range.start >= range.end) return;
    if (!isFileName(name)) throw fileNotFound();
    const headers = range && { range: `bytes=${range.start}-${range.end - 1}` };
    const accept = [range === undefined ? 200 : 206, 404];
    const response = await again(() => send({ method: "GET", key: folder + name, headers, accept }));
    if (response.status === 404) throw fileNotFound();
    const expected = range ? range.end - range.start : readSize(response.headers.get("content-length"));
    let received = 0;
    for await (const chunk of response.body) {
      // A store may send more than the range, which begins at its start all the same.
      const part = chunk.subarray(0, expected - received);
      received += part.length;
      yield part;
      if (received === expected) return;
    }
    if (received !== expected) throw unavailable(`a file ended after ${received} of ${expected} bytes`);
  }

  async function* list() {
    const tokens = new Set<string>();
    let token: string | undefined;
    do {
      const query: Record<string, string> = {
        "list-type": "2",
        "encoding-type": "url",
        prefix: folder,
        ...(token !== undefined && { "continuation-token": token }),
      };
      const page = await again(async () => {
        const { body } = await send({ method: "GET", key: "", query, accept: [200] });
        return readText(body, MAX_LIST_BYTES);
      });
      for (const part of page.split("<Contents>").slice(1)) {
        const entry = readEntry(part.slice(0, part.indexOf("</Contents>")), folder);
        if (entry !== undefined) yield entry;
      }
      token = readElement(page, /<NextContinuationToken>([^<]{1,4096})</);
      if (token === undefined && page.includes("<IsTruncated>true<"))
        throw unavailable("a list is cut off without a token for the rest", undefined, true);
      if (token !== undefined && tokens.size === tokens.add(token).size)
        throw unavailable("a list repeats itself: the same token came twice", undefined, true);
    } while (token !== undefined);
  }

  return Object.freeze<S3Files>({
    stage,
    read,
    list,
    stat: async (name) => (isFileName(name) ? (await again(() => head(name)))?.entry : undefined),
    async remove(name) {
      if (!isFileName(name) || (await again(() => head(name))) === undefined) return false;
      await again(() => send({ method: "DELETE", key: folder + name, accept: [200, 204, 404] }));
      return true;
    },
    async check() {
      // No object has this name, so the list is empty.
      const query = { "list-type": "2", prefix: `${folder}.postbell-check` };
      await again(async () => {
        const { body } = await send({ method: "GET", key: "", query, accept: [200] });
        return readText(body, MAX_LIST_BYTES);
      });
    },
  });
}

const fileNotFound = (): PostbellError => new PostbellError("not_found", "There is no file of this name.");

const invalidName = (): PostbellError =>
  new PostbellError("invalid_argument", "This cannot be the name of a file.", { field: "name" });

// Temporary files: an upload needs its length beforehand, and may have to be sent again.

interface TemporaryFile {
  handle: FileHandle;
  bytes: number;
  remove: () => Promise<void>;
}

/** The file has no name any more while it is open, so that none is left if the process dies. */
async function writeTemporary(source: ReadableBody): Promise<TemporaryFile> {
  const path = join(tmpdir(), `postbell-${randomUUID()}`);
  const handle = await open(path, "wx+", 0o600);
  const remove = async (): Promise<void> => {
    await handle.close();
    await rm(path, { force: true });
  };
  let bytes = 0;
  try {
    // Windows cannot remove an open file.
    await rm(path, { force: true }).catch(() => {});
    for await (const chunk of source) {
      bytes += chunk.length;
      if (bytes > MAX_BYTES)
        throw new PostbellError("storage_full", "s3Files: a file may have at most 5 GiB.");
      await handle.writeFile(chunk);
    }
    return { handle, bytes, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function* readHandle(handle: FileHandle) {
  yield* handle.createReadStream({ start: 0, autoClose: false, highWaterMark: CHUNK_BYTES });
}

// Lists: XML, with the names encoded as in URLs.

/** Returns `undefined` for an object that no upload made: its name cannot be that of a file. */
function readEntry(object: string, folder: string): FileEntry | undefined {
  const key = decodeKey(readElement(object, /<Key>([^<]{1,8192})</) ?? "");
  const name = key.startsWith(folder) ? key.slice(folder.length) : "";
  if (!isFileName(name)) return undefined;
  const storedAt = readElement(object, /<LastModified>([^<]{1,64})</);
  return toEntry(name, readElement(object, /<Size>([^<]{1,32})</), storedAt);
}

/** @throws PostbellError `storage_unavailable` if the store does not tell size and time */
function toEntry(name: string, size: string | null | undefined, time: string | null | undefined): FileEntry {
  const storedAt = Date.parse(time ?? "");
  if (Number.isNaN(storedAt)) throw unavailable("the store does not tell the time of a file");
  // `HEAD` tells whole seconds.
  return { name, bytes: readSize(size), storedAt: Math.floor(storedAt / 1_000) * 1_000 };
}

/** Without its size a file that was cut off could not be told from a whole one. */
function readSize(value: string | null | undefined): number {
  const bytes = /^[0-9]{1,16}$/.test(value ?? "") ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(bytes)) throw unavailable("the store does not tell the size of a file");
  return bytes;
}

function decodeKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return "";
  }
}
