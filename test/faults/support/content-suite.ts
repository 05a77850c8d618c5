/**
 * Content on a storage: processes that see each other's writes, die in the middle of them, and are
 * cut off.
 */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../../src/core/logger.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { type Call, callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { startProxy } from "../../support/tcp-proxy.js";
import { startForTests } from "./start-for-tests.js";
import type { StorageAddress, StorageUnderTest } from "./storage-under-test.js";
import { eventually } from "./worker-host.js";

const KILLS = Number(process.env["CONTENT_KILLS"] ?? 40);

export const createPost = async (call: Call, title: string): Promise<number> => {
  const { status, body } = await call("POST /posts", {
    as: "administrator",
    body: { title, status: "publish" },
  });
  expect(status).toBe(201);
  return body.id as number;
};

const totalOf = async (call: Call): Promise<string | undefined> =>
  (await call("GET /posts")).headers["X-WP-Total"];

/** Opens services with connections of their own, as processes do, and checks what they wrote. */
export function toolsFor(on: () => StorageUnderTest): {
  readonly serviceOn: (address: StorageAddress, contentChanges?: number) => Call;
  readonly faultsIn: (address: StorageAddress) => Promise<readonly string[]>;
} {
  return {
    serviceOn(address, contentChanges) {
      const storage = on().open(address, { contentChanges });
      onTestFinished(() => storage.close());
      return callsOf(contentSite({ storage, logger: silentLogger }));
    },
    async faultsIn(address) {
      const inspector = on().inspect(address);
      const faults = await inspector.findContentFaults();
      await inspector.close();
      return faults;
    },
  };
}

export interface ContentSuiteOptions {
  readonly start: () => Promise<StorageUnderTest>;
  /** How many writes the processes make. */
  readonly turns: number;
}

/** Declares the tests of processes that share a storage. */
export function describeContent({ start, turns }: ContentSuiteOptions): void {
  const on = startForTests(start);
  const { serviceOn, faultsIn } = toolsFor(on);

  describe("two processes", () => {
    it(`see each other's writes with the next read, in ${turns} random turns`, {
      timeout: 600_000,
    }, async () => {
      const address = await on().fresh();
      const calls = [serviceOn(address), serviceOn(address)] as const;
      const chance = manualClock(0, { seed: 20 });
      const below = (count: number): number => Math.floor(chance.random() * count);
      const titles = new Map<number, string>();
      const counts = { created: 0, renamed: 0, removed: 0, read: 0 };

      async function write(call: Call, turn: number): Promise<number> {
        const known = [...titles.keys()];
        const id = known[below(known.length)];
        const title = `Title ${turn}`;
        if (id === undefined || known.length < 5 || (known.length < 40 && below(3) === 0)) {
          counts.created += 1;
          const made = await createPost(call, title);
          titles.set(made, title);
          return made;
        }
        if (below(3) === 0) {
          counts.removed += 1;
          titles.delete(id);
          await call(`DELETE /posts/${id}`, { as: "administrator", query: { force: true } });
          return id;
        }
        counts.renamed += 1;
        titles.set(id, title);
        await call(`PUT /posts/${id}`, { as: "administrator", body: { title } });
        return id;
      }

      for (let turn = 0; turn < turns; turn += 1) {
        const writer = below(2);
        const reader = calls[1 - writer] as Call;
        // Reads in flight during the write must not share their result with a read after it.
        const meanwhile = Array.from({ length: below(3) }, () => totalOf(reader));
        const id = await write(calls[writer] as Call, turn);
        const { status, body } = await reader(`GET /posts/${id}`);
        expect(status === 200 ? body.title.rendered : undefined).toBe(titles.get(id));
        expect(await totalOf(reader)).toBe(String(titles.size));
        counts.read += 2 + meanwhile.length;
        await Promise.all(meanwhile);
      }
      console.log(`content on ${on().kind}, two processes: ${JSON.stringify(counts)}, none stale`);
      expect(await faultsIn(address)).toEqual([]);
    });

    it("never leave half of a commit where one is killed, nor lose what was acknowledged", {
      timeout: 300_000,
    }, async () => {
      const address = await on().fresh();
      const dir = mkdtempSync(join(tmpdir(), "postbell-content-"));
      onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
      const journalOf = (name: string): string => join(dir, name);
      const start = (name: string): ChildProcess =>
        fork(join(import.meta.dirname, "content-process.js"), {
          env: {
            ...process.env,
            CONTENT_OPTIONS: JSON.stringify({ storage: address, journal: journalOf(name), name }),
          },
        });
      const names = ["one", "two"];
      const acknowledged = (name: string): number =>
        existsSync(journalOf(name)) ? readFileSync(journalOf(name), "utf8").split("\n").length - 1 : 0;
      const children = new Map(names.map((name) => [name, start(name)]));
      onTestFinished(() => {
        for (const child of children.values()) child.kill("SIGKILL");
      });
      const storage = on().open(address);
      onTestFinished(() => storage.close());
      const store = storage.content({ clock: manualClock(0), logger: silentLogger });

      for (let kill = 0; kill < KILLS; kill += 1) {
        const name = names[kill % 2] as string;
        const before = acknowledged(name);
        await eventually(() => acknowledged(name) > before, `${name} commits`);
        await sleep(Math.random() * 30);
        const child = children.get(name) as ChildProcess;
        child.kill("SIGKILL");
        await once(child, "exit");
        const lines = readFileSync(journalOf(name), "utf8").trim().split("\n");
        const [left, right] = await store.read([`post/${name}-left`, `post/${name}-right`]);
        expect(left?.body).toBe(right?.body);
        expect(Number(left?.body)).toBeGreaterThanOrEqual(Number(lines.at(-1)));
        children.set(name, start(name));
      }
      for (const child of children.values()) {
        child.kill("SIGKILL");
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      }
      expect(await faultsIn(address)).toEqual([]);
      const commits = names.reduce((sum, name) => sum + acknowledged(name), 0);
      console.log(
        `content on ${on().kind}: ${KILLS} kills during ${commits} acknowledged commits, nothing half, nothing lost`,
      );
    });
  });

  it("a process that was cut off for longer than changes are stored reloads, with requests in flight", async () => {
    const address = await on().fresh();
    const [first, second] = [serviceOn(address, 100), serviceOn(address, 100)] as const;
    const ids = await Promise.all(Array.from({ length: 60 }, (_, post) => createPost(first, `Post ${post}`)));
    expect(await totalOf(second)).toBe("60");
    for (const id of ids.slice(0, 50)) {
      await first(`DELETE /posts/${id}`, { as: "administrator", query: { force: true } });
    }
    for (let post = 0; post < 100; post += 1) await createPost(first, `Later ${post}`);
    const totals = await Promise.all(Array.from({ length: 50 }, () => totalOf(second)));
    expect(new Set(totals)).toEqual(new Set(["110"]));
    expect((await second(`GET /posts/${ids[0]}`)).status).toBe(404);
  });
}

/** Declares the tests in which the server of a storage fails. */
export function describeContentWithoutServer(start: () => Promise<StorageUnderTest>): void {
  const on = startForTests(start);
  const { serviceOn, faultsIn } = toolsFor(on);

  describe("a server that goes away", () => {
    it("and comes back has every acknowledged write, and the services go on", async () => {
      const address = await on().fresh();
      const calls = [serviceOn(address), serviceOn(address)] as const;
      const stored: number[] = [];
      const statuses = new Set<number>();
      let isOver = false;
      const writing = calls.map(async (call) => {
        while (!isOver) {
          const { status, body } = await call("POST /posts", {
            as: "administrator",
            body: { title: "Post", status: "publish" },
          });
          statuses.add(status);
          if (status === 201) stored.push(body.id);
          else await sleep(20);
        }
      });
      for (let round = 0; round < 3; round += 1) {
        const before = stored.length;
        await eventually(() => stored.length > before + 20, "posts are stored");
        await on().server?.kill();
        await sleep(200);
        await on().server?.restart();
      }
      const before = stored.length;
      await eventually(() => stored.length > before + 20, "posts are stored again");
      isOver = true;
      await Promise.all(writing);
      expect([...statuses].filter((status) => status !== 201 && status !== 503)).toEqual([]);
      for (const call of calls) {
        // Each service finds out for itself, within a second, that the server is back.
        const isBack = async (): Promise<boolean> => (await call("GET /posts")).status === 200;
        await eventually(isBack, "the service responds");
        for (const id of stored) expect((await call(`GET /posts/${id}`)).status).toBe(200);
      }
      expect(await faultsIn(address)).toEqual([]);
      console.log(
        `content on ${on().kind}: ${stored.length} posts stored over three crashes of the server, none lost`,
      );
    });

    it("in the middle of an answer stores each write once", async () => {
      const address = await on().fresh();
      const proxy = await startProxy({ host: "127.0.0.1", port: on().server?.port ?? 0 });
      onTestFinished(() => proxy.stop());
      const call = serviceOn(on().through(address, proxy.port));
      const straight = serviceOn(address);
      const titles: string[] = [];
      await totalOf(call);
      for (let round = 0; round < 30; round += 1) {
        const title = `Cut ${round}`;
        const asking = call("POST /posts", { as: "administrator", body: { title, status: "publish" } });
        await sleep(Math.random() * 4);
        await proxy.mode("swallow");
        await sleep(2);
        proxy.cutAll();
        await proxy.mode("pass");
        const { status } = await asking;
        expect([201, 503]).toContain(status);
        if (status === 201) titles.push(title);
      }
      const { body } = await straight("GET /posts", { query: { per_page: 100 } });
      const found = body.map((post: { title: { rendered: string } }) => post.title.rendered);
      expect(new Set(found).size).toBe(found.length);
      expect(found).toEqual(expect.arrayContaining(titles));
      console.log(
        `content on ${on().kind}: ${titles.length} of 30 writes answered through a cut, none twice`,
      );
    });
  });
}
