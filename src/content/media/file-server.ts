/**
 * Serves the files of media to whoever has their address, as a service of its own beside the REST
 * interface. Knows no record.
 */

import type { Logger } from "../../core/logger.js";
import type { HttpRequest, HttpResponse, Service } from "../../http/types.js";
import { type FileEntry, type FileStore, isFileName } from "../files.js";
import { evaluateRange } from "./conditional-range.js";
import { findMimeType } from "./media-type.js";

export interface FileServerOptions {
  readonly files: FileStore;
  readonly logger: Logger;
}

/**
 * Where a file is, below the address of the uploads, as it stands in a URL: `2026/11/heart.png`.
 */
export const uploadPath = (name: string): string => name.split("/").map(encodeURIComponent).join("/");

/** A stored file never changes, but another may take its name once it was deleted. */
const FOR_A_DAY = "public, max-age=86400";

/**
 * Serves GET and HEAD for stored files, with ranges and preconditions. Returns `undefined` for any
 * other name.
 *
 * Guarantee: a fixed type by the name, never guessed by the browser; what is no image, sound or
 * film is downloaded, and may run nothing where it is opened nevertheless. 503 while the store
 * fails.
 */
export function createFileServer({ files, logger }: FileServerOptions): Service {
  async function answer(request: HttpRequest, name: string): Promise<HttpResponse | undefined> {
    const entry = await files.stat(name);
    if (entry === undefined) return undefined;
    const { method, headers } = request;
    if (method !== "GET" && method !== "HEAD") {
      return { status: 405, headers: { allow: "GET, HEAD", "cache-control": "no-store" }, body: null };
    }
    const tag = tagOf(entry);
    const part = evaluateRange(method, headers, { ...entry, tag });
    const common = { ...SAFE, etag: tag, "last-modified": new Date(entry.storedAt).toUTCString() };
    switch (part.status) {
      case 304:
        return { status: 304, headers: { ...common, "cache-control": FOR_A_DAY }, body: null };
      case 412:
        return { status: 412, headers: { ...SAFE, "cache-control": "no-store" }, body: null };
      case 416: {
        const unsatisfied = { "content-range": `bytes */${entry.bytes}`, "cache-control": "no-store" };
        return { status: 416, headers: { ...SAFE, ...unsatisfied }, body: null };
      }
      case 200:
      case 206: {
        const range = part.status === 206 ? part.range : { start: 0, end: entry.bytes };
        const described = {
          ...common,
          ...contentHeaders(name),
          "cache-control": FOR_A_DAY,
          "accept-ranges": "bytes",
          "content-length": String(range.end - range.start),
          ...(part.status === 206 && {
            "content-range": `bytes ${range.start}-${range.end - 1}/${entry.bytes}`,
          }),
        };
        return {
          status: part.status,
          headers: described,
          body: method === "HEAD" ? null : files.read(name, range),
        };
      }
    }
  }

  return Object.freeze<Service>({
    async handle(request) {
      const name = nameOf(request.path);
      if (name === undefined) return undefined;
      try {
        return await answer(request, name);
      } catch (error) {
        logger.error({ error }, "a file of media could not be served");
        return { status: 503, headers: { "retry-after": "5", "cache-control": "no-store" }, body: null };
      }
    },
  });
}

const SAFE = { "x-content-type-options": "nosniff" } as const;

/** A name can be used again once its file is removed, so that the name alone is not enough. */
const tagOf = ({ bytes, storedAt }: FileEntry): string => `"${bytes.toString(36)}-${storedAt.toString(36)}"`;

function nameOf(path: string): string | undefined {
  try {
    const name = decodeURIComponent(path.slice(1));
    return isFileName(name) ? name : undefined;
  } catch {
    return undefined;
  }
}

function contentHeaders(name: string): Readonly<Record<string, string>> {
  const mimeType = findMimeType(name) ?? "application/octet-stream";
  if (/^(?:image|audio|video)\//.test(mimeType)) return { "content-type": mimeType };
  return {
    "content-type": mimeType,
    "content-disposition": "attachment",
    "content-security-policy": "default-src 'none'; sandbox",
  };
}
