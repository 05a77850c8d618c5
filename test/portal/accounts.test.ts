/** The list of accounts in the portal's API: for operators, and for nobody else. */

import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { createWebhooks } from "../../src/index.js";
import { createPortal, type PortalOptions, type Visitor } from "../../src/portal/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { response, START } from "../support/webhook-harness.js";

const VISITORS: Record<string, unknown> = {
  olga: { name: "Olga", operator: true },
  ada: { name: "Ada", subscriber: { id: "key-1", account: "clinic" } },
  both: { name: "Both", operator: true, subscriber: { id: "key-1", account: "clinic" } },
  nobody: { name: "Nobody" },
  text: { name: "Text", operator: "true" },
  nameless: { name: "", operator: true },
};

async function portalWith(changes: Partial<PortalOptions> = {}) {
  const clock = manualClock(START);
  const audited: object[] = [];
  const webhooks = createWebhooks({
    storage: memoryStorage(),
    access: { authenticate: () => null, canRead: () => true },
    delivery: { send: async () => response(500) },
    audit: ({ action, actor }) => {
      audited.push({ action, actor });
    },
    clock,
    logger: false,
  });
  for (const account of ["clinic", "hospital"])
    await webhooks.registrations.create({
      subscriber: { id: "key-1", account },
      url: "https://hooks.example.com/in",
    });
  const authorize: PortalOptions["authorize"] = ({ headers }) =>
    (VISITORS[headers["x-user"] ?? ""] ?? null) as Visitor | null;
  const portal = createPortal({ webhooks, authorize, clock, logger: false, ...changes });
  const get = async (
    user: string,
    query = "",
    path = "/api/accounts",
    { method = "GET", account = "", body = "" } = {},
  ) => {
    const answer = await portal.handle({
      method,
      path,
      query,
      headers: {
        host: "host.example",
        "x-user": user,
        "x-postbell-portal": "1",
        "sec-fetch-site": "same-origin",
        "content-type": "application/json",
        ...(account !== "" && { "x-postbell-account": account }),
      },
      body: body === "" ? null : Readable.from([Buffer.from(body)]),
      baseUrl: "https://host.example/portal",
    });
    const text = typeof answer?.body === "string" ? answer.body : "";
    return { status: answer?.status, text, json: JSON.parse(text || "null") as Record<string, unknown> };
  };
  return { get, audited, webhooks };
}

describe("the accounts in the portal's API", () => {
  it("are listed for an operator, and the audit hook hears the operator's name", async () => {
    const { get, audited } = await portalWith();
    const { status, json } = await get("olga", "limit=1");
    expect(status).toBe(200);
    expect(json).toEqual({
      items: [
        {
          account: "clinic",
          endpoints: { ok: 1, failing: 0, warned: 0, disabled: 0 },
          waiting: 0,
          lastDay: { attempts: 0, succeeded: 0 },
          lastEventAt: null,
        },
      ],
      next: expect.any(String),
    });
    const rest = await get("olga", `cursor=${String(json["next"])}`);
    expect(rest.json).toMatchObject({ items: [{ account: "hospital" }], next: null });
    expect((await get("olga", "state=failing")).json).toEqual({ items: [], next: null });
    const actor = { type: "operator", name: "Olga" };
    expect(audited.slice(2)).toEqual(Array(3).fill({ action: "accounts.listed", actor }));
  });

  it.each(["ada", "nobody"])("do not exist for %s, and the session names no operator", async (user) => {
    const { get, audited } = await portalWith();
    for (const [path, method] of [
      ["/api/accounts", "GET"],
      ["/api/accounts", "HEAD"],
      ["/api/accounts/", "GET"],
      ["/api/accounts/clinic", "GET"],
      ["/api/v1/accounts", "GET"],
    ] as const) {
      const { status, text } = await get(user, "operator=true&operator=1", path, { method });
      // The host answers 404 for a path that is not the portal's.
      expect([path, status ?? 404]).toEqual([path, 404]);
      expect(text).not.toContain("hospital");
    }
    expect((await get(user, "", "/api/session")).json).not.toHaveProperty("isOperator");
    expect(audited.filter((entry) => JSON.stringify(entry).includes("accounts.listed"))).toEqual([]);
  });

  it("are refused to a visitor who is not signed in, or whom the host describes wrongly", async () => {
    const { get } = await portalWith();
    expect((await get("stranger")).status).toBe(401);
    expect((await get("text")).status).toBe(503);
    expect((await get("nameless")).status).toBe(503);
  });

  it("are part of the session of an operator, who need not be a subscriber", async () => {
    const { get } = await portalWith();
    const { json } = await get("olga", "", "/api/session");
    expect(json).toMatchObject({ isOperator: true, parts: { webhooks: false } });
    expect((await get("olga", "", "/api/v1/webhooks")).status).toBe(404);
    expect((await get("both", "", "/api/session")).json).toMatchObject({ parts: { webhooks: true } });
  });

  it.each(["state=ok", "state=", "limit=0", "limit=101", "limit=x", "limit=1e1000", "cursor=x", "cursor="])(
    "answer %s with 400",
    async (query) => {
      const { get } = await portalWith();
      expect((await get("olga", query)).status).toBe(400);
    },
  );

  it("take part in the limit of requests", async () => {
    const { get } = await portalWith({ requestsPerMinute: 2 });
    expect([(await get("olga")).status, (await get("olga")).status]).toEqual([200, 200]);
    expect((await get("olga")).status).toBe(429);
  });
});

describe("the portal of an account, as an operator sees it", () => {
  const WEBHOOKS = "/api/v1/webhooks";

  it("shows the account that is named, and repairs it under the operator's name", async () => {
    const { get, audited, webhooks } = await portalWith();
    const account = encodeURIComponent("hospital");
    expect((await get("olga", "", "/api/session", { account })).json).toMatchObject({
      account: "hospital",
      parts: { webhooks: true },
    });
    const { json } = await get("olga", "", WEBHOOKS, { account });
    const [webhook] = json["webhooks"] as { id: string; url: string }[];
    const { items } = await webhooks.registrations.list({ account: "hospital" });
    expect(webhook?.id).toBe(items[0]?.id);
    const change = JSON.stringify({ url: webhook?.url, status: "DISABLED" });
    const put = { account, method: "PUT", body: change };
    expect((await get("olga", "", `${WEBHOOKS}/${webhook?.id}`, put)).status).toBe(200);
    expect(audited.at(-1)).toEqual({
      action: "webhook.disabled",
      actor: { type: "operator", name: "Olga" },
    });
    const [clinic] = (await webhooks.registrations.list({ account: "clinic" })).items;
    expect((await get("olga", "", `${WEBHOOKS}/${clinic?.id}`, { account })).status).toBe(404);
  });

  it("takes no registration of an operator, who owns no webhooks", async () => {
    const { get } = await portalWith();
    const body = JSON.stringify({ url: "https://hooks.example.com/other" });
    const { status, text } = await get("olga", "", WEBHOOKS, { account: "clinic", method: "POST", body });
    expect([status, text]).toEqual([403, expect.stringContaining("An operator owns no webhooks")]);
  });

  it.each(["ada", "nobody"])("does not exist for %s, whatever account the request names", async (user) => {
    const { get } = await portalWith();
    for (const account of ["clinic", "hospital", "%00", "__proto__"])
      for (const path of [WEBHOOKS, "/api/session", "/api/accounts/search"])
        expect([account, path, (await get(user, "q=a", path, { account })).status]).toEqual([
          account,
          path,
          404,
        ]);
  });

  it.each(["%", "%00", "%ED%A0%80", "a".repeat(257), "a".repeat(5_000)])(
    "does not exist under the malformed name %s",
    async (account) => {
      const { get } = await portalWith();
      expect((await get("olga", "", WEBHOOKS, { account })).status).toBe(404);
    },
  );
});

describe("the search of an operator", () => {
  it("finds accounts by name, endpoints by address, name and id, and events by id", async () => {
    const { get, webhooks } = await portalWith();
    const [hospital] = (await webhooks.registrations.list({ account: "hospital" })).items;
    const id = hospital?.id ?? "";
    await webhooks.registrations.update({ id, description: "Ward 3" });
    const { id: eventId } = await webhooks.emit({
      type: "patient.updated",
      account: "clinic",
      resource: { resourceType: "Patient", id: "p1" },
    });
    const find = async (q: string) =>
      (await get("olga", String(new URLSearchParams({ q })), "/api/accounts/search")).json;
    expect(await find("HOSP")).toEqual({ items: [{ account: "hospital", kind: "account" }], next: null });
    const endpoint = { account: "hospital", kind: "endpoint", webhookId: id };
    expect(await find("ward 3")).toEqual({ items: [endpoint], next: null });
    expect(await find(id)).toEqual({ items: [endpoint], next: null });
    expect(await find(eventId)).toMatchObject({ items: [{ account: "clinic", kind: "event" }], next: null });
    expect(await find("Patient/p1")).toMatchObject({ items: [{ account: "clinic", kind: "event" }] });
    expect(await find("hooks.example")).toMatchObject({
      items: [{ kind: "endpoint" }, { kind: "endpoint" }],
    });
    expect(await find("constructor")).toEqual({ items: [], next: null });
  });

  it.each(["q=", "", `q=${"x".repeat(257)}`, "q=a&cursor=x"])("answers %s with 400", async (query) => {
    const { get } = await portalWith();
    expect((await get("olga", query, "/api/accounts/search")).status).toBe(400);
  });
});
