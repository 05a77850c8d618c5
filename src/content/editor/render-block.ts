/** Calls the host's function `renderBlock`, within a time limit. Its failures are contained. */

import { type Clock, withTimeout } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import { RestError } from "../rest/error.js";
import type { BlockPreview, RenderBlock } from "./editor-options.js";

/**
 * Resolves with the HTML, or with `undefined` if the host does not know the block.
 *
 * @throws RestError 503 `rest_block_unavailable` if the host's function fails
 */
export type ContainedRenderBlock = (block: BlockPreview) => Promise<string | undefined>;

const TIMEOUT_MS = 5_000;
/** In characters. */
const MAX_HTML = 1_048_576;

export function containRenderBlock(
  render: RenderBlock,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): ContainedRenderBlock {
  const late = (): Error => new Error(`renderBlock took more than ${TIMEOUT_MS} ms`);
  return async (block) => {
    try {
      const html = await withTimeout(clock, TIMEOUT_MS, Promise.resolve(render(block)), late);
      if (html === null || html === undefined) return undefined;
      if (typeof html !== "string") throw new Error("renderBlock did not return a text");
      if (html.length > MAX_HTML) throw new Error(`renderBlock returned more than ${MAX_HTML} characters`);
      return html;
    } catch (error) {
      logger.warn({ error, block: block.name }, "the host's function `renderBlock` has failed");
      throw new RestError(
        503,
        "rest_block_unavailable",
        "The block cannot be rendered at the moment; try again later.",
      );
    }
  };
}
