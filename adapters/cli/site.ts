/** Opens the site to import into or export from, and defines the options for it. */

import { readFile, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import type { ContentOptions } from "../../src/content/content-options.js";
import type { ImageTool } from "../../src/content/media/image-tool.js";
import { type Content, createContent } from "../../src/content/service.js";
import { trimEnd } from "../../src/core/trim-end.js";
import { diskFiles } from "../../storage/files/index.js";
import { sharpImages } from "../sharp/index.js";
import { type CliIo, wrongUsage } from "./command.js";

export interface OpenedSite {
  /** Empty if the environment variable has it. */
  redis: string;
  prefix: string | undefined;
  /** Has no slash at its end; may be empty. */
  url: string;
  timezone: string;
  /** Folder of the uploaded files; may be empty. */
  files: string;
  /** Path of a file with the types and taxonomies of the site; may be empty. */
  types: string;
}

export const siteOptions = {
  redis: { type: "string", default: "" },
  prefix: { type: "string" },
  files: { type: "string", default: "" },
  site: { type: "string", default: "" },
  timezone: { type: "string", default: "UTC" },
  types: { type: "string", default: "" },
  json: { type: "boolean", default: false },
  quiet: { type: "boolean", default: false },
} as const;

export const siteDetails = `  --redis URL         Redis with the site's content: redis://, rediss:// or the path of a socket. Use the
                      environment variable POSTBELL_REDIS for a URL with a password, because other users
                      of this machine can read it in the list of processes
  --prefix NAME       prefix of the keys, as given to redisStorage()
  --site URL          URL of the website; required for an export
  --timezone NAME     time zone of the site, as given to createContent(); default UTC
  --types FILE        JSON file with the options types and taxonomies, as given to createContent()
  --quiet             show neither progress nor warnings`;

export function readSite({
  redis,
  prefix,
  site,
  timezone,
  files,
  types,
}: {
  redis: string;
  prefix?: string | undefined;
  site: string;
  timezone: string;
  files: string;
  types: string;
}): OpenedSite {
  return { redis, prefix, url: trimEnd(site, "/"), timezone, files, types };
}

type Declarations = Pick<ContentOptions, "types" | "taxonomies">;

const MAX_TYPES_BYTES = 1_048_576;

/** `createContent` checks what it returns. */
async function readDeclarations(file: string): Promise<Declarations> {
  if (file === "") return {};
  const { size } = await stat(file);
  if (size > MAX_TYPES_BYTES) throw wrongUsage("--types must be a file of at most 1 MiB.");
  const text = await readFile(file, "utf8");
  try {
    const { types, taxonomies } = JSON.parse(text) as Declarations;
    return { types, taxonomies };
  } catch {
    throw wrongUsage('--types must be a JSON file such as { "types": {}, "taxonomies": {} }.');
  }
}

/**
 * Opens the site for `work`, and closes it afterwards. The users of the site are known to the host
 * only. Here, every id is a user, and no user is found by name.
 */
export async function withSite<T>(
  { redis, prefix, url, timezone, files, types }: OpenedSite,
  { openStorage, env }: CliIo,
  work: (content: Content) => Promise<T>,
): Promise<T> {
  const address = redis || env["POSTBELL_REDIS"] || "";
  if (address === "")
    throw wrongUsage(
      "--redis is missing, and POSTBELL_REDIS is not set: give the URL of the Redis with the content.",
    );
  const declarations = await readDeclarations(types);
  const storage = openStorage({ url: address, ...(prefix === undefined ? {} : { prefix }) });
  try {
    const content = createContent({
      storage,
      ...(files === "" ? {} : { files: diskFiles({ directory: files }), images: findImageTool() }),
      ...declarations,
      site: { url: url || "http://localhost", name: url, timezone },
      authenticate: () => null,
      users: {
        get: (id) => ({ id, slug: `user-${id}`, name: `User ${id}`, roles: ["administrator"] }),
        list: () => ({ users: [], total: 0 }),
      },
    });
    return await work(content);
  } finally {
    await storage.close().catch(() => {});
  }
}

/**
 * Returns `undefined` if `sharp` is not installed next to the command: images then keep one size.
 */
function findImageTool(): ImageTool | undefined {
  try {
    createRequire(import.meta.url).resolve("sharp");
  } catch {
    return undefined;
  }
  return sharpImages();
}
