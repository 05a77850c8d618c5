/** The map behind the memory storage's remembered ids, against a plain list. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { ExpiringMap } from "../../../storage/memory/collections.js";

const MAX = 6;
const LIFE_MS = 10;

const command = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("set" as const), key: fc.nat(9) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(LIFE_MS) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("drop" as const), most: fc.nat(4) }) },
);

test("it holds the newest entries that have not expired, and frees expired ones oldest first", () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 150 }), (commands) => {
      const map = new ExpiringMap<{ readonly expiresAt: number }>(MAX);
      let now = 0;
      let entries: { readonly key: string; readonly expiresAt: number }[] = [];
      for (const step of commands) {
        if (step.kind === "set") {
          const entry = { key: String(step.key), expiresAt: now + LIFE_MS };
          map.set(entry.key, entry);
          entries = [...entries.filter(({ key }) => key !== entry.key), entry].slice(-MAX);
        } else if (step.kind === "wait") {
          now += step.ms;
        } else {
          map.dropExpired(now, step.most);
          const expired = entries.filter(({ expiresAt }) => expiresAt <= now).slice(0, step.most);
          entries = entries.filter((entry) => !expired.includes(entry));
        }
        expect(map.size).toBe(entries.length);
        for (let key = 0; key < 10; key++) {
          const known = entries.find((entry) => entry.key === String(key) && entry.expiresAt > now);
          expect(map.get(String(key), now)).toEqual(known);
        }
      }
    }),
    { numRuns: 200 },
  );
});

test("an entry expires at its time, not before", () => {
  const map = new ExpiringMap<{ readonly expiresAt: number }>(MAX);
  map.set("a", { expiresAt: 100 });
  expect(map.get("a", 99)).toEqual({ expiresAt: 100 });
  expect(map.get("a", 100)).toBeUndefined();
});
