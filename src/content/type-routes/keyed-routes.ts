/**
 * Creates the routes of a fixed table, such as the types of posts: a list by name, and one entry.
 */

import type { Arguments, Json } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import type { Caller } from "../auth/caller.js";
import { RestError, refusal } from "../rest/error.js";
import { createItem, withLinks } from "../rest/item.js";
import {
  contextArgument,
  type RecordFields,
  readContext,
  recordSchema,
  selectRecordFields,
} from "../rest/record-fields.js";
import type { Item, Links, RestEndpoint, RestRequest, RestRoute } from "../rest/types.js";

/** A code and the message for a person. */
type Refusal = readonly [code: string, message: string];

export interface KeyedTable<T> {
  /** The first segment of its paths: `types`. */
  readonly base: string;
  /** The name of the path parameter, and the title of the schema: `type`. */
  readonly parameter: string;
  readonly parameterDescription: string;
  readonly entries: ReadonlyMap<string, T>;
  readonly fields: RecordFields<T>;
  /** Returns the links besides `collection`. `to` builds the URL of a path below the namespace. */
  readonly links: (entry: T, to: (path: string) => string) => Links;
  readonly listArguments?: Arguments;
  readonly isListed?: (entry: T, values: RestRequest["values"]) => boolean;
  readonly canRead: (caller: Caller, entry: T) => boolean;
  readonly canEdit: (caller: Caller, entry: T) => boolean;
  readonly refusals: {
    /** The 404 for an unknown entry. */
    readonly unknown: Refusal;
    readonly read: Refusal;
    /** For the list in the context `edit`, if the caller may edit no entry. */
    readonly editAny: Refusal;
    readonly edit: Refusal;
  };
}

export function keyedRoutes<T>(table: KeyedTable<T>, namespace: string): readonly RestRoute[] {
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
  const find = ({ values }: RestRequest): T => {
    const entry = entries.get(values[parameter] as string);
    if (entry === undefined) throw new RestError(404, ...refusals.unknown);
    return entry;
  };
  const name = { description: table.parameterDescription, type: "string", maxLength: LENGTHS.name } as const;
  return {
    methods: ["GET"],
    args: { [parameter]: name, context: contextArgument },
    permit(request) {
      const entry = find(request);
      const { caller } = request;
      if (!canRead(caller, entry)) throw refusal(caller, ...refusals.read);
      if (isEdit(request) && !canEdit(caller, entry)) throw refusal(caller, ...refusals.edit);
    },
    handle: (request) => ({
      status: 200,
      headers: {},
      body: { item: toItem(table, find(request), request, namespace) },
    }),
  };
}
