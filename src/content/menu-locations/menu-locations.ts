/**
 * The places of the website that show a menu, and which menu each shows: the one the host chose,
 * until an administrator assigns another. Below are their routes.
 */

import { PostbellError } from "../../core/errors.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { COLLECTION_NAMES, type Term } from "../records/records.js";
import type { ContentRepository, Transaction } from "../repository/content-repository.js";
import { readSiteOption } from "../repository/small-records.js";
import { RestError, refusal } from "../rest/error.js";
import {
  ALL,
  contextArgument,
  type RecordFields,
  readContext,
  recordSchema,
  selectRecordFields,
} from "../rest/record-fields.js";
import { createItem, withLinks } from "../rest/serialise.js";
import type { Item, Links, RestRequest, RestRoute } from "../rest/types.js";

/**
 * The places of the website that show a menu, by name.
 *
 * @example
 * ```ts
 * menuLocations: {
 *   primary: { description: "Main navigation" },
 *   footer: { description: "Links below every page", menu: 12 },
 * }
 * ```
 */
export interface MenuLocationsOptions {
  /** The name has at most 100 letters, digits, dashes and underscores. */
  [name: string]: {
    /** For editors: `Main navigation`. */
    description: string;
    /** The id of the menu until another one is assigned. Default: none. */
    menu?: number | undefined;
  };
}

interface MenuLocation {
  name: string;
  description: string;
}

export interface MenuLocations {
  all: MenuLocation[];
  /** Returns the id of the menu at a location; 0 if it shows no menu. */
  menuAt: (name: string) => number;
  /** Returns the names of the locations that show a menu. */
  of: (menuId: number) => string[];
  /** Shows a menu at `names` and nowhere else. */
  assign: (transaction: Transaction, menu: Term, names: string[]) => void;
}

const NAME = /^[\w-]{1,100}$/;
/** A website has a handful. */
const MAX_LOCATIONS = 100;

/** @throws PostbellError `invalid_option` for a malformed name, description or menu */
export function checkMenuLocations(options: MenuLocationsOptions): void {
  const refuse = (field: string, message: string): never => {
    throw new PostbellError("invalid_option", `createContent: ${field} ${message}`, { field });
  };
  const entries = Object.entries(options);
  if (entries.length > MAX_LOCATIONS) refuse("menuLocations", `has at most ${MAX_LOCATIONS} members.`);
  for (const [name, location] of entries) {
    const field = `menuLocations.${name}`;
    if (!NAME.test(name)) refuse("menuLocations", "has names of letters, digits, dashes and underscores.");
    if (typeof location?.description !== "string") refuse(field, "must be an object with a description.");
    const { menu = 0 } = location;
    if (!Number.isSafeInteger(menu) || menu < 0) refuse(`${field}.menu`, "must be the id of a menu.");
  }
}

export function createMenuLocations(
  options: MenuLocationsOptions,
  { index }: ContentRepository,
): MenuLocations {
  const all = Object.entries(options).map(([name, { description }]) => ({ name, description }));

  const readAssigned = (): JsonObject => readSiteOption(index, "menu-locations");

  /** A menu that was deleted is shown nowhere. */
  const getMenu = (name: string, assigned: JsonObject): number => {
    const id = Number((Object.hasOwn(assigned, name) ? assigned[name] : options[name]?.menu) ?? 0);
    return index.term(id)?.taxonomy === "nav_menu" ? id : 0;
  };

  const of: MenuLocations["of"] = (menuId) => {
    const assigned = readAssigned();
    return all.flatMap(({ name }) => (getMenu(name, assigned) === menuId ? [name] : []));
  };

  return {
    all,
    menuAt: (name) => getMenu(name, readAssigned()),
    of,
    assign(transaction, { id }, names) {
      // 0 is stored where the menu was: the host's choice does not come back.
      const left = of(id).map((name) => [name, 0] as const);
      const taken = names.map((name) => [name, id] as const);
      transaction.putOption("menu-locations", {
        ...readAssigned(),
        ...Object.fromEntries([...left, ...taken]),
      });
    },
  };
}

// `/menu-locations`: the places of the website that show a menu, for those who design it.

const createFields = ({ menuAt }: MenuLocations): RecordFields<MenuLocation> => ({
  name: {
    schema: {
      description: "The name of the menu location.",
      type: "string",
      context: ALL,
      readonly: true,
    },
    read: ({ name }) => name,
  },
  description: {
    schema: {
      description: "The description of the menu location.",
      type: "string",
      context: ALL,
      readonly: true,
    },
    read: ({ description }) => description,
  },
  menu: {
    schema: { description: "The ID of the assigned menu.", type: "integer", context: ALL, readonly: true },
    read: ({ name }) => menuAt(name),
  },
});

function permit({ caller }: RestRequest): void {
  if (caller.has("edit_theme_options")) return;
  throw refusal(caller, "rest_cannot_view", "Sorry, you are not allowed to view menu locations.");
}

export function menuLocationRoutes({
  menuLocations,
  namespace,
}: {
  menuLocations: MenuLocations;
  namespace: string;
}): RestRoute[] {
  const fields = createFields(menuLocations);
  const schema = recordSchema("menu-location", fields);
  const base = `/${namespace}/menu-locations`;

  function toItem(location: MenuLocation, request: RestRequest): Item {
    const { url } = request;
    const menu = menuLocations.menuAt(location.name);
    const href = url(`/${namespace}/${COLLECTION_NAMES.nav_menu}/${menu}`);
    const links: Links = {
      self: [{ href: url(`${base}/${location.name}`) }],
      collection: [{ href: url(base) }],
      ...(menu === 0 ? {} : { "https://api.w.org/menu": [{ href, embeddable: true }] }),
    };
    return createItem(selectRecordFields(location, fields, readContext(request)), links);
  }

  return [
    {
      namespace,
      path: "/menu-locations",
      schema,
      endpoints: [
        {
          methods: ["GET"],
          args: { context: contextArgument },
          described: { form: "keyed" },
          permit,
          handle(request) {
            const items = menuLocations.all.map((location): [string, Json] => {
              const { fields, links } = toItem(location, request);
              return [location.name, withLinks(fields, links)];
            });
            return { status: 200, headers: {}, body: { json: Object.fromEntries(items) } };
          },
        },
      ],
    },
    {
      namespace,
      path: "/menu-locations/:location(word)",
      schema,
      endpoints: [
        {
          methods: ["GET"],
          args: {
            location: {
              description: "An alphanumeric identifier for the menu location.",
              type: "string",
              maxLength: LENGTHS.name,
            },
            context: contextArgument,
          },
          permit,
          handle(request) {
            const location = menuLocations.all.find(({ name }) => name === request.values["location"]);
            if (location === undefined) {
              throw new RestError(404, "rest_menu_location_invalid", "Invalid menu location.");
            }
            return { status: 200, headers: {}, body: { item: toItem(location, request) } };
          },
        },
      ],
    },
  ];
}
