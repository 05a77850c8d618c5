/**
 * The filters of lists. One entry declares the argument, the types that have it, and its part of
 * the query.
 */

import type { Argument, Arguments, Json, JsonObject, Schema } from "../../schema/types.js";
import { COUNTS, IDS, NAMES } from "../argument-bounds.js";
import type { PostQuery, TermFilter } from "../query/types.js";
import type { Collection, TaxonomyDefinition } from "../records/content-model.js";
import { POST_FORMATS, type PostType, type Taxonomy } from "../records/records.js";
import { ADDRESSED_TYPES, isSelected, type TypeSelection } from "./post-field.js";
import type { Values } from "./post-type-handler.js";

/** The columns that a search can be limited to, by WordPress's names. */
export const SEARCH_COLUMNS = {
  post_title: "title",
  post_content: "content",
  post_excerpt: "excerpt",
} as const;

/** `types` is left out where the taxonomies of a type decide. */
interface ListFilter extends Partial<TypeSelection> {
  argument: Argument;
  /** The member of the query, and its value. `undefined` does not filter. */
  toQuery?: (value: Json, values: Values) => Partial<PostQuery> | undefined;
}

const ids: Argument = { ...IDS, default: [] };
const MEDIA_KINDS = ["image", "video", "text", "application", "audio"] as const;

/** Returns an array that has entries; `undefined` for anything else. */
export const nonEmpty = <T extends Json>(value: Json | undefined): T[] | undefined =>
  Array.isArray(value) && value.length > 0 ? (value as T[]) : undefined;

const toList =
  (column: "author" | "authorExclude" | "parent" | "parentExclude" | "format") =>
  (value: Json): Partial<PostQuery> | undefined => {
    const list = nonEmpty(value);
    return list && ({ [column]: list } as Partial<PostQuery>);
  };

const POST_ONLY: PostType[] = ["post"];

/** In the order in which OPTIONS lists the arguments. Filters by term stand before `sticky`. */
const FILTERS: { [name: string]: ListFilter } = {
  author: {
    types: ADDRESSED_TYPES,
    needs: "author",
    argument: { description: "Limit result set to posts assigned to specific authors.", ...ids },
    toQuery: toList("author"),
  },
  author_exclude: {
    types: ADDRESSED_TYPES,
    needs: "author",
    argument: { description: "Ensure result set excludes posts assigned to specific authors.", ...ids },
    toQuery: toList("authorExclude"),
  },
  menu_order: {
    types: ["page", "nav_menu_item"],
    needs: "page-attributes",
    argument: {
      description: "Limit result set to posts with a specific menu_order value.",
      type: "integer",
    },
    toQuery: (value) => ({ menuOrder: value as number }),
  },
  parent: {
    types: ["page", "attachment"],
    needs: "tree",
    argument: { description: "Limit result set to items with particular parent IDs.", ...ids },
    toQuery: toList("parent"),
  },
  parent_exclude: {
    types: ["page", "attachment"],
    needs: "tree",
    argument: {
      description: "Limit result set to all items except those of a particular parent ID.",
      ...ids,
    },
    toQuery: toList("parentExclude"),
  },
  tax_relation: {
    types: ["post", "nav_menu_item", "wp_block"],
    needs: "terms",
    argument: {
      description: "Limit result set based on relationship between multiple taxonomies.",
      type: "string",
      enum: ["AND", "OR"],
    },
    toQuery: (value) => ({ termRelation: value as "AND" | "OR" }),
  },
};

const FILTERS_AFTER_TERMS: { [name: string]: ListFilter } = {
  sticky: {
    types: POST_ONLY,
    needs: "none",
    argument: { description: "Limit result set to items that are sticky.", type: "boolean" },
    toQuery: (value) => ({ sticky: value as boolean }),
  },
  ignore_sticky: {
    types: POST_ONLY,
    needs: "none",
    argument: { description: "Whether to ignore sticky posts or not.", type: "boolean", default: true },
  },
  format: {
    types: POST_ONLY,
    needs: "post-formats",
    argument: {
      description: "Limit result set to items assigned one or more given formats.",
      type: "array",
      itemLimit: COUNTS.names,
      uniqueItems: true,
      items: { type: "string", enum: POST_FORMATS },
    },
    toQuery: toList("format"),
  },
  media_type: {
    types: ["attachment"],
    needs: "none",
    argument: {
      description: "Limit result set to attachments of a particular media type or media types.",
      type: "array",
      itemLimit: COUNTS.names,
      items: { type: "string", enum: MEDIA_KINDS },
      default: null,
    },
    toQuery: (_, values) => toMimeTypes(values),
  },
  mime_type: {
    types: ["attachment"],
    needs: "none",
    argument: {
      description: "Limit result set to attachments of a particular MIME type or MIME types.",
      ...NAMES,
      default: null,
    },
    toQuery: (_, values) => toMimeTypes(values),
  },
};

/**
 * Both arguments name media types: `mime_type` whole ones, `media_type` all of a kind. As in
 * WordPress, unknown names filter nothing.
 */
function toMimeTypes({ mime_type: whole, media_type: kinds }: Values): Partial<PostQuery> | undefined {
  const mimeType = [
    ...((whole ?? []) as string[]).filter((name) => KNOWN_MIME_TYPES.has(name)),
    ...((kinds ?? []) as string[]).map((kind) => `${kind}/`),
  ];
  return mimeType.length > 0 ? { mimeType } : undefined;
}

const termFilters = (taxonomies: TaxonomyDefinition[]): [string, ListFilter][] =>
  taxonomies.flatMap((definition) => {
    const { base } = definition;
    return [
      [base, { argument: termArgument(definition, { isExclude: false }) }],
      [`${base}_exclude`, { argument: termArgument(definition, { isExclude: true }) }],
    ] as const;
  });

const listFilters = (collection: Collection): [string, ListFilter][] => {
  const { taxonomies } = collection;
  const ofType = (filters: typeof FILTERS): [string, ListFilter][] =>
    Object.entries(filters).filter(([, { types = [], needs }]) =>
      isSelected(needs === undefined ? { types } : { types, needs }, collection),
    );
  return [...ofType(FILTERS), ...termFilters(taxonomies), ...ofType(FILTERS_AFTER_TERMS)];
};

/** Returns the arguments with which a list of this type is filtered. */
export const filterArguments = (collection: Collection): Arguments =>
  Object.fromEntries(listFilters(collection).map(([name, { argument }]) => [name, argument]));

/** Returns the function that turns the values of these arguments into members of the query. */
export function createFilterQuery(collection: Collection): (values: Values) => Partial<PostQuery> {
  const filters = listFilters(collection).filter(([, { toQuery }]) => toQuery !== undefined);
  return (values) => {
    const query: { -readonly [K in keyof PostQuery]?: PostQuery[K] } = {};
    for (const [name, { toQuery }] of filters) {
      const value = values[name];
      if (value !== undefined && value !== null) Object.assign(query, toQuery?.(value, values));
    }
    return query;
  };
}

// Filters of lists by the terms of a taxonomy: their arguments, and their part of the query.

const INCLUDE_CHILDREN: Schema = {
  description: "Whether to include child terms in the terms limiting the result set.",
  type: "boolean",
  default: false,
};

const OPERATOR: Schema = {
  description: "Whether items must be assigned all or any of the specified terms.",
  type: "string",
  enum: ["AND", "OR"],
  default: "OR",
};

/** Returns the argument that filters by term ids, or by an object with ids and options. */
function termArgument(
  { labels, isHierarchical }: TaxonomyDefinition,
  { isExclude }: { isExclude: boolean },
): Argument {
  const verb = isExclude ? "except those with" : "with";
  return {
    description: `Limit result set to items ${verb} specific ${labels.name.toLowerCase()}.`,
    type: ["object", "array"],
    oneOf: [
      { title: "Term ID List", ...IDS },
      {
        title: "Term ID Taxonomy Query",
        type: "object",
        properties: {
          terms: { description: "Term IDs.", ...IDS, default: [] },
          ...(isHierarchical ? { include_children: INCLUDE_CHILDREN } : {}),
          ...(isExclude ? {} : { operator: OPERATOR }),
        },
        additionalProperties: false,
      },
    ],
  };
}

function toTermFilter(taxonomy: Taxonomy, value: Values[string], isExclude: boolean): TermFilter | undefined {
  if (value === undefined || value === null) return undefined;
  const query = (Array.isArray(value) ? { terms: value } : value) as JsonObject;
  const terms = (query["terms"] ?? []) as number[];
  if (terms.length === 0) return undefined;
  const operator = isExclude ? "NOT" : query["operator"] === "AND" ? "AND" : "OR";
  return { taxonomy, terms, operator, includeChildren: query["include_children"] === true };
}

/** Returns the filters by term that the values of a list's arguments ask for. */
export const toTermFilters = (values: Values, { taxonomies }: Collection): TermFilter[] =>
  taxonomies
    .flatMap(({ taxonomy, base }) => [
      toTermFilter(taxonomy, values[base], false),
      toTermFilter(taxonomy, values[`${base}_exclude`], true),
    ])
    .filter((filter) => filter !== undefined);

// The media types that WordPress knows for uploads (`get_allowed_mime_types`). A list of media is
// filtered by these only. Which of them this service accepts is decided in `media/media-type.ts`.

const SUBTYPES: { [kind: string]: string } = {
  image: "jpeg gif png bmp tiff webp avif x-icon heic heif heic-sequence heif-sequence",
  video:
    "x-ms-asf x-ms-wmv x-ms-wmx x-ms-wm avi divx x-flv quicktime mpeg mp4 ogg webm x-matroska 3gpp 3gpp2",
  text: "plain csv tab-separated-values calendar richtext css vtt",
  // `mp4` is the type of the `m4a` files that this service accepts; WordPress calls them `mpeg`.
  audio: "mp4 mpeg aac x-realaudio wav ogg flac midi x-ms-wma x-ms-wax x-matroska",
  application:
    "ttaf+xml rtf pdf java x-tar zip x-gzip rar x-7z-compressed octet-stream msword wordperfect onenote oxps " +
    "vnd.ms-powerpoint vnd.ms-write vnd.ms-excel vnd.ms-access vnd.ms-project vnd.ms-xpsdocument " +
    "vnd.ms-word.document.macroEnabled.12 vnd.ms-word.template.macroEnabled.12 " +
    "vnd.ms-excel.sheet.macroEnabled.12 vnd.ms-excel.sheet.binary.macroEnabled.12 " +
    "vnd.ms-excel.template.macroEnabled.12 vnd.ms-excel.addin.macroEnabled.12 " +
    "vnd.ms-powerpoint.presentation.macroEnabled.12 vnd.ms-powerpoint.slideshow.macroEnabled.12 " +
    "vnd.ms-powerpoint.template.macroEnabled.12 vnd.ms-powerpoint.addin.macroEnabled.12 " +
    "vnd.ms-powerpoint.slide.macroEnabled.12 " +
    "vnd.openxmlformats-officedocument.wordprocessingml.document " +
    "vnd.openxmlformats-officedocument.wordprocessingml.template " +
    "vnd.openxmlformats-officedocument.spreadsheetml.sheet " +
    "vnd.openxmlformats-officedocument.spreadsheetml.template " +
    "vnd.openxmlformats-officedocument.presentationml.presentation " +
    "vnd.openxmlformats-officedocument.presentationml.slideshow " +
    "vnd.openxmlformats-officedocument.presentationml.template " +
    "vnd.openxmlformats-officedocument.presentationml.slide " +
    "vnd.oasis.opendocument.text vnd.oasis.opendocument.presentation vnd.oasis.opendocument.spreadsheet " +
    "vnd.oasis.opendocument.graphics vnd.oasis.opendocument.chart vnd.oasis.opendocument.database " +
    "vnd.oasis.opendocument.formula vnd.apple.keynote vnd.apple.numbers vnd.apple.pages",
};

const KNOWN_MIME_TYPES: Set<string> = new Set(
  Object.entries(SUBTYPES).flatMap(([kind, names]) => names.split(" ").map((name) => `${kind}/${name}`)),
);
