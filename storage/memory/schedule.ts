/** Who is served next: endpoints take turns in their lane, deliveries queue within their endpoint, leases that ran out come back. */

import {
  type Claim,
  type ClaimRequest,
  FIRST_ATTEMPT_HEAD_START_MS,
  type Lane,
} from "../../src/webhooks/store.js";
import { type Binding, type Delivery, type Endpoint, notify, type State } from "./state.js";

const LANES: readonly Lane[] = ["fast", "slow"];

/**
 * Puts a pending delivery in its endpoint's queue, or moves it there. Only what is due already gets the head start of a first attempt, or it would come early.
 * First attempts come in order of time. A retry in the FIFO, due much later, would make each of them out of order.
 */
export function enqueue(delivery: Delivery, now: number): void {
  const { queue } = delivery.endpoint;
  const at = delivery.extraAt ?? delivery.dueAt;
  queue.delete(delivery);
  if (delivery.startedAt === null && at <= now) queue.add(delivery, at - FIRST_ATTEMPT_HEAD_START_MS);
  else queue.addOutOfOrder(delivery, at);
}

const freeSlots = ({ perEndpoint }: Binding, endpoint: Endpoint): number =>
  Math.min(perEndpoint, endpoint.window ?? perEndpoint) - endpoint.inFlight;

/**
 * Says when `endpoint` may be served next, after anything about it has changed. One that is due already keeps its place in the line,
 * unless it was just `served`: then the others have their turn first. Whoever sleeps gets a hint where that is earlier than it was.
 */
export function offer(
  binding: Binding,
  endpoint: Endpoint,
  now: number,
  { served = false }: { served?: boolean } = {},
): void {
  if (endpoint.isRemoved) return;
  const { state } = binding;
  const line = state.ready[endpoint.lane];
  const head = endpoint.queue.headAt();
  if (head === undefined || freeSlots(binding, endpoint) <= 0) {
    line.delete(endpoint);
    return;
  }
  const at = Math.max(head, now);
  const standing = line.at(endpoint);
  if (served || standing === undefined || standing > now || head > now) line.set(endpoint, at);
  if (standing === undefined || at < standing) notify(state, at);
}

export function moveToLane(state: State, endpoint: Endpoint, lane: Lane): void {
  if (endpoint.lane === lane) return;
  state.ready[endpoint.lane].delete(endpoint);
  endpoint.lane = lane;
}

/** Ends the lease of a delivery; the caller decides what becomes of it. */
export function releaseLease(state: State, delivery: Delivery): void {
  if (delivery.token === null) return;
  delivery.token = null;
  delivery.endpoint.inFlight -= 1;
  state.leases.delete(delivery);
}

function lease(state: State, delivery: Delivery, { token, leaseUntil }: ClaimRequest): Claim {
  const { endpoint } = delivery;
  endpoint.queue.delete(delivery);
  endpoint.inFlight += 1;
  delivery.token = token;
  state.leases.set(delivery, leaseUntil);
  return {
    id: delivery.id,
    token,
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

/** Leases up to `room` due deliveries of one endpoint. */
function take(binding: Binding, endpoint: Endpoint, request: ClaimRequest, room: number): Claim[] {
  const claims: Claim[] = [];
  const most = Math.min(room, freeSlots(binding, endpoint));
  while (claims.length < most) {
    const delivery = endpoint.queue.head();
    if (!delivery || (endpoint.queue.headAt() ?? 0) > request.now) break;
    claims.push(lease(binding.state, delivery, request));
  }
  offer(binding, endpoint, request.now, { served: true });
  return claims;
}

/** Gives back what was leased by somebody who has not been heard of since. */
function reap(binding: Binding, now: number): void {
  const { state } = binding;
  for (let at = state.leases.headAt(); at !== undefined && at <= now; at = state.leases.headAt()) {
    const delivery = state.leases.head();
    if (!delivery) return;
    releaseLease(state, delivery);
    delivery.crashes += 1;
    delivery.isRecovered = true;
    enqueue(delivery, now);
    offer(binding, delivery.endpoint, now);
  }
}

export function claimDue(
  binding: Binding,
  request: ClaimRequest,
): { claims: Claim[]; nextAt: number | null } {
  const { state } = binding;
  reap(binding, request.now);
  const claims: Claim[] = [];
  for (const lane of LANES) {
    const line = state.ready[lane];
    let room = request.room[lane];
    while (room > 0 && (line.headAt() ?? Number.POSITIVE_INFINITY) <= request.now) {
      const endpoint = line.head();
      if (!endpoint) break;
      const share = Math.max(1, Math.floor(room / line.size));
      const taken = take(binding, endpoint, request, share);
      claims.push(...taken);
      room -= taken.length;
    }
  }
  const next = Math.min(
    ...[state.ready.fast, state.ready.slow, state.leases].map(
      (queue) => queue.headAt() ?? Number.POSITIVE_INFINITY,
    ),
  );
  return { claims, nextAt: next === Number.POSITIVE_INFINITY ? null : next };
}
