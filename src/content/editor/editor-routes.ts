/**
 * Puts together the routes that the block editor asks for besides content, with those of templates,
 * which the site has none of.
 */

import type { AddressPolicy } from "../../outbound/address-policy.js";
import type { Arguments, Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import type { PostBase } from "../posts/post-base.js";
import { contextArgument } from "../rest/record-fields.js";
import type { RestEndpoint, RestResponse, RestRoute } from "../rest/types.js";
import { blockPatternRoutes } from "./block-patterns.js";
import { blockRendererRoutes, containRenderBlock } from "./block-renderer.js";
import { blockTypeRoutes, readBlockTypes } from "./block-types.js";
import { type EditorOptions, forEditors } from "./editor-options.js";
import { type LinkedPages, urlDetailsRoute } from "./linked-pages.js";
import { navigationFallbackRoute } from "./navigation-fallback.js";
import { readTheme, themeRoutes } from "./theme-record.js";

/** @throws PostbellError `invalid_option`, with the path of the option as `field` */
export function editorRoutes(
  base: PostBase,
  editor: EditorOptions,
  /** `undefined`: the site fetches no pages of others. */
  pages: LinkedPages | undefined,
  policy: AddressPolicy,
): RestRoute[] {
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

// `/templates`, `/template-parts` and their `lookup`: a site whose theme has no block templates.

const permit = forEditors(
  "rest_cannot_manage_templates",
  "Sorry, you are not allowed to access the templates on this site.",
);

const NO_TEMPLATES: Schema = { type: "array", maxItems: 0, items: { type: "object" } };
const NO_TEMPLATE: Schema = { type: "object", properties: {}, additionalProperties: false };

const json = (body: [] | Record<string, never>): RestResponse => ({
  status: 200,
  headers: {},
  body: { json: body },
});

const LIST_ARGUMENTS: Arguments = {
  context: contextArgument,
  wp_id: { description: "Limit to the specified post id.", type: "integer" },
  area: {
    description: "Limit to the specified template part area.",
    type: "string",
    maxLength: LENGTHS.name,
  },
  post_type: {
    description: "Post type to get the templates for.",
    type: "string",
    maxLength: LENGTHS.name,
  },
};

const list: RestEndpoint = {
  methods: ["GET"],
  args: LIST_ARGUMENTS,
  described: { form: "json", schema: NO_TEMPLATES, errors: [403] },
  permit,
  handle: () => json([]),
};

const lookup: RestEndpoint = {
  methods: ["GET"],
  args: {
    slug: {
      description: "The slug of the template to get the fallback for",
      type: "string",
      required: true,
      maxLength: LENGTHS.slug,
    },
    is_custom: {
      description: "Indicates if a template is custom or part of the template hierarchy",
      type: "boolean",
    },
    template_prefix: {
      description:
        "The template prefix for the created template. This is used to extract the main template type, e.g. in `taxonomy-books` extracts the `taxonomy`",
      type: "string",
      maxLength: LENGTHS.slug,
    },
  },
  described: { form: "json", schema: NO_TEMPLATE, errors: [403] },
  permit,
  handle: () => json({}),
};

const describe = (endpoint: RestEndpoint, summary: string): RestEndpoint => ({
  ...endpoint,
  described: { ...endpoint.described, summary },
});

const templateRoutes = (namespace: string): RestRoute[] =>
  (["templates", "template-parts"] as const).flatMap((base) => {
    const what = base.replace("-", " ");
    return [
      { namespace, path: `/${base}`, endpoints: [describe(list, `List the ${what} of the site`)] },
      {
        namespace,
        path: `/${base}/lookup`,
        endpoints: [describe(lookup, `Find the fallback among the ${what}`)],
      },
    ];
  });
