/** For every test file: what a service answers, over `handle` and in the process, is compared with its own OpenAPI document, and a test in which they differ fails. */

import { afterAll, afterEach, vi } from "vitest";
import type { ContentAnswer, ContentRequest } from "../../src/content/service.js";
import type { Handler, HttpRequest, HttpResponse } from "../../src/http/types.js";
import type { JsonObject } from "../../src/schema/types.js";
import type { WebhooksOptions } from "../../src/webhooks/options.js";
import type { Described } from "./described-answers.js";
import { fileLeaks } from "./leak-check.js";

const found = new Set<string>();

function fail(): void {
  if (found.size === 0) return;
  const problems = [...found];
  found.clear();
  throw new Error(`Answers differ from the OpenAPI document:\n${problems.join("\n")}`);
}

afterEach(fail);
afterAll(fail);

/** What an answer says of an error is for a caller, who may be anybody. */
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

interface Service {
  readonly handle: Handler;
  readonly handleAs?: (request: HttpRequest, as: number) => Promise<HttpResponse | undefined>;
  readonly openApi: () => JsonObject;
  readonly request?: (request: ContentRequest) => Promise<ContentAnswer>;
}

vi.mock("../../src/webhooks/service.js", async (original) => {
  const module = await original<typeof import("../../src/webhooks/service.js")>();
  return { ...module, createWebhooks: await comparing<WebhooksOptions, Service>(module.createWebhooks) };
});

vi.mock("../../src/content/service.js", async (original) => {
  const module = await original<typeof import("../../src/content/service.js")>();
  return { ...module, createContent: await comparing(module.createContent) };
});

async function comparing<O, S extends Service>(create: (options: O) => S): Promise<(options: O) => S> {
  const { describedBy } = await import("./described-answers.js");
  /** By document: services made of the same options have the same one. */
  const known = new Map<string, Described>();
  const describedOf = (service: S): Described => {
    const document = service.openApi();
    const key = JSON.stringify(document);
    let described = known.get(key);
    if (described === undefined) {
      described = describedBy(document);
      known.set(key, described);
    }
    return described;
  };
  return (options) => {
    const service = create(options);
    let described: Described | undefined;
    const compare = (find: (described: Described) => readonly string[]): void => {
      try {
        described ??= describedOf(service);
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
    const handle = async (request: HttpRequest): Promise<HttpResponse | undefined> =>
      compared(request, await service.handle(request));
    const { request: ask, handleAs: answerAs } = service;
    if (ask === undefined || answerAs === undefined) return Object.freeze({ ...service, handle });
    const handleAs: typeof answerAs = async (request, as) => compared(request, await answerAs(request, as));
    const request: typeof ask = async (asked) => {
      const answer = await ask(asked);
      compare(({ problemsInside }) => problemsInside(asked, answer));
      noteError(answer);
      return answer;
    };
    return Object.freeze({ ...service, handle, handleAs, request });
  };
}
