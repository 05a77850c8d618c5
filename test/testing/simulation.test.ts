import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { OutboundResult } from "../../src/ports.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { memoryStorage } from "../../storage/memory/index.js";
import {
  ATTEMPT_TIMES,
  DAY,
  type Harness,
  HOUR,
  isSignedBy,
  MINUTE,
  openHarness,
  response,
  type Sent,
  START,
} from "../support/webhook-harness.js";

const ACCOUNTS = 50;
const ENDPOINTS_PER_ACCOUNT = 5;
const EVENTS = 3_500;
const DAYS = 100;
const WINDOW = 72 * HOUR;

/** The schedule once more, on its own terms: the table of the guide, in ms. */
const OFFSETS = ATTEMPT_TIMES.map((time) => {
  const [hours, minutes] = time.split(":").map(Number);
  return (hours ?? 0) * HOUR + (minutes ?? 0) * MINUTE;
});

interface Endpoint {
  readonly id: string;
  readonly account: string;
  readonly secret: string;
  /** Every change of its status; the first is its creation. */
  readonly changes: { readonly at: number; readonly isEnabled: boolean }[];
  deletedAt: number;
  /** When its next outage begins and ends. */
  outage: readonly [from: number, to: number];
  /** The health that the attempts and changes imply. */
  failingSince: number | null;
  isWarned: boolean;
}

interface Try {
  readonly at: number;
  readonly isOk: boolean;
  readonly retryAfterMs: number;
}

interface Delivery {
  readonly endpoint: Endpoint;
  readonly emittedAt: number;
  readonly tries: Try[];
  body: Uint8Array | undefined;
}

const isEnabled = ({ changes }: Endpoint): boolean => changes.at(-1)?.isEnabled === true;

/**
 * True if the endpoint had this status at some moment from `from` to `to`. At a change it has both.
 */
function could(be: boolean, { changes }: Endpoint, from: number, to: number): boolean {
  return changes.some(({ at, isEnabled: is }, index) => {
    const until = changes[index + 1]?.at ?? Number.POSITIVE_INFINITY;
    return is === be && at <= to && until >= from;
  });
}

/**
 * Returns the state that a delivery must have by the documented rules, given its attempts. Throws
 * where a time is wrong.
 */
function judge({ endpoint, emittedAt, tries }: Delivery, now: number): string {
  let asked = 0;
  let made = 0;
  let last = "";
  for (let step = 0; ; ) {
    const offset = OFFSETS[step];
    if (offset === undefined) break;
    const jitter = step === 0 ? 0 : Math.min((offset - (OFFSETS[step - 1] ?? 0)) / 10, 15 * MINUTE);
    const from = Math.max(emittedAt + offset, asked);
    const to = Math.max(emittedAt + Math.min(offset + jitter, WINDOW), asked);
    if (endpoint.deletedAt < from) break;
    if (from > now) return "pending";
    const next = tries[made];
    let time = to;
    if (next && next.at <= to) {
      if (next.at < from) throw new Error(`an attempt came ${from - next.at} ms before step ${step}`);
      if (!could(true, endpoint, next.at, next.at)) throw new Error("an attempt was made while disabled");
      made += 1;
      time = next.at;
      last = "exhausted";
      if (next.isOk) {
        if (tries.length > made) throw new Error("an attempt was made after the delivery");
        return "delivered";
      }
    } else {
      if (endpoint.deletedAt <= to) break;
      if (to > now) return "pending";
      if (!could(false, endpoint, from, to)) throw new Error(`step ${step} was left out`);
      last = "disabled";
    }
    const done = time - emittedAt;
    step = OFFSETS.findIndex((each, index) => index > step && each > done);
    if (step === -1) break;
    asked =
      next && time === next.at
        ? Math.min(time + next.retryAfterMs, emittedAt + (OFFSETS[step + 1] ?? WINDOW))
        : 0;
  }
  if (tries.length > made) throw new Error(`attempt ${made} fits no step`);
  return endpoint.deletedAt <= now ? "removed" : `failed ${last}`;
}

/**
 * A hundred days in the life of a service whose endpoints fail, recover, and are disabled, enabled,
 * moved and deleted at random.
 */
async function simulate(seed: number): Promise<{
  harness: Harness;
  endpoints: Endpoint[];
  deliveries: Map<string, Delivery>;
  problems: string[];
  notices: number;
}> {
  const chance = manualClock(0, { seed });
  const upTo = (most: number): number => Math.floor(chance.random() * most);
  const pick = <T>(list: readonly [T, ...T[]]): T => list[upTo(list.length)] ?? list[0];

  const byId = new Map<string, Endpoint>();
  const deliveries = new Map<string, Delivery>();
  const problems: string[] = [];
  let notices = 0;
  const check = (isTrue: boolean, problem: string): void => {
    if (!isTrue) problems.push(problem);
  };
  const clock = manualClock(START, { seed });

  const fail = (): OutboundResult =>
    chance.random() < 0.3
      ? response(pick([429, 503]), { "retry-after": String(upTo(60_000)) })
      : chance.random() < 0.5
        ? response(pick([302, 400, 404, 410, 500, 502]))
        : { kind: pick(["connect", "tls", "timeout", "dns", "http"]), code: "CODE", message: "message" };

  const answer = (sent: Sent): OutboundResult => {
    const delivery = deliveries.get(`${sent.webhookId}.${sent.eventId}`);
    const { endpoint } = delivery ?? {};
    if (!delivery || !endpoint) {
      problems.push("an event reached an endpoint that was not to get it");
      return response(200);
    }
    const { at } = sent;
    while (at >= endpoint.outage[1]) {
      const from = endpoint.outage[1] + upTo(8 * DAY);
      endpoint.outage = [from, from + upTo(chance.random() < 0.15 ? 9 * DAY : DAY)];
    }
    const result = at >= endpoint.outage[0] || chance.random() < 0.1 ? fail() : response(200 + upTo(100));
    const isOk = result.kind === "response" && result.status >= 200 && result.status < 300;
    const after = result.kind === "response" ? Number(result.headers["retry-after"] ?? 0) * 1_000 : 0;
    delivery.tries.push({ at, isOk, retryAfterMs: after });
    endpoint.failingSince = isOk ? null : (endpoint.failingSince ?? at);
    if (isOk) endpoint.isWarned = false;
    check(at < endpoint.deletedAt, "an attempt was made after the deletion");
    check(isSignedBy(sent, endpoint.secret), "a signature does not verify");
    check(
      sent.headers["X-Service-Signature"]?.startsWith(`t=${Math.floor(at / 1_000)}, `) === true,
      "a signature has an old timestamp",
    );
    delivery.body ??= sent.body;
    check(Buffer.compare(delivery.body, sent.body) === 0, "a body changed between attempts");
    return result;
  };

  const noticed = (kind: "warning" | "disabled", id: string): void => {
    notices += 1;
    const endpoint = byId.get(id);
    if (!endpoint) return;
    const { failingSince, isWarned } = endpoint;
    const late = clock.now() - (failingSince ?? 0) - (kind === "warning" ? 72 : 96) * HOUR;
    check(failingSince !== null && late === 0, `a ${kind} came ${late} ms late`);
    check(isWarned === (kind === "disabled"), `a ${kind} came twice, or before the warning`);
    endpoint.isWarned = true;
    if (kind === "disabled") endpoint.changes.push({ at: clock.now(), isEnabled: false });
  };

  const harness = openHarness({
    clock,
    storage: memoryStorage(),
    answer,
    options: {
      notify: {
        warning: ({ webhook }) => noticed("warning", webhook.id),
        disabled: ({ webhook }) => noticed("disabled", webhook.id),
      },
      // So that what became of each delivery can be read in the end.
      retention: { keepMs: 2 * DAYS * DAY, events: EVENTS },
    },
  });
  const { webhooks, sent, store } = harness;
  await webhooks.start();

  for (let account = 0; account < ACCOUNTS; account++) {
    for (let index = 0; index < ENDPOINTS_PER_ACCOUNT; index++) {
      const name = `account-${account}`;
      const { id, secret } = await harness.register(`https://hooks.example.com/${account}/${index}`, name);
      const from = START + upTo(8 * DAY);
      byId.set(id, {
        id,
        account: name,
        secret,
        changes: [{ at: START, isEnabled: true }],
        deletedAt: Number.POSITIVE_INFINITY,
        outage: [from, from + upTo(DAY)],
        failingSince: null,
        isWarned: false,
      });
    }
  }
  const endpoints = [...byId.values()];
  const living = (account?: string): Endpoint[] =>
    endpoints.filter(
      ({ deletedAt, account: own }) => deletedAt > clock.now() && (account === undefined || own === account),
    );

  const emit = async (): Promise<void> => {
    const account = `account-${upTo(ACCOUNTS)}`;
    const receivers = living(account).filter(isEnabled);
    // Known before the event is stored: its first attempt may be made before `emit` resolves.
    const id = randomUUID();
    const resource = { resourceType: "Patient", id: String(deliveries.size) } as const;
    for (const endpoint of receivers) {
      deliveries.set(`${endpoint.id}.${id}`, {
        endpoint,
        emittedAt: clock.now(),
        tries: [],
        body: undefined,
      });
    }
    const { deliveries: made } = await webhooks.emit({ id, type: "patient.updated", account, resource });
    const wanted = receivers.map((endpoint) => `${endpoint.id}.${id}`);
    check(
      String(made.map((each) => each.id)) === String(wanted),
      "an event got other deliveries than it should",
    );
  };

  const change = async (): Promise<void> => {
    const [first, ...others] = living();
    if (!first) return;
    const endpoint = pick([first, ...others]);
    const { id } = endpoint;
    const at = clock.now();
    const kind = chance.random();
    const wasEnabled = isEnabled(endpoint);
    if (kind < 0.03) {
      endpoint.deletedAt = at;
      await webhooks.registrations.remove(id);
      return;
    }
    if (kind < 0.15) await webhooks.registrations.update({ id, url: `https://hooks.example.com/${at}` });
    else {
      const status = isEnabled(endpoint) && chance.random() < 0.4 ? "DISABLED" : "ENABLED";
      await webhooks.registrations.update({ id, status });
      if (wasEnabled !== (status === "ENABLED")) endpoint.changes.push({ at, isEnabled: !wasEnabled });
    }
    if (kind >= 0.15 && wasEnabled === isEnabled(endpoint)) return;
    endpoint.failingSince = null;
    endpoint.isWarned = false;
  };

  const balance = async (): Promise<void> => {
    const { pending, ended, leased, webhooks: count } = await store.stats();
    const kept = [...deliveries.values()].filter(({ endpoint }) => endpoint.deletedAt > clock.now());
    check(pending + ended === kept.length && leased === 0, "the books do not balance");
    check(count === living().length, "the count of webhooks is wrong");
    for (const { failingSince, isWarned, changes } of living()) {
      const isLate = changes.at(-1)?.isEnabled === true && failingSince !== null && !isWarned;
      check(!isLate || clock.now() <= (failingSince ?? 0) + 72 * HOUR, "a warning did not come");
    }
  };

  const actions: { at: number; act: () => Promise<void> }[] = [];
  for (let count = 0; count < EVENTS; count++)
    actions.push({ at: START + upTo((DAYS - 4) * DAY), act: emit });
  for (let count = 0; count < 1_500; count++) actions.push({ at: START + upTo(DAYS * DAY), act: change });
  for (let day = 1; day <= DAYS; day++) actions.push({ at: START + day * DAY, act: balance });
  for (const { at, act } of actions.toSorted((a, b) => a.at - b.at)) {
    await harness.runUntil(at);
    await act();
    await harness.quiet();
    sent.length = 0;
  }
  await webhooks.stop();
  return { harness, endpoints, deliveries, problems, notices };
}

/** Returns the error that `make` throws, if any. */
function problemOf(make: () => string): string {
  try {
    return make();
  } catch (error) {
    return String(error);
  }
}

describe("a hundred days with ten thousand deliveries", () => {
  it("go by the schedule to the millisecond, whatever the endpoints and their owners do", async () => {
    const { harness, deliveries, problems, notices } = await simulate(1);
    const { clock, webhooks } = harness;
    const now = clock.now();
    const counts: Record<string, number> = {};
    const mostTries: Record<string, number> = {};
    for (const [id, delivery] of deliveries) {
      const { tries, emittedAt, endpoint } = delivery;
      const verdict = problemOf(() => judge(delivery, now));
      counts[verdict] = (counts[verdict] ?? 0) + 1;
      mostTries[verdict] = Math.max(mostTries[verdict] ?? 0, tries.length);
      const last = (tries.at(-1)?.at ?? 0) - emittedAt;
      if (verdict === "failed exhausted" && (last < 71.75 * HOUR || last > WINDOW))
        problems.push("ended early or late");
      if (endpoint.deletedAt <= now) continue;
      const kept = await webhooks.deliveries.get(id);
      if ([kept.state, kept.reason].join(" ").trim() !== verdict)
        problems.push(`${kept.state}, not ${verdict}`);
      if (String(kept.attempts.map(({ at }) => at.getTime())) !== String(tries.map(({ at }) => at)))
        problems.push("the log is not what the endpoint saw");
    }
    expect(problems.slice(0, 10)).toEqual([]);
    expect(Object.keys(counts).toSorted()).toEqual([
      "delivered",
      "failed disabled",
      "failed exhausted",
      "removed",
    ]);
    expect(mostTries).toMatchObject({ delivered: 14, "failed exhausted": 14 });
    // It was a life full of events.
    expect(deliveries.size).toBeGreaterThan(10_000);
    expect(Math.min(...Object.values(counts))).toBeGreaterThan(20);
    expect(notices).toBeGreaterThan(100);
  });
});

describe("two processes, slow endpoints and a crash every few minutes", () => {
  it("lose nothing, send nothing early, and repeat only what was in flight at a crash", async () => {
    const clock = manualClock(START, { seed: 2 });
    const storage = memoryStorage();
    const chance = manualClock(0, { seed: 3 });
    const received = new Map<string, number>();
    const answer = async ({ webhookId, eventId }: Sent): Promise<OutboundResult> => {
      const ms = chance.random() < 0.05 ? 20_000 : Math.floor(chance.random() * 3_000);
      await new Promise<void>((resolve) => {
        clock.setTimeout(resolve, ms);
      });
      if (chance.random() < 0.4) return response(500);
      // Past the deadline nobody listens any more.
      if (ms < 16_000) {
        const id = `${webhookId}.${eventId}`;
        received.set(id, (received.get(id) ?? 0) + 1);
      }
      return response(200);
    };
    /** Deliveries in flight in the second process. After a crash, nobody owns them. */
    let underWay = new Set<Sent>();
    const crashing = async (sent: Sent): Promise<OutboundResult> => {
      const mine = underWay.add(sent);
      const result = await answer(sent);
      mine.delete(sent);
      return result;
    };
    const options = { retention: { keepMs: 30 * DAY }, delivery: { concurrency: 3, slowConcurrency: 3 } };
    const one = openHarness({ clock, storage, answer, options });
    // A dead process reports nothing: its storage is cut off with it.
    let life = 0;
    const lives = new Map<string, number>();
    const two = openHarness({
      clock,
      storage,
      answer: crashing,
      options,
      change: (store) => ({
        claim(request) {
          lives.set(request.token, life);
          return store.claim(request);
        },
        async settle(settlements) {
          const alive = settlements.filter(({ token }) => lives.get(token) === life);
          const results = await store.settle(alive);
          if (alive.length < settlements.length) throw new Error("dead");
          return results;
        },
      }),
    });
    for (let index = 0; index < 10; index++) await one.register(`https://hooks.example.com/${index}`);
    await one.webhooks.start();
    await two.webhooks.start();
    const wanted: { id: string; emittedAt: number }[] = [];
    let leftUnderWay = 0;
    for (let round = 0; round < 40; round++) {
      const { deliveries } = await one.webhooks.emit({
        type: "patient.updated",
        account: "clinic",
        resource: { resourceType: "Patient", id: "1" },
      });
      wanted.push(...deliveries.map(({ id }) => ({ id, emittedAt: clock.now() })));
      await one.run(Math.floor(chance.random() * 3_000));
      leftUnderWay += underWay.size;
      underWay = new Set();
      life += 1;
      await two.stop(0);
      await one.run(Math.floor(chance.random() * 5 * MINUTE));
      await two.webhooks.start();
    }
    await one.run(4 * DAY);
    const ends: string[] = [];
    for (const { id, emittedAt } of wanted) {
      const { state, attempts, startedAt } = await one.webhooks.deliveries.get(id);
      ends.push(state);
      const start = startedAt?.getTime() ?? 0;
      expect(start).toBeGreaterThanOrEqual(emittedAt);
      const steps = attempts.map(({ step }) => step);
      expect(steps).toEqual([...new Set(steps)].toSorted((a, b) => a - b));
      for (const { at, step } of attempts) {
        expect(at.getTime() - start).toBeGreaterThanOrEqual(OFFSETS[step] ?? WINDOW);
      }
      expect(state === "delivered").toBe(received.has(id));
    }
    expect(ends.filter((state) => state === "delivered").length).toBeGreaterThan(350);
    expect(ends).not.toContain("pending");
    expect(await one.store.stats()).toMatchObject({ pending: 0, leased: 0, ended: 400 });
    const extra = [...received.values()].reduce((sum, count) => sum + count - 1, 0);
    expect(leftUnderWay).toBeGreaterThan(50);
    expect(extra).toBeGreaterThan(0);
    expect(extra).toBeLessThanOrEqual(leftUnderWay);
  });
});
