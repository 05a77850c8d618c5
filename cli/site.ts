/** The site that is imported into or exported: its options, and opening it. */

import { diskFiles } from "../files/index.js";
import { type Content, createContent } from "../src/content/service.js";
import { trimEnd } from "../src/core/trim-end.js";
import { type CliIo, wrongUsage } from "./command.js";
import { findImageTool } from "./find-image-tool.js";

export interface OpenedSite {
  /** Empty: the environment has it. */
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

export const siteDetails = `  --redis URL         where the site's content is kept: redis://, rediss:// or the path of a socket. Without
                      it the environment variable POSTBELL_REDIS is taken: others on this machine can read
                      a password in the list of processes
  --prefix NAME       the prefix of its keys, as given to redisStorage()
  --site URL          address of the website; an export needs it
  --timezone NAME     of the site, as given to createContent(); default UTC
  --quiet             no progress and no warnings`;

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
}): OpenedSite {
  return { redis, prefix, url: trimEnd(site, "/"), timezone, files };
}

/** Opens the site for `work`. The people of the site are the host's, who is not here: every id is somebody, and nobody is found by his name. */
export async function withSite<T>(
  { redis, prefix, url, timezone, files }: OpenedSite,
  { openStorage, env }: CliIo,
  work: (content: Content) => Promise<T>,
): Promise<T> {
  const address = redis || env["POSTBELL_REDIS"] || "";
  if (address === "")
    throw wrongUsage(
      "--redis is missing, and POSTBELL_REDIS is not set: they say where the content is kept.",
    );
  const storage = openStorage({ url: address, ...(prefix === undefined ? {} : { prefix }) });
  try {
    const content = createContent({
      storage,
      ...(files === "" ? {} : { files: diskFiles({ directory: files }), images: findImageTool() }),
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
