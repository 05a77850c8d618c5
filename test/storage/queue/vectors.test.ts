/**
 * The rules of the delivery queue decide as `vectors.json` says, in TypeScript and in Lua. A rule
 * that is changed in one language only fails here. `test/databases/queue-vectors.test.ts` plays the
 * same file against the functions of Postgres.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { Redis } from "ioredis";
import { afterAll, describe, expect, test } from "vitest";
import { RULES } from "../../../storage/redis/library.js";
import { encodeSubscription } from "../../../storage/redis/webhook-codec.js";
import { redisUrl } from "../../support/redis.js";
import { decideAll, type Vector } from "./decisions.js";
import play from "./play-vectors.lua";

const FILE = resolve(import.meta.dirname, "../../../storage/queue/vectors.json");

const writeVectors = (rules: Record<string, Vector[]>): string =>
  `{\n${Object.entries(rules)
    .map(([name, all]) => `"${name}": [\n${all.map((one) => JSON.stringify(one)).join(",\n")}\n]`)
    .join(",\n")}\n}\n`;

if (process.env["WRITE_VECTORS"] === "yes") writeFileSync(FILE, writeVectors(decideAll()));
const VECTORS = JSON.parse(readFileSync(FILE, "utf8")) as Record<string, Vector[]>;

const client = new Redis(redisUrl());
afterAll(() => client.disconnect());

/** Replaces what Redis stores in another form. */
const toLua = ({ given }: Vector): unknown =>
  "eventTypes" in given
    ? {
        ...given,
        types: encodeSubscription({
          eventTypes: given["eventTypes"] as readonly string[] | null,
          filter: { "data.kind": { eq: "a" } },
        }),
      }
    : given;

/** Returns the vectors of a rule with what Lua decides. */
async function decideInLua(rule: string, vectors: readonly Vector[]): Promise<Vector[]> {
  const script = [RULES, play].join("\n");
  const reply = await client.eval(script, 0, rule, JSON.stringify(vectors.map(toLua)));
  const decisions = JSON.parse(String(reply)) as unknown[];
  return vectors.map(({ given }, index) => ({ given, expected: decisions[index] }));
}

test("the file has some hundred vectors, of every rule", () => {
  expect(Object.keys(VECTORS)).toEqual(Object.keys(decideAll()));
  expect(Object.values(VECTORS).flat().length).toBeGreaterThan(250);
});

describe.each(Object.keys(decideAll()))("%s decides as its vectors say", (rule) => {
  const vectors = VECTORS[rule] ?? [];
  test("in TypeScript", () => {
    expect(decideAll()[rule]).toEqual(vectors);
  });
  test("in Lua", async () => {
    expect(await decideInLua(rule, vectors)).toEqual(vectors);
  });
});
