import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeAdapter } from "../../../adapters/node.js";
import type { ContentResponse } from "../../../src/content/service.js";
import type { HttpRequest, RequestBody } from "../../../src/http/types.js";
import type { JsonObject } from "../../../src/schema/types.js";
import type { RunningHost } from "../../contracts/adapter.js";
import { badCases, bytesOf, streamed } from "../../support/bad-json.js";
import { contentSite, credentials, idOf } from "../../support/content-site.js";
import { listen } from "../../support/hosts.js";
import { send } from "../../support/http-client.js";

const contentCases = badCases("content");
const headers = { authorization: credentials("administrator"), "content-type": "application/json" };

interface Answer {
  readonly status: number;
  readonly json: unknown;
}
type Ask = (method: string, path: string, body: Buffer) => Promise<Answer>;

/** WordPress's form of every error. */
function expectRefusal({ status, json }: Answer): void {
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).toBeLessThan(500);
  const { code, message, data } = json as { code: unknown; message: unknown; data: unknown };
  expect(code).toMatch(/^[a-z_]+$/);
  expect(message).toMatch(/\S/);
  expect(data).toMatchObject({ status });
}

describe("a bad body", () => {
  let content: ReturnType<typeof contentSite>;
  let host: RunningHost;
  beforeAll(async () => {
    content = contentSite();
    host = await listen(createServer(nodeAdapter(content)));
  });
  afterAll(() => host.close());

  const handed =
    (bodyOf: (bytes: Buffer) => RequestBody): Ask =>
    async (method, path, bytes) => {
      const request: HttpRequest = {
        method,
        path,
        query: "",
        headers,
        body: bodyOf(bytes),
        baseUrl: "http://localhost",
      };
      const response = await content.handle(request);
      const body = response?.body;
      if (!(typeof body === "string" || body instanceof Uint8Array)) throw new Error("no text in the answer");
      return { status: response?.status ?? 0, json: JSON.parse(Buffer.from(body).toString()) as unknown };
    };
  const ways: [string, Ask][] = [
    ["handed over whole", handed((bytes) => bytes)],
    ["handed over streamed", handed(streamed)],
    ["over a socket", (method, path, body) => send(host.origin, path, { method, headers, body })],
  ];

  describe.each(ways)("%s", (_, ask) => {
    const create = async (): Promise<number> => {
      const { status, json } = await ask("POST", "/core/v2/posts", Buffer.from('{"title":"Good"}'));
      expect(status).toBe(201);
      return (json as { id: number }).id;
    };
    const get = (path: string, query: JsonObject): Promise<ContentResponse> =>
      content.request({ method: "GET", path, query, as: idOf("administrator") });
    /** The post, and how many there are. */
    const look = async (id: number): Promise<unknown> => [
      (await get(`/core/v2/posts/${id}`, { context: "edit" })).body,
      (await get("/core/v2/posts", { status: "any" })).headers["X-WP-Total"],
    ];

    it.each(contentCases)(
      "$id is refused, changes nothing, and the next good request works: $why",
      async (bad) => {
        const id = await create();
        const before = await look(id);
        expectRefusal(await ask(bad.method, bad.path.replace("{id}", `${id}`), bytesOf(bad)));
        expect(await look(id)).toEqual(before);
        expect(await create()).toBeGreaterThan(id);
      },
    );
  });
});
