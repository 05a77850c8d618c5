/** `/themes`: the one theme of the site. */

import type { JsonObject, Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { RestError, refusal } from "../rest/error.js";
import { createItem } from "../rest/item.js";
import type { Item, RestEndpoint, RestRequest, RestRoute } from "../rest/types.js";
import { forEditors } from "./editor-options.js";
import { THEME_SCHEMA } from "./theme-record.js";

const forbidden = ({ caller }: RestRequest): RestError =>
  refusal(caller, "rest_cannot_view_themes", "Sorry, you are not allowed to view themes.");

const permitActive = forEditors(
  "rest_cannot_view_active_theme",
  "Sorry, you are not allowed to view the active theme.",
);

/** Only who may switch themes sees any other than the active one. */
function permitThemes(request: RestRequest, isActive: boolean): void {
  if (request.caller.has("switch_themes")) return;
  if (!isActive) throw forbidden(request);
  permitActive(request);
}

const STATUSES = ["active", "inactive"] as const;

const LINKED_THEME: Schema = {
  ...THEME_SCHEMA,
  properties: { ...THEME_SCHEMA.properties, _links: { type: "object" } },
};

/** `theme`: its fields. */
export function themeRoutes(theme: JsonObject, namespace: string): readonly RestRoute[] {
  const stylesheet = theme["stylesheet"] as string;

  const toItem = ({ url }: RestRequest): Item =>
    createItem(theme, {
      self: [{ href: url(`/${namespace}/themes/${stylesheet}`) }],
      collection: [{ href: url(`/${namespace}/themes`) }],
    });

  const list: RestEndpoint = {
    methods: ["GET"],
    args: {
      status: {
        description: "Limit result set to themes assigned one or more statuses.",
        type: "array",
        mostItems: STATUSES.length,
        items: { type: "string", enum: STATUSES },
      },
    },
    described: {
      summary: "List the themes of the site",
      form: "json",
      schema: { type: "array", items: LINKED_THEME },
      hasTotals: true,
      errors: [403],
    },
    permit(request) {
      const { status } = request.values;
      permitThemes(request, Array.isArray(status) && status.length === 1 && status[0] === "active");
    },
    handle(request) {
      const { status } = request.values;
      const isListed = !Array.isArray(status) || status.includes("active");
      const items = isListed ? [toItem(request)] : [];
      return {
        status: 200,
        headers: { "x-wp-total": String(items.length), "x-wp-totalpages": "1" },
        body: { items },
      };
    },
  };

  const read: RestEndpoint = {
    methods: ["GET"],
    args: {
      stylesheet: {
        description: "The theme's stylesheet. This uniquely identifies the theme.",
        type: "string",
        maxLength: LENGTHS.name,
      },
    },
    described: { summary: "Read a theme", form: "json", schema: LINKED_THEME, errors: [403] },
    permit: (request) => permitThemes(request, request.values["stylesheet"] === stylesheet),
    handle(request) {
      if (request.values["stylesheet"] !== stylesheet) {
        throw new RestError(404, "rest_theme_not_found", "Theme not found.");
      }
      return { status: 200, headers: {}, body: { item: toItem(request) } };
    },
  };
  return [
    { namespace, path: "/themes", schema: THEME_SCHEMA, endpoints: [list] },
    { namespace, path: "/themes/:stylesheet(word)", schema: THEME_SCHEMA, endpoints: [read] },
  ];
}
