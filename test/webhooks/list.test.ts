/** Lists: `await` gives a page, `for await` gives all items. */

import { describe, expect, it } from "vitest";
import { PagedList } from "../../src/webhooks/list.js";
import { registrationApi, storageWith, URL_1 } from "../support/registration-api.js";

const ACME = { id: "first", account: "acme" };

/** A service with 120 webhooks of one account, and the sizes of the pages that were read. */
async function startListed() {
  const reads: number[] = [];
  const storage = storageWith((store) => ({
    async listWebhooks(request) {
      const page = await store.listWebhooks(request);
      reads.push(page.webhooks.length);
      return page;
    },
  }));
  const limits = { webhooks: 200, enabledWebhooks: 200 };
  const { webhooks } = registrationApi({ storage, limits });
  const ids: string[] = [];
  for (let count = 0; count < 120; count++) {
    const { webhook } = await webhooks.registrations.create({ subscriber: ACME, url: URL_1 });
    ids.push(webhook.id);
  }
  return { webhooks, ids, reads };
}

describe("a list", () => {
  it("gives its first page when it is awaited, and the next by its cursor", async () => {
    const { webhooks, ids, reads } = await startListed();
    const first = await webhooks.registrations.list({ account: "acme" });
    expect(first.items.map(({ id }) => id)).toEqual(ids.slice(0, 50));
    const cursor = first.next ?? "";
    const last = await webhooks.registrations.list({ account: "acme", cursor, limit: 100 });
    expect([last.items.map(({ id }) => id), last.next]).toEqual([ids.slice(50), null]);
    expect(reads).toEqual([50, 70]);
  });

  it("gives every item in order when it is iterated over, page by page", async () => {
    const { webhooks, ids, reads } = await startListed();
    const seen: string[] = [];
    const read: number[] = [];
    for await (const { id } of webhooks.registrations.list({ account: "acme", limit: 40 })) {
      seen.push(id);
      read.push(reads.length);
    }
    expect(seen).toEqual(ids);
    // A page is read once its first item is needed, and not before.
    expect(read).toEqual([...Array(40).fill(1), ...Array(40).fill(2), ...Array(40).fill(3)]);
  });

  it("reads no further page once a loop ends", async () => {
    const { webhooks, reads } = await startListed();
    for await (const _ of webhooks.registrations.list({ account: "acme", limit: 10 })) break;
    expect(reads).toEqual([10]);
  });

  it("reads nothing before it is awaited, and one page however often it is awaited", async () => {
    const { webhooks, reads } = await startListed();
    const list = webhooks.registrations.list({ account: "acme" });
    expect(reads).toEqual([]);
    expect(await list).toBe(await list);
    expect(reads).toEqual([50]);
  });

  it("goes on after a page without items", async () => {
    const pages = [[1], [], [2, 3], []];
    const list = new PagedList(undefined, async (cursor = "0") => {
      const index = Number(cursor);
      return { items: pages[index] ?? [], next: index === 3 ? null : String(index + 1) };
    });
    const seen: number[] = [];
    for await (const item of list) seen.push(item);
    expect(seen).toEqual([1, 2, 3]);
  });

  it("rejects when it is awaited and when it is iterated over, never when it is made", async () => {
    const { webhooks } = registrationApi();
    const refusal = { code: "invalid_argument", field: "acount" };
    const list = () => webhooks.registrations.list({ acount: "acme" } as never);
    await expect(list()).rejects.toMatchObject(refusal);
    const iterate = async () => {
      for await (const _ of list()) throw new Error("an item");
    };
    await expect(iterate()).rejects.toMatchObject(refusal);
  });
});

it("refuses who is both a subscriber and an operator, such as a user with such a field", () => {
  const { webhooks } = registrationApi({});
  const user = { ...ACME, operator: "Vodafone" };
  expect(() => webhooks.as(user)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
});

describe("the lists of as(subscriber)", () => {
  it("have the subscriber's account by default, and refuse every other one", async () => {
    const { webhooks } = registrationApi({ limits: { auditEntries: 10 } });
    const { webhook } = await webhooks.registrations.create({ subscriber: ACME, url: URL_1 });
    await webhooks.registrations.create({ subscriber: { id: "first", account: "bolt" }, url: URL_1 });
    const own = webhooks.as(ACME);
    for (const request of [undefined, {}, { account: "acme" }]) {
      expect(await own.registrations.list(request)).toEqual({ items: [webhook], next: null });
      expect((await own.audit.list(request)).items).toMatchObject([{ webhookId: webhook.id }]);
    }
    expect(await own.deliveries.list({})).toEqual({ items: [], next: null });
    const foreign = { account: "bolt" };
    for (const list of [
      own.registrations.list(foreign),
      own.audit.list(foreign),
      own.deliveries.list(foreign),
    ])
      await expect(list).rejects.toMatchObject({ code: "not_found" });
  });

  it("are those of the account also in calls that create", async () => {
    const { webhooks } = registrationApi();
    const own = webhooks.as(ACME).registrations;
    const { webhook } = await own.create({ url: URL_1 });
    expect(webhook).toMatchObject({ account: "acme", subscriberId: "first" });
    const subscriber = { id: "first", account: "bolt" };
    await expect(own.create({ url: URL_1, subscriber } as never)).rejects.toMatchObject({
      code: "invalid_argument",
      field: "subscriber",
    });
    expect(own).not.toHaveProperty("transfer");
  });
});
