/**
 * The route table of the content service, the values that its endpoints take and return, and those
 * that pass between the stages of a request.
 */

import type { HttpRequest } from "../../http/types.js";
import type { Arguments, Context, Json, JsonObject, Schema } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import type { RestError } from "./error.js";
import type { RestHeaders } from "./rest-headers.js";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** A link with its URL and other members, such as `embeddable`, `taxonomy` or `targetHints`. */
export interface ItemLink extends JsonObject {
  href: string;
}

/** By relation: `self`, `author`, `https://api.w.org/term` … */
export type Links = { [relation: string]: ItemLink[] };

/** A record as one kind of caller sees it in one context. Immutable and cached. */
export interface Item {
  /** Without `_links`. */
  fields: JsonObject;
  links: Links;
  /** Returns the JSON of `fields`, with `_links` as the last member, as UTF-8. Built once. */
  bytes: () => Uint8Array;
}

export type RestBody =
  | { item: Item }
  | { items: Item[] }
  /**
   * Anything but a record, such as an index or `{ deleted, previous }`. `_fields` applies to it
   * too. With `keepsLinks`, `_links` is sent although `_fields` does not name it, as in WordPress
   * for the root of a namespace.
   */
  | { json: Json; links?: Links; keepsLinks?: true }
  /** A document of another media type. Inside JSON, as in an envelope, it is a string. */
  | { text: string; type: string };

export interface RestResponse {
  status: number;
  headers: RestHeaders;
  body: RestBody;
}

/**
 * The results of `permit` that `handle` needs. One object per validated call, such as
 * an item of a batch, since `permit` may run several times.
 */
export interface RequestState {
  /**
   * The stored password that the given one matched, `null` for a wrong one. Absent before the
   * comparison.
   */
  matchedPassword?: string | null;
}

/** A request with valid arguments, coerced and completed with their defaults. */
export interface RestRequest {
  method: Method;
  /** The decoded path below the mount point: `/core/v2/posts/12`. */
  path: string;
  /**
   * Every argument that was passed or has a default, and the parameters of the path. No prototype.
   */
  values: { [name: string]: Json | undefined };
  /** True if the client sent the argument, in query or body, even as `null`. */
  isGiven: (name: string) => boolean;
  /** Everything the client sent, body over query, neither coerced nor checked. No prototype. */
  input: JsonObject;
  /** The arguments in the query alone, not coerced; for links to other pages of a list. */
  query: JsonObject;
  caller: Caller;
  /** Absolute URL below the mount point: `url("/core/v2/posts/12")`. */
  url: (path: string) => string;
  /** Names in lower case. */
  headers: { [name: string]: string };
  /** The body that `receive` of the endpoint read. */
  received?: ReceivedBody | undefined;
  /** The characters of HTML that were sanitised so far, those of all items of a batch together. */
  sanitised: { characters: number };
  /** Absent if the request is built only to find out what `Allow` lists. */
  state?: RequestState | undefined;
}

/** A body that is neither JSON nor a form, read before its arguments are validated. */
export interface ReceivedBody {
  /** Its arguments, not coerced. Without prototype. */
  fields: JsonObject;
  /**
   * Frees the resources that the request did not use. Called after every response. Never rejects.
   */
  release: () => Promise<void>;
}

type MaybePromise<T> = T | Promise<T>;

/** The OpenAPI description of an endpoint. Everything else follows from its route. */
export interface Described {
  summary?: string;
  status?: 200 | 201 | 207;
  /**
   * `item`: a record. `items`: a list of them. `keyed`: an object of records by name. `deleted`:
   * `{ deleted, previous }`. `trashed`: either that or the record. `json`: the JSON of `schema`.
   */
  form?: "item" | "items" | "keyed" | "deleted" | "trashed" | "json";
  /** The context of the record, if the caller has no choice. */
  context?: Context;
  /** The schema of the record or of other JSON. */
  schema?: Schema;
  /** True if responses have the totals of a list, although it has no pages. */
  hasTotals?: true;
  /** A media type besides JSON. */
  otherType?: string;
  /** Statuses of errors that other endpoints do not have. */
  errors?: readonly number[];
}

/** An endpoint: handles some methods of one path. */
export interface RestEndpoint {
  methods: readonly Method[];
  args: Arguments;
  described?: Described;
  /** True if a batch may use it. */
  allowBatch?: boolean;
  /**
   * Reads a body of another kind, such as an upload. Returns `undefined` for a body that is read
   * like any other. Its errors take precedence over those of the arguments.
   */
  receive?: (request: HttpRequest, caller: Caller) => Promise<ReceivedBody | undefined>;
  /**
   * Creates the error for a JSON body that is not an object. Default: 400 `rest_invalid_json`.
   * Needed where WordPress reads such a body as an empty one and has a separate error for that.
   */
  noObject?: () => RestError;
  /**
   * Throws a RestError if the validity of arguments depends on the caller, such as a status that
   * the caller may not list. Called before `permit`, but not for `Allow`.
   */
  check?: (request: RestRequest) => void;
  /**
   * Throws a RestError if the caller may not do this. Must not change anything.
   *
   * Called before `handle`, and for the `Allow` header of every response of the path. In that case
   * it gets those arguments of the endpoint that are valid in the request, whatever endpoint that
   * was for.
   */
  permit: (request: RestRequest) => MaybePromise<void>;
  /** Throws a RestError. Any other error is logged and becomes a 500. */
  handle: (request: RestRequest) => MaybePromise<RestResponse>;
}

/** One path. */
export interface RestRoute {
  /** `core/v2`, `oembed/1.0`, `batch/v1`; empty for the index. */
  namespace: string;
  /**
   * The path below the namespace: `/posts/:id`. `:id` matches digits; `:type(word)` matches
   * letters, digits, `_` and `-`.
   */
  path: string;
  endpoints: readonly RestEndpoint[];
  /** The schema of its items, for OPTIONS. */
  schema?: Schema | undefined;
}

/** The parameters of a path: a number for `:id`, a string for `:name(word)`. Without prototype. */
export type PathParameters = { [name: string]: number | string };

export interface RouteMatch<T> {
  row: T;
  parameters: PathParameters;
}

/** One path of the route table with its endpoints by method. */
export interface RouteRow {
  route: RestRoute;
  byMethod: Map<string, RestEndpoint>;
}

/** A request whose route is matched and whose query and body are read, but not yet validated. */
export interface RouteCall {
  /** Upper case; HEAD is passed as GET. */
  method: string;
  /** Below the mount point, decoded. */
  path: string;
  /** `undefined` if the table has no such path, or the request could not be read. */
  match: RouteMatch<RouteRow> | undefined;
  query: JsonObject;
  body: JsonObject;
  received?: ReceivedBody | undefined;
  headers: RestRequest["headers"];
  caller: Caller;
  /** URL of the mount point, without a trailing slash. */
  baseUrl: string;
  /** That of the batch, if the call is one of its items. */
  sanitised?: RestRequest["sanitised"];
}

/** The response of a route, or the error in its place. */
export interface RouteOutcome extends RestResponse {
  isError: boolean;
}
