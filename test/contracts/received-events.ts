/** The contract of `ReceivedEvents`, for every database. */

import { expect, it } from "vitest";
import type { ReceivedEvents } from "../../src/receiver/received-events.js";

const NOW = Date.UTC(2026, 10, 28);
const LEASE = 300_000;
const DAY = 86_400_000;

/**
 * Declares the tests. `open` returns an empty memory, and the same memory as a second process has
 * it.
 */
export function receivedEventsContract(open: () => Promise<[ReceivedEvents, ReceivedEvents]>): void {
  const claim = (by: ReceivedEvents, id: string, now = NOW) => by.claim({ id, now, leaseUntil: now + LEASE });

  it("gives an event to one caller, and to nobody again once it is confirmed", async () => {
    const [first, second] = await open();
    expect(await claim(first, "a")).toBe("new");
    expect([await claim(first, "a"), await claim(second, "a")]).toEqual(["in_flight", "in_flight"]);
    await first.confirm({ id: "a", now: NOW, keepUntil: NOW + DAY });
    expect([await claim(first, "a"), await claim(second, "a")]).toEqual(["done", "done"]);
    expect(await claim(second, "b")).toBe("new");
  });

  it("gives an event to one of twenty callers at once", async () => {
    const both = await open();
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, n) => claim(both[n % 2] as ReceivedEvents, "a")),
    );
    expect(claims.filter((result) => result === "new")).toHaveLength(1);
    expect(claims.filter((result) => result === "in_flight")).toHaveLength(19);
  });

  it("gives an event out again after its release, and a release ends no other claim", async () => {
    const [first, second] = await open();
    await claim(first, "a");
    await first.release({ id: "a", leaseUntil: NOW + LEASE });
    expect(await claim(second, "a", NOW + 1)).toBe("new");
    await first.release({ id: "a", leaseUntil: NOW + LEASE });
    expect(await claim(first, "a", NOW + 2)).toBe("in_flight");
    await second.confirm({ id: "a", now: NOW + 2, keepUntil: NOW + DAY });
    await second.release({ id: "a", leaseUntil: NOW + 1 + LEASE });
    expect(await claim(first, "a", NOW + 3)).toBe("done");
  });

  it("keeps ids and cursors as they are, whatever they contain, and apart from each other", async () => {
    const [first, second] = await open();
    const ids = [
      "orders/paid/1",
      "x'; DROP TABLE postbell_received; --",
      "a/b",
      "a",
      "__proto__",
      "ü\u{1F514}",
      "x".repeat(256),
    ];
    for (const id of ids) expect(await claim(first, id)).toBe("new");
    expect(await first.readCursor("feed")).toBeUndefined();
    await first.writeCursor({ feed: "feed", cursor: "1" });
    await second.writeCursor({ feed: "feed", cursor: "w_2.7" });
    expect([await first.readCursor("feed"), await second.readCursor("other")]).toEqual(["w_2.7", undefined]);
    for (const id of ids) await first.confirm({ id, now: NOW, keepUntil: NOW + DAY });
    for (const id of ids) expect(await claim(second, id)).toBe("done");
  });
}

/** For those that take the time from their caller, so that a test can move it. */
export function receivedExpiryContract(open: () => Promise<[ReceivedEvents, ReceivedEvents]>): void {
  const claim = (by: ReceivedEvents, id: string, now: number) =>
    by.claim({ id, now, leaseUntil: now + LEASE });

  it("gives the event of a process that died to another one when its lease ends", async () => {
    const [first, second] = await open();
    await claim(first, "a", NOW);
    expect(await claim(second, "a", NOW + LEASE - 1)).toBe("in_flight");
    expect(await claim(second, "a", NOW + LEASE)).toBe("new");
  });

  it("forgets an event when its time is over, and keeps the cursors", async () => {
    const [first, second] = await open();
    await first.confirm({ id: "a", now: NOW, keepUntil: NOW + DAY });
    await first.writeCursor({ feed: "feed", cursor: "1" });
    for (let n = 0; n < 50; n += 1) await claim(first, `old ${n}`, NOW);
    expect(await claim(second, "a", NOW + DAY - 1)).toBe("done");
    expect(await claim(second, "a", NOW + DAY)).toBe("new");
    expect(await claim(first, "b", NOW + 2 * DAY)).toBe("new");
    expect(await second.readCursor("feed")).toBe("1");
  });
}
