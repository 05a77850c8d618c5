/**
 * The order of claims: endpoints take turns in their lane, deliveries queue within their endpoint,
 * and deliveries whose lease has expired are queued again.
 */

import {
  type Claim,
  type ClaimRequest,
  FIRST_ATTEMPT_HEAD_START_MS,
  type Lane,
} from "../../src/webhooks/store.js";
import { addClaimed, countLeft, findOpenTime, limitConcurrency } from "../endpoint-limits.js";
import { FifoTimeQueue } from "./fifo-time-queue.js";
import type { Lease, MemoryDelivery, MemoryEndpoint } from "./records.js";
import { deliveryId, type MemoryStoreContext, notifyWorkers, type State } from "./state.js";

const LANES: readonly Lane[] = ["fast", "slow"];

/**
 * Adds a pending delivery to the queue of its endpoint, or moves it there. Only a delivery that is
 * already due gets the head start of a first attempt: any other would be served too early. First
 * attempts come in order of time. A retry in the FIFO, due much later, would make each of them out
 * of order.
 */
export function enqueue(delivery: MemoryDelivery, now: number): void {
  const { queue } = delivery.endpoint;
  const at = delivery.extraAt ?? delivery.dueAt;
  queue.delete(delivery);
  if (delivery.startedAt === null && at <= now) queue.add(delivery, at - FIRST_ATTEMPT_HEAD_START_MS);
  else queue.addOutOfOrder(delivery, at);
}

const countFreeSlots = ({ perEndpoint }: MemoryStoreContext, endpoint: MemoryEndpoint): number =>
  limitConcurrency(endpoint.slowStart, perEndpoint) - endpoint.inFlight;

/**
 * Works out when `endpoint` may be served next, after anything about it has changed. An endpoint
 * that is already due keeps its place among the ready ones, unless it was just `served`: then the
 * others have their turn first. Workers are notified if it is ready earlier than before.
 */
export function offer(
  context: MemoryStoreContext,
  endpoint: MemoryEndpoint,
  now: number,
  { served = false }: { served?: boolean } = {},
): void {
  if (endpoint.isRemoved) return;
  const { state } = context;
  const line = state.ready[endpoint.lane];
  const head = endpoint.queue.headAt();
  if (head === undefined || countFreeSlots(context, endpoint) <= 0) {
    line.delete(endpoint);
    return;
  }
  const at = Math.max(head, findOpenTime(context.perSecond, endpoint.claimed, now));
  const readyAt = line.at(endpoint);
  if (served || readyAt === undefined || readyAt > now || at > now) line.set(endpoint, at);
  if (readyAt === undefined || at < readyAt) notifyWorkers(state, at);
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
  readonly lease: Lease;
  readonly claims: Claim[];
}

/** Leases up to `room` due deliveries of one endpoint, and returns how many. */
function take(
  context: MemoryStoreContext,
  endpoint: MemoryEndpoint,
  { lease, claims }: Granted,
  { now, room }: { readonly now: number; readonly room: number },
): number {
  const { queue, claimed } = endpoint;
  const { perSecond } = context;
  const before = claims.length;
  const free = Math.min(countFreeSlots(context, endpoint), countLeft(perSecond, claimed, now));
  const most = before + Math.min(room, free);
  while (claims.length < most) {
    const delivery = queue.head();
    if (delivery === undefined || delivery.queuedAt > now) break;
    claims.push(grant(context.state, lease, delivery));
  }
  const taken = claims.length - before;
  if (perSecond !== null) endpoint.claimed = addClaimed(claimed, now, taken);
  offer(context, endpoint, now, { served: true });
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

/** Leases due deliveries of one lane, in turns of its endpoints. */
function serve(context: MemoryStoreContext, lane: Lane, granted: Granted, request: ClaimRequest): void {
  const { now } = request;
  const line = context.state.ready[lane];
  let room = request.room[lane];
  while (room > 0 && (line.headAt() ?? Number.POSITIVE_INFINITY) <= now) {
    const endpoint = line.head();
    if (!endpoint) return;
    const share = Math.max(1, Math.floor(room / line.size));
    room -= take(context, endpoint, granted, { now, room: share });
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
    ...[state.ready.fast, state.ready.slow, state.leases].map(
      (queue) => queue.headAt() ?? Number.POSITIVE_INFINITY,
    ),
  );
  return { claims, nextAt: next === Number.POSITIVE_INFINITY ? null : next };
}
