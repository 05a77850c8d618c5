/** A library of the host that extends `Object.prototype`, in a process of its own. */

import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { freshPrefix, redisUrl } from "../support/redis.js";

const SCRIPT = resolve(import.meta.dirname, "../support/extended-prototype-process.mjs");

interface Printed {
  readonly [part: string]: {
    readonly outcome?: string;
    readonly received?: readonly { readonly headers: readonly string[]; readonly answer: number }[];
  };
}

const run = (state: "plain" | "extended"): Printed =>
  JSON.parse(
    execFileSync(process.execPath, [SCRIPT, state, redisUrl(), freshPrefix()], { encoding: "utf8" }),
  ) as Printed;

describe("with an enumerable text and function in Object.prototype", () => {
  it("deliveries on each storage, responses on each host and content are as without", {
    timeout: 120_000,
  }, () => {
    const plain = run("plain");
    expect(run("extended")).toEqual(plain);
    for (const storage of ["memory", "sqlite", "redis"])
      expect(plain[storage]).toMatchObject({ outcome: "delivered", received: [{ answer: 204 }] });
  });
});
