/** Serves the endpoints that are ready: each gets its share of the room of its lane. */

import type { Claim, Lane, WebhookRecord } from "../../src/webhooks/store.js";
import { type Claiming, takeFromQueue, toLeasedClaim } from "./due-deliveries.js";
import { DUE, type DueRow } from "./due-row.js";
import type { EndpointRow } from "./endpoint-row.js";
import { countFreeSlots, nextTurnNumber, offerEndpoint, saveQueues } from "./endpoint-rows.js";

export const LANES: readonly Lane[] = ["fast", "slow"];

/** A minute: then a webhook whose secret could not be opened is tried again. */
const UNREADABLE_MS = 60_000;

/** When the next delivery of a queue may be claimed, once the share of its endpoint is taken. */
const NEXT_HEAD = `SELECT $1 AS endpoint, min(at) AS at FROM (
    SELECT at FROM (SELECT at FROM {queue} WHERE endpoint = $1 AND at <= $2 ORDER BY at, delivery LIMIT 1 OFFSET $3) AS due
    UNION ALL SELECT min(at) FROM {queue} WHERE endpoint = $1 AND at > $2) AS next`;

/** Offers the endpoints that were served. `heads`: what is first in their queues now. */
async function offerServed(
  { transaction, context, request: { now } }: Claiming,
  ready: readonly EndpointRow[],
  heads: readonly HeadRow[],
): Promise<void> {
  const first = new Map(heads.map(({ endpoint, at }) => [endpoint, at]));
  for (const endpoint of ready) {
    const head = first.get(endpoint.position) ?? undefined;
    offerEndpoint(endpoint, head, { now, perEndpoint: context.perEndpoint, served: true });
  }
  await saveQueues(transaction, ready);
}

interface HeadRow {
  readonly endpoint: number;
  /** Null if nothing else waits. */
  readonly at: number | null;
}

/** How many deliveries each endpoint gets: its share of the room of its lane. */
function divideRoom(
  { request: { room }, context }: Claiming,
  ready: readonly EndpointRow[],
): ReadonlyMap<EndpointRow, number> {
  const left = { ...room };
  const shares = new Map<EndpointRow, number>();
  for (const lane of LANES) {
    const own = ready.filter((endpoint) => endpoint.lane === lane);
    const share = Math.max(1, Math.floor(left[lane] / own.length));
    for (const endpoint of own) {
      const most = Math.min(share, left[lane], countFreeSlots(endpoint, context.perEndpoint));
      shares.set(endpoint, Math.max(0, most));
      left[lane] -= Math.max(0, most);
    }
  }
  return shares;
}

/** The deliveries that a round leases, and how many of each lane they are. */
interface Taken {
  readonly rows: readonly { readonly row: DueRow; readonly claim: Claim }[];
  readonly leased: Readonly<Record<Lane, number>>;
}

function takeDue(
  claiming: Claiming,
  due: readonly DueRow[],
  { readable, webhooks }: { readable: readonly EndpointRow[]; webhooks: ReadonlyMap<number, WebhookRecord> },
): Taken {
  const byPosition = new Map(readable.map((endpoint) => [endpoint.position, endpoint]));
  const leased = { fast: 0, slow: 0 };
  const rows = due.flatMap((row) => {
    const endpoint = byPosition.get(row.endpoint);
    const webhook = webhooks.get(row.endpoint);
    if (endpoint === undefined || webhook === undefined) return [];
    endpoint.in_flight += 1;
    leased[endpoint.lane as Lane] += 1;
    return [{ row, claim: toLeasedClaim(claiming, row, endpoint, webhook) }];
  });
  return { rows, leased };
}

/** Serves ready endpoints once. Returns what it leased from each lane. */
export async function serveRound(
  claiming: Claiming,
  ready: readonly EndpointRow[],
): Promise<Readonly<Record<Lane, number>>> {
  const { transaction, context, request } = claiming;
  const webhooks = await context.webhookCache.read(transaction, ready);
  const readable = ready.filter(({ position }) => webhooks.has(position));
  const shares = divideRoom(claiming, readable);
  const [due, heads] = await Promise.all([
    transaction.forEach<DueRow>(
      DUE,
      ["int", "int", "int"],
      readable.map((endpoint) => [endpoint.position, request.now, shares.get(endpoint) ?? 0]),
    ),
    transaction.forEach<HeadRow>(
      NEXT_HEAD,
      ["int", "int", "int"],
      readable.map((endpoint) => [endpoint.position, request.now, shares.get(endpoint) ?? 0]),
    ),
  ]);
  const { rows, leased } = takeDue(claiming, due, { readable, webhooks });
  await takeFromQueue(
    claiming,
    rows.map(({ row }) => row),
  );
  for (const { claim } of rows) claiming.claims.push(claim);
  await postponeUnreadable(
    claiming,
    ready.filter(({ position }) => !webhooks.has(position)),
  );
  await offerServed(claiming, readable, heads);
  return leased;
}

async function postponeUnreadable(
  { transaction, request: { now } }: Claiming,
  unreadable: readonly EndpointRow[],
): Promise<void> {
  for (const endpoint of unreadable) {
    endpoint.ready_at = now + UNREADABLE_MS;
    endpoint.turn = nextTurnNumber(now);
  }
  await saveQueues(transaction, unreadable);
}
