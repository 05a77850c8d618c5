/** The operations of an OpenAPI document, and requests written by its rules. */

import type { HttpRequest } from "../../src/http/types.js";
import type { Json, JsonObject } from "../../src/schema/types.js";

export interface OperationArgument {
  readonly name: string;
  readonly place: "path" | "query" | "body";
  readonly isRequired: boolean;
  /** References are resolved. */
  readonly schema: JsonObject;
}

export interface DescribedOperation {
  readonly method: string;
  /** A template: `/core/v2/posts/{id}`. */
  readonly path: string;
  readonly args: readonly OperationArgument[];
  readonly takesFile: boolean;
}

const METHODS = ["get", "post", "put", "patch", "delete"];

const object = (json: Json | undefined): JsonObject => (json ?? {}) as JsonObject;

export function describedOperations(document: JsonObject): readonly DescribedOperation[] {
  const resolved = (json: Json | undefined): JsonObject => {
    const reference = object(json)["$ref"];
    if (typeof reference !== "string") return object(json);
    const steps = reference.slice(2).split("/");
    return object(steps.reduce<Json>((at, step) => object(at)[step] as Json, document));
  };
  return Object.entries(object(document["paths"])).flatMap(([path, item]) =>
    METHODS.filter((method) => method in object(item)).map((method) => {
      const operation = object(object(item)[method]);
      const content = object(object(operation["requestBody"])["content"]);
      const body = object(object(content["multipart/form-data"] ?? content["application/json"])["schema"]);
      const required = (body["required"] ?? []) as readonly string[];
      const parameters = [object(item)["parameters"], operation["parameters"]]
        .flat()
        .map((one) => resolved(one as Json | undefined))
        .filter((one) => one["in"] === "path" || one["in"] === "query");
      return {
        method: method.toUpperCase(),
        path,
        takesFile: "multipart/form-data" in content,
        args: [
          ...parameters.map((one) => ({
            name: one["name"] as string,
            place: one["in"] as "path" | "query",
            isRequired: one["required"] === true,
            schema: object(one["schema"]),
          })),
          ...Object.entries(object(body["properties"]))
            .filter(([name]) => name !== "file")
            .map(([name, schema]) => ({
              name,
              place: "body" as const,
              isRequired: required.includes(name),
              schema: object(schema),
            })),
        ],
      };
    }),
  );
}

/** How a body is sent. A file is always in a form of several parts. */
export type BodyForm = "json" | "form";

/** Writes a request as the document says: lists with commas, objects with brackets. */
export function writeRequest(
  operation: DescribedOperation,
  values: JsonObject,
  form: BodyForm,
): Omit<HttpRequest, "baseUrl" | "body"> & { readonly body: Buffer | null } {
  const of = (place: OperationArgument["place"]): readonly (readonly [string, Json])[] =>
    operation.args
      .filter((argument) => argument.place === place && Object.hasOwn(values, argument.name))
      .map(({ name }) => [name, values[name] as Json]);
  const path = of("path").reduce(
    (text, [name, value]) => text.replace(`{${name}}`, encodeURIComponent(value as string | number)),
    operation.path,
  );
  const query = new URLSearchParams(writePairs(of("query"))).toString();
  const fields = of("body");
  return { method: operation.method, path, query, ...writeBody(operation, fields, form) };
}

function writeBody(
  { method, takesFile }: DescribedOperation,
  fields: readonly (readonly [string, Json])[],
  form: BodyForm,
): { readonly headers: Record<string, string>; readonly body: Buffer | null } {
  if (takesFile) return writeParts(fields);
  if (method === "GET" || method === "DELETE") return { headers: {}, body: null };
  if (form === "json") {
    const headers = { "content-type": "application/json" };
    return { headers, body: Buffer.from(JSON.stringify(Object.fromEntries(fields))) };
  }
  return {
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: Buffer.from(new URLSearchParams(writePairs(fields)).toString()),
  };
}

function writeParts(fields: readonly (readonly [string, Json])[]): {
  readonly headers: Record<string, string>;
  readonly body: Buffer;
} {
  const part = (disposition: string, value: string): string =>
    `--b0undary\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${value}\r\n`;
  const parts = [
    ...writePairs(fields).map(([name, value]) => part(`name="${name}"`, value)),
    part('name="file"; filename="a.txt"', "Some text"),
  ];
  return {
    headers: { "content-type": "multipart/form-data; boundary=b0undary" },
    body: Buffer.from(`${parts.join("")}--b0undary--\r\n`),
  };
}

/** A form has no `null`: such a value is left out. */
function writePairs(values: readonly (readonly [string, Json])[]): [string, string][] {
  return values.flatMap(([name, value]): [string, string][] => {
    if (value === null) return [];
    if (Array.isArray(value) && value.every((item) => typeof item !== "object" || item === null)) {
      return [[name, value.join(",")]];
    }
    if (typeof value !== "object") return [[name, String(value)]];
    return writePairs(Object.entries(value).map(([member, one]) => [`${name}[${member}]`, one as Json]));
  });
}
