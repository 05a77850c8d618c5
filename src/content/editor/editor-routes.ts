/** Puts together the routes that the block editor asks for besides content. */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { RestRoute } from "../rest/types.js";
import { blockPatternRoutes } from "./block-patterns.js";
import { blockRendererRoutes, containRenderBlock } from "./block-renderer.js";
import { blockTypeRoutes, readBlockTypes } from "./block-types.js";
import type { EditorOptions } from "./editor-options.js";
import { type NavigationFallbackOptions, navigationFallbackRoute } from "./navigation-fallback.js";
import { templateRoutes } from "./templates.js";
import { readTheme } from "./theme-record.js";
import { themeRoutes } from "./themes.js";
import { type UrlDetailsOptions, urlDetailsRoute } from "./url-details.js";

export interface EditorRoutesOptions extends NavigationFallbackOptions, UrlDetailsOptions {
  readonly editor: EditorOptions;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** @throws PostbellError `invalid_option`, with the path of the option as `field` */
export function editorRoutes(options: EditorRoutesOptions): readonly RestRoute[] {
  const { editor, namespace, site, repository } = options;
  const types = readBlockTypes(editor.blockTypes ?? []);
  const render = editor.renderBlock && containRenderBlock(editor.renderBlock, options);
  return [
    ...themeRoutes(readTheme(editor.theme, site), namespace),
    ...blockPatternRoutes(editor, namespace),
    ...blockTypeRoutes(types, namespace),
    ...blockRendererRoutes({ types, render, repository }, namespace),
    ...templateRoutes(namespace),
    navigationFallbackRoute(options),
    urlDetailsRoute(options),
  ];
}
