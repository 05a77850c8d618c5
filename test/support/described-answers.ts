/** Compares an answer with what the service's OpenAPI document says of it. */

import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { ContentRequest, ContentResponse } from "../../src/content/service.js";
import type { HttpRequest, HttpResponse } from "../../src/http/types.js";
import type { Json, JsonObject } from "../../src/schema/types.js";

export interface Template {
  readonly text: string;
  readonly pattern: RegExp;
  readonly item: JsonObject;
}

export interface Described {
  /** Returns the differences between the response and the document. */
  readonly problems: (request: HttpRequest, response: HttpResponse | undefined) => readonly string[];
  /** The same of an answer in the process, which lacks what belongs to HTTP. */
  readonly problemsInside: (request: ContentRequest, answer: ContentResponse) => readonly string[];
  /** True if a value fits a schema of the document. */
  readonly fits: (value: unknown, schema: JsonObject) => readonly string[];
}

const object = (json: Json | undefined): JsonObject => (json ?? {}) as JsonObject;

/** Headers that say nothing of the interface: every answer may carry them. */
const COMMON_HEADERS = new Set([
  "access-control-allow-credentials",
  "access-control-allow-headers",
  "access-control-allow-methods",
  "access-control-allow-origin",
  "access-control-expose-headers",
  "access-control-max-age",
  "cache-control",
  "content-length",
  "content-type",
  "expires",
  "vary",
  "x-content-type-options",
  "x-robots-tag",
]);

const SCHEMAS = "#/components/schemas/";

export function describedBy(document: JsonObject): Described {
  const components = object(document["components"]);
  const validators = { whole: validatorsOf(components, false), partial: validatorsOf(components, true) };
  const templates = templatesOf(object(document["paths"]));
  const schemas = object(components["schemas"]);

  const resolved = (json: Json | undefined): JsonObject => {
    const found = object(json);
    const reference = found["$ref"];
    if (typeof reference !== "string") return found;
    const [, , kind = "", name = ""] = reference.split("/");
    return object(object(components[kind])[name]);
  };

  const fits = (value: unknown, schema: JsonObject, isPartial = false): readonly string[] => {
    const validate = validators[isPartial ? "partial" : "whole"](schema);
    if (validate(value)) return [];
    return (validate.errors ?? [])
      .slice(0, 8)
      .map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`);
  };

  /** Where records differ by context, the one that was asked for and no other. */
  const inContext = (schema: JsonObject, context: string): JsonObject =>
    JSON.parse(
      JSON.stringify(schema).replace(/#\/components\/schemas\/([\w.-]+)/g, (all, name: string) =>
        Object.hasOwn(schemas, `${name}.${context}`) ? `${SCHEMAS}${name}.${context}` : all,
      ),
    ) as JsonObject;

  function problemsOfHeaders(
    declared: JsonObject,
    headers: HttpResponse["headers"],
    isInside: boolean,
  ): readonly string[] {
    const given = new Map(
      Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
    );
    const known = new Set(COMMON_HEADERS);
    const problems: string[] = [];
    for (const [name, reference] of Object.entries(declared)) {
      const { required, schema } = resolved(reference);
      const value = given.get(name.toLowerCase());
      known.add(name.toLowerCase());
      if (value === undefined) {
        if (required === true && !isInside) problems.push(`the header ${name} is missing`);
        continue;
      }
      const isNumber = object(schema)["type"] === "integer";
      const wrong = fits(isNumber ? Number(value) : value, object(schema));
      problems.push(...wrong.map((problem) => `the header ${name}: ${value}: ${problem}`));
    }
    const unknown = [...given.keys()].filter((name) => !known.has(name));
    return [...problems, ...unknown.map((name) => `the header ${name} is not described`)];
  }

  function problemsOfResponse(
    declared: JsonObject,
    { asked, response, context, isPartial, isInside }: Judged,
  ): readonly string[] {
    const { headers, body } = response;
    const problems = [...problemsOfHeaders(object(declared["headers"]), headers, isInside)];
    const content = declared["content"] as JsonObject | undefined;
    if (content === undefined) {
      return body === null || body === "" ? problems : [...problems, "it has a body where none is described"];
    }
    if (body === null) return asked === "HEAD" ? problems : [...problems, "it has no body"];
    const type = String(headers["content-type"] ?? (isInside ? "application/json" : ""));
    const media = content[type.split(";")[0]?.trim() ?? ""] as JsonObject | undefined;
    if (media === undefined) return [...problems, `the content type ${type} is not described`];
    const schema = object(media["schema"]);
    const text = textOf(body);
    const value: unknown = type.includes("json") ? JSON.parse(text) : text;
    const wanted = context === undefined ? schema : inContext(schema, context);
    return [...problems, ...fits(value, wanted, isPartial)];
  }

  function problems(
    request: HttpRequest,
    response: HttpResponse | undefined,
    isInside = false,
  ): readonly string[] {
    const found = templates.find(({ pattern }) => pattern.test(request.path || "/"));
    if (response === undefined) return found === undefined ? [] : ["the path is described, and not answered"];
    // Enough for every parameter that matters here; tests of longer ones measure the time.
    const query = new URLSearchParams(request.query.slice(0, 10_000));
    const plain = unwrapped(response, query);
    if (plain === undefined) return [];
    const method = methodOf(request, query);
    const operation =
      found !== undefined && Object.hasOwn(found.item, method)
        ? (found.item[method] as JsonObject)
        : undefined;
    if (method === "options")
      return [200, 204, 401, 403, 503, 500].includes(response.status) ? [] : ["OPTIONS"];
    if (operation === undefined) {
      if (plain.status < 400) return [`${method} ${request.path} is not described, and answered`];
      const error = { $ref: `${SCHEMAS}Error` };
      const isRead = request.method === "HEAD" || plain.body === null;
      return isRead ? [] : fits(JSON.parse(textOf(plain.body)), error);
    }
    const responses = object(operation["responses"]);
    const declared = responses[String(plain.status)] ?? responses[`${String(plain.status)[0]}XX`];
    if (declared === undefined)
      return [`the status ${plain.status} is not described for ${method} ${found?.text}`];
    const parameters = ((operation["parameters"] ?? []) as readonly JsonObject[]).map(resolved);
    const context = parameters.find(({ name }) => name === "context");
    const given = query.get("context") ?? object(context?.["schema"])["default"];
    return problemsOfResponse(resolved(declared), {
      asked: request.method,
      isInside,
      response: plain,
      context: context === undefined || plain.status !== 200 ? undefined : (given as string),
      isPartial: request.query.includes("_fields") || isFieldsInBody(request),
    }).map((problem) => `${method} ${found?.text} ${plain.status}: ${problem}`);
  }

  const problemsInside: Described["problemsInside"] = ({ method, path, query, body }, answer) => {
    const text = body === undefined ? null : Buffer.from(JSON.stringify(body));
    const given = new URLSearchParams(
      Object.entries(query ?? {}).map(([name, value]): [string, string] => [
        name,
        typeof value === "string" ? value : JSON.stringify(value),
      ]),
    );
    const request = {
      method: method.toUpperCase(),
      path,
      query: given.toString(),
      headers: {},
      body: text,
      baseUrl: "",
    };
    const { status, headers } = answer;
    const isEmpty = request.method === "HEAD";
    return problems(request, { status, headers, body: isEmpty ? null : JSON.stringify(answer.body) }, true);
  };

  return { problems: (request, response) => problems(request, response), problemsInside, fits };
}

interface Judged {
  readonly asked: string;
  readonly isInside: boolean;
  readonly response: HttpResponse;
  readonly context: string | undefined;
  /** `_fields` was given: any member may be absent. */
  readonly isPartial: boolean;
}

const isFieldsInBody = ({ body }: HttpRequest): boolean =>
  body instanceof Uint8Array && Buffer.from(body).includes("_fields");

/** By length and literals first, as the services decide. */
export function templatesOf(paths: JsonObject): readonly Template[] {
  const list = Object.entries(paths).map(([text, json]) => {
    const item = object(json);
    const parameters = (item["parameters"] ?? []) as readonly JsonObject[];
    const segments = text.split("/").map((segment) => {
      const name = /^\{(.+)\}$/.exec(segment)?.[1];
      if (name === undefined) return segment.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
      const schema = object(parameters.find((parameter) => parameter["name"] === name)?.["schema"]);
      return schema["type"] === "integer"
        ? "\\d+"
        : typeof schema["pattern"] === "string"
          ? "[\\w-]+"
          : "[^/]+";
    });
    // One slash at the end is allowed, but `//` is not the root. Case does not matter.
    return { text, item, pattern: new RegExp(`^${segments.join("/").replace(/^\/$/, "")}/?$`, "i") };
  });
  const rank = ({ text }: Template): number => text.split("{").length;
  return list.sort((one, other) => rank(one) - rank(other));
}

export function methodOf(
  { method, headers }: Pick<HttpRequest, "method" | "headers">,
  query: URLSearchParams,
): string {
  if (method === "HEAD") return "get";
  const override =
    method === "POST" ? (query.get("_method") ?? headers["x-http-method-override"]) : undefined;
  return (override || method).toLowerCase();
}

/**
 * The answer that an envelope or a callback is put around; `undefined` where it is a document that
 * has become a text of JSON.
 */
function unwrapped(response: HttpResponse, query: URLSearchParams): HttpResponse | undefined {
  const { status, headers, body } = response;
  if (body === null) return response;
  const type = String(headers["content-type"] ?? "");
  const isScript = type.startsWith("application/javascript");
  if (!isScript && !query.has("_envelope")) return response;
  const text = textOf(body);
  const json = JSON.parse(isScript ? (/^\/\*\*\/[\w.]+\((.*)\)$/s.exec(text)?.[1] ?? text) : text) as Json;
  const { etag: _, ...others } = headers;
  const wrapped = query.has("_envelope") && status === 200 ? (json as unknown as HttpResponse) : undefined;
  const inner = wrapped === undefined ? json : (wrapped.body as unknown as Json);
  if (typeof inner === "string") return undefined;
  return {
    status: wrapped?.status ?? status,
    headers: {
      ...(wrapped === undefined ? headers : { ...others, ...wrapped.headers }),
      "content-type": "application/json",
    },
    body: JSON.stringify(inner),
  };
}

export const textOf = (body: HttpResponse["body"]): string =>
  typeof body === "string" ? body : Buffer.from(body as Uint8Array).toString();

/** Compiles each schema once. `isPartial`: nothing is required. */
function validatorsOf(components: JsonObject, isPartial: boolean): (schema: JsonObject) => ValidateFunction {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: false });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  ajv.addVocabulary(["example"]);
  const adapted = (schema: JsonObject): JsonObject =>
    JSON.parse(JSON.stringify(schema), (key, value: unknown) => {
      if (key === "$ref" && typeof value === "string") return value.replace(SCHEMAS, "schema:");
      if (!isPartial) return value;
      if (key === "required" && Array.isArray(value)) return undefined;
      // An object without any remaining fields is written as an empty list.
      return key === "type" && value === "object" ? ["object", "array"] : value;
    }) as JsonObject;
  let isReady = false;
  const compiled = new Map<string, ValidateFunction>();
  return (schema) => {
    if (!isReady) {
      for (const [name, one] of Object.entries(object(components["schemas"]))) {
        ajv.addSchema({ ...adapted(object(one)), $id: `schema:${name}` });
      }
      isReady = true;
    }
    const key = JSON.stringify(schema);
    let validate = compiled.get(key);
    if (validate === undefined) {
      validate = ajv.compile(adapted(schema));
      compiled.set(key, validate);
    }
    return validate;
  };
}
