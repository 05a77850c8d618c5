import { describe, expect, it } from "vitest";
import { createNonces } from "../../../src/content/hosting/nonces.js";
import { manualClock } from "../../../src/testing/manual-clock.js";

const HOUR = 3_600_000;
const SECRET = "0123456789abcdef0123456789abcdef";
const at = (clock = manualClock(0), options: { lifetimeMs?: number } = {}) =>
  createNonces({ secret: SECRET, clock, ...options });

describe("a nonce", () => {
  it("is valid for its own session and for no other", () => {
    const nonces = at();
    const nonce = nonces.create("session-1");
    expect(nonce).toMatch(/^[\w-]{32}$/);
    expect(nonces.create("session-1")).toBe(nonce);
    expect(nonces.verify(nonce, "session-1")).toBe(true);
    expect(nonces.verify(nonce, "session-2")).toBe(false);
  });

  it("is valid for at least half its lifetime and at most all of it", async () => {
    for (const [start, lastHour] of [
      [0, 23],
      [11, 12],
    ] as const) {
      const clock = manualClock(start * HOUR);
      const nonces = at(clock);
      const nonce = nonces.create("session");
      const ages: number[] = [];
      for (let age = 0; age < 36; age += 1) {
        if (nonces.verify(nonce, "session")) ages.push(age);
        await clock.advance(HOUR);
      }
      expect(ages).toEqual(Array.from({ length: lastHour + 1 }, (_, age) => age));
    }
  });

  it("has another lifetime if the host says so", async () => {
    const clock = manualClock(0);
    const nonces = at(clock, { lifetimeMs: 10_000 });
    const nonce = nonces.create("session");
    await clock.advance(9_999);
    expect(nonces.verify(nonce, "session")).toBe(true);
    await clock.advance(1);
    expect(nonces.verify(nonce, "session")).toBe(false);
  });

  it("is the same in every process with the secret, and invalid with another secret", () => {
    const clock = manualClock(0);
    const nonce = at(clock).create("session");
    const bytes = createNonces({ secret: Buffer.from(SECRET), clock });
    const other = createNonces({ secret: `${SECRET}.`, clock });
    expect([bytes.verify(nonce, "session"), other.verify(nonce, "session")]).toEqual([true, false]);
  });

  it("is refused if a character is changed, missing, added or not of one byte", () => {
    const nonces = at();
    const nonce = nonces.create("session");
    const wrong = [
      "",
      nonce.slice(1),
      `${nonce}A`,
      ` ${nonce}`,
      nonce.slice(0, -1) + (nonce.endsWith("A") ? "B" : "A"),
      `${nonce.slice(0, -1)}é`,
      "x".repeat(100_000),
      ...[undefined, null, 5, [nonce], { length: 32 }].map((given) => given as unknown as string),
    ];
    expect(wrong.filter((given) => nonces.verify(given, "session"))).toEqual([]);
  });
});

describe("createNonces", () => {
  it("refuses a missing or short secret, a lifetime out of range and an unknown option", () => {
    const field = (options: unknown): unknown => {
      try {
        createNonces(options as Parameters<typeof createNonces>[0]);
      } catch (error) {
        return (error as { field?: string }).field;
      }
      return "accepted";
    };
    expect([{}, { secret: "short" }, { secret: new Uint8Array(31) }, { secret: 5 }].map(field)).toEqual(
      Array(4).fill("secret"),
    );
    expect(field({ secret: SECRET, lifetimeMs: 0 })).toBe("lifetimeMs");
    expect(field({ secret: SECRET, lifeTime: 5 })).toBe("lifeTime");
    expect(field({ secret: "é".repeat(16) })).toBe("accepted");
  });

  it("refuses an empty session, for which every visitor would have the same nonce", () => {
    const nonces = at();
    for (const call of [() => nonces.create(""), () => nonces.verify("x", "")])
      expect(call).toThrow(expect.objectContaining({ code: "invalid_argument", field: "session" }));
  });
});
