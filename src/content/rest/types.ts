/** What the rows of the content service's route table are made of, and what passes between them and the server in front. */

import type { HttpRequest } from "../../http/types.js";
import type { Arguments, Context, Json, JsonObject, Schema } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import type { RestError } from "./error.js";
import type { RestHeaders } from "./rest-headers.js";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Where a link leads; what else it says (`embeddable`, `taxonomy`, `targetHints` …) stands in the same object. */
export interface ItemLink extends JsonObject {
  readonly href: string;
}

/** By relation: `self`, `author`, `https://api.w.org/term` … */
export type Links = { readonly [relation: string]: readonly ItemLink[] };

/** One record as it is answered to one kind of caller in one context. Immutable; cached. */
export interface Item {
  /** Without `_links`. */
  readonly fields: JsonObject;
  readonly links: Links;
  /** UTF-8 of the JSON text of `fields` with `_links` as their last member. Made once. */
  readonly bytes: () => Uint8Array;
}

export type RestBody =
  | { readonly item: Item }
  | { readonly items: readonly Item[] }
  /** Whatever is no record: an index, an envelope, `{ deleted, previous }`; `_fields` applies to it too. */
  | { readonly json: Json; readonly links?: Links }
  /** A document of another media type than JSON; inside JSON, as in an envelope, it is a text. */
  | { readonly text: string; readonly type: string };

export interface RestResponse {
  readonly status: number;
  readonly headers: RestHeaders;
  readonly body: RestBody;
}

/**
 * What `permit` of an endpoint found out and `handle` needs. One object per HTTP request, since
 * `permit` may run several times.
 */
export interface RequestState {
  /** The stored password that the given one matched, `null` for a wrong one. Absent before the comparison. */
  matchedPassword?: string | null;
}

/** A request whose arguments were found valid, coerced and completed with their defaults. */
export interface RestRequest {
  readonly method: Method;
  /** As the client wrote it, decoded, below the mount point: `/core/v2/posts/12`. */
  readonly path: string;
  /** Every argument that was given or has a default; no others, but for the parameters of the path. No prototype. */
  readonly values: { readonly [name: string]: Json | undefined };
  /** Whether the client gave it, in query or body, `null` included: a default does not count. */
  readonly isGiven: (name: string) => boolean;
  /** What the client gave, body over query, under any name and as it came: not coerced, not checked. No prototype. */
  readonly given: JsonObject;
  /** The arguments that came in the query alone, after parsing, not coerced; for links to other pages of a list. */
  readonly query: JsonObject;
  readonly caller: Caller;
  /** Absolute URL below the mount point: `url("/core/v2/posts/12")`. */
  readonly url: (path: string) => string;
  /** Names in lower case. */
  readonly headers: { readonly [name: string]: string };
  /** What `receive` of the endpoint has made of the body. */
  readonly received?: ReceivedBody | undefined;
  /** Absent if the request is built only to find out what `Allow` lists. */
  readonly state?: RequestState | undefined;
}

/** A body that is neither JSON nor a form, read before its arguments were judged. */
export interface ReceivedBody {
  /** The arguments in it, not coerced. Without prototype. */
  readonly fields: JsonObject;
  /** Called once the request is answered, whatever the answer is: frees what was not made use of. Never rejects. */
  readonly release: () => Promise<void>;
}

type MaybePromise<T> = T | Promise<T>;

/** What OpenAPI says of an endpoint, where it does not follow from the method, the path, the arguments and the records of the route. */
export interface Described {
  readonly summary?: string;
  readonly status?: 200 | 201 | 207;
  /**
   * `item`: a record. `items`: a list of them. `keyed`: an object from name to record. `deleted`: `{ deleted, previous }`. `trashed`: either that or the
   * record. `json`: what `schema` says.
   */
  readonly form?: "item" | "items" | "keyed" | "deleted" | "trashed" | "json";
  /** Of the record, where the caller has no choice. */
  readonly context?: Context;
  /** Of the record, or of what else is answered. */
  readonly schema?: Schema;
  /** A media type beside JSON. */
  readonly otherType?: string;
  /** Statuses of errors that other endpoints do not have. */
  readonly errors?: readonly number[];
}

/** What answers some methods of one path. */
export interface RestEndpoint {
  readonly methods: readonly Method[];
  readonly args: Arguments;
  readonly described?: Described;
  /** Whether it may be used in a batch. */
  readonly allowBatch?: boolean;
  /**
   * Reads a body of a kind of its own, such as an upload; `undefined` for one that is read like any other. What it throws is answered instead of what is
   * wrong with the arguments.
   */
  readonly receive?: (request: HttpRequest, caller: Caller) => Promise<ReceivedBody | undefined>;
  /**
   * What a JSON body that is no object is refused with; default: 400 `rest_invalid_json`. For a route where WordPress reads such a body as an empty one
   * and has an error of its own for that.
   */
  readonly noObject?: () => RestError;
  /** Throws a RestError for arguments whose validity depends on the caller, such as a status he may not list. Asked before `permit`, not for `Allow`. */
  readonly check?: (request: RestRequest) => void;
  /**
   * Throws a RestError where the caller may not; must not change anything. Asked before `handle`, and for `Allow` of every answer of the path: then
   * with those of this endpoint's arguments that can be read from the request, whatever endpoint it was meant for.
   */
  readonly permit: (request: RestRequest) => MaybePromise<void>;
  /** Errors: RestError. Anything else is answered with 500 and logged. */
  readonly handle: (request: RestRequest) => MaybePromise<RestResponse>;
}

/** One path. */
export interface RestRoute {
  /** `core/v2`, `oembed/1.0`, `batch/v1`; empty for the index. */
  readonly namespace: string;
  /** Below the namespace: `/posts/:id`. A parameter `:id` is digits; `:type(word)` is letters, digits, `_` and `-`. */
  readonly path: string;
  readonly endpoints: readonly RestEndpoint[];
  /** Of the items that it answers: for OPTIONS. */
  readonly schema?: Schema | undefined;
}
