/** The description and the metadata of a webhook. */

import { describe, expect, it } from "vitest";
import { isDisablingOnly } from "../../../src/webhooks/registrations/entitlement.js";
import { type Api, registrationApi, URL_1, URL_2 } from "../../support/registration-api.js";

const ACME = { id: "first", account: "acme" };
const COLLECTION = "/v1/webhooks";
const DETAILS = { description: "Ward 3 — Störungen 🔔", metadata: { team: "ward", "cost-center.2": "" } };
const NONE = { description: null, metadata: null };

/** Reads the record over REST, as it is documented and with its details. */
async function readRecords({ call }: Api, id: string) {
  const path = `${COLLECTION}/${id}`;
  const { json: plain } = await call("GET", path);
  const { json: detailed } = await call("GET", path, { query: "include=details" });
  return { plain, detailed: detailed as Record<string, unknown> };
}

describe("description and metadata in-process", () => {
  it("are null unless they are given, and stay until they are named", async () => {
    const { registrations } = registrationApi().webhooks;
    expect((await registrations.create({ subscriber: ACME, url: URL_1 })).webhook).toMatchObject(NONE);
    const { webhook } = await registrations.create({ subscriber: ACME, url: URL_1, ...DETAILS });
    expect(webhook).toMatchObject(DETAILS);
    expect(await registrations.get(webhook.id)).toEqual(webhook);
    expect((await registrations.list({ account: "acme" })).items[1]).toEqual(webhook);
    expect(await registrations.update({ id: webhook.id, url: URL_2, status: "DISABLED" })).toMatchObject(
      DETAILS,
    );
    expect(await registrations.update({ id: webhook.id, description: "Ward 4" })).toMatchObject({
      description: "Ward 4",
      metadata: DETAILS.metadata,
    });
    const replaced = await registrations.update({ id: webhook.id, metadata: { only: "this" } });
    expect(replaced).toMatchObject({ description: "Ward 4", metadata: { only: "this" }, url: URL_2 });
    expect(await registrations.update({ id: webhook.id, ...NONE })).toMatchObject(NONE);
    expect(await registrations.get(webhook.id)).toMatchObject(NONE);
  });

  it("do not change with an object that the host changes later", async () => {
    const { registrations } = registrationApi().webhooks;
    const metadata: Record<string, string> = { team: "ward" };
    const { webhook } = await registrations.create({ subscriber: ACME, url: URL_1, metadata });
    metadata["team"] = "lab";
    expect((await registrations.get(webhook.id)).metadata).toEqual({ team: "ward" });
    await registrations.update({ id: webhook.id, metadata });
    metadata["team"] = "archive";
    expect((await registrations.get(webhook.id)).metadata).toEqual({ team: "lab" });
  });

  it("are part of what an idempotency key repeats", async () => {
    const { registrations } = registrationApi().webhooks;
    const request = { url: URL_1, idempotencyKey: "k", ...DETAILS };
    const first = await registrations.create({ subscriber: ACME, ...request });
    await registrations.update({ id: first.webhook.id, description: "Later" });
    expect(await registrations.create({ subscriber: ACME, ...request })).toEqual(first);
    const reordered = Object.fromEntries(Object.entries(DETAILS.metadata).toReversed());
    expect(await registrations.create({ subscriber: ACME, ...request, metadata: reordered })).toEqual(first);
    await expect(
      registrations.create({ subscriber: ACME, ...request, description: "Other" }),
    ).rejects.toMatchObject({
      code: "idempotency_key_reused",
    });
    await expect(
      registrations.create({ subscriber: ACME, url: URL_1, idempotencyKey: "k" }),
    ).rejects.toMatchObject({
      code: "idempotency_key_reused",
    });
  });
});

describe("a change that only disables a webhook", () => {
  it("may repeat its metadata in any order, whichever the storage returns", () => {
    const webhook = { url: URL_1, eventTypes: null, metadata: { b: "2", a: "1" } };
    const change = (metadata: Record<string, string>) => ({ status: "DISABLED", metadata }) as const;
    expect(isDisablingOnly(webhook, change({ a: "1", b: "2" }))).toBe(true);
    expect(isDisablingOnly(webhook, change({ a: "1", b: "1" }))).toBe(false);
    expect(isDisablingOnly(webhook, change({ a: "1" }))).toBe(false);
    expect(isDisablingOnly({ ...webhook, metadata: undefined }, change({}))).toBe(false);
  });
});

describe("description and metadata over REST", () => {
  it("are accepted, and returned only with include=details", async () => {
    const api = registrationApi();
    const { webhook } = await api.create({ json: { url: URL_1, ...DETAILS } });
    expect(Object.keys(webhook)).toEqual(["id", "status", "url", "createdDate", "updatedDate"]);
    const created = await readRecords(api, webhook.id);
    expect(created).toEqual({ plain: webhook, detailed: { ...webhook, ...DETAILS } });
    const { json: listed } = await api.call("GET", COLLECTION, { query: "include=details,event_types" });
    expect(listed).toEqual({ webhooks: [{ ...webhook, ...DETAILS, event_types: ["*"] }], next: null });
    const path = `${COLLECTION}/${webhook.id}`;
    const unnamed = { url: URL_1, status: "ENABLED" };
    const { json: updated } = await api.call("PUT", path, { json: unnamed });
    expect(Object.keys(updated as object)).toEqual(Object.keys(webhook));
    expect((await readRecords(api, webhook.id)).detailed).toMatchObject(DETAILS);
    await api.call("PUT", path, { json: { ...unnamed, metadata: null } });
    const removed = await readRecords(api, webhook.id);
    expect(removed.detailed).toMatchObject({ description: DETAILS.description, metadata: null });
  });

  it("can be sent back by a key that only disables, and changed by the owner alone", async () => {
    const api = registrationApi();
    const { webhook } = await api.create({ json: { url: URL_1, ...DETAILS } });
    const path = `${COLLECTION}/${webhook.id}`;
    const { detailed } = await readRecords(api, webhook.id);
    const put = async (change: object, key = "key-a2") =>
      (await api.call("PUT", path, { key, json: { ...detailed, ...change } })).status;
    expect(await put({ description: "Mine" })).toBe(403);
    expect(await put({ status: "DISABLED", metadata: { team: "theirs" } })).toBe(403);
    expect(await put({ status: "DISABLED", description: null })).toBe(403);
    expect((await readRecords(api, webhook.id)).detailed).toEqual(detailed);
    const reordered = Object.fromEntries(Object.entries(detailed["metadata"] as object).toReversed());
    expect(await put({ status: "DISABLED", metadata: reordered })).toBe(200);
    expect(await put({ status: "ENABLED" }, "key-a1")).toBe(200);
    expect(await put({ status: "DISABLED" })).toBe(200);
    expect(await put({ status: "DISABLED", description: "Owner's" }, "key-a1")).toBe(200);
    expect((await api.call("GET", path, { key: "key-b", query: "include=details" })).status).toBe(404);
  });

  const METADATA = "metadata";
  const DESCRIPTION = "description";
  const many = Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`k${index}`, "v"]));
  const WRONG: readonly (readonly [what: string, field: string, json: string])[] = [
    ["a description of 257 characters", DESCRIPTION, JSON.stringify("x".repeat(257))],
    ["an empty description", DESCRIPTION, '""'],
    ["a description of two lines", DESCRIPTION, '"one\\ntwo"'],
    ["a description with NUL", DESCRIPTION, '"a\\u0000b"'],
    ["a description with an escape sequence", DESCRIPTION, '"\\u001b[31mred"'],
    ["a description that reverses the text", DESCRIPTION, '"\\u202egnp.exe"'],
    ["a description with a lone surrogate", DESCRIPTION, '"\\ud800"'],
    ["a number as description", DESCRIPTION, "7"],
    ["a list as description", DESCRIPTION, '["a"]'],
    ["21 keys", METADATA, JSON.stringify(many)],
    ["a key of 41 characters", METADATA, JSON.stringify({ ["k".repeat(41)]: "v" })],
    ["an empty key", METADATA, '{"":"v"}'],
    ["a key with a blank", METADATA, '{"a b":"v"}'],
    ["the key __proto__", METADATA, '{"__proto__":"v"}'],
    ["an object as __proto__", METADATA, '{"__proto__":{"isAdmin":"true"}}'],
    ["a value of 501 characters", METADATA, JSON.stringify({ k: "x".repeat(501) })],
    ["a value with a control character", METADATA, '{"k":"a\\u0007"}'],
    ["a value with a lone surrogate", METADATA, '{"k":"\\udc00"}'],
    ["a number as value", METADATA, '{"k":7}'],
    ["null as value", METADATA, '{"k":null}'],
    ["an object as value", METADATA, '{"k":{"deep":"v"}}'],
    ["a list", METADATA, '["v"]'],
    ["a text", METADATA, '"v"'],
  ];

  it.each(WRONG)("refuse %s, with nothing written", async (_, field, json) => {
    const api = registrationApi();
    const { webhook } = await api.create({ json: { url: URL_1, ...DETAILS } });
    const { detailed } = await readRecords(api, webhook.id);
    const refused = { status: 400, json: { error: { code: "invalid_request", field } } };
    const send = (method: string, path: string, fields: string) =>
      api.call(method, path, {
        body: Buffer.from(`{${fields},"${field}":${json}}`),
        headers: { "content-type": "application/json" },
      });
    expect(await send("POST", COLLECTION, `"url":"${URL_1}"`)).toMatchObject(refused);
    const update = `"url":"${URL_2}","status":"DISABLED"`;
    expect(await send("PUT", `${COLLECTION}/${webhook.id}`, update)).toMatchObject(refused);
    expect((await readRecords(api, webhook.id)).detailed).toEqual(detailed);
    expect((await api.webhooks.registrations.list({ account: "acme" })).items).toHaveLength(1);
  });

  it("take every other name that an object has as a name like any other", async () => {
    const api = registrationApi();
    const metadata = { constructor: "a", prototype: "b", toString: "c", hasOwnProperty: "d", id: "e" };
    const { webhook } = await api.create({ json: { url: URL_1, metadata } });
    expect((await readRecords(api, webhook.id)).detailed["metadata"]).toEqual(metadata);
    expect(({} as Record<string, unknown>)["isAdmin"]).toBeUndefined();
  });

  it.each([new Map([["team", "ward"]]), new Date(0), Object.assign([], { team: "ward" })])(
    "are refused in-process as an object of another kind",
    async (metadata) => {
      const { registrations } = registrationApi().webhooks;
      const request = { url: URL_1, metadata: metadata as unknown as Record<string, string> };
      await expect(registrations.create({ subscriber: ACME, ...request })).rejects.toMatchObject({
        field: METADATA,
      });
    },
  );
});
