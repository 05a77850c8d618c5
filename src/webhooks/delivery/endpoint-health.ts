/** What a failing endpoint leads to, and when: warn the host once, then disable it. Pure. */

import type { WebhookRecord } from "../store.js";

export interface HealthPolicy {
  /** Milliseconds without a 2xx, from the first failure, to the warning. */
  readonly warnAfterMs: number;
  /** Milliseconds without a 2xx, from the first failure, to the disabling. */
  readonly disableAfterMs: number;
}

/** When the first health step of an endpoint is due that fails since `failingSince`. */
export const warningDueAt = (failingSince: number, policy: HealthPolicy): number =>
  failingSince + policy.warnAfterMs;

/**
 * Until when a warning is tried again that the host does not take: a notifier that never works must
 * not keep a dead endpoint ENABLED for ever.
 */
export const warningGivenUpAt = (failingSince: number, policy: HealthPolicy): number =>
  failingSince + policy.disableAfterMs;

/**
 * The subscriber always gets the time between the two, also where the warning came late because no
 * process ran.
 */
const disablingDueAt = (failingSince: number, warnedAt: number, policy: HealthPolicy): number =>
  Math.max(failingSince + policy.disableAfterMs, warnedAt + policy.disableAfterMs - policy.warnAfterMs);

/**
 * How an endpoint is. `ok`: its last attempt succeeded, or there was none. `failing`: without a 2xx
 * since `failingSince`. `warned`: the host has been told, at `warnAt`, or its notifier has been
 * given up then. `disabled`: by the service where there is a `failingSince`, else by a user.
 */
export interface EndpointHealth<Time> {
  readonly status: "ok" | "failing" | "warned" | "disabled";
  readonly failingSince: Time | null;
  /** When the warning goes, or went, to the host; `null` unless the endpoint fails. */
  readonly warnAt: Time | null;
  /** When it will be disabled if it goes on; `null` unless the endpoint fails. */
  readonly disableAt: Time | null;
}

export function endpointHealth(
  { status, failingSince, warnedAt }: Pick<WebhookRecord, "status" | "failingSince" | "warnedAt">,
  policy: HealthPolicy,
): EndpointHealth<number> {
  if (status === "DISABLED") return { status: "disabled", failingSince, warnAt: null, disableAt: null };
  if (failingSince === null) return { status: "ok", failingSince, warnAt: null, disableAt: null };
  const warnAt = warnedAt ?? warningDueAt(failingSince, policy);
  const disableAt = disablingDueAt(failingSince, warnAt, policy);
  return { status: warnedAt === null ? "failing" : "warned", failingSince, warnAt, disableAt };
}

/**
 * The step that a webhook's health asks for now.
 *
 * `warn`: tell the host; then, or once that is given up, record it with `disableAt` as the next due
 * time. `disable`: set DISABLED, which exactly one process succeeds in. `announce`: the webhook was
 * disabled by this service and the host has not been told. `wait`: nothing before `at`. `none`: the
 * endpoint is well, or was disabled by a user.
 * Source: interface document, States and transitions, and Events, rule 5.
 */
export type HealthStep =
  | { readonly kind: "warn"; readonly failingSince: number; readonly disableAt: number }
  | { readonly kind: "disable" | "announce"; readonly failingSince: number }
  | { readonly kind: "wait"; readonly failingSince: number; readonly at: number }
  | { readonly kind: "none" };

export function healthStep(
  { status, failingSince, warnedAt }: Pick<WebhookRecord, "status" | "failingSince" | "warnedAt">,
  policy: HealthPolicy,
  now: number,
): HealthStep {
  if (failingSince === null) return { kind: "none" };
  if (status === "DISABLED") return { kind: "announce", failingSince };
  if (warnedAt === null) {
    const at = warningDueAt(failingSince, policy);
    return now < at
      ? { kind: "wait", failingSince, at }
      : { kind: "warn", failingSince, disableAt: disablingDueAt(failingSince, now, policy) };
  }
  const at = disablingDueAt(failingSince, warnedAt, policy);
  return now < at ? { kind: "wait", failingSince, at } : { kind: "disable", failingSince };
}
