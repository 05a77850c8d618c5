/**
 * Routes that describe the interface: the index, the roots of namespaces and responses to OPTIONS.
 */

import { toText } from "../../schema/coerce.js";
import { describeArguments, describeSchema } from "../../schema/describe-arguments.js";
import type { Arguments, Json, JsonObject, Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { RestError } from "./error.js";
import { toPattern, toRoutePath } from "./route-table.js";
import type { RestBody, RestRequest, RestResponse, RestRoute } from "./types.js";

/** Links exist only for paths without parameters, as in WordPress. */
function linksOf(route: RestRoute, baseUrl: string): JsonObject {
  const path = toRoutePath(route);
  return path.includes("/:") ? {} : { _links: { self: [{ href: baseUrl + path }] } };
}

interface RouteDescription {
  /** As the index shows the route. */
  inIndex: JsonObject;
  /** As the response to OPTIONS shows it. */
  inOptions: JsonObject;
}

/** Built at the first use: the block editor asks for seven of them when it opens. */
const descriptions = new WeakMap<RestRoute, RouteDescription>();

function describeRoute(route: RestRoute): RouteDescription {
  const found = descriptions.get(route);
  if (found !== undefined) return found;
  const { schema } = route;
  const inIndex = describeEndpoints(route);
  const described =
    schema === undefined
      ? {}
      : { schema: { $schema: "http://json-schema.org/draft-04/schema#", ...describeSchema(schema) } };
  const description = { inIndex, inOptions: { ...inIndex, ...described } };
  descriptions.set(route, description);
  return description;
}

function describeEndpoints({ namespace, endpoints }: RestRoute): JsonObject {
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

/** Builds the response to OPTIONS. */
export function describePath(route: RestRoute, baseUrl: string): JsonObject {
  return { ...describeRoute(route).inOptions, ...linksOf(route, baseUrl) };
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
 * Adds the index, and a root for each namespace in front of its routes.
 *
 * `describeSite` returns the members of the index that describe the site: `name`, `url` and so on;
 * `describeAuthentication` returns its member `authentication`. Neither these nor the routes reveal
 * versions or hosts.
 */
export function withIndex(
  rows: RestRoute[],
  {
    describeSite,
    describeAuthentication = () => [],
  }: {
    describeSite: () => JsonObject;
    describeAuthentication?: (() => Json) | undefined;
  },
): RestRoute[] {
  const namespaces = [...new Set(rows.map(({ namespace }) => namespace))].filter((name) => name !== "");
  const routes: RestRoute[] = [
    toRoute({
      namespace: "",
      path: "/",
      args: INDEX_ARGUMENTS,
      summary: "Read what the site is and which paths it has",
      describe: ({ url }) => ({
        json: {
          ...describeSite(),
          namespaces,
          authentication: describeAuthentication(),
          routes: describeRoutes(routes, url("")),
        },
        links: { self: [{ href: url("/") }] },
      }),
    }),
    ...rows.filter(({ namespace }) => namespace === ""),
  ];
  const rowsOf = new Map<string, RestRoute[]>();
  /** As in WordPress, the argument chooses the namespace, and the path only gives its default. */
  const describeNamespace = (namespace: string, baseUrl: string): Description => {
    const described = rowsOf.get(namespace);
    if (described === undefined) {
      throw new RestError(404, "rest_invalid_namespace", "The specified namespace could not be found.");
    }
    return {
      json: { namespace, routes: describeRoutes(described, baseUrl) },
      links: { up: [{ href: `${baseUrl}/` }] },
      keepsLinks: true,
    };
  };
  for (const namespace of namespaces) {
    const inNamespace: RestRoute[] = [
      toRoute({
        namespace,
        path: "",
        args: { namespace: { default: namespace, maxLength: LENGTHS.name }, ...INDEX_ARGUMENTS },
        summary: "Read which paths the namespace has",
        describe: ({ url, values }) => describeNamespace(toText(values["namespace"]), url("")),
      }),
      ...rows.filter((row) => row.namespace === namespace),
    ];
    rowsOf.set(namespace, inNamespace);
    routes.push(...inNamespace);
  }
  const describeRoutes = (described: RestRoute[], baseUrl: string): JsonObject =>
    Object.fromEntries(
      described.map((row) => [
        toPattern(toRoutePath(row)),
        { ...describeRoute(row).inIndex, ...linksOf(row, baseUrl) } as Json,
      ]),
    );
  return routes;
}

interface DescribedRoute {
  namespace: string;
  path: string;
  args: Arguments;
  summary: string;
  describe: (request: RestRequest) => Description;
}

type Description = Extract<RestBody, { json: Json }> & { json: JsonObject };

function toRoute({ namespace, path, args, summary, describe }: DescribedRoute): RestRoute {
  const handle = (request: RestRequest): RestResponse => ({
    status: 200,
    headers: {},
    body: describe(request),
  });
  const errors = namespace === "" ? [] : [404];
  const described = { summary, form: "json", schema: INDEX, errors } as const;
  return { namespace, path, endpoints: [{ methods: ["GET"], args, described, permit: anybody, handle }] };
}

/** The route of the OpenAPI document. WordPress has none, so the index does not list it. */
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
