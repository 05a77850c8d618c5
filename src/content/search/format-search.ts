/** Finds the post formats in use. A format has a page on the website once a post is published. */

import { nextTurn } from "../../core/next-turn.js";
import { POST_FORMATS } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import type { Site } from "../site.js";
import type { SearchHandler } from "./search-handler.js";

type PostFormat = (typeof POST_FORMATS)[number];

const toTitle = (format: PostFormat): string => `${format.charAt(0).toUpperCase()}${format.slice(1)}`;

export function createFormatSearch({
  repository,
  site,
}: {
  repository: ContentRepository;
  site: { termLink: Site["termLink"] };
}): SearchHandler {
  let existing = { stamp: -1, used: new Map<PostFormat, Promise<boolean>>() };

  /** Looks at every post, so other requests take their turn before. */
  async function findFirst(format: PostFormat): Promise<boolean> {
    await nextTurn();
    const { total } = await repository.index.find(
      {
        type: "post",
        visibility: { publish: "all" },
        format: [format],
        orderBy: "date",
        order: "desc",
        offset: 0,
        limit: 1,
      },
      async () => [],
    );
    return total > 0;
  }

  /** The result is cached until something changes. */
  function isUsed(format: PostFormat): Promise<boolean> {
    const stamp = repository.stamp();
    if (existing.stamp !== stamp) existing = { stamp, used: new Map() };
    const { used } = existing;
    const cached = used.get(format);
    if (cached !== undefined) return cached;
    const found = findFirst(format);
    used.set(format, found);
    found.catch(() => used.delete(format));
    return found;
  }

  return {
    type: "post-format",
    subtypes: [],
    async find({ text, offset, limit }) {
      const found: PostFormat[] = [];
      for (const format of POST_FORMATS) {
        if (format !== "standard" && format.includes(text.toLowerCase()) && (await isUsed(format)))
          found.push(format);
      }
      return {
        results: found.slice(offset, offset + limit).map((format) => ({
          fields: {
            id: format,
            title: toTitle(format),
            url: site.termLink("type", format),
            type: "post-format",
          },
        })),
        total: found.length,
      };
    },
  };
}
