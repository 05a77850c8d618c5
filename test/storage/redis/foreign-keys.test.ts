/**
 * Keys of a type that Postbell did not create (WRONGTYPE). Redis does not undo the writes of a
 * function that fails, so a function has to notice such a key before it writes anything.
 */

import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { manualClock } from "../../../src/testing/manual-clock.js";
import type { Claim, Settlement } from "../../../src/webhooks/store.js";
import { toFunctionName } from "../../../storage/redis/library.js";
import { createPartitions } from "../../../storage/redis/partition.js";
import { encodeOptions } from "../../../storage/redis/session.js";
import { openStore } from "../../faults/support/redis-store.js";
import { codeOf, newEvent } from "../../faults/support/store-driver.js";
import { redisUrl } from "../../support/redis.js";

const START = Date.UTC(2026, 0, 1);
const HOUR = 3_600_000;
const RETENTION = { keepMs: HOUR, events: 10_000 };

let admin: Redis;
beforeAll(() => {
  admin = new Redis(redisUrl());
});
afterAll(() => admin.disconnect());

const byField = ([one]: [string, string], [other]: [string, string]): number => (one < other ? -1 : 1);

/** The content of a key as text, whatever its encoding in Redis. */
async function readKey(key: string): Promise<string> {
  const type = await admin.type(key);
  if (type === "hash") return JSON.stringify(Object.entries(await admin.hgetall(key)).sort(byField));
  return type === "zset"
    ? JSON.stringify(await admin.zrangebyscore(key, "-inf", "+inf", "WITHSCORES"))
    : type;
}

/** Builds the settlement of an attempt that failed; the delivery waits for a retry. */
const toFailure = ({ id, token, webhook }: Claim, now: number): Settlement => ({
  id,
  webhookId: webhook.id,
  account: webhook.account,
  token,
  now,
  outcome: { state: "pending", step: 1, dueAt: now + HOUR, postponed: 0, crashes: 0, extraAt: null },
  startedAt: now,
  attempt: {
    at: now,
    kind: "http",
    durationMs: 1,
    step: 0,
    isExtra: false,
    status: 500,
    code: "HTTP_500",
    excerpt: null,
  },
  endpoint: { ok: false, generation: webhook.generation, at: now, noticeAt: now, lane: "slow" },
});

const toSuccess = (claim: Claim, now: number): Settlement => {
  const failure = toFailure(claim, now);
  return {
    ...failure,
    outcome: { state: "delivered" },
    attempt: failure.attempt && { ...failure.attempt, kind: "delivered", status: 200, code: "HTTP_200" },
    endpoint: failure.endpoint && { ...failure.endpoint, ok: true, lane: "fast" },
  };
};

/**
 * An account with a completed event and three webhooks. The first is failing: one of its
 * deliveries waits for a retry. The first and the third have a limit per second. Some deliveries
 * are in flight, others are due.
 */
async function fill() {
  const clock = manualClock(START);
  const opened = openStore({ url: redisUrl(), time: "clock" }, { clock, retention: RETENTION });
  const { store, register, append, claim, settle } = opened;
  const account = "clinic";
  const second = await register(account);
  const event = newEvent(account, { subject: "Patient/1" });
  await append(event);
  for (const one of await claim()) await settle(one);
  const first = await register(account);
  const update = (change: object, id = first.id) =>
    store.updateWebhook({ id, account, change, enabledLimit: 100, now: clock.now() });
  await update({ perSecond: 2 });
  const failed = newEvent(account);
  await append(failed);
  for (const one of await claim({ most: 2 })) {
    if (one.webhook.id === first.id) await store.settle([toFailure(one, clock.now())]);
    else await settle(one);
  }
  await clock.advance(1_000);
  for (let index = 0; index < 3; index++) await append(newEvent(account, { subject: "Patient/1" }));
  const claims = await claim({ most: 3 });
  // More than the head start of first attempts, so that the third is served after the second.
  await clock.advance(40_000);
  const third = await register(account);
  await update({ perSecond: 2 }, third.id);
  for (let index = 0; index < 3; index++) await append(newEvent(account));
  await clock.advance(1_000);
  return { ...opened, clock, account, first, second, event, failed, claims, update };
}

type Filled = Awaited<ReturnType<typeof fill>>;

const partitionOf = ({ prefix }: Filled) => {
  const [partition] = createPartitions(prefix, 1).all;
  if (partition === undefined) throw new Error("one partition");
  return partition;
};

const CALLS: Record<string, (filled: Filled) => PromiseLike<unknown>> = {
  create: ({ register, account }) => register(account),
  "create for another account": ({ register }) => register("hospital"),
  "update of the limit per second": ({ update }) => update({ perSecond: 7 }),
  "update to another URL": ({ update }) => update({ url: "https://other.example.com/" }),
  "update to DISABLED": ({ update }) => update({ status: "DISABLED" }),
  remove: ({ store, first, account, clock }) =>
    store.removeWebhook({ id: first.id, account, now: clock.now() }),
  append: ({ append, event }) => append({ ...event, id: crypto.randomUUID(), digest: "another" }),
  claim: ({ claim }) => claim(),
  "settle as delivered": ({ claims, store, clock }) =>
    store.settle(claims.map((one) => toSuccess(one, clock.now()))),
  "settle as failed": ({ claims, store, clock }) =>
    store.settle(claims.map((one) => toFailure(one, clock.now()))),
  "erase of an event": ({ store, account, failed, clock }) =>
    store.eraseEvents({ account, ids: [failed.id], now: clock.now() }),
  "erase of an account": ({ store, account, clock }) => store.eraseAccount({ account, now: clock.now() }),
  resend: ({ store, account, event, second, clock }) =>
    store.resend({ id: `${second.id}.${event.id}`, account, now: clock.now() }),
  recover: ({ store, account, first, clock }) =>
    store.recover({
      webhookId: first.id,
      account,
      since: 0,
      dueAt: clock.now(),
      everyMs: 1,
      now: clock.now(),
      states: ["missed", "failed", "pending"],
      limit: 100,
    }),
  "claim of health steps": ({ store, clock }) =>
    store.claimHealthNotifications({ now: clock.now(), leaseUntil: clock.now() + HOUR, limit: 10 }),
  "settle of a health step": ({ store, account, first, clock }) =>
    store.settleHealthNotification({
      id: first.id,
      account,
      failingSince: START,
      from: "ENABLED",
      status: "DISABLED",
      warnedAt: null,
      noticeAt: clock.now() + HOUR,
      now: clock.now(),
    }),
  tidy: (filled) => {
    const { keys } = partitionOf(filled);
    const bounds = { perEndpoint: 1_000, retentionMs: HOUR, retentionEvents: 1 };
    const options = encodeOptions(bounds as never, filled.clock.now() + 2 * HOUR);
    return admin
      .call("FCALL", toFunctionName("tidy"), keys.length, ...keys, options)
      .catch(() => Promise.reject(Object.assign(new Error(), { code: "storage_unavailable" })));
  },
};

/** Sets counters wrong and removes entries, so that each part of a repair has much to write. */
const DAMAGE: Record<string, (filled: Filled) => Promise<unknown>> = {
  "repair of slots": ({ key }) => admin.hset(key("in-flight"), "1", "9"),
  "repair of accounts": ({ key }) => admin.hset(key("account-counts"), "1", "99,99,"),
  "repair of deliveries": ({ key }) => admin.del(key("leases")),
  "repair of the log": ({ key }) => admin.del(key("queue")),
  "repair of counts": ({ key }) => admin.hset(key("webhook-counts"), "1", "9,9,9,0,0\n\n"),
};

for (const name of Object.keys(DAMAGE)) CALLS[name] = ({ storage }) => storage.check();

describe("a key of a foreign type", () => {
  test.each(Object.entries(CALLS))(
    "%s: a call that is rejected has written nothing, and succeeds once the key is gone",
    async (call, run) => {
      const [sample] = createPartitions("p", 1).all;
      const names = (sample?.keys ?? []).map((key) => key.slice("{p:0}:".length));
      const wrong: string[] = [];
      for (const name of names) {
        const filled = await fill();
        await DAMAGE[call]?.(filled);
        const foreign = filled.key(name);
        const others = partitionOf(filled).keys.filter((key) => key !== foreign);
        const dump = () => Promise.all(others.map(readKey));
        const isThere = (await admin.exists(foreign)) === 1;
        if (isThere) await admin.rename(foreign, `${foreign}-aside`);
        await admin.set(foreign, "foreign");
        const before = await dump();
        const code = await codeOf(run(filled));
        const after = await dump();
        if (code !== "resolved") {
          const changed = others.filter((_, index) => before[index] !== after[index]);
          if (changed.length > 0) wrong.push(`${name}: ${changed.join(" ")}`);
          await admin.del(foreign);
          if (isThere) await admin.rename(`${foreign}-aside`, foreign);
          const again = await codeOf(run(filled));
          if (again !== "resolved") wrong.push(`${name}: then ${again}`);
        }
        await filled.storage.close();
      }
      expect(wrong).toEqual([]);
    },
  );
});
