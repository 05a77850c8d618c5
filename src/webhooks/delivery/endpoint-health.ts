/** Decides when a failing endpoint is warned about and disabled. Pure. */

import type { WebhookRecord } from "../store.js";

export interface HealthPolicy {
  /** Milliseconds from the first failure to the warning, if there was no 2xx. */
  readonly warnAfterMs: number;
  /** Milliseconds from the first failure to disabling, if there was no 2xx. */
  readonly disableAfterMs: number;
}

/** Returns the due time of the first health step of an endpoint that fails since `failingSince`. */
export const warningDueAt = (failingSince: number, policy: HealthPolicy): number =>
  failingSince + policy.warnAfterMs;

/**
 * Returns the end of the retries of a warning: a notifier that never works must not keep a dead
 * endpoint ENABLED for ever.
 */
export const warningGivenUpAt = (failingSince: number, policy: HealthPolicy): number =>
  failingSince + policy.disableAfterMs;

/**
 * The subscriber always has the time between warning and disabling, even if the warning was late
 * because no process ran.
 */
const disablingDueAt = (failingSince: number, warnedAt: number, policy: HealthPolicy): number =>
  Math.max(failingSince + policy.disableAfterMs, warnedAt + policy.disableAfterMs - policy.warnAfterMs);

/**
 * The health of an endpoint. `ok`: the last attempt succeeded, or there was no attempt. `failing`:
 * no 2xx since `failingSince`. `warned`: the warning was sent at `warnAt`, or the notifier was
 * given up then. `disabled`: by the service if `failingSince` is set, otherwise by a user.
 */
export interface EndpointHealth<Time> {
  readonly status: "ok" | "failing" | "warned" | "disabled";
  readonly failingSince: Time | null;
  /** When the warning is due or was sent; `null` unless the endpoint fails. */
  readonly warnAt: Time | null;
  /** When the endpoint is disabled if the failures continue; `null` unless it fails. */
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
 * The next health step of a webhook.
 *
 * `warn`: call the notifier; once it succeeds or is given up, record the step, due again at
 * `disableAt`. `disable`: set DISABLED, which exactly one process succeeds in. `announce`: this
 * service disabled the webhook, and the host was not told yet. `wait`: nothing is due before `at`.
 * `none`: the endpoint is healthy, or a user disabled it.
 *
 * Source: Event Notification and Webhook Registration Interface, "States and
 * transitions", and "Events", rule 5.
 */
export type HealthStep =
  | { readonly kind: "warn"; readonly failingSince: number; readonly disableAt: number }
  | { readonly kind: "disable"; readonly failingSince: number }
  | { readonly kind: "announce"; readonly failingSince: number }
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
