/**
 * Compares what a service answers, over `handle` and in the process, with its own OpenAPI document.
 */

import { createHash } from "node:crypto";
import type { ContentRequest, ContentResponse } from "../../src/content/service.js";
import type { DirectHandler, HttpRequest, HttpResponse } from "../../src/http/types.js";
import type { JsonObject } from "../../src/schema/types.js";
import { type Described, describedBy } from "./described-answers.js";
import { fileLeaks } from "./leak-check.js";

const found = new Set<string>();

/** Returns the differences noted since the last call. */
export function takeDifferences(): readonly string[] {
  const problems = [...found];
  found.clear();
  return problems;
}

/** The error in a response is for a caller, who may be anybody. */
function noteError({
  status,
  headers,
  body,
}: Pick<HttpResponse, "status" | "headers"> & { readonly body: unknown }): void {
  // A batch is answered 207, whatever became of its parts.
  if (status < 400 && status !== 207) return;
  const where = `an answer, ${status}`;
  fileLeaks.note(where, headers);
  fileLeaks.note(where, body instanceof Uint8Array ? Buffer.from(body).toString() : body);
}

let isComparing = true;

/**
 * Lets the services of this test file answer what no document describes. Only for a file with a
 * process of its own.
 */
export function stopComparing(): void {
  isComparing = false;
}

interface Service {
  readonly handle: DirectHandler;
  /** Of a content service. */
  readonly handleAs?: (call: { request: HttpRequest; as: never }) => Promise<HttpResponse | undefined>;
  /** Of a webhook service. */
  readonly as?: (subscriber: never) => {
    readonly handle: (request: HttpRequest, options?: never) => Promise<HttpResponse | undefined>;
  };
  readonly openApi: () => JsonObject;
  readonly request?: (request: ContentRequest) => Promise<ContentResponse>;
}

interface Known {
  readonly described: Described;
  readonly digest: string;
  /** Services that were made of such options. */
  services: number;
}

/** All files of a process share both. */
const byDocument = new Map<string, Described>();
const byOptions = new Map<string, Known>();
/**
 * To build a document takes longer than most tests: one service in so many has to show that its
 * options still tell.
 */
const CHECKED_EVERY = 20;

/**
 * Returns what a document may depend on: plain values of the options, and the names of functions.
 */
const fingerprint = (given: readonly unknown[]): string =>
  JSON.stringify(given, (_, value: unknown) => {
    if (typeof value === "function") return "[function]";
    if (typeof value === "bigint" || typeof value === "symbol" || value instanceof RegExp)
      return String(value);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    const prototype: unknown = Object.getPrototypeOf(value);
    const isPlain = prototype === Object.prototype || prototype === null;
    return isPlain ? value : `[${value.constructor?.name}]`;
  });

function describedOf(service: Service, given: readonly unknown[]): Described {
  const options = fingerprint(given);
  const known = byOptions.get(options);
  if (known !== undefined) {
    known.services += 1;
    if (known.services % CHECKED_EVERY !== 0) return known.described;
  }
  const document = service.openApi();
  const digest = createHash("sha256").update(JSON.stringify(document)).digest("base64");
  if (known !== undefined && known.digest !== digest)
    throw new Error(`Services of the same options have different OpenAPI documents: ${options}`);
  const described = byDocument.get(digest) ?? describedBy(document);
  byDocument.set(digest, described);
  if (known === undefined) byOptions.set(options, { described, digest, services: 1 });
  return described;
}

/**
 * The same factory, whose services note in what way their responses differ from their OpenAPI
 * document.
 */
export function comparing<A extends readonly unknown[], S extends Service>(
  create: (...given: A) => S,
): (...given: A) => S {
  return (...given) => {
    const service = create(...given);
    if (!isComparing) return service;
    let described: Described | undefined;
    const compare = (find: (described: Described) => readonly string[]): void => {
      try {
        described ??= describedOf(service, given);
        for (const problem of find(described)) found.add(problem);
      } catch (error) {
        found.add(String(error));
      }
    };
    const compared = (request: HttpRequest, response: HttpResponse | undefined): HttpResponse | undefined => {
      compare(({ problems }) => problems(request, response));
      if (response !== undefined) noteError(response);
      return response;
    };
    // Without a promise where the service itself needs none, so that hosts meet it as it is.
    const handle: DirectHandler = (request) => {
      const response = service.handle(request);
      return response instanceof Promise
        ? response.then((late) => compared(request, late))
        : compared(request, response);
    };
    const { request: ask, handleAs: answerAs, as: callsOf } = service;
    if (callsOf !== undefined) {
      const as: typeof callsOf = (subscriber) => {
        const calls = callsOf(subscriber);
        return Object.freeze({
          ...calls,
          handle: async (request: HttpRequest, options?: never) =>
            compared(request, await calls.handle(request, options)),
        });
      };
      return Object.freeze({ ...service, handle, as });
    }
    if (ask === undefined || answerAs === undefined) return Object.freeze({ ...service, handle });
    const handleAs: typeof answerAs = async (call) => {
      const response = await answerAs(call);
      return compared(call.request, response);
    };
    const request: typeof ask = async (asked) => {
      const answer = await ask(asked);
      compare(({ problemsInside }) => problemsInside(asked, answer));
      noteError(answer);
      return answer;
    };
    return Object.freeze({ ...service, handle, handleAs, request });
  };
}
