/** The limit on wrong passwords, which counts for each protected post that one was tried on. */

import { describe, expect, it } from "vitest";
import { createPasswords } from "../../../src/content/posts/post-passwords.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { type CallAnswer, callsOf } from "../../support/content-call.js";
import { contentSite, type Role } from "../../support/content-site.js";
import { CONTENT_STORAGES } from "../../support/content-storages.js";

const MINUTE_MS = 60_000;
const LIMIT = 3;

describe.each(CONTENT_STORAGES)("wrong passwords, on %s", (_, open) => {
  function site(perMinute = LIMIT) {
    const clock = manualClock(Date.UTC(2026, 0, 1));
    const call = callsOf(contentSite({ storage: open(), clock, limits: { passwordsPerMinute: perMinute } }));
    const create = async (password: string, more: object = {}, as: Role = "editor"): Promise<number> => {
      const body = { title: "P", content: "hidden text", status: "publish", password, ...more };
      const response = await call("POST /posts", { as, body });
      expect(response.status).toBe(201);
      return response.body.id as number;
    };
    const read = (id: number, password: string, as?: Role) =>
      call(`GET /posts/${id}`, { as, query: { password } });
    const list = (password: string, query = {}) => call("GET /posts", { query: { ...query, password } });
    return { clock, call, create, read, list };
  }
  const shown = ({ body }: CallAnswer): string[] =>
    (Array.isArray(body) ? body : [body]).map((item) => item.content?.rendered ?? "");
  const isUnlocked = (response: CallAnswer): boolean =>
    shown(response).some((text) => text.includes("hidden text"));

  it("count on each post of a list, even if the same password unlocks another post", async () => {
    const { create, list, read } = site();
    const own = await create("mine");
    const other = await create("sesame");
    const include = `${own},${other}`;
    for (let time = 0; time < LIMIT; time += 1) {
      const response = await list("mine", { include, order: "asc", orderby: "id" });
      expect(shown(response).map((text) => text !== "")).toEqual([true, false]);
    }
    expect((await list("mine", { include })).status).toBe(429);
    // Then no password is compared, on neither of the posts.
    const late = await list("sesame", { include });
    expect([late.status, Number(late.headers["Retry-After"])]).toEqual([429, MINUTE_MS / LIMIT / 1000]);
    expect((await read(other, "sesame")).status).toBe(429);
    expect(isUnlocked(await read(own, "mine"))).toBe(true);
  });

  it("count together for one post, in all kinds of lists and in single reads", async () => {
    const { create, list, read } = site();
    const id = await create("sesame");
    await list("a");
    await list("b", { search: "x", include: String(id) });
    expect((await read(id, "c")).status).toBe(403);
    await list("d", { slug: "p" });
    for (const response of [
      await read(id, "sesame"),
      await list("sesame"),
      await list("sesame", { slug: "p" }),
    ])
      expect([response.status, isUnlocked(response)]).toEqual([429, false]);
  });

  it("on unknown or unprotected posts do not reset the count of a protected one", async () => {
    const { create, read } = site();
    const id = await create("sesame");
    const plain = await create("");
    for (let time = 0; time < LIMIT; time += 1) expect((await read(id, `wrong ${time}`)).status).toBe(403);
    expect((await read(id, "sesame")).status).toBe(429);
    // Neither post counts attempts: their responses stay the same.
    for (let guess = 0; guess < 2 * LIMIT; guess += 1) {
      expect((await read(999_999, "wrong")).status).toBe(404);
      expect((await read(plain, "wrong")).status).toBe(403);
    }
    expect((await read(id, "sesame")).status).toBe(429);
  });

  it("expire with time, and right ones never count", async () => {
    const { clock, create, read, list } = site();
    const id = await create("sesame");
    for (let time = 0; time < 3 * LIMIT; time += 1) {
      expect(isUnlocked(await read(id, "sesame"))).toBe(true);
      expect(isUnlocked(await list("sesame"))).toBe(true);
    }
    for (let time = 0; time < LIMIT; time += 1) await read(id, "wrong");
    expect((await read(id, "sesame")).status).toBe(429);
    await clock.advance(MINUTE_MS / LIMIT);
    expect(isUnlocked(await read(id, "sesame"))).toBe(true);
    expect((await read(id, "wrong")).status).toBe(403);
    expect((await read(id, "sesame")).status).toBe(429);
  });

  it("are not compared for a caller who may not read the post with the right one either", async () => {
    const { create, read } = site();
    const draft = await create("sesame", { status: "draft" });
    const answers = await Promise.all(["wrong", "sesame"].map((password) => read(draft, password)));
    expect(answers.map(({ status, body }) => [status, body.code])).toEqual([
      [403, "rest_post_incorrect_password"],
      [403, "rest_post_incorrect_password"],
    ]);
    for (let time = 0; time < 2 * LIMIT; time += 1) await read(draft, "wrong");
    expect(isUnlocked(await read(draft, "sesame", "editor"))).toBe(true);
  });

  it("are refused whatever the limit is, and unlimited times if the limit is 0", async () => {
    const { create, read } = site(0);
    const id = await create("sesame");
    for (let time = 0; time < 50; time += 1) expect((await read(id, "wrong")).status).toBe(403);
    expect(isUnlocked(await read(id, "sesame"))).toBe(true);
  });
});

describe("the counts of wrong passwords", () => {
  it("are bounded in number: beyond that, further posts stay locked until counts expire", async () => {
    const clock = manualClock(0);
    const passwords = createPasswords({ perMinute: 1, clock, maxPosts: 2 });
    const post = (id: number) => ({ id, password: "sesame" });
    const open = (id: number, given: string): string => {
      try {
        return passwords.open([post(id)], given).has(id) ? "open" : "closed";
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    expect([open(1, "a"), open(2, "a")]).toEqual(["closed", "closed"]);
    expect([open(3, "sesame"), open(1, "sesame"), open(2, "sesame")]).toEqual(
      Array(3).fill("rest_too_many_passwords"),
    );
    await clock.advance(MINUTE_MS);
    expect([open(3, "a"), open(1, "sesame"), open(2, "sesame")]).toEqual(["closed", "open", "open"]);
  });
});
