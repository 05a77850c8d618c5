/**
 * The types and taxonomies that a host declares, and the model of the site that they and the
 * built-in ones make.
 */

import { PostbellError } from "../core/errors.js";
import { flag, type OptionValues, readOptions, value } from "../core/options.js";
import { capabilityNames, namesEndingIn } from "./auth/capabilities.js";
import { type BuiltInCollection, collections, DECLARED } from "./collections.js";
import type { TaxonomyOptions, TypeOptions } from "./content-options.js";
import type { Collection, ContentModel, TaxonomyDefinition, TypeFeature } from "./records/content-model.js";
import { isBuiltInName, type PostType, type Taxonomy } from "./records/records.js";
import { taxonomies as builtInTaxonomies, TERM_FIELDS } from "./terms/taxonomies.js";

const FEATURES = [
  "title",
  "editor",
  "excerpt",
  "author",
  "thumbnail",
  "trackbacks",
  "custom-fields",
  "comments",
  "revisions",
  "page-attributes",
  "post-formats",
] as const satisfies TypeFeature[];

const MAX_DECLARED = 50;
const MAX_TEXT = 500;

const NAME = /^[a-z0-9_-]{1,20}$/;
const BASE = /^[a-z0-9_-]{1,32}$/;
const CAPABILITY = /^[a-z0-9_-]{1,64}$/;
const CAPABILITY_TYPE = /^[a-z0-9_-]{1,32}$/;
const PATH = /^[a-z0-9_-]{1,32}(?:\/[a-z0-9_-]{1,32}){0,3}$/;

const toWords = (text: string): Set<string> => new Set(text.trim().split(/\s+/));

/** Names that WordPress, or the indexes of this service, use for something else. */
const RESERVED_NAMES = toWords(`
  action all any attachments author comment custom_css customize_changeset link_category oembed_cache
  order orphan parent post_format revision settings status tag taxonomy term theme type user
  user_request
`);

/** Segments of the built-in routes, of WordPress's other routes, fields and arguments of posts. */
const RESERVED_BASES = toWords(`
  autosaves batch block-directory block-patterns block-renderer block-types comments font-collections
  font-families global-styles icons menu-locations oembed openapi pattern-directory plugins revisions
  search settings sidebars statuses taxonomies template-parts templates themes types url-details users
  widget-types widgets wp-block-editor wp-site-health author class_list comment_status content date
  date_gmt excerpt featured_media force format generated_slug guid id link menu_order meta modified
  modified_gmt parent password permalink_template ping_status slug status sticky template title type
  after author_exclude before context exclude excerpt_length ignore_sticky include media_type
  mime_type modified_after modified_before offset order orderby page parent_exclude per_page
  search_columns search_semantics tax_relation _embed _embedded _envelope _fields _jsonp _links
  _locale _method _pretty _wpnonce rest_route
`);

const isText = (max: number) => (value: unknown) =>
  typeof value === "string" && value.trim() !== "" && value.length <= max;

const matches = (pattern: RegExp) => (value: unknown) => typeof value === "string" && pattern.test(value);

const isListOf = (is: (value: unknown) => boolean) => (value: unknown) =>
  Array.isArray(value) &&
  value.length <= MAX_DECLARED &&
  new Set(value).size === value.length &&
  value.every(is);

const label = value<string>("a text of 1 to 100 characters", isText(100), "");
const name = value<string | undefined>("1 to 32 of a-z, 0-9, dash and underscore", matches(BASE), undefined);
const names = value<string[]>("a list of different names", isListOf(matches(NAME)), []);

/** The members that types and taxonomies share. */
const common = {
  base: name,
  labels: { name: label, singular: label },
  description: value<string>("a text of at most 500 characters", isText(MAX_TEXT), ""),
  hierarchical: flag(false),
  public: flag(true),
  path: value<string | undefined>("segments such as 'recipe' or 'kitchen/recipe'", matches(PATH), undefined),
};

const typeOptions = {
  ...common,
  supports: value<TypeFeature[]>(
    `a list of ${FEATURES.join(", ")}`,
    isListOf((value) => FEATURES.some((feature) => feature === value)),
    ["title", "editor"],
  ),
  taxonomies: names,
  capabilityType: value<string | [string, string]>(
    "a name such as 'recipe', or a pair such as ['story', 'stories']",
    (value) =>
      matches(CAPABILITY_TYPE)(value) ||
      (Array.isArray(value) && value.length === 2 && value.every(matches(CAPABILITY_TYPE))),
    "post",
  ),
  icon: value<string | undefined>("a text of 1 to 200 characters", isText(200), undefined),
};

const capability = (initial: string) => value<string>("a capability", matches(CAPABILITY), initial);

const taxonomyOptions = {
  ...common,
  types: names,
  capabilities: {
    manage_terms: capability("manage_categories"),
    edit_terms: capability("manage_categories"),
    delete_terms: capability("manage_categories"),
    assign_terms: capability("edit_posts"),
  },
};

type DeclaredType = OptionValues<typeof typeOptions>;
type DeclaredTaxonomy = OptionValues<typeof taxonomyOptions>;

/** Built-in types that may have declared taxonomies, and the other way round. */
const OPEN_TYPES: Set<string> = new Set(["post", "page"]);
const OPEN_TAXONOMIES: Set<string> = new Set(["category", "post_tag"]);

const refuse = (field: string, message: string): never => {
  throw new PostbellError("invalid_option", `createContent: ${field} ${message}`, { field });
};

/**
 * Returns the model of a site. Later changes of the options have no effect.
 *
 * @throws PostbellError `invalid_option` for a name or base that is malformed, reserved or taken,
 * and for every other wrong value
 */
export function createContentModel({
  types = {},
  taxonomies = {},
}: {
  types?: TypeOptions;
  taxonomies?: TaxonomyOptions;
} = {}): ContentModel {
  const declaredTypes = readDeclared("types", types, typeOptions);
  const declaredTaxonomies = readDeclared("taxonomies", taxonomies, taxonomyOptions);
  assertBasesFree(declaredTypes, declaredTaxonomies);
  const held = joinTypesAndTaxonomies(declaredTypes, declaredTaxonomies);
  const typeNames = [
    ...Object.values(collections).map(({ type }) => type as PostType),
    ...declaredTypes.keys(),
  ];
  const definitions = new Map<Taxonomy, TaxonomyDefinition>(
    [
      ...Object.values(builtInTaxonomies).map((row): [Taxonomy, TaxonomyDefinition] => [
        row.taxonomy,
        { ...row, capabilities: capabilityNames[row.taxonomy] },
      ]),
      ...Array.from(declaredTaxonomies, ([taxonomy, declared]): [Taxonomy, TaxonomyDefinition] => [
        taxonomy,
        toDefinition(taxonomy, declared),
      ]),
    ].map(([taxonomy, row]) => [
      taxonomy,
      { ...row, types: typeNames.filter((type) => held.get(type)?.includes(taxonomy)) },
    ]),
  );
  const list = (type: PostType): TaxonomyDefinition[] =>
    (held.get(type) ?? []).flatMap((taxonomy) => definitions.get(taxonomy) ?? []);
  const rows = Object.values<BuiltInCollection>(collections).map((row): [PostType, Collection] => [
    row.type,
    { ...row, capabilities: capabilityNames[row.type], taxonomies: list(row.type) },
  ]);
  const declaredCollections = [...declaredTypes].map(([type, declared]): [PostType, Collection] => [
    type,
    { ...toCollection(type, declared), taxonomies: list(type) },
  ]);
  return { types: new Map([...rows, ...declaredCollections]), taxonomies: definitions };
}

/** Reads the declarations of one kind. `field`: the name of the option. */
function readDeclared<T extends typeof typeOptions | typeof taxonomyOptions>(
  field: "types" | "taxonomies",
  options: object,
  table: T,
): Map<string, OptionValues<T>> {
  const entries = Object.entries(options);
  if (entries.length > MAX_DECLARED) refuse(field, `has at most ${MAX_DECLARED} members.`);
  return new Map(
    entries.map(([name, declaration]) => {
      assertNameFree(field, name);
      const path = `${field}.${name}`;
      const declared = readOptions("createContent", table, declaration, path);
      for (const [one, text] of Object.entries(declared.labels as Collection["labels"])) {
        if (text === "") refuse(`${path}.labels.${one}`, "is missing: give it a text.");
      }
      return [name, declared];
    }),
  );
}

function assertNameFree(field: string, name: string): void {
  const shown = JSON.stringify(name.slice(0, 40));
  if (!NAME.test(name)) {
    refuse(field, `has names of 1 to 20 of a-z, 0-9, dash and underscore (got ${shown}).`);
  }
  const isReserved = RESERVED_NAMES.has(name) || name.startsWith("wp_") || name in Object.prototype;
  if (isReserved || isBuiltInName(name))
    refuse(`${field}.${name}`, "has a reserved name: choose another one.");
}

/** Routes, fields and arguments have these names. */
function assertBasesFree(types: Map<string, DeclaredType>, taxonomies: Map<string, DeclaredTaxonomy>): void {
  const taken = new Set(
    [...Object.values(collections), ...Object.values(builtInTaxonomies)].map(({ base }) => base as string),
  );
  for (const name of taxonomies.keys()) {
    if (types.has(name)) refuse(`taxonomies.${name}`, "has the name of a type: choose another one.");
  }
  const declared = [
    ...Array.from(types, ([name, { base = name }]) => [`types.${name}.base`, base] as const),
    ...Array.from(taxonomies, ([name, { base = name }]) => [`taxonomies.${name}.base`, base] as const),
  ];
  for (const [field, base] of declared) {
    const isReserved = RESERVED_BASES.has(base) || base.endsWith("_exclude") || base in Object.prototype;
    if (isReserved) refuse(field, `is reserved (got '${base}'): choose another base.`);
    if (taken.has(base)) refuse(field, `is taken (got '${base}'): choose another base.`);
    taken.add(base);
  }
}

/** Returns the names of the taxonomies of each type. Either of the two may name the other. */
function joinTypesAndTaxonomies(
  types: Map<string, DeclaredType>,
  taxonomies: Map<string, DeclaredTaxonomy>,
): Map<PostType, Taxonomy[]> {
  const held = new Map<PostType, Set<Taxonomy>>(
    Object.values<BuiltInCollection>(collections).map((row) => [row.type, new Set(row.taxonomies)]),
  );
  for (const [type, declared] of types) {
    const field = `types.${type}.taxonomies`;
    for (const name of declared.taxonomies) {
      if (!OPEN_TAXONOMIES.has(name) && !taxonomies.has(name)) refuse(field, `names no taxonomy: '${name}'.`);
    }
    held.set(type, new Set(declared.taxonomies));
  }
  for (const [taxonomy, declared] of taxonomies) {
    const field = `taxonomies.${taxonomy}.types`;
    for (const type of declared.types) {
      if (!OPEN_TYPES.has(type) && !types.has(type)) refuse(field, `names no type: '${type}'.`);
      held.get(type)?.add(taxonomy);
    }
  }
  return new Map([...held].map(([type, names]) => [type, [...names]]));
}

function toCollection(type: string, declared: DeclaredType): Omit<Collection, "taxonomies"> {
  const { base = type, labels, description, supports, icon, path = type, capabilityType } = declared;
  const [singular, plural] =
    typeof capabilityType === "string" ? [capabilityType, `${capabilityType}s`] : capabilityType;
  const has = (feature: TypeFeature): boolean => supports.includes(feature);
  const general = namesEndingIn(plural);
  return {
    ...DECLARED,
    base,
    type,
    labels: { ...labels, archives: labels.name },
    description,
    isHierarchical: declared.hierarchical,
    isViewable: declared.public,
    isPublic: declared.public,
    supports: has("editor") ? [...supports, "autosave"] : supports,
    newPost: {
      status: "draft",
      commentStatus: has("comments") ? "open" : "closed",
      pingStatus: has("trackbacks") ? "open" : "closed",
    },
    list: has("page-attributes")
      ? { ...DECLARED.list, orders: [...DECLARED.list.orders, "menu_order"] }
      : DECLARED.list,
    meta: has("editor") && has("custom-fields") && has("revisions") ? DECLARED.meta : {},
    hasRevisions: has("revisions"),
    pathPrefix: path,
    ...(icon === undefined ? {} : { icon }),
    capabilities: {
      edit_post: `edit_${singular}`,
      read_post: `read_${singular}`,
      delete_post: `delete_${singular}`,
      ...general,
      ...(declared.public ? {} : { read: `edit_${plural}` }),
    },
  };
}

function toDefinition(taxonomy: string, declared: DeclaredTaxonomy): TaxonomyDefinition {
  const { base = taxonomy, labels, description, path = taxonomy, capabilities } = declared;
  const isHierarchical = declared.hierarchical;
  return {
    taxonomy,
    base,
    labels: { ...labels },
    description,
    isHierarchical,
    isViewable: declared.public,
    isPublic: declared.public,
    types: [],
    fields: isHierarchical ? TERM_FIELDS.tree : TERM_FIELDS.flat,
    classPrefix: taxonomy,
    pathPrefix: path,
    hasFlatPaths: true,
    ownsItsPosts: false,
    capabilities: { ...capabilities },
  };
}

/** The model of a site whose host declares nothing. */
export const builtInModel: ContentModel = createContentModel();
