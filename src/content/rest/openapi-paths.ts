/**
 * Describes the paths of the content interface for OpenAPI: operations, parameters, request bodies.
 * Pure.
 */

import { componentRef, toPathTemplate } from "../../http/openapi-document.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { toRoutePath } from "./index-routes.js";
import {
  describeFields,
  describeQueryParameters,
  describeUpload,
  type NamedArgument,
} from "./openapi-arguments.js";
import type { NameRecord } from "./openapi-records.js";
import { describeResponses, endsInParameter, getResponseForm } from "./openapi-responses.js";
import { listParameterNames, MAX_SEGMENT } from "./route-tree.js";
import type { Method, RestEndpoint, RestRoute } from "./types.js";

export const toTemplate = (route: RestRoute): string => toPathTemplate(toRoutePath(route));

/** Returns the tag of a route: its path up to the name of the records. */
export const getTag = ({ namespace, path }: RestRoute): string =>
  `/${namespace}${/^\/[^/]*/.exec(path)?.[0] ?? ""}`.replace("//", "/");

export function describePathItem(route: RestRoute, nameOf: NameRecord): JsonObject {
  const names = listParameterNames(toRoutePath(route));
  const item: Record<string, Json> = {};
  if (names.length > 0) item["parameters"] = names.map((name) => describePathParameter(route, name));
  for (const endpoint of route.endpoints) {
    const args = Object.entries(endpoint.args).filter(
      ([name, { undescribed }]) => undescribed !== true && !names.includes(name),
    );
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
  args: readonly NamedArgument[],
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
