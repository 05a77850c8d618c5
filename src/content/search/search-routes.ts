/** `/search`: finds published content of one kind. Link dialogs and most websites use it. */

import { toText } from "../../schema/coerce.js";
import type { Arguments, Context, Schema } from "../../schema/types.js";
import { COUNTS, IDS } from "../argument-bounds.js";
import type { ContentBase } from "../content-base.js";
import { pageHeaders } from "../rest/lists.js";
import { idArguments, pageArguments, searchArgument } from "../rest/record-fields.js";
import { createItem, parseFields } from "../rest/serialise.js";
import type { Item, RestRequest, RestRoute } from "../rest/types.js";
import { createFormatSearch } from "./format-search.js";
import {
  createPostSearch,
  createTermSearch,
  type SearchHandler,
  type SearchQuery,
  type SearchResult,
} from "./search-handler.js";

const ANY = "any";
const SHOWN: Context[] = ["view", "embed"];

export function searchRoutes(base: ContentBase): RestRoute[] {
  const { lists, namespace } = base;
  const handlers: SearchHandler[] = [
    createPostSearch(base),
    createTermSearch(base),
    createFormatSearch(base),
  ];
  const toItem = ({ fields, self, about }: SearchResult, { url }: RestRequest): Item =>
    createItem(fields, {
      ...(self === undefined ? {} : { self: [{ embeddable: true, href: url(`/${namespace}${self}`) }] }),
      ...(about === undefined ? {} : { about: [{ href: url(`/${namespace}${about}`) }] }),
      collection: [{ href: url(`/${namespace}/search`) }],
    });

  return [
    {
      namespace,
      path: "/search",
      schema: searchResultSchema(handlers),
      endpoints: [
        {
          methods: ["GET"],
          args: searchArguments(handlers),
          described: { summary: "Search published content" },
          permit: () => {},
          async handle(request) {
            const { values, input, query, url } = request;
            const handler = handlers.find(({ type }) => type === values["type"]) as SearchHandler;
            const { results, total } = await handler.find(toSearchQuery(request, handler));
            const headers = pageHeaders({
              values,
              total,
              query,
              url: url(`/${namespace}/search`),
              invalidPage: "rest_search_invalid_page_number",
            });
            const items = await lists.collect(parseFields(input["_fields"]), async ({ add }) => {
              for (const result of results) await add(toItem(result, request));
            });
            return { status: 200, headers, body: { items } };
          },
        },
      ],
    },
  ];
}

/** As in WordPress, `any` overrides other subtypes, and those of another type are left out. */
function toSearchQuery({ values, caller }: RestRequest, { subtypes }: SearchHandler): SearchQuery {
  const limit = Number(values["per_page"]);
  const text = toText(values["search"]).trim();
  const wanted = values["subtype"] as string[];
  return {
    // PHP takes "0" for an empty text.
    text: text === "0" ? "" : text,
    subtypes: wanted.includes(ANY) ? subtypes : subtypes.filter((subtype) => wanted.includes(subtype)),
    include: values["include"] as number[],
    exclude: values["exclude"] as number[],
    offset: (Number(values["page"]) - 1) * limit,
    limit,
    caller,
  };
}

const listSubtypes = (handlers: SearchHandler[]): string[] => handlers.flatMap(({ subtypes }) => subtypes);

const searchArguments = (handlers: SearchHandler[]): Arguments => ({
  context: {
    description: "Scope under which the request is made; determines fields present in response.",
    type: "string",
    enum: ["view", "embed"],
    default: "view",
  },
  ...pageArguments,
  search: searchArgument,
  type: {
    description: "Limit results to items of an object type.",
    type: "string",
    default: "post",
    enum: handlers.map(({ type }) => type),
    late: true,
  },
  subtype: {
    description: "Limit results to items of one or more object subtypes.",
    type: "array",
    itemLimit: COUNTS.names,
    default: ANY,
    items: { type: "string", enum: [...listSubtypes(handlers), ANY] },
    late: true,
  },
  ...idArguments({ ...IDS, default: [], late: true }),
});

function searchResultSchema(handlers: SearchHandler[]): Schema {
  const types = handlers.map(({ type }) => type);
  const subtypes = listSubtypes(handlers);
  const shown = { context: SHOWN, readonly: true } as const;
  return {
    title: "search-result",
    type: "object",
    properties: {
      id: { description: "Unique identifier for the object.", type: ["integer", "string"], ...shown },
      title: { description: "The title for the object.", type: "string", ...shown },
      url: { description: "URL to the object.", type: "string", format: "uri", ...shown },
      type: {
        description: "Object type.",
        type: "string",
        enum: types,
        ...shown,
        // The type of a term is its taxonomy.
        answered: {
          type: "string",
          enum: handlers.flatMap((handler) => (handler.type === "term" ? handler.subtypes : [handler.type])),
        },
      },
      subtype: {
        description: "Object subtype.",
        type: "string",
        enum: subtypes,
        ...shown,
        sometimes: true,
      },
    },
  };
}
