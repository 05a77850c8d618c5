/** The work of a call: it does not grow with the log of its account. */

import assert from "node:assert/strict";
import { HOUR_MS, NO_ROOM, RETENTION, SECOND_MS } from "./builders.js";
import type { DeclareTest, Scenario } from "./fixture.js";
import { type BusyAccount, createBusyAccount, emitMany, LOG_LENGTH } from "./long-logs.js";

/** How much more a call may do on a log of twice the length: a binary search takes a step more. */
const MARGIN = 1.2;

/** Events that were resent, and how often: together more than one recovery call may examine. */
const RESENT_EVENTS = 30;
const RESENDS = 35;

/** Asserts that the second of two costs, on twice the data, is about as small as the first. */
function assertNoGrowth([once = 0, twice = 0]: number[]): void {
  assert.ok(twice <= MARGIN * once + 50, `${once}, with twice the resends ${twice}`);
}

/** Emits events whose first delivery and `resends` further ones fail. Returns the webhook's id. */
async function failRepeatedly(
  s: Scenario,
  account: string,
  resends: number,
  events = RESENT_EVENTS,
): Promise<string> {
  const { id } = await s.register({ account });
  await emitMany(s, account, events);
  for (let round = 0; round <= resends; round++) {
    const claims = (await s.claim()).filter(({ webhook }) => webhook.account === account);
    assert.equal(claims.length, events);
    // Without a report the endpoint stays healthy, so that every claim returns all events.
    const failed = { state: "failed", reason: "exhausted" } as const;
    await Promise.all(claims.map((claim) => s.settle(claim, failed, { endpoint: null })));
    if (round < resends) await Promise.all(claims.map((claim) => s.resend(claim.id)));
  }
  return id;
}

/** Every call that a subscriber can cause. The last ones remove what the others read. */
const CALLS: Record<string, (s: Scenario, account: BusyAccount) => Promise<unknown>> = {
  "list a webhook with one old delivery": ({ store }, { rareId }) =>
    store.listDeliveries({ webhookId: rareId, limit: 50 }),
  "list a webhook without deliveries": ({ store }, { idleId }) =>
    store.listDeliveries({ webhookId: idleId, limit: 50 }),
  "list a webhook with many deliveries": ({ store }, { busyId }) =>
    store.listDeliveries({ webhookId: busyId, limit: 50 }),
  "list by state": ({ store }, { busyId }) =>
    store.listDeliveries({ webhookId: busyId, limit: 50, state: "delivered" }),
  "list by type": ({ store }, { busyId }) =>
    store.listDeliveries({ webhookId: busyId, limit: 50, type: "consent.created" }),
  "list old deliveries": ({ store, now }, { busyId }) =>
    store.listDeliveries({ webhookId: busyId, limit: 50, until: now() - HOUR_MS }),
  "list new deliveries": ({ store, now }, { busyId }) =>
    store.listDeliveries({ webhookId: busyId, limit: 50, since: now() }),
  "read the feed of a webhook with many deliveries": ({ store, now }, { busyId }) =>
    store.readDeliveriesAfter({ webhookId: busyId, since: 0, until: now(), limit: 50 }),
  "read the feed of a webhook without deliveries": ({ store, now }, { idleId }) =>
    store.readDeliveriesAfter({ webhookId: idleId, since: 0, until: now(), limit: 50 }),
  "recover when nothing is missing": ({ recover }, { busyId }) => recover(busyId, { limit: 1_000_000 }),
  "recover new events": ({ recover, now }, { busyId }) => recover(busyId, { since: now(), limit: 1_000_000 }),
  "count the deliveries of a webhook": ({ store }, { busyId }) => store.deliveryStats(busyId, store.now()),
  "read a delivery": ({ store }, { oldestId }) => store.getDelivery(oldestId),
  "resend a delivery": ({ resend }, { oldestId }) => resend(oldestId),
  "emit a test event": ({ emit }, { name, idleId }) => emit({ account: name }, { webhookId: idleId }),
  "list webhooks": ({ store }, { name }) => store.listWebhooks({ account: name, limit: 50 }),
  "create and remove a webhook": async ({ register, remove }, { name }) => {
    const { id } = await register({ account: name });
    await remove(id);
  },
  "remove a webhook with many deliveries": ({ remove }, { busyId }) => remove(busyId),
  "claim while a removed webhook is cleaned up": ({ claimWithNextAt }) => claimWithNextAt({ room: NO_ROOM }),
};

/** Needs `work`, which counts what the storage does. Without it these tests check nothing. */
export function testWorkPerCall(it: DeclareTest): void {
  it(
    "the work of a recovery does not grow with the number of resends, and it misses no event",
    async (s) => {
      const { work } = s;
      if (!work) return;
      const webhooks = [
        await failRepeatedly(s, "clinic", RESENDS),
        await failRepeatedly(s, "hospital", 2 * RESENDS),
      ];
      const costs: number[] = [];
      for (const id of webhooks) {
        const before = await work();
        const step = await s.recover(id, { limit: 1_000_000 });
        costs.push((await work()) - before);
        assert.ok(step);
        let { count, next } = step;
        while (next !== null) {
          const further = await s.recover(id, { cursor: next, limit: 1_000_000 });
          assert.ok(further);
          count += further.count;
          next = further.next;
        }
        assert.equal(count, RESENT_EVENTS);
      }
      assertNoGrowth(costs);
    },
    { perEndpoint: 1_000 },
  );

  it(
    "the work of a claim does not grow with the number of resends of the events that it frees",
    async (s) => {
      const { work } = s;
      if (!work) return;
      const costs: number[] = [];
      for (const [account, resends] of [
        ["clinic", RESENDS],
        ["hospital", 2 * RESENDS],
      ] as const) {
        const id = await failRepeatedly(s, account, resends, 8);
        await s.advance(RETENTION.keepMs + SECOND_MS);
        const before = await work();
        await s.claimWithNextAt({ room: NO_ROOM });
        costs.push((await work()) - before);
        await s.tidy();
        assert.deepEqual((await s.store.listDeliveries({ webhookId: id, limit: 100 })).deliveries, []);
      }
      assertNoGrowth(costs);
    },
    { perEndpoint: 1_000 },
  );

  it("the work of a call does not grow with the log of its account", async (s) => {
    const { work } = s;
    if (!work) return;
    const [short, long] = [
      await createBusyAccount(s, "clinic", LOG_LENGTH),
      await createBusyAccount(s, "hospital", 2 * LOG_LENGTH),
    ];
    const grown: string[] = [];
    for (const [name, call] of Object.entries(CALLS)) {
      const cost = async (account: BusyAccount): Promise<number> => {
        const before = await work();
        await call(s, account);
        return (await work()) - before;
      };
      // The first call of a kind may prepare what later calls reuse.
      if (!name.includes("remov")) await cost(short);
      const [shortCost, longCost] = [await cost(short), await cost(long)];
      if (longCost > MARGIN * shortCost + 50)
        grown.push(`${name}: ${shortCost}, with twice the log ${longCost}`);
    }
    assert.deepEqual(grown, []);
  });
}
