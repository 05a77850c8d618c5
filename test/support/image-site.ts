/** A site that works on images, and short requests to it. */

import { sharpImages } from "../../adapters/sharp/index.js";
import type { FileStore } from "../../src/content/files.js";
import type { ContentOptions } from "../../src/content/options.js";
import type { JsonObject } from "../../src/schema/types.js";
import { memoryFiles } from "../../storage/files/index.js";
import { callsOf } from "./content-call.js";
import { contentSite, credentials, type Role } from "./content-site.js";

const UPLOADS = "http://localhost/uploads/";

/** Names of all files, without the folder of their month. */
export async function stored(files: FileStore): Promise<string[]> {
  const names = [];
  for await (const { name } of files.list()) names.push(name.replace(/^\d{4}\/\d\d\//, ""));
  return names.sort();
}

/** Of the file that is served at `address`. */
export async function bytesOf(files: FileStore, address: string): Promise<Buffer> {
  const chunks = [];
  for await (const chunk of files.read(address.replace(UPLOADS, ""))) chunks.push(Uint8Array.from(chunk));
  return Buffer.concat(chunks);
}

/** As a connection brings it. */
async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}

export function siteWith(options: Partial<ContentOptions> = {}) {
  const files = options.files ?? memoryFiles();
  const site = contentSite({ files, images: sharpImages(), ...options });
  const call = callsOf(site);
  const send = async (
    fileName: string,
    body: Uint8Array,
    as: Role = "administrator",
    headers: Record<string, string> = {},
  ) => {
    const response = await site.handle({
      method: "POST",
      path: "/core/v2/media",
      query: "",
      headers: {
        authorization: credentials(as),
        "content-type": "image/jpeg",
        "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(fileName)}`,
        ...headers,
      },
      body: inPieces(body),
      baseUrl: "http://localhost/api",
    });
    return {
      status: response?.status,
      body: JSON.parse(Buffer.from(response?.body as Uint8Array).toString()),
    };
  };
  const edit = (id: number, body: JsonObject, as: Role = "administrator") =>
    call(`POST /media/${id}/edit`, { as, body });
  const postProcess = (id: number) =>
    call(`POST /media/${id}/post-process`, { as: "editor", body: { action: "create-image-subsizes" } });
  return { site, files, call, send, edit, postProcess };
}

export const rotate = (angle: number): JsonObject => ({ type: "rotate", args: { angle } });
