/** `/menu-locations`: the places of the website that show a menu, for those who design it. */

import type { Json } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { COLLECTION_NAMES } from "../records/records.js";
import { RestError, refusal } from "../rest/error.js";
import { createItem, withLinks } from "../rest/item.js";
import {
  ALL,
  contextArgument,
  type RecordFields,
  readContext,
  recordSchema,
  selectRecordFields,
} from "../rest/record-fields.js";
import type { Item, Links, RestRequest, RestRoute } from "../rest/types.js";
import type { MenuLocation, MenuLocations } from "./menu-locations.js";

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
  readonly menuLocations: MenuLocations;
  readonly namespace: string;
}): readonly RestRoute[] {
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
