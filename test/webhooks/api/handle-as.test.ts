/**
 * `as(subscriber).handle`: the REST routes on behalf of a subscriber that the host has identified.
 */

import { describe, expect, it } from "vitest";
import type { Subscriber } from "../../../src/index.js";
import { URL_1 } from "../../support/registration-api.js";
import { startHarness } from "../../support/webhook-harness.js";

const OWNER: Subscriber = { id: "key-1", account: "clinic" };
const COLLEAGUE: Subscriber = { id: "key-2", account: "clinic" };
const STRANGER: Subscriber = { id: "key-1", account: "hospital" };
const ANY_ID = "3d3f1c1e-6f5b-4b5a-9a52-0a4cf3f6a111";

async function startDoor() {
  let keysRead = 0;
  const harness = await startHarness({
    options: {
      access: {
        authenticate: () => {
          keysRead += 1;
          return null;
        },
        canRead: () => true,
      },
      limits: { requestsPerMinute: 1, repairsPerMinute: 0 },
    },
  });
  const call = async (
    as: Subscriber,
    [method, path, json]: readonly [string, string, object?],
    headers: Record<string, string> = {},
  ) => {
    const found = await harness.webhooks.as(as).handle({
      method,
      path: `/v1${path}`,
      query: "",
      headers: { ...(json && { "content-type": "application/json" }), ...headers },
      body: json ? Buffer.from(JSON.stringify(json)) : null,
      baseUrl: "https://host.example/mine",
    });
    const text = typeof found?.body === "string" ? found.body : "";
    return { status: found?.status, headers: found?.headers, json: JSON.parse(text || "null") };
  };
  return { ...harness, call, keysRead: () => keysRead };
}

/** Each route of a webhook, and whether only its owner may use it. The last one removes it. */
const routes = (id: string, deliveryId: string) =>
  [
    [["GET", `/webhooks/${id}`], false],
    [["GET", `/webhooks/${id}/stats`], false],
    [["GET", `/webhooks/${id}/deliveries`], false],
    [["GET", `/webhooks/${id}/deliveries/${deliveryId}`], false],
    [["GET", `/webhooks/${id}/deliveries/${deliveryId}/request`], true],
    [["PUT", `/webhooks/${id}`, { url: "https://new.example.com/", status: "ENABLED" }], true],
    [["POST", `/webhooks/${id}/deliveries/${deliveryId}/resend`, {}], true],
    [["POST", `/webhooks/${id}/recover`, { since: "2026-01-01T00:00:00Z" }], true],
    [["POST", `/webhooks/${id}/test`, {}], true],
    [["POST", `/webhooks/${id}/rotate`, {}], true],
    [["POST", `/webhooks/${id}/rotate/finish`], true],
    [["DELETE", `/webhooks/${id}`], false],
  ] as const satisfies readonly (readonly [readonly [string, string, object?], boolean])[];

describe("as(subscriber).handle", () => {
  it("serves every route for the owner, with no API key and no rate limit", async () => {
    const { call, emit, quiet, keysRead } = await startDoor();
    const created = await call(OWNER, ["POST", "/webhooks", { url: URL_1 }]);
    const { id } = created.json.webhook;
    expect([created.status, created.headers?.["location"]]).toEqual([
      201,
      `https://host.example/mine/v1/webhooks/${id}`,
    ]);
    const deliveryId = `${id}.${await emit()}`;
    await quiet();
    for (const path of ["/event-types", "/webhooks", "/openapi.json"])
      expect((await call(OWNER, ["GET", path], { authorization: "Bearer key" })).status).toBe(200);
    for (const [request] of routes(id, deliveryId)) {
      const { status, json } = await call(OWNER, request);
      expect([request, [200, 202].includes(status ?? 0), json]).toEqual([request, true, expect.anything()]);
    }
    expect(keysRead()).toBe(0);
  });

  it("gives another key of the account what that key has over REST: 403 where the owner decides", async () => {
    const { call, register, emit, quiet } = await startDoor();
    const { id } = await register();
    const deliveryId = `${id}.${await emit()}`;
    await quiet();
    for (const [request, isOwners] of routes(id, deliveryId)) {
      const { status, json } = await call(COLLEAGUE, request);
      const expected = isOwners ? [403, "webhook_owned_by_another_key"] : [200, undefined];
      expect([request, status, json.error?.code]).toEqual([request, ...expected]);
    }
  });

  it("answers for a webhook of another account as for one that does not exist", async () => {
    const { call, register, emit, quiet, record } = await startDoor();
    const { id } = await register();
    const deliveryId = `${id}.${await emit()}`;
    await quiet();
    const unknown = routes(ANY_ID, `${ANY_ID}.${ANY_ID}`);
    for (const [index, [request]] of routes(id, deliveryId).entries()) {
      const nothing = await call(OWNER, unknown[index]?.[0] ?? request);
      expect(nothing.status).toBe(404);
      expect(await call(STRANGER, request)).toEqual(nothing);
    }
    expect((await call(STRANGER, ["GET", "/webhooks"])).json.webhooks).toEqual([]);
    expect((await record(id)).status).toBe("ENABLED");
  });

  it("leaves every other path to the host, and refuses other methods and bodies", async () => {
    const { webhooks, call } = await startDoor();
    const request = { method: "GET", query: "", headers: {}, body: null, baseUrl: "https://host.example" };
    expect(await webhooks.as(OWNER).handle({ ...request, path: "/elsewhere" })).toBeUndefined();
    expect((await call(OWNER, ["PATCH", "/webhooks"])).status).toBe(405);
    expect((await call(OWNER, ["POST", "/webhooks", { adress: URL_1 }])).status).toBe(400);
    const form = { "content-type": "text/plain" };
    expect((await call(OWNER, ["POST", "/webhooks", { url: URL_1 }], form)).status).toBe(415);
  });

  it.each([
    undefined,
    null,
    "key-1",
    {},
    { id: "key-1" },
    { id: "", account: "clinic" },
    { id: "a\0", account: "b" },
  ])("rejects %j, which is no subscriber", async (given) => {
    const { webhooks } = await startDoor();
    const request = { method: "GET", path: "/v1/webhooks", query: "", headers: {}, body: null, baseUrl: "" };
    await expect((async () => webhooks.as(given as Subscriber).handle(request))()).rejects.toMatchObject({
      code: "invalid_argument",
      field: expect.stringMatching(/^subscriber/),
    });
  });
});
