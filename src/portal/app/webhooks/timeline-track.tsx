/** One row of the timeline: the past and planned attempts of a delivery. */

import type { DeliveryRowJson, WebhookWithStatsJson } from "../../shapes.js";
import { usePage } from "../page-context.js";
import { formatTime, type Zone } from "../times.js";
import { deliveryLink } from "./calls.js";
import { DeliveryName } from "./delivery-name.js";
import { getStopTime, isWithin, placeOf, planAttempts, type TimeRange } from "./plan.js";
import { describeAttempt, describeResult } from "./wording.js";

export interface TrackProps {
  readonly range: TimeRange;
  readonly now: number;
  readonly webhook: WebhookWithStatsJson;
}

export type MarkKind = "good" | "bad" | "planned" | "skipped";

/** A mark in the middle of a line, at a place in per cent. */
export function Mark({
  kind,
  at,
  title,
}: {
  readonly kind: MarkKind;
  readonly at: number;
  readonly title?: string;
}) {
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: a mark of the legend has its text next to it.
    <svg x={`${at}%`} y="50%" overflow="visible" class={`mark ${kind}`}>
      {kind === "bad" ? <path d="M-4.5 -4.5l9 9m0 -9l-9 9" /> : <circle r={kind === "good" ? 5 : 4.5} />}
      {title !== undefined && <title>{title}</title>}
    </svg>
  );
}

/** An upright line through the whole timeline. */
function Upright({
  kind,
  at,
  range,
}: {
  readonly kind: string;
  readonly at: number | null;
  readonly range: TimeRange;
}) {
  if (at === null || !isWithin(at, range)) return null;
  const x = `${placeOf(at, range)}%`;
  return <line class={kind} x1={x} x2={x} y1="0" y2="100%" />;
}

export const toMs = (iso: string | null): number | null => (iso === null ? null : Date.parse(iso));

/** The lines that every row shares: now, the operator's e-mail, the disabling. */
export function Uprights({ range, now, webhook: { stats } }: TrackProps) {
  const place = placeOf(now, range);
  return (
    <>
      <rect class="future" x={`${place}%`} y="0" width={`${100 - place}%`} height="100%" />
      <Upright kind="email" at={toMs(stats.health.warnAt)} range={range} />
      <Upright kind="disable" at={toMs(stats.health.disableAt)} range={range} />
      <Upright kind="now" at={now} range={range} />
    </>
  );
}

/** What happened to a delivery and what is planned, in a sentence. */
function summariseDelivery(
  { attempts = [], state }: DeliveryRowJson,
  next: number | undefined,
  zone: Zone,
): string {
  const last = attempts.at(-1);
  const failures = last?.kind === "delivered" ? [] : attempts.filter(({ kind }) => kind !== "delivered");
  return [
    last === undefined && (state === "pending" ? "Not attempted yet." : "Never attempted."),
    last !== undefined &&
      (failures.length > 1
        ? `${failures.length} failed attempts, the last one: ${describeResult(last)}.`
        : `${describeAttempt(last)}.`),
    next !== undefined && `Next attempt ${formatTime(next, zone)}.`,
  ]
    .filter((sentence) => sentence !== false)
    .join(" ");
}

export function Track({ delivery, ...track }: TrackProps & { readonly delivery: DeliveryRowJson }) {
  const { session, zone } = usePage();
  const { range, now, webhook } = track;
  const planned = planAttempts(delivery, session.schedule);
  const stop = getStopTime(webhook.stats);
  const end = toMs(delivery.endedAt) ?? now;
  const clamp = (at: number): number => placeOf(Math.min(Math.max(at, range.from), range.to), range);
  // An attempt that falls due once the webhook is disabled is skipped.
  const next = planned.find((at) => stop === null || at <= stop);
  const summary = summariseDelivery(delivery, next, zone);
  return (
    <li>
      <div class="track-name">
        <DeliveryName delivery={delivery} link={deliveryLink(delivery)} />
        <div class="quiet small">{summary}</div>
      </div>
      <svg class="track" role="img" aria-label={summary}>
        <Uprights {...track} />
        <line
          class="span"
          x1={`${clamp(Date.parse(delivery.createdAt))}%`}
          x2={`${clamp(end)}%`}
          y1="50%"
          y2="50%"
        />
        {delivery.attempts
          ?.filter(({ at }) => isWithin(Date.parse(at), range))
          .map((attempt) => (
            <Mark
              key={attempt.at}
              kind={attempt.kind === "delivered" ? "good" : "bad"}
              at={placeOf(Date.parse(attempt.at), range)}
              title={`${formatTime(attempt.at, zone)}: ${describeAttempt(attempt)}`}
            />
          ))}
        {planned
          .filter((at) => isWithin(at, range))
          .map((at) => (
            <Mark
              key={at}
              kind={stop !== null && at > stop ? "skipped" : "planned"}
              at={placeOf(at, range)}
              title={`${formatTime(at, zone)}: planned attempt`}
            />
          ))}
      </svg>
    </li>
  );
}
