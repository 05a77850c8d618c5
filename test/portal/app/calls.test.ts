import { describe, expect, it } from "vitest";
import { findDeliveries, readSubscriptions } from "../../../src/portal/app/webhooks/calls.js";
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
