import { describe, expect, it } from "vitest";
import type { OutboundResult } from "../../../src/ports.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { ClaimsAhead } from "../../../src/webhooks/delivery/slots.js";
import type { Claim } from "../../../src/webhooks/store.js";
import {
  type Harness,
  holdingEndpoint,
  response,
  SECOND,
  START,
  startHarness,
} from "../../support/webhook-harness.js";

const DELIVERY = { concurrency: 2, slowConcurrency: 2, perEndpoint: 20 };

/**
 * A service with two slots whose endpoint is known to be quick, and which holds every request from
 * now on.
 */
async function twoSlots(clock = manualClock(START)) {
  const endpoint = holdingEndpoint();
  let isHolding = false;
  const answer = (...request: Parameters<typeof endpoint.answer>): Promise<OutboundResult> =>
    isHolding ? endpoint.answer(...request) : Promise.resolve(response(204));
  const harness = await startHarness({ answer, clock, options: { delivery: DELIVERY } });
  await harness.register();
  await harness.emit();
  await harness.quiet();
  isHolding = true;
  return { ...harness, endpoint };
}

const emitTimes = async ({ emit }: Pick<Harness, "emit">, count: number): Promise<void> => {
  for (let index = 0; index < count; index++) await emit();
};

/** Another service on the same storage, whose endpoint answers at once. */
const another = ({ storage, clock }: Pick<Harness, "storage" | "clock">): Promise<Harness> =>
  startHarness({ storage, clock, answer: () => 204, options: { delivery: DELIVERY } });

describe("claims ahead of free slots", () => {
  it("are no more than the slots, so that other processes get the rest", async () => {
    const first = await twoSlots();
    await emitTimes(first, 10);
    await first.quiet();
    expect(first.endpoint.open).toHaveLength(2);
    const second = await another(first);
    await second.quiet();
    // Two are in flight in the first process, and two wait there.
    expect(second.sent).toHaveLength(6);
  });

  it("go out as slots become free, and all arrive once", async () => {
    const { sent, quiet, endpoint, ...harness } = await twoSlots();
    await emitTimes(harness, 10);
    while (sent.length < 11 || endpoint.open.length > 0) {
      await quiet();
      expect(endpoint.open.length).toBeLessThanOrEqual(2);
      endpoint.release();
    }
    expect(new Set(sent.map(({ eventId }) => eventId)).size).toBe(11);
  });

  it("are released by a stop, so that another process need not wait for their leases", async () => {
    const first = await twoSlots();
    await emitTimes(first, 4);
    await first.quiet();
    const second = await another(first);
    await second.quiet();
    expect(second.sent).toHaveLength(0);
    const stopped = first.stop(SECOND);
    await second.quiet();
    expect(second.sent).toHaveLength(2);
    first.endpoint.release();
    await stopped;
  });

  it("are released and claimed again where the process stood still for half their lease", async () => {
    let stalledMs = 0;
    const clock = manualClock(START);
    const stalling = { ...clock, monotonic: () => clock.monotonic() + stalledMs };
    const { sent, quiet, endpoint, ...harness } = await twoSlots(stalling);
    await emitTimes(harness, 4);
    await quiet();
    expect(endpoint.open).toHaveLength(2);
    // Of the lease of 60 s too little is left for an attempt of 15 s.
    stalledMs = 45 * SECOND;
    endpoint.release();
    await quiet();
    endpoint.release();
    await quiet();
    expect(sent).toHaveLength(5);
    expect(new Set(sent.map(({ eventId }) => eventId)).size).toBe(5);
  });
});

describe("a slot that is freed while enough claims wait", () => {
  it("leads to no call of the storage, although the slow lane has free slots", async () => {
    let calls = 0;
    const endpoint = holdingEndpoint();
    let isHolding = false;
    const { register, quiet, ...harness } = await startHarness({
      change: (store) => ({
        claim(request) {
          calls += 1;
          return store.claim(request);
        },
      }),
      answer: (...request) => (isHolding ? endpoint.answer(...request) : Promise.resolve(response(204))),
      options: { delivery: { concurrency: 4, slowConcurrency: 4, perEndpoint: 20 } },
    });
    await register();
    await harness.emit();
    await quiet();
    isHolding = true;
    await emitTimes(harness, 15);
    await quiet();
    expect(endpoint.open).toHaveLength(4);
    const before = calls;
    endpoint.open.shift()?.hold.resolve(response(204));
    await quiet();
    expect(calls - before).toBe(0);
  });
});

describe("the queue of claims ahead", () => {
  const claim = (id: string): { readonly claim: Claim; readonly claimedAt: number } => ({
    claim: { id } as Claim,
    claimedAt: 0,
  });

  it("asks for more when half are left, and for no more than 64 before it knows the rate", () => {
    const clock = manualClock(START);
    const ahead = new ClaimsAhead(1_000, clock);
    expect(ahead.room()).toBe(64);
    for (let index = 0; index < 64; index++) ahead.add(claim(`${index}`));
    expect(ahead.room()).toBe(0);
    for (let index = 0; index < 31; index++) expect(ahead.next()?.claim.id).toBe(`${index}`);
    expect(ahead.room()).toBe(0);
    ahead.next();
    expect(ahead.room()).toBe(32);
    expect(ahead.drain()).toHaveLength(32);
    expect(ahead.next()).toBeUndefined();
    expect(new ClaimsAhead(3, clock).room()).toBe(3);
  });

  it("holds what goes out within a tenth of a second, but never more than 512", async () => {
    const clock = manualClock(START);
    const ahead = new ClaimsAhead(1_000, clock);
    const send = (count: number): void => {
      for (let index = 0; index < count; index++) {
        ahead.add(claim("sent"));
        ahead.next();
      }
    };
    send(100);
    await clock.advance(50);
    expect(ahead.room()).toBe(200);
    send(10_000);
    await clock.advance(50);
    expect(ahead.room()).toBe(512);
    send(1);
    await clock.advance(10 * SECOND);
    expect(ahead.room()).toBe(64);
  });
});
