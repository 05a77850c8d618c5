/** Puts together the routes that the block editor asks for besides content. */

import type { AddressPolicy } from "../../outbound/address-policy.js";
import type { PostBase } from "../posts/post-base.js";
import type { RestRoute } from "../rest/types.js";
import { blockPatternRoutes } from "./block-patterns.js";
import { blockRendererRoutes, containRenderBlock } from "./block-renderer.js";
import { blockTypeRoutes, readBlockTypes } from "./block-types.js";
import type { EditorOptions } from "./editor-options.js";
import type { LinkedPages } from "./linked-pages.js";
import { navigationFallbackRoute } from "./navigation-fallback.js";
import { templateRoutes } from "./templates.js";
import { readTheme } from "./theme-record.js";
import { themeRoutes } from "./themes.js";
import { urlDetailsRoute } from "./url-details.js";

/** @throws PostbellError `invalid_option`, with the path of the option as `field` */
export function editorRoutes(
  base: PostBase,
  editor: EditorOptions,
  /** `undefined`: the site fetches no pages of others. */
  pages: Pick<LinkedPages, "find"> | undefined,
  policy: AddressPolicy,
): readonly RestRoute[] {
  const { namespace, site } = base;
  const types = readBlockTypes(editor.blockTypes ?? []);
  const render = editor.renderBlock && containRenderBlock(editor.renderBlock, base);
  return [
    ...themeRoutes(readTheme(editor.theme, site), namespace),
    ...blockPatternRoutes(editor, namespace),
    ...blockTypeRoutes(types, namespace),
    ...blockRendererRoutes(base, types, render),
    ...templateRoutes(namespace),
    navigationFallbackRoute(base),
    urlDetailsRoute(pages, policy),
  ];
}
