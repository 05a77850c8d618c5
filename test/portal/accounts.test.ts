/** The list of accounts in the portal's API: for operators, and for nobody else. */

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
  const get = async (user: string, query = "", path = "/api/accounts", method = "GET") => {
    const answer = await portal.handle({
      method,
      path,
      query,
      headers: { host: "host.example", "x-user": user, "x-postbell-portal": "1" },
      body: null,
      baseUrl: "https://host.example/portal",
    });
    const text = typeof answer?.body === "string" ? answer.body : "";
    return { status: answer?.status, text, json: JSON.parse(text || "null") as Record<string, unknown> };
  };
  return { get, audited };
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
      const { status, text } = await get(user, "operator=true&operator=1", path, method);
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
