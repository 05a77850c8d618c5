/**
 * Creates the routes of a fixed table, such as the types of posts: a list by name, and one entry.
 * Types and taxonomies have labels.
 */

import type { Arguments, Json, JsonObject } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import type { Caller } from "../auth/caller.js";
import { RestError, refusal } from "../rest/error.js";
import {
  contextArgument,
  type RecordFields,
  readContext,
  recordSchema,
  selectRecordFields,
} from "../rest/record-fields.js";
import { createItem, withLinks } from "../rest/serialise.js";
import type { Item, Links, RestEndpoint, RestRequest, RestRoute } from "../rest/types.js";

/** A code and the message for a person. */
type Refusal = [code: string, message: string];

export interface KeyedTable<T> {
  /** The first segment of its paths: `types`. */
  base: string;
  /** The name of the path parameter, and the title of the schema: `type`. */
  parameter: string;
  parameterDescription: string;
  entries: Map<string, T>;
  fields: RecordFields<T>;
  /** Returns the links besides `collection`. `to` builds the URL of a path below the namespace. */
  links: (entry: T, to: (path: string) => string) => Links;
  listArguments?: Arguments;
  isListed?: (entry: T, values: RestRequest["values"]) => boolean;
  /** Names that WordPress knows and shows nobody: they are refused like an unreadable entry. */
  hidden: Set<string>;
  /** True if `Allow` names GET for an unknown entry, as some routes of WordPress do. */
  isUnknownPermitted?: true;
  /** True if `Allow` names GET for every entry: whoever may not read it is refused afterwards. */
  isPermittedToAll?: true;
  canRead: (caller: Caller, entry: T) => boolean;
  canEdit: (caller: Caller, entry: T) => boolean;
  refusals: {
    /** The 404 for an unknown entry. */
    unknown: Refusal;
    read: Refusal;
    /** For the list in the context `edit`, if the caller may edit no entry. */
    editAny: Refusal;
    edit: Refusal;
  };
}

export function keyedRoutes<T>(table: KeyedTable<T>, namespace: string): RestRoute[] {
  const { base, parameter } = table;
  const schema = recordSchema(parameter, table.fields);
  return [
    { namespace, path: `/${base}`, schema, endpoints: [createList(table, namespace)] },
    { namespace, path: `/${base}/:${parameter}(word)`, schema, endpoints: [createRead(table, namespace)] },
  ];
}

const isEdit = (request: RestRequest): boolean => readContext(request) === "edit";

function toItem<T>(table: KeyedTable<T>, entry: T, request: RestRequest, namespace: string): Item {
  const to = (path: string): string => request.url(`/${namespace}${path}`);
  const links = { collection: [{ href: to(`/${table.base}`) }], ...table.links(entry, to) };
  return createItem(selectRecordFields(entry, table.fields, readContext(request)), links);
}

function createList<T>(table: KeyedTable<T>, namespace: string): RestEndpoint {
  const { entries, refusals, canRead, canEdit } = table;
  return {
    methods: ["GET"],
    args: { context: contextArgument, ...table.listArguments },
    described: { form: "keyed" },
    permit(request) {
      const { caller } = request;
      if (!isEdit(request) || [...entries.values()].some((entry) => canEdit(caller, entry))) return;
      throw refusal(caller, ...refusals.editAny);
    },
    handle(request) {
      const { caller, values } = request;
      const may = isEdit(request) ? canEdit : canRead;
      const shown = [...entries].filter(
        ([, entry]) => may(caller, entry) && (table.isListed?.(entry, values) ?? true),
      );
      const json: Json = Object.fromEntries(
        shown.map(([name, entry]) => {
          const item = toItem(table, entry, request, namespace);
          return [name, withLinks(item.fields, item.links)];
        }),
      );
      return { status: 200, headers: {}, body: { json } };
    },
  };
}

function createRead<T>(table: KeyedTable<T>, namespace: string): RestEndpoint {
  const { parameter, entries, refusals, canRead, canEdit } = table;
  const find = ({ values, caller }: RestRequest): T => {
    const key = values[parameter] as string;
    if (table.hidden.has(key)) throw refusal(caller, ...refusals.read);
    const entry = entries.get(key);
    if (entry === undefined) throw new RestError(404, ...refusals.unknown);
    return entry;
  };
  const isUnknown = ({ values }: RestRequest): boolean => {
    const key = values[parameter] as string;
    return !table.hidden.has(key) && !entries.has(key);
  };
  function authorize(request: RestRequest): T {
    const entry = find(request);
    const { caller } = request;
    if (!canRead(caller, entry)) throw refusal(caller, ...refusals.read);
    if (isEdit(request) && !canEdit(caller, entry)) throw refusal(caller, ...refusals.edit);
    return entry;
  }
  const name = { description: table.parameterDescription, type: "string", maxLength: LENGTHS.name } as const;
  return {
    methods: ["GET"],
    args: { [parameter]: name, context: contextArgument },
    permit(request) {
      const isLeftOpen = table.isPermittedToAll ?? (table.isUnknownPermitted && isUnknown(request));
      if (isLeftOpen !== true) authorize(request);
    },
    handle(request) {
      const entry = authorize(request);
      return { status: 200, headers: {}, body: { item: toItem(table, entry, request, namespace) } };
    },
  };
}

// The labels of a type or taxonomy, made from its name: what editors show on buttons and in
// notices.

interface Names {
  name: string;
  singular: string;
}

export function typeLabels({ name, singular, archives }: Names & { archives: string }): JsonObject {
  const many = name.toLowerCase();
  const one = singular.toLowerCase();
  return {
    name,
    singular_name: singular,
    add_new: `Add ${singular}`,
    add_new_item: `Add ${singular}`,
    edit_item: `Edit ${singular}`,
    new_item: `New ${singular}`,
    view_item: `View ${singular}`,
    view_items: `View ${name}`,
    search_items: `Search ${name}`,
    not_found: `No ${many} found.`,
    not_found_in_trash: `No ${many} found in Trash.`,
    parent_item_colon: `Parent ${singular}:`,
    all_items: `All ${name}`,
    archives,
    attributes: `${singular} Attributes`,
    insert_into_item: `Insert into ${one}`,
    uploaded_to_this_item: `Uploaded to this ${one}`,
    featured_image: "Featured image",
    set_featured_image: "Set featured image",
    remove_featured_image: "Remove featured image",
    use_featured_image: "Use as featured image",
    filter_items_list: `Filter ${many} list`,
    filter_by_date: "Filter by date",
    items_list_navigation: `${name} list navigation`,
    items_list: `${name} list`,
    item_published: `${singular} published.`,
    item_published_privately: `${singular} published privately.`,
    item_reverted_to_draft: `${singular} reverted to draft.`,
    item_trashed: `${singular} trashed.`,
    item_scheduled: `${singular} scheduled.`,
    item_updated: `${singular} updated.`,
    item_link: `${singular} Link`,
    item_link_description: `A link to a ${one}.`,
    menu_name: name,
    name_admin_bar: singular,
    template_name: `Single item: ${singular}`,
  };
}

export function taxonomyLabels({ name, singular }: Names, isHierarchical: boolean): JsonObject {
  const many = name.toLowerCase();
  const one = singular.toLowerCase();
  return {
    name,
    singular_name: singular,
    search_items: `Search ${name}`,
    popular_items: isHierarchical ? null : `Popular ${name}`,
    all_items: `All ${name}`,
    parent_item: isHierarchical ? `Parent ${singular}` : null,
    parent_item_colon: isHierarchical ? `Parent ${singular}:` : null,
    name_field_description: "The name is how it appears on your site.",
    slug_field_description: "The “slug” is the URL-friendly version of the name.",
    parent_field_description: isHierarchical ? `Assign a parent ${one} to make a hierarchy.` : null,
    desc_field_description: "The description is not prominent by default; some themes show it.",
    edit_item: `Edit ${singular}`,
    view_item: `View ${singular}`,
    update_item: `Update ${singular}`,
    add_new_item: `Add ${singular}`,
    new_item_name: `New ${singular} Name`,
    separate_items_with_commas: isHierarchical ? null : `Separate ${many} with commas`,
    add_or_remove_items: isHierarchical ? null : `Add or remove ${many}`,
    choose_from_most_used: isHierarchical ? null : `Choose from the most used ${many}`,
    not_found: `No ${many} found.`,
    no_terms: `No ${many}`,
    filter_by_item: isHierarchical ? `Filter by ${one}` : null,
    items_list_navigation: `${name} list navigation`,
    items_list: `${name} list`,
    most_used: "Most Used",
    back_to_items: `← Go to ${name}`,
    item_link: `${singular} Link`,
    item_link_description: `A link to a ${one}.`,
    menu_name: name,
    name_admin_bar: singular,
    template_name: `${singular} Archives`,
  };
}
