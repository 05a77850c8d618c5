/** The storage contract on how much one call may do: it costs the same however long the log of the account is. */

import assert from "node:assert/strict";
import { allPages, listIds, only, times } from "./lists.js";
import { type DeclareTest, HOUR_MS, RETENTION, type Scenario, SECOND_MS } from "./scenario.js";

/** More than a page may examine in any storage. */
const LOG = 1_200;
const EMITTED_TOGETHER = 200;
/** How much more work a log of twice the length may cause: a search by halves takes a step more. */
const MARGIN = 1.2;

/** Emits `count` events that only webhooks for all types, or for patients, receive. */
async function fill(s: Scenario, account: string, count: number): Promise<void> {
  for (let left = count; left > 0; left -= EMITTED_TOGETHER) {
    await Promise.all(Array.from({ length: Math.min(left, EMITTED_TOGETHER) }, () => s.emit({ account })));
  }
}

/** Events that were sent again, and how often: together more than a recovery may look at in one call. */
const RESENT_EVENTS = 30;
const RESENDS = 35;

/** Emits events of which every delivery to the webhook failed, the first one and `resends` later ones. */
async function failAgainAndAgain(
  s: Scenario,
  account: string,
  resends: number,
  events = RESENT_EVENTS,
): Promise<string> {
  const { id } = await s.register({ account });
  await fill(s, account, events);
  for (let round = 0; round <= resends; round++) {
    const claims = (await s.claim()).filter(({ webhook }) => webhook.account === account);
    assert.equal(claims.length, events);
    // Without a report the endpoint stays healthy, and is claimed at full width.
    const failed = { state: "failed", reason: "exhausted" } as const;
    await Promise.all(claims.map((claim) => s.settle(claim, failed, { endpoint: null })));
    if (round < resends) await Promise.all(claims.map((claim) => s.resend(claim.id)));
  }
  return id;
}

interface Account {
  readonly name: string;
  /** Subscribes to other types: it has one delivery, the oldest of the account. */
  readonly rareId: string;
  /** Has no delivery at all. */
  readonly idleId: string;
  readonly busyId: string;
  /** The oldest delivery of the account. */
  readonly oldestId: string;
}

async function accountWith(s: Scenario, name: string, events: number): Promise<Account> {
  const { id: rareId } = await s.register({ account: name, eventTypes: ["consent.*"] });
  const { id: idleId } = await s.register({ account: name, eventTypes: ["practitioner.*"] });
  const { id: busyId } = await s.register({ account: name, eventTypes: ["patient.*"] });
  const { ids } = await s.emit({ account: name, type: "consent.created" });
  await s.advance(SECOND_MS);
  await fill(s, name, events);
  await s.advance(SECOND_MS);
  return { name, rareId, idleId, busyId, oldestId: only(ids) };
}

/** Every call that a subscriber can cause, for one account. The last ones remove what the others look at. */
const CALLS: Readonly<Record<string, (s: Scenario, account: Account) => Promise<unknown>>> = {
  "a list of a webhook with one old delivery": ({ store }, { rareId }) =>
    store.listDeliveries({ webhookId: rareId, limit: 50 }),
  "a list of a webhook without deliveries": ({ store }, { idleId }) =>
    store.listDeliveries({ webhookId: idleId, limit: 50 }),
  "a list of a webhook with many deliveries": ({ store }, { busyId }) =>
    store.listDeliveries({ webhookId: busyId, limit: 50 }),
  "a list by a state": ({ store }, { busyId }) =>
    store.listDeliveries({ webhookId: busyId, limit: 50, state: "delivered" }),
  "a list by a type": ({ store }, { busyId }) =>
    store.listDeliveries({ webhookId: busyId, limit: 50, type: "consent.created" }),
  "a list until long ago": ({ store, now }, { busyId }) =>
    store.listDeliveries({ webhookId: busyId, limit: 50, until: now() - HOUR_MS }),
  "a list of what is new": ({ store, now }, { busyId }) =>
    store.listDeliveries({ webhookId: busyId, limit: 50, since: now() }),
  "a recovery that finds nothing": ({ recover }, { busyId }) => recover(busyId, { limit: 1_000_000 }),
  "a recovery of what is new": ({ recover, now }, { busyId }) =>
    recover(busyId, { since: now(), limit: 1_000_000 }),
  "the counts of a webhook": ({ store }, { busyId }) => store.deliveryStats(busyId),
  "a delivery": ({ store }, { oldestId }) => store.getDelivery(oldestId),
  "a resend": ({ resend }, { oldestId }) => resend(oldestId),
  "a test": ({ emit }, { name, idleId }) => emit({ account: name }, { webhookId: idleId }),
  "a list of webhooks": ({ store }, { name }) => store.listWebhooks({ account: name, limit: 50 }),
  "a webhook that is created and removed": async ({ register, remove }, { name }) => {
    const { id } = await register({ account: name });
    await remove(id);
  },
  "the removal of a webhook with many deliveries": ({ remove }, { busyId }) => remove(busyId),
  "a claim while a removed webhook is cleaned up": ({ claimAll }) => claimAll({ room: { fast: 0, slow: 0 } }),
};

export function budgets(declare: DeclareTest): void {
  declare("a page of a long log may be short or empty, and the pages together miss nothing", async (s) => {
    const { rareId, idleId, busyId, oldestId } = await accountWith(s, "clinic", LOG);
    const listedOf = (webhookId: string, query: object) =>
      allPages(async (cursor) => {
        const page = await s.store.listDeliveries({ webhookId, ...query, limit: 100, cursor });
        assert.ok(page.deliveries.length <= 100);
        return { rows: page.deliveries, next: page.next };
      });
    assert.deepEqual(listIds(await listedOf(rareId, {})), [oldestId]);
    assert.deepEqual(listIds(await listedOf(rareId, { state: "pending" })), [oldestId]);
    assert.deepEqual(await listedOf(rareId, { state: "failed" }), []);
    assert.deepEqual(await listedOf(idleId, {}), []);
    assert.equal(new Set(listIds(await listedOf(busyId, {}))).size, LOG);
  });

  declare(
    "a recovery of a long log goes on where it stopped, says what it examined, and misses nothing",
    async (s) => {
      const { id } = await s.register({ status: "DISABLED", eventTypes: ["consent.*"] });
      const missed = await times(2, async () => {
        const { event } = await s.emit({ type: "consent.created" });
        await fill(s, "clinic", LOG / 2);
        return event;
      });
      await s.update(id, { status: "ENABLED" });
      let examined = 0;
      const recoverAll = () =>
        allPages(async (cursor) => {
          const step = await s.recover(id, { cursor, limit: 1_000_000 });
          assert.ok(step);
          examined += step.examined;
          return { rows: [step.count], next: step.next };
        });
      const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
      assert.equal(sum(await recoverAll()), 2);
      // A storage may also come by the deliveries that it has just created.
      assert.ok(examined >= LOG + 2 && examined <= LOG + 4, `${examined} events were examined`);
      assert.equal(sum(await recoverAll()), 0);
      const claims = await s.claim();
      assert.deepEqual(listIds(claims.map(({ event }) => event)), listIds(missed));
    },
  );

  declare(
    "the work of a recovery does not grow with how often its events were sent again, and it misses none",
    async (s) => {
      const { work } = s;
      if (!work) return;
      const webhooks = [
        await failAgainAndAgain(s, "clinic", RESENDS),
        await failAgainAndAgain(s, "hospital", 2 * RESENDS),
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
      const [once = 0, twice = 0] = costs;
      assert.ok(twice <= MARGIN * once + 50, `${once}, with twice the resends ${twice}`);
    },
    { perEndpoint: 1_000 },
  );

  declare(
    "the work of a claim does not grow with how often the events that it frees were sent again",
    async (s) => {
      const { work } = s;
      if (!work) return;
      const costs: number[] = [];
      for (const [account, resends] of [
        ["clinic", RESENDS],
        ["hospital", 2 * RESENDS],
      ] as const) {
        const id = await failAgainAndAgain(s, account, resends, 8);
        await s.advance(RETENTION.ms + SECOND_MS);
        const before = await work();
        await s.claimAll({ room: { fast: 0, slow: 0 } });
        costs.push((await work()) - before);
        await s.tidy();
        assert.deepEqual((await s.store.listDeliveries({ webhookId: id, limit: 100 })).deliveries, []);
      }
      const [once = 0, twice = 0] = costs;
      assert.ok(twice <= MARGIN * once + 50, `${once}, with twice the resends ${twice}`);
    },
    { perEndpoint: 1_000 },
  );

  declare("the work of a call does not grow with the log of its account", async (s) => {
    const { work } = s;
    if (!work) return;
    const [short, long] = [await accountWith(s, "clinic", LOG), await accountWith(s, "hospital", 2 * LOG)];
    const grown: string[] = [];
    for (const [name, call] of Object.entries(CALLS)) {
      const cost = async (account: Account): Promise<number> => {
        const before = await work();
        await call(s, account);
        return (await work()) - before;
      };
      // The first call of a kind may have to make ready what later ones find.
      if (!name.includes("remov")) await cost(short);
      const [ofShort, ofLong] = [await cost(short), await cost(long)];
      if (ofLong > MARGIN * ofShort + 50) grown.push(`${name}: ${ofShort}, with twice the log ${ofLong}`);
    }
    assert.deepEqual(grown, []);
  });
}
