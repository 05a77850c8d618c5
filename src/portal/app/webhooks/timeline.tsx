/** The timeline of a webhook: past and planned attempts of the deliveries that need attention. */

import { useState } from "preact/hooks";
import type { DeliveryRowJson, WebhookWithStatsJson } from "../../shapes.js";
import type { Api } from "../api.js";
import { SelectField } from "../components/form.js";
import { ErrorMessage, Loading } from "../components/small.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { formatTime, type Zone } from "../times.js";
import { useResource } from "../use-resource.js";
import { type DeliveryFilter, deliveryLink, findDeliveries } from "./calls.js";
import {
  chooseDeliveries,
  getStopTime,
  isWithin,
  labelTimes,
  placeOf,
  planAttempts,
  selectRange,
  type TimeRange,
  type TimeSpan,
} from "./plan.js";
import { describeAttempt, describeResult, shortenId } from "./wording.js";

/** Deliveries on the timeline. */
const LIMIT = 20;

/** Finds the deliveries for the timeline: those in trouble, and the newest. */
async function findForTimeline(
  api: Api,
  { id, stats: { pending, failed, health } }: WebhookWithStatsJson,
): Promise<DeliveryRowJson[]> {
  // At most as many as there are, so that a log with fewer of them is not searched to its end.
  const find = async (count: number, filter: DeliveryFilter): Promise<DeliveryRowJson[]> =>
    count === 0
      ? []
      : (await findDeliveries(api, id, filter, { limit: Math.min(count, LIMIT), withAttempts: true }))
          .deliveries;
  const { failingSince } = health;
  const found = await Promise.all([
    find(LIMIT, {}),
    find(failed, { state: "failed" }),
    find(pending, { state: "pending" }),
    // The newest deliveries may all wait for a first attempt; those that failed are older.
    failingSince === null
      ? []
      : find(pending, {
          state: "pending",
          until: new Date(Date.parse(failingSince) + 1).toISOString(),
        }),
  ]);
  return chooseDeliveries(found.flat(), LIMIT);
}

/** The times above the rows, with the names of the upright lines. */
function Axis(track: TrackProps) {
  const { zone } = usePage();
  const { range, now } = track;
  const near = (at: number): boolean => Math.abs(placeOf(at, range) - placeOf(now, range)) < 8;
  return (
    <svg class="axis" aria-hidden="true">
      <Uprights {...track} />
      {labelTimes(range, zone)
        .filter(({ at }) => !near(at))
        .map(({ at, text }) => (
          <text key={at} x={`${placeOf(at, range)}%`} y="16" text-anchor="middle">
            {text}
          </text>
        ))}
      <text class="now" x={`${placeOf(now, range)}%`} y="16" text-anchor="middle">
        {texts.timeline.now}
      </text>
    </svg>
  );
}

const MARKS: MarkKind[] = ["bad", "good", "planned", "skipped"];
const LINES = ["now", "email", "disable"] as const;

function Legend() {
  return (
    <ul class="legend">
      {MARKS.map((kind) => (
        <li key={kind}>
          <svg aria-hidden="true">
            <Mark kind={kind} at={50} />
          </svg>{" "}
          {texts.timeline[kind]}
        </li>
      ))}
      {LINES.map((kind) => (
        <li key={kind}>
          <svg aria-hidden="true">
            <line class={kind} x1="50%" x2="50%" y1="0" y2="100%" />
          </svg>{" "}
          {texts.timeline[kind]}
        </li>
      ))}
    </ul>
  );
}

const SPANS: TimeSpan[] = ["day", "hour", "all"];

/** The times that the whole schedule has to show. */
function collectTimes(
  deliveries: DeliveryRowJson[],
  { stats }: WebhookWithStatsJson,
  schedule: readonly number[],
): number[] {
  const marks = [toMs(stats.health.warnAt), toMs(stats.health.disableAt)].filter((at) => at !== null);
  return [
    ...marks,
    ...deliveries.flatMap((delivery) => [
      Date.parse(delivery.createdAt),
      ...(delivery.attempts ?? []).map(({ at }) => Date.parse(at)),
      ...planAttempts(delivery, schedule),
    ]),
  ];
}

/** Says how many deliveries are retried and failed, and if some are left out. */
function summariseTimeline(deliveries: DeliveryRowJson[], { stats }: WebhookWithStatsJson): string {
  const retrying = deliveries.filter(({ state, attemptCount }) => state === "pending" && attemptCount > 0);
  const failed = deliveries.filter(({ state }) => state === "failed");
  const all = stats.pending + stats.delivered + stats.failed + stats.withheld;
  const counts = { count: deliveries.length, retrying: retrying.length, failed: failed.length };
  return all > deliveries.length
    ? texts.timeline.summaryOf({ ...counts, total: all })
    : texts.timeline.summary(counts);
}

/** With fewer deliveries in trouble than this, the timeline is open from the start. */
const FEW = 6;

/** The timeline behind a line that says what waits and what failed. */
export function Timeline({ webhook }: { webhook: WebhookWithStatsJson }) {
  const { pending, failed } = webhook.stats;
  const troubled = pending + failed;
  // The visitor's choice, once there is one, stays while the numbers change.
  const [choice, setChoice] = useState<boolean>();
  const isOpen = choice ?? (troubled > 0 && troubled < FEW);
  return (
    <section class="card" aria-label={texts.timeline.retries}>
      <h2 class="fold">
        <button type="button" class="fold" aria-expanded={isOpen} onClick={() => setChoice(!isOpen)}>
          {texts.timeline.retries}{" "}
          <span class="quiet">{texts.timeline.waitingAndFailed({ waiting: pending, failed })}</span>
        </button>
      </h2>
      {isOpen && <TimelineBody webhook={webhook} />}
    </section>
  );
}

function TimelineBody({ webhook }: { webhook: WebhookWithStatsJson }) {
  const { session, now: readNow } = usePage();
  const [span, setSpan] = useState<TimeSpan>("day");
  // The deliveries change only if the statistics do.
  const { data, error } = useResource(
    (api) => findForTimeline(api, webhook),
    [JSON.stringify(webhook.stats)],
  );
  const now = readNow();
  const range = selectRange(
    span,
    now,
    span === "all" ? collectTimes(data ?? [], webhook, session.schedule) : [],
  );
  const track = { range, now, webhook };
  if (error !== undefined) return <ErrorMessage error={error} />;
  if (data === undefined) return <Loading />;
  if (data.length === 0) return <p>{texts.timeline.noDelivery}</p>;
  return (
    <>
      <div class="timeline-head">
        <p>{summariseTimeline(data, webhook)}</p>
        <SelectField
          label={texts.timeline.show}
          value={span}
          onChange={(value) => setSpan(value as TimeSpan)}
          options={SPANS.map((each) => [each, texts.timeline[each]] as const)}
        />
      </div>
      <div class="timeline">
        <Axis {...track} />
        <ol>
          {data.map((delivery) => (
            <Track key={delivery.id} delivery={delivery} {...track} />
          ))}
        </ol>
      </div>
      <Legend />
    </>
  );
}

export interface TrackProps {
  range: TimeRange;
  now: number;
  webhook: WebhookWithStatsJson;
}

export type MarkKind = "good" | "bad" | "planned" | "skipped";

/** A mark in the middle of a line, at a place in per cent. */
function Mark({ kind, at, title }: { kind: MarkKind; at: number; title?: string }) {
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: a mark of the legend has its text next to it.
    <svg x={`${at}%`} y="50%" overflow="visible" class={`mark ${kind}`}>
      {kind === "bad" ? <path d="M-4.5 -4.5l9 9m0 -9l-9 9" /> : <circle r={kind === "good" ? 5 : 4.5} />}
      {title !== undefined && <title>{title}</title>}
    </svg>
  );
}

/** An upright line through the whole timeline. */
function Upright({ kind, at, range }: { kind: string; at: number | null; range: TimeRange }) {
  if (at === null || !isWithin(at, range)) return null;
  const x = `${placeOf(at, range)}%`;
  return <line class={kind} x1={x} x2={x} y1="0" y2="100%" />;
}

const toMs = (iso: string | null): number | null => (iso === null ? null : Date.parse(iso));

/** The lines that every row shares: now, the operator's e-mail, the disabling. */
function Uprights({ range, now, webhook: { stats } }: TrackProps) {
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
    last === undefined && (state === "pending" ? texts.timeline.notAttempted : texts.timeline.neverAttempted),
    last !== undefined &&
      (failures.length > 1
        ? texts.timeline.failures({ count: failures.length, result: describeResult(last) })
        : texts.timeline.lastAttempt({ attempt: describeAttempt(last) })),
    next !== undefined && texts.timeline.nextAttempt({ time: formatTime(next, zone) }),
  ]
    .filter((sentence) => sentence !== false)
    .join(" ");
}

function Track({ delivery, ...track }: TrackProps & { delivery: DeliveryRowJson }) {
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
      <div class="track-name" title={summary}>
        <a href={deliveryLink(delivery)}>{delivery.type}</a> <span class="quiet">{delivery.subject}</span>{" "}
        <code title={delivery.eventId}>{shortenId(delivery.eventId)}</code>
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
              title={texts.timeline.attemptAt({
                time: formatTime(attempt.at, zone),
                attempt: describeAttempt(attempt),
              })}
            />
          ))}
        {planned
          .filter((at) => isWithin(at, range))
          .map((at) => (
            <Mark
              key={at}
              kind={stop !== null && at > stop ? "skipped" : "planned"}
              at={placeOf(at, range)}
              title={texts.timeline.plannedAt({ time: formatTime(at, zone) })}
            />
          ))}
      </svg>
    </li>
  );
}
