/**
 * The order of claims: endpoints take turns in their lane, deliveries queue within their endpoint,
 * and deliveries whose lease has expired are queued again.
 */

import type { Claim, ClaimRequest, Lane } from "../../src/webhooks/store.js";
import {
  addClaimed,
  countFreeSlots,
  countLeft,
  divideRoom,
  findOpenTime,
  findQueueTime,
  findReadyTime,
  isEarlier,
  keepsTurn,
  LANES,
} from "../queue/endpoint.js";
import { FifoTimeQueue } from "./collections.js";
import type { Lease, MemoryDelivery, MemoryEndpoint } from "./records.js";
import { deliveryId, type MemoryStoreContext, notifyWorkers, type State } from "./state.js";

/**
 * Adds a pending delivery to the queue of its endpoint, or moves it there. First attempts come in
 * order of time. A retry in the FIFO, due much later, would make each of them out of order.
 */
export function enqueue(delivery: MemoryDelivery, now: number): void {
  const { queue } = delivery.endpoint;
  const at = findQueueTime(delivery, now);
  queue.delete(delivery);
  if (delivery.startedAt === null && at <= now) queue.add(delivery, at);
  else queue.addOutOfOrder(delivery, at);
}

/**
 * Puts an endpoint in line for its next turn, behind those that are ready at the same time. Returns
 * when it is ready; `null` if it is not.
 */
function putInLine(context: MemoryStoreContext, endpoint: MemoryEndpoint, now: number): number | null {
  const { state, perEndpoint, perSecond } = context;
  const line = state.ready[endpoint.lane];
  const readyAt = findReadyTime(
    endpoint.queue.headAt() ?? null,
    countFreeSlots(endpoint.slowStart, endpoint.inFlight, perEndpoint),
    findOpenTime(endpoint.record.perSecond ?? perSecond, endpoint.claimed, now),
  );
  if (readyAt === null) line.delete(endpoint);
  else line.set(endpoint, readyAt);
  return readyAt;
}

/**
 * Works out when an endpoint may be served next, after anything about it has changed. Workers are
 * notified if that is earlier than before.
 */
export function offer(context: MemoryStoreContext, endpoint: MemoryEndpoint, now: number): void {
  const { state } = context;
  const before = state.ready[endpoint.lane].at(endpoint) ?? null;
  if (endpoint.isRemoved || keepsTurn(before, now)) return;
  const readyAt = putInLine(context, endpoint, now);
  if (isEarlier(readyAt, before)) notifyWorkers(state, readyAt);
}

export function moveToLane(state: State, endpoint: MemoryEndpoint, lane: Lane): void {
  if (endpoint.lane === lane) return;
  state.ready[endpoint.lane].delete(endpoint);
  endpoint.lane = lane;
}

/** Ends the lease of a delivery. The caller decides what happens to the delivery. */
export function releaseLease(state: State, delivery: MemoryDelivery, id = deliveryId(delivery)): void {
  const { lease } = delivery;
  if (lease === null) return;
  state.leased.delete(id);
  delivery.lease = null;
  delivery.endpoint.inFlight -= 1;
  lease.deliveries.delete(delivery);
  if (lease.deliveries.size === 0) state.leases.delete(lease);
}

function grant(state: State, lease: Lease, delivery: MemoryDelivery): Claim {
  const { endpoint } = delivery;
  endpoint.queue.delete(delivery);
  endpoint.inFlight += 1;
  delivery.lease = lease;
  lease.deliveries.add(delivery, 0);
  const id = deliveryId(delivery);
  state.leased.set(id, delivery);
  return {
    id,
    token: lease.token,
    lane: endpoint.lane,
    webhook: endpoint.record,
    event: delivery.event.record,
    startedAt: delivery.startedAt,
    step: delivery.step,
    isExtra: delivery.extraAt !== null,
    dueAt: delivery.dueAt,
    postponed: delivery.postponed,
    crashes: delivery.crashes,
    isRecovered: delivery.isRecovered,
  };
}

/** The deliveries that a claim call has leased so far. */
interface Granted {
  lease: Lease;
  claims: Claim[];
}

/** Leases up to `room` due deliveries of one endpoint, and returns how many. */
function take(
  context: MemoryStoreContext,
  endpoint: MemoryEndpoint,
  { lease, claims }: Granted,
  { now, room }: { now: number; room: number },
): number {
  const { queue, claimed, slowStart, inFlight } = endpoint;
  const { perEndpoint } = context;
  const perSecond = endpoint.record.perSecond ?? context.perSecond;
  const before = claims.length;
  const free = countFreeSlots(slowStart, inFlight, perEndpoint);
  const end = before + Math.min(room, free, countLeft(perSecond, claimed, now));
  while (claims.length < end) {
    const delivery = queue.head();
    if (delivery === undefined || delivery.queuedAt > now) break;
    claims.push(grant(context.state, lease, delivery));
  }
  const taken = claims.length - before;
  if (perSecond !== null) endpoint.claimed = addClaimed(claimed, now, taken);
  putInLine(context, endpoint, now);
  return taken;
}

/** Queues the deliveries of expired leases again. */
function recoverExpired(context: MemoryStoreContext, now: number): void {
  const { leases } = context.state;
  for (let at = leases.headAt(); at !== undefined && at <= now; at = leases.headAt()) {
    const lease = leases.head();
    if (!lease) return;
    leases.delete(lease);
    const { deliveries } = lease;
    for (let delivery = deliveries.head(); delivery !== undefined; delivery = deliveries.head()) {
      requeue(context, delivery, now);
    }
  }
}

function requeue(context: MemoryStoreContext, delivery: MemoryDelivery, now: number): void {
  releaseLease(context.state, delivery);
  delivery.crashes += 1;
  delivery.isRecovered = true;
  enqueue(delivery, now);
  offer(context, delivery.endpoint, now);
}

/** Takes the endpoints that are due out of their lane, in turn, at most `room`. */
function takeReady({ state }: MemoryStoreContext, lane: Lane, room: number, now: number): MemoryEndpoint[] {
  const line = state.ready[lane];
  const ready: MemoryEndpoint[] = [];
  while (ready.length < room && (line.headAt() ?? Number.POSITIVE_INFINITY) <= now) {
    const endpoint = line.head();
    if (endpoint === undefined) break;
    line.delete(endpoint);
    ready.push(endpoint);
  }
  return ready;
}

/** Leases due deliveries of one lane in rounds, until the room is used up or nothing is due. */
function serve(context: MemoryStoreContext, lane: Lane, granted: Granted, request: ClaimRequest): void {
  const { now } = request;
  let left = request.room[lane];
  for (let ready = takeReady(context, lane, left, now); ready.length > 0; ) {
    const room = left;
    for (const [index, endpoint] of ready.entries()) {
      left -= take(context, endpoint, granted, { now, room: divideRoom(room, ready.length, index) });
    }
    ready = takeReady(context, lane, left, now);
  }
}

export function claimDue(
  context: MemoryStoreContext,
  request: ClaimRequest,
): { claims: Claim[]; nextAt: number | null } {
  const { state } = context;
  recoverExpired(context, request.now);
  const lease: Lease = { token: request.token, deliveries: new FifoTimeQueue() };
  const claims: Claim[] = [];
  for (const lane of LANES) serve(context, lane, { lease, claims }, request);
  if (claims.length > 0) state.leases.set(lease, request.leaseUntil);
  const next = Math.min(
    state.ready.fast.headAt() ?? Number.POSITIVE_INFINITY,
    state.ready.slow.headAt() ?? Number.POSITIVE_INFINITY,
    state.leases.headAt() ?? Number.POSITIVE_INFINITY,
    // Events with a `keepMs` are freed when it is over, also if nothing else is to be done.
    state.endedEvents.outOfOrderAt() ?? Number.POSITIVE_INFINITY,
  );
  return { claims, nextAt: next === Number.POSITIVE_INFINITY ? null : next };
}
