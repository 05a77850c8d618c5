/** Routes over a fixed table that is answered as an object from name to entry: types, statuses, taxonomies. Knows none of them. */

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
import type { Links, RestRequest, RestRoute } from "../rest/types.js";

/** A code and the message for a person. */
type Refusal = readonly [code: string, message: string];

export interface KeyedTable<T> {
  /** In paths: `types`. */
  readonly base: string;
  /** In paths, of one entry: `type`. Also the title of the schema. */
  readonly parameter: string;
  readonly parameterDescription: string;
  readonly entries: ReadonlyMap<string, T>;
  readonly fields: RecordFields<T>;
  /** Beside `collection`. `to` makes an address of a path below the namespace. */
  readonly links: (entry: T, to: (path: string) => string) => Links;
  readonly listArguments?: Arguments;
  readonly isListed?: (entry: T, values: RestRequest["values"]) => boolean;
  readonly canRead: (caller: Caller, entry: T) => boolean;
  readonly canEdit: (caller: Caller, entry: T) => boolean;
  readonly refusals: {
    /** 404: there is no such entry. */
    readonly unknown: Refusal;
    readonly read: Refusal;
    /** Of the list in the context `edit`, for who may edit none of the entries. */
    readonly editAny: Refusal;
    readonly edit: Refusal;
  };
}

export function keyedRoutes<T>(table: KeyedTable<T>, namespace: string): readonly RestRoute[] {
  const { base, parameter, entries, fields, refusals, canRead, canEdit } = table;
  const schema = recordSchema(parameter, fields);

  const isEdit = (request: RestRequest): boolean => readContext(request) === "edit";

  const find = ({ values }: RestRequest): T => {
    const entry = entries.get(values[parameter] as string);
    if (entry === undefined) throw new RestError(404, ...refusals.unknown);
    return entry;
  };

  const itemOf = (entry: T, request: RestRequest) => {
    const to = (path: string): string => request.url(`/${namespace}${path}`);
    const links = { collection: [{ href: to(`/${base}`) }], ...table.links(entry, to) };
    return createItem(selectRecordFields(entry, fields, readContext(request)), links);
  };

  return [
    {
      namespace,
      path: `/${base}`,
      schema,
      endpoints: [
        {
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
                const item = itemOf(entry, request);
                return [name, withLinks(item.fields, item.links)];
              }),
            );
            return { status: 200, headers: {}, body: { json } };
          },
        },
      ],
    },
    {
      namespace,
      path: `/${base}/:${parameter}(word)`,
      schema,
      endpoints: [
        {
          methods: ["GET"],
          args: {
            [parameter]: {
              description: table.parameterDescription,
              type: "string",
              maxLength: LENGTHS.name,
            },
            context: contextArgument,
          },
          permit(request) {
            const entry = find(request);
            const { caller } = request;
            if (!canRead(caller, entry)) throw refusal(caller, ...refusals.read);
            if (isEdit(request) && !canEdit(caller, entry)) throw refusal(caller, ...refusals.edit);
          },
          handle: (request) => ({ status: 200, headers: {}, body: { item: itemOf(find(request), request) } }),
        },
      ],
    },
  ];
}
