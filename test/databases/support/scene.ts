/**
 * A table of a host, a Postbell on Redis behind it, and processes that move events from one to the
 * other.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { createWebhooks, type EventInput } from "../../../src/index.js";
import { outbox } from "../../../storage/outbox/index.js";
import { redisStorage } from "../../../storage/redis/index.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import type { Database, Table } from "./database.js";

const PROGRAM = join(import.meta.dirname, "outbox-process.js");
const ACCOUNT = "clinic";

export const eventFor = (patient: string): EventInput => ({
  type: "patient.updated",
  account: ACCOUNT,
  resource: { resourceType: "Patient", id: patient },
});

export interface Mover {
  readonly child: ChildProcess;
  /** The signal that it ended by. */
  readonly exited: Promise<NodeJS.Signals | null>;
}

export interface Scene {
  readonly table: Table;
  /** Writes events in one transaction, which commits. Resolves with their ids. */
  readonly write: (count: number) => Promise<readonly string[]>;
  /** A process of its own that moves events until it is ended. */
  readonly launch: (how?: {
    readonly crashAt?: string | undefined;
    readonly signal?: NodeJS.Signals | undefined;
    readonly batch?: number | undefined;
  }) => Mover;
  /**
   * Moves what is due in this process, leases that others left behind included, until the table
   * waits for nothing. Resolves with how many events Postbell knew already.
   */
  readonly drain: () => Promise<number>;
  /** The ids of the events that Postbell holds, each as often as it has a delivery. */
  readonly held: () => Promise<readonly string[]>;
}

let count = 0;

export async function openScene(database: Database): Promise<Scene> {
  const name = `outbox_scene_${++count}`;
  const table = await database.table(name);
  const prefix = freshPrefix();
  const storage = redisStorage({ url: redisUrl(), prefix });
  const webhooks = createWebhooks({ storage, access: { authenticate: () => null, canRead: () => true } });
  const subscriber = { id: "key-1", account: ACCOUNT };
  const { webhook } = await webhooks.registrations.create({
    subscriber,
    url: "https://hooks.example.com/in",
  });
  const children = new Set<ChildProcess>();
  onTestFinished(async () => {
    for (const child of children) child.kill("SIGKILL");
    await storage.close();
  });

  return {
    table,
    async write(howMany) {
      const transaction = await table.begin();
      const ids = await transaction.addAll(Array.from({ length: howMany }, (_, at) => eventFor(`p${at}`)));
      await transaction.commit();
      return ids;
    },
    launch({ crashAt = "", signal = "SIGKILL", batch = 100 } = {}) {
      const child = spawn(process.execPath, [PROGRAM], {
        env: {
          ...process.env,
          DATABASE: JSON.stringify({ kind: database.kind, address: database.server.address }),
          TABLE: name,
          REDIS_URL: redisUrl(),
          REDIS_PREFIX: prefix,
          CRASH_AT: crashAt,
          SIGNAL: signal,
          BATCH: String(batch),
        },
        stdio: ["ignore", "ignore", "inherit"],
      });
      children.add(child);
      const exited = new Promise<NodeJS.Signals | null>((resolve) =>
        child.once("exit", (_, endedBy) => {
          children.delete(child);
          resolve(endedBy);
        }),
      );
      return { child, exited };
    },
    async drain() {
      const box = outbox({ webhooks, source: table.source, pollMs: 20 });
      await box.start();
      try {
        for (;;) {
          await table.expire();
          await box.idle();
          const { waiting, duplicates } = await box.stats();
          if (waiting === 0) return duplicates;
        }
      } finally {
        await box.stop();
      }
    },
    async held() {
      const ids: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await webhooks.deliveries.list({ webhookId: webhook.id, limit: 100, cursor });
        ids.push(...page.items.map(({ eventId }) => eventId));
        cursor = page.next ?? undefined;
      } while (cursor !== undefined);
      return ids;
    },
  };
}
