import { describe, expect, it } from "vitest";
import type { OutboundResult } from "../../../src/ports.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import {
  DAY,
  forever,
  type Harness,
  HOUR,
  held,
  MINUTE,
  response,
  SECOND,
  START,
  startHarness,
  unreachable,
} from "../../support/webhook-harness.js";

const PUNCTUAL = { retry: { jitter: 0 } };

/** A service that claimed a delivery, sent it, and died before it heard anything. */
async function died(): Promise<Harness & { id: string; deliveryId: string }> {
  const harness = await startHarness({ answer: () => forever(), options: PUNCTUAL });
  const { id } = await harness.register();
  const eventId = await harness.emit();
  await harness.quiet();
  await harness.die();
  return { ...harness, id, deliveryId: `${id}.${eventId}` };
}

describe("a process that dies during an attempt", () => {
  it("leaves a delivery that another one makes when the lease is over, with the same body, and no step used up", async () => {
    const first = await died();
    const second = await startHarness({
      storage: first.storage,
      clock: first.clock,
      answer: () => 500,
      options: PUNCTUAL,
    });
    await second.run(HOUR);
    expect(second.times()).toEqual(["0:01", "0:16", "0:46"]);
    expect(second.sent[0]?.body).toEqual(first.sent[0]?.body);
    const { attempts } = await second.webhooks.deliveries.get(first.deliveryId);
    expect(attempts.map(({ step }) => step)).toEqual([0, 1, 2]);
  });

  it("costs no step of a retry either, whose schedule goes on as it was", async () => {
    let isHanging = false;
    const first = await startHarness({ answer: () => (isHanging ? forever() : 500), options: PUNCTUAL });
    const { id } = await first.register();
    const eventId = await first.emit();
    await first.run(14 * MINUTE);
    isHanging = true;
    await first.run(MINUTE);
    expect(first.sent).toHaveLength(2);
    await first.die();
    const second = await startHarness({
      storage: first.storage,
      clock: first.clock,
      answer: () => 500,
      options: PUNCTUAL,
    });
    await second.run(2 * HOUR);
    expect(second.times()).toEqual(["0:16", "0:45", "1:45"]);
    const { attempts } = await second.webhooks.deliveries.get(`${id}.${eventId}`);
    expect(attempts.map(({ step }) => step)).toEqual([0, 1, 2, 3]);
  });

  it("is not followed into death by others: from the fifth time on the delivery waits a full step, and others go on", async () => {
    const first = await died();
    const starts: string[] = [];
    let last: Harness = first;
    for (let crash = 1; crash < 5; crash++) {
      last = await startHarness({
        storage: first.storage,
        clock: first.clock,
        answer: () => forever(),
        options: PUNCTUAL,
      });
      await last.run(MINUTE);
      starts.push(...last.times());
      await last.die();
    }
    expect(starts).toEqual(["0:01", "0:02", "0:03", "0:04"]);
    const survivor = await startHarness({
      storage: first.storage,
      clock: first.clock,
      answer: () => 200,
      options: PUNCTUAL,
    });
    await survivor.run(2 * MINUTE);
    expect(survivor.sent).toEqual([]);
    expect(await survivor.webhooks.deliveries.get(first.deliveryId)).toMatchObject({
      state: "pending",
      attempts: [],
      nextAttemptAt: new Date(START + 20 * MINUTE),
    });
    const other = await survivor.emit();
    await survivor.quiet();
    expect(survivor.sent.map(({ eventId }) => eventId)).toEqual([other]);
    await survivor.run(HOUR);
    expect(survivor.times()).toEqual(["0:06", "0:20"]);
  });

  it("takes others with it at most until it is alone: what was there each time is attempted one at a time, and the innocent get through", async () => {
    const first = await startHarness({ answer: () => forever(), options: PUNCTUAL });
    await first.register();
    const guilty = await first.emit();
    const innocent = [await first.emit(), await first.emit(), await first.emit()];
    await first.quiet();
    await first.die();
    const received: string[] = [];
    for (let process = 1; process < 12; process++) {
      let isDead = false;
      const next = await startHarness({
        storage: first.storage,
        clock: first.clock,
        // The poison delivery ends the process: nothing that is in flight then is settled, and
        // nothing more is stored.
        change: (store) => ({
          settle: (settlements) => (isDead ? forever() : store.settle(settlements)),
        }),
        answer: ({ eventId }) => {
          isDead ||= eventId === guilty;
          if (isDead || process < 3) return forever();
          received.push(eventId);
          return 200;
        },
        options: PUNCTUAL,
      });
      await next.run(MINUTE);
      await next.die();
    }
    expect(new Set(received)).toEqual(new Set(innocent));
    expect(received).toHaveLength(innocent.length);
  });

  it("keeps the extra attempt that a user asked for", async () => {
    let isHanging = false;
    const first = await startHarness({ answer: () => (isHanging ? forever() : 500), options: PUNCTUAL });
    const { id } = await first.register();
    const eventId = await first.emit();
    await first.run(5 * MINUTE);
    isHanging = true;
    await first.webhooks.deliveries.resend({ id: `${id}.${eventId}` });
    await first.quiet();
    await first.die();
    const second = await startHarness({
      storage: first.storage,
      clock: first.clock,
      answer: () => 500,
      options: PUNCTUAL,
    });
    await second.run(HOUR);
    expect(second.times()).toEqual(["0:06", "0:15", "0:45"]);
  });
});

describe("a process that stops before it has sent", () => {
  it("gives an extra attempt back as one, and the schedule goes on as it was", async () => {
    let isHanging = false;
    const access = {
      authenticate: () => null,
      canRead: () => (isHanging ? forever<boolean>() : true),
    };
    const first = await startHarness({ answer: () => 500, options: { ...PUNCTUAL, access } });
    const { id } = await first.register();
    const eventId = await first.emit();
    await first.run(5 * MINUTE);
    isHanging = true;
    await first.webhooks.deliveries.resend({ id: `${id}.${eventId}` });
    await first.quiet();
    await first.stop(SECOND);
    const second = await startHarness({
      storage: first.storage,
      clock: first.clock,
      answer: () => 500,
      options: PUNCTUAL,
    });
    await second.run(HOUR);
    expect(second.times()).toEqual(["0:05:01", "0:15", "0:45"]);
  });
});

describe("a process that stalls", () => {
  /**
   * A service whose monotonic clock jumps by `stallMs` between the claim and the send: nothing else
   * ran meanwhile.
   */
  async function stalled(stallMs: number): Promise<Harness> {
    const clock = manualClock(START);
    let stalledFor = 0;
    const harness = await startHarness({
      clock: Object.freeze({ ...clock, monotonic: () => clock.monotonic() + stalledFor }),
      options: {
        access: {
          authenticate: () => null,
          canRead: () => {
            if (stalledFor === 0) stalledFor = stallMs;
            return true;
          },
        },
      },
    });
    await harness.register();
    await harness.emit();
    return harness;
  }

  it.each([1, 10, 40])("for %i s before the send still sends, within its lease", async (seconds) => {
    const { quiet, sent } = await stalled(seconds * SECOND);
    await quiet();
    expect(sent).toHaveLength(1);
  });

  it("for longer than that before the send does not send: the next claim does", async () => {
    const { quiet, run, sent, times, store } = await stalled(40_001);
    await quiet();
    expect(sent).toEqual([]);
    expect(await store.stats()).toMatchObject({ leased: 1 });
    await run(2 * MINUTE);
    // 60 s after the claim; the stall took 40.001 s.
    expect(times()).toEqual(["0:00:19"]);
    expect(await store.stats()).toMatchObject({ pending: 0, ended: 1 });
  });

  it("for longer than the lease leaves the sending to whoever claims next, and it is sent once", async () => {
    const { quiet, run, sent } = await stalled(70 * SECOND);
    await quiet();
    await run(5 * MINUTE);
    expect(sent).toHaveLength(1);
  });

  /**
   * A first service whose report on an attempt is held back until a second one has taken the
   * delivery over.
   */
  async function takenOver(
    late: OutboundResult,
    then: () => number | OutboundResult,
  ): Promise<{
    first: Harness;
    second: Harness;
    /** Lets the report through. */
    release: () => Promise<void>;
    state: () => Promise<object>;
  }> {
    const gate = held<undefined>();
    let isHeld = true;
    const first = await startHarness({
      answer: () => late,
      options: PUNCTUAL,
      change: (store) => ({
        async settle(settlements) {
          if (isHeld) await gate.promise;
          return store.settle(settlements);
        },
      }),
    });
    const { id } = await first.register();
    const eventId = await first.emit();
    await first.quiet();
    const second = await startHarness({
      storage: first.storage,
      clock: first.clock,
      answer: then,
      options: PUNCTUAL,
    });
    // The first one must not take over from itself.
    const stopping = first.webhooks.stop({ graceMs: 30 * DAY });
    await second.run(61 * SECOND);
    const release = async (): Promise<void> => {
      isHeld = false;
      gate.resolve(undefined);
      await stopping;
    };
    return { first, second, release, state: () => second.webhooks.deliveries.get(`${id}.${eventId}`) };
  }

  it("after the send has its failure report dropped, since the schedule is another one's by then", async () => {
    const { first, second, state, release } = await takenOver(unreachable, () => 500);
    await release();
    expect(first.log).toContain(
      "warn a settlement was discarded: its lease had expired, or an earlier call recorded it",
    );
    expect(await state()).toMatchObject({
      state: "pending",
      attempts: [{ status: 500, step: 0 }],
      nextAttemptAt: new Date(START + 16 * MINUTE),
    });
    await second.run(DAY);
    expect(second.times().slice(0, 3)).toEqual(["0:01", "0:16", "0:46"]);
  });

  it("after the send has its success accepted: what was received is not sent again", async () => {
    const { second, state, release } = await takenOver(response(200), () => 500);
    await release();
    expect(await state()).toMatchObject({ state: "delivered", nextAttemptAt: null });
    await second.run(DAY);
    expect(second.times()).toEqual(["0:01"]);
  });

  // Four days of two services, which wake every minute.
  it("after the send has its success accepted even where the delivery has failed for good since", async () => {
    const { second, state, release } = await takenOver(response(200), () => 500);
    await second.run(4 * DAY);
    expect(second.sent).toHaveLength(14);
    expect(await state()).toMatchObject({ state: "failed" });
    await release();
    expect(await state()).toMatchObject({ state: "delivered", reason: null });
  });
});

describe("a defect of Postbell itself during an attempt", () => {
  it("costs neither the process nor another delivery, and ends: it never will be readable", async () => {
    let isBroken = true;
    const { register, emit, quiet, run, log, store, sent } = await startHarness({
      change: (real) => ({
        async claim(request) {
          const answer = await real.claim(request);
          if (!isBroken) return answer;
          const claims = answer.claims.map((claim) => ({ ...claim, event: { ...claim.event, payload: "" } }));
          return { ...answer, claims };
        },
      }),
    });
    const { id } = await register();
    const eventId = await emit();
    await quiet();
    expect(log).toContain("error a stored event cannot be read");
    isBroken = false;
    await emit();
    await run(2 * MINUTE);
    expect(sent).toHaveLength(1);
    expect(await store.getDelivery(`${id}.${eventId}`)).toMatchObject({
      state: "failed",
      reason: "payload_unreadable",
    });
  });
});
