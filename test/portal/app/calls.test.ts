import { describe, expect, it } from "vitest";
import { findDeliveries, readSubscriptions } from "../../../src/portal/app/webhooks/calls.js";
import {
  formatListAddress,
  parseListAddress,
  readListPage,
} from "../../../src/portal/app/webhooks/delivery-pages.js";
import type { DeliveryPageJson } from "../../../src/portal/shapes.js";
import { pendingDelivery } from "./support.js";

describe("deliveries that a filter finds", () => {
  const pages: readonly DeliveryPageJson[] = [
    { deliveries: [], next: "1" },
    { deliveries: [pendingDelivery({ id: "a" })], next: "2" },
    { deliveries: [pendingDelivery({ id: "b" })], next: "3" },
    { deliveries: [pendingDelivery({ id: "c" })], next: null },
  ];
  const find = async (limit: number, given = pages) => {
    const asked: unknown[] = [];
    const get = async (_path: string, query: Readonly<Record<string, unknown>> = {}) => {
      asked.push(query);
      return given[Number(query["cursor"] ?? 0) % given.length] as never;
    };
    const { deliveries, next } = await findDeliveries({ get }, "w", { state: "failed" }, { limit });
    return { ids: deliveries.map(({ id }) => id), next, asked };
  };

  it("are looked for beyond pages that come back short", async () => {
    expect(await find(2)).toMatchObject({
      ids: ["a", "b"],
      next: "3",
      asked: [
        { state: "failed", cursor: undefined, limit: 2 },
        { state: "failed", cursor: "1", limit: 2 },
        { state: "failed", cursor: "2", limit: 1 },
      ],
    });
    expect(await find(20)).toMatchObject({ ids: ["a", "b", "c"], next: null });
  });

  it("are those of the account without a webhook", async () => {
    const paths: string[] = [];
    const get = async (path: string) => {
      paths.push(path);
      return { deliveries: [], next: null } as never;
    };
    await findDeliveries({ get }, undefined, {}, { limit: 1 });
    await findDeliveries({ get }, "w", {}, { limit: 1 });
    expect(paths).toEqual(["v1/deliveries", "v1/webhooks/w/deliveries"]);
  });

  it("are not looked for without end", async () => {
    const { asked, next } = await find(20, [{ deliveries: [], next: "0" }]);
    expect([asked.length, next]).toEqual([20, "0"]);
  });
});

describe("the subscriptions of an account", () => {
  it("are read page by page, but not without end", async () => {
    const asked: unknown[] = [];
    const read = (pages: readonly { readonly webhooks: readonly object[]; readonly next: string | null }[]) =>
      readSubscriptions({
        get: async (_path, query = {}) => {
          asked.push(query["cursor"]);
          return pages[Number(query["cursor"] ?? 0) % pages.length] as never;
        },
      });
    const pages = [
      { webhooks: [{ id: "a" }], next: "1" },
      { webhooks: [{ id: "b" }], next: null },
    ];
    expect(await read(pages)).toEqual([{ id: "a" }, { id: "b" }]);
    expect(asked.splice(0)).toEqual([undefined, "1"]);
    await read([{ webhooks: [], next: "0" }]);
    expect(asked).toHaveLength(20);
  });
});

describe("the address of a list of deliveries", () => {
  const parse = (query: string) => parseListAddress(new URLSearchParams(query));

  it("holds filters and the page, and is read back as it was written", () => {
    const address = {
      state: "failed",
      type: "patient.updated",
      since: "2026-01-12T08:00:00.000Z",
      until: "2026-01-12T09:00:00.000Z",
      q: "Patient/p1 & <b>",
      after: "1768204800000_0b7a1c5e-2f9d-4c0e-9d38-6c1f8d0a5e11_x=",
      open: "a.b",
    } as const;
    const [path, query = ""] = formatListAddress("/deliveries", address).split("?");
    expect(path).toBe("/deliveries");
    expect(parse(query)).toEqual(address);
    expect(formatListAddress("/deliveries", parse(""))).toBe("/deliveries");
  });

  it("prefers a period that ends now to times", () => {
    expect(parse("period=24h&since=2026-01-12T08:00:00Z")).toEqual({ period: "24h" });
  });

  it("leaves out what is no filter, whoever wrote it", () => {
    expect(
      parse(
        `state=everything&period=constructor&since=tomorrow&until=&q=${"x".repeat(500)}&after=${"1".repeat(500)}&__proto__=x`,
      ),
    ).toEqual({});
  });
});

describe("a page of a list of deliveries", () => {
  const eventId = "0b7a1c5e-2f9d-4c0e-9d38-6c1f8d0a5e11";
  const read = async (
    q: string,
    pages: readonly DeliveryPageJson[] = [{ deliveries: [], next: null }],
    { after, limit = 50 }: { after?: string | undefined; limit?: number } = {},
  ) => {
    const asked: Readonly<Record<string, unknown>>[] = [];
    const get = async (_path: string, query: Readonly<Record<string, unknown>> = {}) => {
      asked.push(query);
      const bySubject = pages.filter(({ deliveries }) => deliveries[0]?.subject === query["subject"]);
      const found = query["subject"] === undefined ? pages : bySubject;
      return (found[Number(query["cursor"] ?? 0) % found.length] ?? { deliveries: [], next: null }) as never;
    };
    const address = { q, period: "1h", after };
    return { ...(await readListPage({ get }, "w", address, { limit, now: 3_600_000 })), asked };
  };

  it("of an event is found by the event's ID and by the ID of a delivery", async () => {
    for (const q of [eventId, eventId.toUpperCase(), `${eventId}.${eventId}`, `${eventId}.${eventId}.12`])
      expect((await read(q)).asked).toEqual([
        expect.objectContaining({ event_id: eventId, since: "1970-01-01T00:00:00.000Z", limit: 50 }),
      ]);
  });

  it("of a subject is found by the service's index, as it is typed or with a slash, page by page", async () => {
    const page = (id: string, next: string | null) => ({
      deliveries: [pendingDelivery({ id, subject: "order/A-2015" })],
      next,
    });
    const pages = [page("a", "1"), page("b", null)];
    for (const q of ["order/A-2015", " order A-2015 "]) {
      const first = await read(q, pages, { limit: 1 });
      const second = await read(q, pages, { limit: 1, after: first.next ?? undefined });
      const found = [first.deliveries, second.deliveries];
      expect(found.map(([delivery]) => delivery?.id)).toEqual(["a", "b"]);
    }
  });

  it("of a part of a subject is looked for among the newest, but not without end", async () => {
    const deliveries = [
      pendingDelivery({ id: "a", subject: "Patient/p1" }),
      pendingDelivery({ id: "b", subject: "Patient/p2" }),
      pendingDelivery({ id: "c", subject: null }),
    ];
    const { deliveries: found, searched, next, asked } = await read("TIENT/p1", [{ deliveries, next: "0" }]);
    expect(found.map(({ id }) => id)).toEqual(["a", "a", "a", "a", "a"]);
    expect([searched, next, asked.length]).toEqual([15, "0", 6]);
    expect((await read("0b7a", [{ deliveries, next: null }])).deliveries).toHaveLength(3);
  });
});
