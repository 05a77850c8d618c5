/**
 * Builds the OpenAPI 3.1 document of the content interface from its route table. Pure; knows no
 * route.
 */

import {
  buildOpenApiDocument,
  componentRef,
  defineErrors,
  toPathTemplate,
} from "../../http/openapi-document.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { ERROR_STATUSES, errorResponse, refusedResponse } from "./error-codes.js";
import {
  describedReadHeaders,
  describeFields,
  describeQueryParameters,
  describeResponses,
  describeUpload,
  endsInParameter,
  getResponseForm,
  type NamedArgument,
  sharedHeaders,
  sharedParameters,
  sharedSchemas,
} from "./openapi-responses.js";
import { createRecordNames, type NameRecord } from "./openapi-schema.js";
import { listParameterNames, MAX_SEGMENT, toRoutePath } from "./route-table.js";
import type { Method, RestEndpoint, RestRoute } from "./types.js";

/** Changes with the form of the interface, not with the package. */
const INTERFACE_VERSION = "2";

const INTRODUCTION = `The content of the site: the REST interface that WordPress clients use.

The site authenticates callers with a cookie or a header of its own. Credentials that it does not accept return 401, a stale nonce 403
\`rest_cookie_invalid_nonce\`; the site may have further codes of its own for both. Without credentials, published content is readable.

A path that supports GET also supports HEAD. Every path supports OPTIONS, which returns its arguments and the schema of its records. An
unknown path or method returns 404 with the code \`rest_no_route\`. POST with \`_method\` in the query, or with the header
\`X-HTTP-Method-Override\`, stands for another method. With \`_envelope\` in the query, the body also contains status and headers. With
\`_jsonp\`, an anonymous response to GET is a script. With \`_pretty\`, the JSON is indented.

A list in a query is written \`1,2\`, or \`include[]=1&include[]=2\`; in a form as well. Texts that a client sends for another type are
converted: \`"5"\` is an integer, \`"true"\` a boolean, and \`"1,2"\` or \`1\` a list. An empty list is also an empty object. Integers are safe integers. Dates are on the
calendar, and have an offset or are in the time zone of the site; in UTC if the name ends in \`_gmt\`. An argument of a write that is
\`null\` has the empty value of its type.

Every argument has a maximum. GET, DELETE and anonymous requests accept a body of at most 64 KiB, and a JSON body at most 10 000 values. A
response that would be too large fails with 413 \`rest_response_too_large\`: request fewer records, or fewer properties with \`_fields\`.

Records have one schema for each context, such as \`post.view\`, because each context has its own properties. A response contains every
required property unless \`_fields\` leaves it out. If \`_fields\` requests only properties that an object does not have, an empty list
replaces the object. Dates have no offset: \`2026-03-01T12:00:00\`, in the time zone of the site, or in UTC if the name ends in \`_gmt\`.`;

/**
 * Schemas use JSON Schema 2020-12. Arguments of a write may also be in the query; the document
 * lists them in the body, where clients send them.
 *
 * @param site `title` is the name of the site.
 */
export function describeContentOpenApi(
  routes: RestRoute[],
  site: { title: string; baseUrl: string },
): JsonObject {
  const schemas: Record<string, JsonObject> = { ...sharedSchemas };
  const nameOf = createRecordNames(schemas);
  const tags = new Set(routes.map(getTag));
  return buildOpenApiDocument({
    info: { title: site.title, version: INTERFACE_VERSION, description: INTRODUCTION },
    baseUrl: site.baseUrl,
    security: [],
    tags: Object.fromEntries([...tags].map((name) => [name, `Paths that begin with ${name}.`])),
    paths: Object.fromEntries(routes.map((route) => [toTemplate(route), describePathItem(route, nameOf)])),
    components: {
      schemas,
      parameters: sharedParameters,
      headers: sharedHeaders,
      responses: {
        NotModified: { description: "The client's version is current.", headers: describedReadHeaders },
        ...defineErrors(ERROR_STATUSES, errorResponse),
        Refused: refusedResponse,
      },
    },
  });
}

// Describes the paths of the content interface for OpenAPI: operations, parameters, request bodies.
// Pure.

const toTemplate = (route: RestRoute): string => toPathTemplate(toRoutePath(route));

/** Returns the tag of a route: its path up to the name of the records. */
const getTag = ({ namespace, path }: RestRoute): string =>
  `/${namespace}${/^\/[^/]*/.exec(path)?.[0] ?? ""}`.replace("//", "/");

/** WordPress announces a default that it refuses: a client must send such an argument. */
function requireIfDefaultIsRefused(argument: NamedArgument[1]): NamedArgument[1] {
  const { default: initial, enum: accepted, ...rest } = argument;
  if (initial === undefined || accepted === undefined || accepted.includes(initial as never)) return argument;
  return { ...rest, enum: accepted, required: true };
}

function describePathItem(route: RestRoute, nameOf: NameRecord): JsonObject {
  const names = listParameterNames(toRoutePath(route));
  const item: Record<string, Json> = {};
  if (names.length > 0) item["parameters"] = names.map((name) => describePathParameter(route, name));
  for (const endpoint of route.endpoints) {
    const args = Object.entries(endpoint.args)
      .filter(([name, { undescribed }]) => undescribed !== true && !names.includes(name))
      .map(([name, argument]): NamedArgument => [name, requireIfDefaultIsRefused(argument)]);
    for (const method of endpoint.methods) {
      item[method.toLowerCase()] = {
        operationId: `${method.toLowerCase()}${toTemplate(route).replace(/[^a-z0-9]+/gi, "_")}`,
        tags: [getTag(route)],
        summary: endpoint.described?.summary ?? summarise(route, endpoint, method),
        ...describeInput(method, endpoint, args),
        responses: describeResponses({ route, endpoint, method }, nameOf),
      };
    }
  }
  return item;
}

function describePathParameter(route: RestRoute, name: string): JsonObject {
  const described = route.endpoints
    .map(({ args }) => args[name]?.description)
    .find((text) => text !== undefined);
  return {
    name,
    in: "path",
    required: true,
    ...(described === undefined ? {} : { description: described }),
    schema: route.path.includes(`:${name}(word)`)
      ? { type: "string", pattern: "^[\\w-]+$", maxLength: MAX_SEGMENT }
      : { type: "integer", minimum: 0 },
  };
}

function summarise(route: RestRoute, endpoint: RestEndpoint, method: Method): string {
  const words = route.path.split("/").filter((segment) => segment !== "" && !segment.startsWith(":"));
  const what = words.join(" ");
  if (method === "GET")
    return getResponseForm({ route, endpoint, method }) === "item" ? `Read one of ${what}` : `List ${what}`;
  if (method === "DELETE") return `Delete one of ${what}`;
  return endsInParameter(route) ? `Update one of ${what}` : `Add to ${what}`;
}

const UPLOAD_HEADERS = ["ContentDisposition", "ContentMd5"];

function describeInput(
  method: Method,
  { receive, described }: RestEndpoint,
  args: NamedArgument[],
): JsonObject {
  const general = [
    componentRef("parameters", "Fields"),
    ...(method === "GET" && described?.form !== "json" ? [componentRef("parameters", "Embed")] : []),
    ...(described?.errors?.includes(412) ? [componentRef("parameters", "IfUnmodifiedSince")] : []),
    ...(receive === undefined ? [] : UPLOAD_HEADERS.map((name) => componentRef("parameters", name))),
  ];
  if (method === "GET" || method === "DELETE")
    return { parameters: [...args.flatMap(describeQueryParameters), ...general] };
  if (args.length === 0) return { parameters: general };
  const required = receive !== undefined || args.some(([, argument]) => argument.required === true);
  const content = receive === undefined ? describeFields(args) : describeUpload(args);
  return { parameters: general, requestBody: { required, content } };
}
