/** The site that is imported into or exported: its options, and opening it. */

import { type Content, createContent } from "../src/content/service.js";
import { diskFiles } from "../storage/files/index.js";
import type { CliIo } from "./command.js";
import { imageTool } from "./images.js";

export interface Site {
  readonly redis: string;
  readonly prefix: string | undefined;
  /** Without a slash at its end; may be empty. */
  readonly url: string;
  readonly timezone: string;
  /** Folder of the uploaded files; empty where there is none. */
  readonly files: string;
}

export const siteOptions = {
  redis: { type: "string", default: "" },
  prefix: { type: "string" },
  files: { type: "string", default: "" },
  site: { type: "string", default: "" },
  timezone: { type: "string", default: "UTC" },
  json: { type: "boolean", default: false },
  quiet: { type: "boolean", default: false },
} as const;

export const siteDetails = `  --redis URL         where the site's content is kept: redis://, rediss:// or the path of a socket
  --prefix NAME       the prefix of its keys, as given to redisStorage()
  --site URL          address of the website; an export needs it
  --timezone NAME     of the site, as given to createContent(); default UTC
  --quiet             no progress and no warnings`;

/** Errors: Error with a sentence for whoever typed it. */
export function readSite({
  redis,
  prefix,
  site,
  timezone,
  files,
}: {
  readonly redis: string;
  readonly prefix?: string | undefined;
  readonly site: string;
  readonly timezone: string;
  readonly files: string;
}): Site {
  if (redis === "") throw new Error("--redis is missing: it says where the content is kept.");
  return { redis, prefix, url: site.replace(/\/+$/, ""), timezone, files };
}

/** Opens the site for `work`. The people of the site are the host's, who is not here: every id is somebody, and nobody is found by his name. */
export async function withSite<T>(
  { redis, prefix, url, timezone, files }: Site,
  { openStorage }: CliIo,
  work: (content: Content) => Promise<T>,
): Promise<T> {
  const storage = openStorage({ url: redis, ...(prefix === undefined ? {} : { prefix }) });
  try {
    const content = createContent({
      storage,
      ...(files === "" ? {} : { files: diskFiles({ directory: files }), images: imageTool() }),
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
