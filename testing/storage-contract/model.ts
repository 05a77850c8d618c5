/**
 * A random run of two processes against one storage, checked after each step against a model that is too simple to be wrong:
 * no delivery is lost or made twice, no two processes hold one, the books add up, an end never turns back.
 */

import assert from "node:assert/strict";
import { subscribes } from "../../src/webhooks/event-types/subscription.js";
import type {
  Claim,
  DeliveryState,
  EventRecord,
  Settlement,
  WebhookStatus,
} from "../../src/webhooks/store.js";
import { allPages, listed, listIds } from "./lists.js";
import {
  ACCOUNT_LIMIT,
  ENABLED_LIMIT,
  HOUR_MS,
  LEASE_MS,
  MINUTE_MS,
  PER_ENDPOINT,
  type Scenario,
  SECOND_MS,
} from "./scenario.js";

interface ModelWebhook {
  readonly id: string;
  readonly account: string;
  eventTypes: readonly string[] | null;
  status: WebhookStatus;
}

interface ModelDelivery {
  readonly id: string;
  readonly webhookId: string;
  readonly eventId: string;
  state: DeliveryState;
  /** When it may be handed out next, while nobody holds it. */
  dueAt: number;
  /** Of the last claim that has not been settled. */
  token: string | null;
  leaseUntil: number;
  attempts: number;
}

const ACCOUNTS = ["clinic", "hospital"];
const TYPES = ["patient.created", "patient.updated", "consent.created"];
const EVENT_TYPES = [null, ["*"], ["patient.*"], ["consent.created"]] as const;
/** Long enough for nothing to expire within a run. */
export const MODEL_RETENTION = { ms: 10_000 * HOUR_MS, events: 1_000_000 };
const REMEMBER_MS = 10_000 * HOUR_MS;

/** Runs `steps` random commands, then delivers everything that is left. */
export async function runModel(s: Scenario, steps: number): Promise<void> {
  const { store, other, clock } = s;
  const webhooks = new Map<string, ModelWebhook>();
  const deliveries = new Map<string, ModelDelivery>();
  const events = new Map<string, EventRecord>();
  /** Ids of those that were for one webhook. */
  const tests = new Set<string>();
  /** Every claim that was ever handed out: a process may come back late with any of them. */
  const claims: Claim[] = [];

  const below = (count: number): number => Math.floor(clock.random() * count);
  const pick = <T>(items: readonly T[]): T | undefined => items[below(items.length)];
  const anyone = () => (clock.random() < 0.5 ? store : other);
  const all = () => [...deliveries.values()];
  const isHeld = ({ token, leaseUntil }: ModelDelivery): boolean => token !== null && leaseUntil > s.now();
  const pendingOf = (webhookId: string, eventId: string) =>
    all().find((own) => own.webhookId === webhookId && own.eventId === eventId && own.state === "pending");

  const add = (id: string, webhookId: string, eventId: string): void => {
    assert.ok(!deliveries.has(id), "an id is never used twice");
    deliveries.set(id, {
      id,
      webhookId,
      eventId,
      state: "pending",
      dueAt: s.now(),
      token: null,
      leaseUntil: 0,
      attempts: 0,
    });
  };

  /** I3: what was handed out was due, held by nobody, and within the caps. */
  const take = (taken: readonly Claim[]): void => {
    for (const claim of taken) {
      const known = deliveries.get(claim.id);
      assert.ok(known, "only what was stored is handed out");
      assert.equal(known.state, "pending");
      assert.ok(!isHeld(known), "a delivery has one holder");
      assert.ok(known.token !== null || known.dueAt <= s.now(), "nothing comes early");
      assert.equal(claim.isRecovered, known.token !== null || claim.crashes > 0);
      assert.deepEqual(claim.event, events.get(known.eventId));
      assert.equal(claim.webhook.status, webhooks.get(known.webhookId)?.status);
      known.token = claim.token;
      known.leaseUntil = s.now() + LEASE_MS;
      claims.push(claim);
    }
    for (const { id } of webhooks.values()) {
      const held = all().filter((own) => own.webhookId === id && isHeld(own));
      assert.ok(held.length <= PER_ENDPOINT, "the cap of an endpoint holds over all processes");
    }
  };

  const settle = async (claim: Claim, kind: number): Promise<void> => {
    const known = deliveries.get(claim.id);
    const dueAt = s.now() + below(10) * MINUTE_MS;
    const outcome: Settlement["outcome"] =
      kind < 6
        ? { state: "delivered" }
        : kind < 9
          ? { state: "pending", step: claim.step + 1, dueAt, postponed: 0, crashes: 0 }
          : { state: "failed", reason: "exhausted" };
    const isLate = known?.token === claim.token && !isHeld(known);
    const result = await s.settle(claim, outcome, { by: anyone() });
    if (!known || known.state === "delivered" || known.state === "withheld")
      return assert.equal(result, "gone");
    if (outcome.state !== "delivered") {
      if (known.state === "failed") return assert.equal(result, "gone");
      if (known.token !== claim.token) return assert.equal(result, "stale");
      if (isLate && result === "stale") return;
    }
    assert.equal(result, "settled");
    known.state = outcome.state;
    known.token = null;
    known.dueAt = dueAt;
    known.attempts += 1;
  };

  const commands: readonly [weight: number, run: () => Promise<unknown>][] = [
    [
      3,
      async () => {
        const account = pick(ACCOUNTS) ?? "";
        const eventTypes = pick(EVENT_TYPES) ?? null;
        const webhook = s.webhookOf({ account, eventTypes });
        const others = [...webhooks.values()].filter((own) => own.account === account);
        const enabled = others.filter(({ status }) => status === "ENABLED");
        const { result } = await s.create(webhook, { by: anyone() });
        if (others.length < ACCOUNT_LIMIT) {
          assert.equal(result, enabled.length < ENABLED_LIMIT ? "created" : "enabled_limit");
        } else assert.notEqual(result, "created");
        if (result === "created")
          webhooks.set(webhook.id, { id: webhook.id, account, eventTypes, status: "ENABLED" });
      },
    ],
    [
      3,
      async () => {
        const webhook = pick([...webhooks.values()]);
        if (!webhook) return;
        const status = clock.random() < 0.4 ? "DISABLED" : "ENABLED";
        const eventTypes = pick(EVENT_TYPES) ?? null;
        const url = clock.random() < 0.5 ? `https://subscriber.example/${below(1_000)}` : undefined;
        const { result } = await s.update(webhook.id, { status, eventTypes, url }, { by: anyone() });
        if (result === "updated") Object.assign(webhook, { status, eventTypes });
      },
    ],
    [
      1,
      async () => {
        const webhook = pick([...webhooks.values()]);
        if (!webhook || clock.random() < 0.5) return;
        assert.equal(await s.remove(webhook.id, { by: anyone() }), true);
        await s.tidy();
        webhooks.delete(webhook.id);
        for (const { id, webhookId } of all()) if (webhookId === webhook.id) deliveries.delete(id);
      },
    ],
    [
      25,
      async () => {
        const account = pick(ACCOUNTS) ?? "";
        const event = s.eventOf({ account, type: pick(TYPES) ?? "" });
        const room = { fast: below(4), slow: below(4) };
        const claim = clock.random() < 0.5 ? s.claimRequest({ room }) : undefined;
        const answer = await s.append(event, { by: anyone(), rememberMs: REMEMBER_MS, claim });
        assert.ok(answer.result === "stored");
        const receivers = [...webhooks.values()].filter(
          (own) =>
            own.account === account && own.status === "ENABLED" && subscribes(own.eventTypes, event.type),
        );
        assert.deepEqual(answer.deliveries.map(({ webhookId }) => webhookId).sort(), listIds(receivers));
        events.set(event.id, event);
        for (const { id, webhookId } of answer.deliveries) add(id, webhookId, event.id);
        const taken = answer.claimed?.claims ?? [];
        for (const lane of ["fast", "slow"] as const) {
          assert.ok(taken.filter((own) => own.lane === lane).length <= (claim ? room[lane] : 0));
        }
        take(taken);
      },
    ],
    [
      2,
      async () => {
        const webhook = pick([...webhooks.values()]);
        if (!webhook) return;
        const { id: webhookId, account, status } = webhook;
        const event = s.eventOf({ account, type: pick(TYPES) ?? "" });
        const answer = await s.append(event, { by: anyone(), rememberMs: REMEMBER_MS, webhookId });
        assert.ok(answer.result === "stored");
        assert.equal(answer.deliveries.length, status === "ENABLED" ? 1 : 0);
        events.set(event.id, event);
        tests.add(event.id);
        for (const { id } of answer.deliveries) add(id, webhookId, event.id);
      },
    ],
    [
      3,
      async () => {
        const event = pick([...events.values()]);
        if (!event) return;
        const isSame = clock.random() < 0.5;
        const options = { by: anyone(), rememberMs: REMEMBER_MS };
        const { result } = await s.append(isSame ? event : { ...event, digest: "other" }, options);
        assert.equal(result, isSame ? "duplicate" : "conflict");
      },
    ],
    [
      20,
      async () => {
        const room = { fast: below(6), slow: below(6) };
        const { claims: taken } = await s.claimAll({ by: anyone(), room });
        for (const lane of ["fast", "slow"] as const) {
          assert.ok(taken.filter((claim) => claim.lane === lane).length <= room[lane]);
        }
        take(taken);
      },
    ],
    [
      30,
      async () => {
        const recent = claims.slice(-20);
        const claim = clock.random() < 0.9 ? pick(recent) : pick(claims);
        if (claim) await settle(claim, below(10));
      },
    ],
    [
      3,
      async () => {
        const asked = pick(all());
        if (!asked) return;
        const id = await s.resend(asked.id, { by: anyone() });
        const open = pendingOf(asked.webhookId, asked.eventId);
        assert.ok(id !== undefined);
        if (!open) add(id, asked.webhookId, asked.eventId);
        else {
          assert.equal(id, open.id);
          if (!isHeld(open)) open.dueAt = Math.min(open.dueAt, s.now());
        }
      },
    ],
    [
      1,
      async () => {
        const webhook = pick([...webhooks.values()]);
        if (!webhook) return;
        const { id: webhookId } = webhook;
        const answer = await s.recover(webhookId, { by: anyone(), limit: 1_000_000 });
        const lost = [...events.values()].filter(
          (event) =>
            event.account === webhook.account &&
            !tests.has(event.id) &&
            subscribes(webhook.eventTypes, event.type) &&
            all().every(
              (own) => own.webhookId !== webhookId || own.eventId !== event.id || own.state === "failed",
            ),
        );
        assert.ok(answer && answer.count <= lost.length);
        // Events that were emitted while the account had no webhook are not kept, and the model does not know which.
        const made = await allPages(async (cursor) => {
          const page = await store.listDeliveries({ webhookId, state: "pending", cursor, limit: 1_000 });
          return { rows: page.deliveries, next: page.next };
        });
        const fresh = made.filter(({ id }) => !deliveries.has(id));
        assert.equal(fresh.length, answer.count);
        for (const { id, eventId } of fresh) {
          assert.ok(lost.some((event) => event.id === eventId));
          add(id, webhookId, eventId);
        }
      },
    ],
    [8, () => s.advance(below(3) * SECOND_MS)],
    [2, () => s.advance(below(3) * MINUTE_MS)],
  ];
  const total = commands.reduce((sum, [weight]) => sum + weight, 0);

  /** I1, I8 and I11: each delivery is where the model has it, and the counts agree. */
  const check = async ({ isWhole = false } = {}): Promise<void> => {
    const known = all();
    for (const expected of isWhole ? known : [pick(known), pick(known)]) {
      if (!expected) continue;
      const found = await store.getDelivery(expected.id);
      assert.ok(found, "no delivery is lost");
      assert.deepEqual([found.state, found.attempts.length], [expected.state, expected.attempts]);
    }
    for (const { id: webhookId } of isWhole ? webhooks.values() : []) {
      const own = known.filter((delivery) => delivery.webhookId === webhookId);
      assert.deepEqual(
        listIds(await listed(s, { webhookId }, 1_000)),
        listIds(own),
        "each log holds its own",
      );
    }
    const stats = await anyone().stats();
    const pending = known.filter(({ state }) => state === "pending");
    assert.deepEqual(
      [stats.webhooks, stats.pending, stats.ended],
      [webhooks.size, pending.length, known.length - pending.length],
    );
    const asked = pick([...webhooks.values()]);
    const counts = asked && (await anyone().deliveryStats(asked.id));
    for (const state of counts ? (["pending", "delivered", "failed", "withheld"] as const) : []) {
      const own = known.filter((delivery) => delivery.webhookId === asked?.id && delivery.state === state);
      assert.equal(counts?.[state], own.length);
    }
    const leased = pending.filter(({ token }) => token !== null);
    assert.ok(stats.leased >= leased.filter(isHeld).length && stats.leased <= leased.length);
  };

  for (let count = 0; count < steps; count++) {
    let drawn = below(total);
    for (const [weight, run] of commands) {
      drawn -= weight;
      if (drawn >= 0) continue;
      await run();
      break;
    }
    await check();
  }

  for (let round = 0; all().some(({ state }) => state === "pending"); round++) {
    assert.ok(round < 10_000, "everything pending is delivered in the end");
    const { claims: taken, nextAt } = await s.claimAll({ by: anyone() });
    take(taken);
    for (const claim of taken) await settle(claim, 0);
    if (taken.length > 0) continue;
    assert.ok(nextAt !== null, "what is pending has a time");
    await s.advance(Math.max(1, nextAt - s.now()));
  }
  await check({ isWhole: true });
}
