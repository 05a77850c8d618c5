/** Lists accounts on Redis, partition after partition. */

import type { AccountListStore, AccountSummary } from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { getEndpointState, sumWebhooks } from "../queue/account-summary.js";
import { decodeNumber, decodeText } from "./codec.js";
import { decodePast, decodeRecent } from "./delivery-log.js";
import type { RedisStoreContext } from "./session.js";

/** The number of a partition, and the last account or failing webhook of the page before. */
const CURSORS = { all: /^[0-9]{1,4}:[0-9]{1,15}$/, failing: /^[0-9]{1,4}:(?:[0-9a-f]{11}\/[0-9]{1,15})?$/ };

type AccountRow = [name: string, pending: number, lastEventAt: string, texts: string[]];

function decodeAccount([name, pending, lastEventAt, texts]: AccountRow, now: number): AccountSummary {
  const webhooks = Array.from({ length: texts.length / 3 }, (_, index) => {
    const [head = "", recent = "", past = ""] = texts.slice(3 * index, 3 * index + 3);
    const [, , status, , , failingSince, warnedAt] = head.split(",");
    const state = getEndpointState({
      status: status === "E" ? "ENABLED" : "DISABLED",
      failingSince: decodeNumber(failingSince),
      warnedAt: decodeNumber(warnedAt),
    });
    return { state, newest: decodeRecent(recent), past: decodePast(past) };
  });
  return {
    account: decodeText(name),
    ...sumWebhooks(webhooks, now),
    waiting: pending,
    lastEventAt: decodeNumber(lastEventAt),
  };
}

export function createRedisAccountList({ partitions, run, connect }: RedisStoreContext): AccountListStore {
  return {
    async listAccounts({ state, cursor, limit, now }) {
      const first = state === "failing" ? "" : "0";
      const start = validateCursor(cursor, CURSORS[state ?? "all"]) || `0:${first}`;
      const at = await connect(now);
      const accounts: AccountSummary[] = [];
      let number = Number.parseInt(start, 10);
      let after = start.slice(start.indexOf(":") + 1);
      for (; number < partitions.all.length; number++) {
        const partition = partitions.all[number];
        if (partition === undefined) break;
        const name = state === "failing" ? "readFailingAccounts" : "readAccounts";
        const options = { after, limit: limit - accounts.length };
        const [rows, next] = (await run(name, partition, { now: at, options })) as [AccountRow[], string];
        accounts.push(...rows.map((row) => decodeAccount(row, at)));
        if (next !== "") return { accounts, next: `${number}:${next}` };
        after = first;
        if (accounts.length === limit) break;
      }
      const isLast = number >= partitions.all.length - 1;
      return { accounts, next: isLast ? null : `${number + 1}:${first}` };
    },
  };
}
