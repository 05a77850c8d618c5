/**
 * Renders the contents of posts, with what they show of other records: dynamic blocks and short
 * codes.
 */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import { runInTurns } from "../../core/next-turn.js";
import type { Post } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import type { Settings } from "../settings/settings.js";
import type { ContentRenderer, Site } from "../site.js";
import { hasBlocks } from "../text/blocks.js";
import { listImageIds, MAX_IMAGES } from "../text/markup.js";
import { safeSteps, typesetSteps } from "../text/render.js";
import { hasShortCode } from "../text/short-codes.js";
import type { Users } from "../users/users.js";
import { completeImages, hasImages } from "./content-images.js";
import { createDynamicBlocks } from "./dynamic-blocks.js";
import { ownerId, PublicRecords } from "./public-records.js";
import { hasDynamicBlock, renderDynamicBlocks } from "./render-blocks.js";
import { closeTags, createShortCodeRunner, type ShortCodes } from "./run-short-codes.js";

export function createContentRenderer({
  repository,
  settings,
  users,
  clock,
  logger,
  config: { shortcodes: shortCodes, responsiveImages },
}: {
  repository: ContentRepository;
  settings: Settings;
  users: Users;
  clock: Clock;
  logger: Logger;
  config: { shortcodes: ShortCodes; responsiveImages: boolean };
}): ContentRenderer {
  const { index } = repository;
  const records = new PublicRecords(repository);
  const runner = createShortCodeRunner({ clock, logger, index, records, shortCodes });
  const { isShortCode } = runner;
  const onError = (error: unknown, block: string): void =>
    logger.error({ error, block }, "a dynamic block could not be rendered and shows nothing");
  const blocks = createDynamicBlocks({ index, records, settings, users });
  return {
    isShortCode,
    showsOthers: (content) => hasShortCode(content, isShortCode) || hasDynamicBlock(content, blocks),
    async render(post, options, site, budget) {
      const { content } = post;
      const safe = await runInTurns(safeSteps(content, options), content.length);
      const hasParagraphs = hasBlocks(safe);
      const html = hasParagraphs
        ? await renderDynamicBlocks(safe, { post, site, blocks, onError, budget })
        : safe;
      const typeset = typesetSteps(html, { ...options, isShortCode, hasParagraphs });
      const run = await runner.run(await runInTurns(typeset, html.length), { post, site, budget });
      const isChanged = hasDynamicBlock(safe, blocks) || hasShortCode(safe, isShortCode);
      // Blocks and short codes replace parts of a text, which may leave the tags of an author open.
      const shown = isChanged && !post.isTrusted ? closeTags(run) : run;
      return responsiveImages && hasImages(shown) ? withImages(shown, post, site) : shown;
    },
  };

  async function withImages(html: string, post: Post, site: Site): Promise<string> {
    const media = await records.media(listImageIds(html), ownerId(post), "image/", MAX_IMAGES);
    return runInTurns(completeImages(html, media, site), html.length);
  }
}
