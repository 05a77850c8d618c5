/** What the interface says about itself: the index, the roots of the namespaces and the answers to OPTIONS, all from the route table. */

import { describeArguments, describeSchema } from "../../schema/arguments.js";
import type { Arguments, Json, JsonObject, Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { toPattern } from "./route-tree.js";
import type { RestRequest, RestRoute } from "./types.js";

/** Below the mount point: `/core/v2/posts/:id`. */
export const toRoutePath = ({ namespace, path }: RestRoute): string =>
  namespace === "" ? path : `/${namespace}${path}`;

/** Links only where the path has no parameters, as in the reference. */
function linksOf(route: RestRoute, baseUrl: string): JsonObject {
  const path = toRoutePath(route);
  return path.includes("/:") ? {} : { _links: { self: [{ href: baseUrl + path }] } };
}

function describeRoute({ namespace, endpoints }: RestRoute): JsonObject {
  return {
    namespace,
    methods: [...new Set(endpoints.flatMap(({ methods }) => methods))],
    endpoints: endpoints.map(({ methods, args, allowBatch }) => ({
      methods,
      ...(allowBatch ? { allow_batch: { v1: true } } : {}),
      args: describeArguments(args),
    })),
  };
}

/** The answer to OPTIONS. */
export function describePath(route: RestRoute, baseUrl: string): JsonObject {
  const { schema } = route;
  const described =
    schema === undefined
      ? {}
      : { schema: { $schema: "http://json-schema.org/draft-04/schema#", ...describeSchema(schema) } };
  return { ...describeRoute(route), ...described, ...linksOf(route, baseUrl) };
}

const anybody = (): void => {};

const INDEX: Schema = {
  type: "object",
  required: ["routes", "_links"],
  properties: { routes: { type: "object" }, _links: { type: "object" } },
  additionalProperties: true,
};

const INDEX_ARGUMENTS: Arguments = { context: { default: "view", maxLength: LENGTHS.name } };

/**
 * The table with the index and a root for each namespace added, these in front of the rows they describe.
 *
 * `describeSite`: the members of the index that say what the site is: `name`, `url` … Neither says anything about versions or hosts.
 */
export function withIndex(rows: readonly RestRoute[], describeSite: () => JsonObject): readonly RestRoute[] {
  const namespaces = [...new Set(rows.map(({ namespace }) => namespace))].filter((name) => name !== "");
  const routes: RestRoute[] = [
    route("", "/", INDEX_ARGUMENTS, "Read what the site is and which paths it has", ({ url }) => ({
      ...describeSite(),
      namespaces,
      authentication: [],
      routes: describeRoutes(routes, url("")),
      _links: { self: [{ href: url("/") }] },
    })),
    ...rows.filter(({ namespace }) => namespace === ""),
  ];
  for (const namespace of namespaces) {
    const own: RestRoute[] = [
      route(
        namespace,
        "",
        { namespace: { default: namespace, maxLength: LENGTHS.name }, ...INDEX_ARGUMENTS },
        "Read which paths the namespace has",
        ({ url }) => ({
          namespace,
          routes: describeRoutes(own, url("")),
          _links: { up: [{ href: url("/") }] },
        }),
      ),
      ...rows.filter((row) => row.namespace === namespace),
    ];
    routes.push(...own);
  }
  const descriptions = new Map(routes.map((row) => [row, describeRoute(row)]));
  const describeRoutes = (described: readonly RestRoute[], baseUrl: string): JsonObject =>
    Object.fromEntries(
      described.map((row) => [
        toPattern(toRoutePath(row)),
        { ...descriptions.get(row), ...linksOf(row, baseUrl) } as Json,
      ]),
    );
  return routes;
}

function route(
  namespace: string,
  path: string,
  args: Arguments,
  summary: string,
  describe: (request: RestRequest) => JsonObject,
): RestRoute {
  const handle = (request: RestRequest) => ({ status: 200, headers: {}, body: { json: describe(request) } });
  const described = { summary, form: "json", schema: INDEX } as const;
  return { namespace, path, endpoints: [{ methods: ["GET"], args, described, permit: anybody, handle }] };
}

/** The row of the OpenAPI document; the index, which is the reference's, does not name it. */
export const openApiRoute = (openApi: (baseUrl: string) => JsonObject): RestRoute => ({
  namespace: "",
  path: "/openapi.json",
  endpoints: [
    {
      methods: ["GET"],
      args: {},
      described: { summary: "Read this document", form: "json", schema: OPENAPI },
      permit: anybody,
      handle: ({ url }) => ({ status: 200, headers: {}, body: { json: openApi(url("")) } }),
    },
  ],
});

const OPENAPI: Schema = {
  type: "object",
  required: ["openapi", "info", "paths"],
  properties: { openapi: { type: "string" }, info: { type: "object" }, paths: { type: "object" } },
  additionalProperties: true,
};
