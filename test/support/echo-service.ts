/**
 * A small service on the router that says what it was given; the adapter contract runs it in every
 * host.
 */

import { isPostbellError } from "../../src/core/errors.js";
import { readBytes, readJson } from "../../src/http/body.js";
import { BODY_MS } from "../../src/http/body-chunks.js";
import { HttpError } from "../../src/http/errors.js";
import { createRouter, type PathParameter, type Route } from "../../src/http/router.js";
import type { HttpRequest, HttpResponse, ReadableBody, Service } from "../../src/http/types.js";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.js";

export const BODY_LIMIT = 256 * 1024;

interface Context {
  readonly request: HttpRequest;
  readonly parameter: PathParameter;
}

export interface EchoService extends Service {
  /** Calls of `start` and `stop`, in order. */
  readonly life: string[];
  /**
   * Resolves with what happens next on the server's side: `upload began`, `upload failed: <code>`,
   * `stream closed`, `client left`.
   */
  next(): Promise<string>;
  /** The time by which `/slow` waits for a body. */
  readonly clock: ManualClock;
}

const json = (value: unknown): HttpResponse => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(value),
});

export function echoService(root = ""): EchoService {
  const life: string[] = [];
  const clock = manualClock(0);
  const happened: string[] = [];
  const waiting: ((what: string) => void)[] = [];
  const happen = (what: string): void => {
    const waiter = waiting.shift();
    if (waiter) waiter(what);
    else happened.push(what);
  };

  async function* chunks(count: number): ReadableBody {
    try {
      for (let i = 0; i < count; i += 1) yield Buffer.alloc(16 * 1024, i % 256);
    } finally {
      happen("stream closed");
    }
  }

  async function* cutShort(): ReadableBody {
    yield Buffer.from("the first half");
    throw new Error("no second half");
  }

  const describe = async ({ request, parameter }: Context): Promise<HttpResponse> => {
    const { method, path, query, headers, baseUrl } = request;
    return json({ method, path, name: parameter("name"), query, headers, baseUrl });
  };

  const slow = async ({ request }: Context): Promise<HttpResponse> => {
    const read = readBytes(request, { limit: BODY_LIMIT, pace: { clock, ms: BODY_MS } });
    happen("upload began");
    await read;
    return { status: 204, headers: {}, body: null };
  };

  const upload = async ({ request }: Context): Promise<HttpResponse> => {
    happen("upload began");
    try {
      await readBytes(request, { limit: BODY_LIMIT });
    } catch (error) {
      happen(`upload failed: ${error instanceof HttpError ? error.code : String(error)}`);
      throw error;
    }
    return { status: 204, headers: {}, body: null };
  };

  const hold = ({ request }: Context): Promise<HttpResponse> =>
    new Promise((resolve) => {
      request.signal?.addEventListener("abort", () => {
        happen("client left");
        resolve({ status: 204, headers: {}, body: null });
      });
      happen("holding");
    });

  const stream = (body: ReadableBody): HttpResponse => ({
    status: 200,
    headers: { "content-type": "application/octet-stream" },
    body,
  });

  const routes: Route<Context>[] = [
    {
      method: "GET",
      path: `${root}/`,
      handle: async ({ request }) => json({ path: request.path, baseUrl: request.baseUrl }),
    },
    { method: "GET", path: `${root}/things/:name`, handle: describe },
    { method: "DELETE", path: `${root}/things/:name`, handle: describe },
    {
      method: "POST",
      path: `${root}/json`,
      handle: async ({ request }) => json(await readJson(request, { limit: BODY_LIMIT })),
    },
    {
      method: "POST",
      path: `${root}/bytes`,
      handle: async ({ request }) => ({
        status: 201,
        headers: { "content-type": "application/octet-stream" },
        body: await readBytes(request, { limit: BODY_LIMIT }),
      }),
    },
    { method: "POST", path: `${root}/upload`, handle: upload },
    { method: "POST", path: `${root}/slow`, handle: slow },
    {
      method: "POST",
      path: `${root}/unread`,
      handle: async () => ({ status: 401, headers: { "content-type": "text/plain" }, body: "not read" }),
    },
    { method: "GET", path: `${root}/hold`, handle: hold },
    { method: "GET", path: `${root}/stream`, handle: async () => stream(chunks(8)) },
    { method: "GET", path: `${root}/endless`, handle: async () => stream(chunks(Number.POSITIVE_INFINITY)) },
    { method: "GET", path: `${root}/cut-short`, handle: async () => stream(cutShort()) },
    {
      method: "GET",
      path: `${root}/cookies`,
      handle: async () => ({
        status: 200,
        headers: { "set-cookie": ["a=1", "b=2"], "x-one": "1" },
        body: "",
      }),
    },
    {
      method: "GET",
      path: `${root}/empty`,
      handle: async () => ({ status: 200, headers: { "x-empty": "yes" }, body: null }),
    },
  ];

  const route = createRouter(routes, {
    context: (request, parameter) => ({ request, parameter }),
    onError: (error) => {
      const [status, code, headers] =
        error instanceof HttpError
          ? [error.status, error.code, error.headers]
          : [500, isPostbellError(error) ? error.code : "internal", {}];
      const message = error instanceof Error ? error.message : String(error);
      return {
        ...json({ code, message }),
        status,
        headers: { "content-type": "application/json", ...headers },
      };
    },
  });

  return {
    life,
    clock,
    next: () => {
      const what = happened.shift();
      return what === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(what);
    },
    handle: async (request) => {
      if (request.path === `${root}/broken`) throw new Error("the service is broken");
      return route(request);
    },
    start: async () => {
      life.push("start");
    },
    stop: async () => {
      life.push("stop");
    },
  };
}
