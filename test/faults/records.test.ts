/**
 * Records that something else wrote or cut off (F52): what cannot be read is set aside with an
 * alarm, and everything else goes on.
 */

import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encodeUuid } from "../../storage/redis/codec.js";
import { createPartitions } from "../../storage/redis/partition.js";
import { type RedisServer, startRedis } from "../support/redis-server.js";
import { type OpenStore, openStore } from "./support/redis-store.js";
import { codeOf, eventually, newEvent } from "./support/store-driver.js";

const RESUMED_MS = 2_000;
/** The first webhook of the first account, as `createPartitions` numbers them. */
const WEBHOOK = "1";
const ACCOUNT = "1";

let redis: RedisServer;
let admin: Redis;
beforeAll(async () => {
  redis = await startRedis();
  admin = new Redis(redis.port);
});
afterAll(async () => {
  admin.disconnect();
  await redis.stop();
});

/**
 * Claims and settles, whatever rejects, until each of these events is settled, which then is in
 * `done`.
 */
async function served(
  { claim, settle }: OpenStore,
  eventIds: readonly string[],
  done = new Set<string>(),
): Promise<string> {
  const left = (): readonly string[] => eventIds.filter((id) => !done.has(id));
  const isServed = async (): Promise<boolean> => {
    const claims = await claim().catch(() => []);
    await Promise.all(
      claims.map(async (one) => {
        if ((await codeOf(settle(one))) === "resolved") done.add(one.event.id);
      }),
    );
    return left().length === 0;
  };
  return eventually(isServed, { ms: RESUMED_MS, what: "served" }).then(
    () => "served",
    () => `${left().length} left`,
  );
}

interface Corruption {
  readonly what: string;
  readonly key: string;
  /**
   * Of a hash: field and value. Of a sorted set: score and member. `EVENT` stands for the first
   * event.
   */
  readonly entry: readonly [string, string];
  readonly isHash: boolean;
  /** True if the second event of the same endpoint must still be delivered. */
  readonly sparesTheRest: boolean;
  readonly raisesAlarm: boolean;
}

const hash = (
  what: string,
  key: string,
  field: string,
  value: string,
  rest: Partial<Corruption> = {},
): Corruption => ({
  what,
  key,
  entry: [field, value],
  isHash: true,
  sparesTheRest: true,
  raisesAlarm: true,
  ...rest,
});
const member = (what: string, key: string, score: string, text: string): Corruption => ({
  what,
  key,
  entry: [score, text],
  isHash: false,
  sparesTheRest: true,
  raisesAlarm: false,
});

const CORRUPTIONS: readonly Corruption[] = [
  hash("an event that is no event", "events", `${ACCOUNT}/EVENT`, "garbage"),
  hash("an empty event", "events", `${ACCOUNT}/EVENT`, ""),
  hash("an event cut off after its first line", "events", `${ACCOUNT}/EVENT`, "019c0000000000000,0,n,r"),
  hash("an invalid delivery", "deliveries", `${WEBHOOK}/EVENT`, "garbage"),
  hash("the progress of an event", "progress", `${ACCOUNT}/EVENT`, "garbage", { raisesAlarm: false }),
  hash("an invalid webhook", "webhooks", WEBHOOK, "garbage", { sparesTheRest: false }),
  hash("a webhook with an invalid config", "webhooks", WEBHOOK, `${ACCOUNT},sick,E,1,1,,,,s,\ngarbage`, {
    sparesTheRest: false,
  }),
  hash("the webhooks of an account", "accounts", "sick", "garbage", { raisesAlarm: false }),
  hash("a count of deliveries in flight", "in-flight", WEBHOOK, "garbage", { raisesAlarm: false }),
  member("a place in the queue with no time", "queue", "0", `${WEBHOOK}/garbage/x`),
  member("a place in the queue of no event", "queue", "0", `${WEBHOOK}/00000000000/garbage`),
  member("a lease of nothing", "leases", "1", "garbage"),
  member("a turn of no endpoint", "ready:slow", "1", "garbage"),
  member("an invalid account to be freed", "retention", "1", "garbage"),
  hash("a removal of nothing", "removals", WEBHOOK, "garbage", { raisesAlarm: false }),
  hash("the order", "meta", "order", "garbage", { raisesAlarm: false }),
  hash("the turn", "meta", "turn", "garbage", { raisesAlarm: false }),
];

describe("garbage in the place of", () => {
  test.each(CORRUPTIONS)(
    "$what: the other deliveries go on",
    async ({ key, entry, isHash, sparesTheRest, raisesAlarm }) => {
      const opened = openStore({ url: redis.url });
      await opened.register("sick");
      await opened.register("well");
      const [first, second, other] = [newEvent("sick"), newEvent("sick"), newEvent("well")];
      // By another process, so that this one has to read them.
      const emitter = openStore({ url: redis.url, prefix: opened.prefix });
      for (const event of [first, second, other]) await emitter.append(event);
      await emitter.storage.close();
      const [left, right] = entry.map((text) => text.replace("EVENT", encodeUuid(first.id))) as [
        string,
        string,
      ];
      if (isHash) await admin.hset(opened.key(key), left, right);
      else await admin.zadd(opened.key(key), left, right);

      const later = newEvent("well");
      const done = new Set<string>();
      const seen = {
        emit: await codeOf(opened.append(later)),
        well: await served(opened, [other.id, later.id], done),
        sick: sparesTheRest ? await served(opened, [second.id], done) : "not asked",
        alarm: opened.log.some(({ level }) => level === "error"),
        check: await codeOf(opened.storage.check()),
      };
      await opened.storage.close();
      expect(seen).toEqual({
        emit: "resolved",
        well: "served",
        sick: sparesTheRest ? "served" : "not asked",
        alarm: raisesAlarm ? true : seen.alarm,
        check: "resolved",
      });
    },
  );

  test("a health step of no webhook: the other steps go on", async () => {
    const opened = openStore({ url: redis.url });
    await opened.register();
    await admin.zadd(opened.key("health-notifications"), 1, "garbage");
    const now = opened.store.now();
    const asked = opened.store.claimHealthNotifications({ now, leaseUntil: now + 1_000, limit: 10 });
    expect(await codeOf(asked)).toBe("resolved");
    await opened.storage.close();
  });

  test("a webhook: reading it rejects with a code, and the list shows the others", async () => {
    const opened = openStore({ url: redis.url });
    const { id } = await opened.register("clinic");
    await opened.register("clinic");
    await admin.hset(opened.key("webhooks"), WEBHOOK, "garbage");
    expect(await codeOf(opened.store.getWebhook(id))).toBe("storage_unavailable");
    const listed = await opened.store.listWebhooks({ account: "clinic", limit: 10 });
    expect(listed.webhooks).toHaveLength(1);
    await opened.storage.close();
  });
});

describe("the list of accounts", () => {
  test("passes over an account that cannot be read, and over names without an account", async () => {
    const opened = openStore({ url: redis.url });
    for (const account of ["first", "unreadable", "last"]) await opened.register(account);
    await admin.hset(opened.key("accounts"), "unreadable", "garbage");
    await admin.zadd(opened.key("account-list"), 2, "nobody", 9, "no one");
    const names: string[] = [];
    let cursor: string | null | undefined;
    for (let page = 0; page < 20 && cursor !== null; page += 1) {
      const { accounts, next } = await opened.store.listAccounts({
        cursor: cursor ?? undefined,
        limit: 1,
        now: opened.store.now(),
      });
      names.push(...accounts.map(({ account }) => account));
      cursor = next;
    }
    await opened.storage.close();
    expect(cursor).toBeNull();
    expect(names).toEqual(["first", "last"]);
  });
});

/** After the foreign value is gone: a webhook, an event, a delivery. */
const KEYS = createPartitions("p", 1).all[0]?.keys.map((key) => key.slice("{p:0}:".length)) ?? [];

describe("a key of a foreign type (WRONGTYPE)", () => {
  test.each(KEYS)(
    "%s: calls reject with storage_unavailable, and once it is gone an event emitted again arrives",
    async (key) => {
      const opened = openStore({ url: redis.url });
      await opened.register();
      // Overwritten data is lost; data whose write it prevents must not be.
      const account = (await admin.exists(opened.key(key))) ? "another" : "clinic";
      await admin.set(opened.key(key), "foreign");
      const event = newEvent("clinic");
      const codes = [
        await codeOf(opened.append(event)),
        // Its lease ends at once: nobody makes use of what it may give.
        await codeOf(opened.claim({ leaseMs: 1 })),
        await codeOf(opened.store.getDelivery(`${randomUUID()}.${event.id}`)),
      ];
      for (const code of codes) expect(["resolved", "storage_unavailable"]).toContain(code);
      await admin.del(opened.key(key));
      await opened.register(account);
      const again = account === "clinic" ? event : newEvent(account);
      await opened.append(again);
      expect(await served(opened, [again.id])).toBe("served");
      await opened.storage.close();
    },
  );
});
