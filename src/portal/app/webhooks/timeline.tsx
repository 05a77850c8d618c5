/** The timeline of a webhook: past and planned attempts of the deliveries that need attention. */

import { useState } from "preact/hooks";
import type { DeliveryRowJson, WebhookWithStatsJson } from "../../shapes.js";
import type { Api } from "../api.js";
import { SelectField } from "../components/form.js";
import { ErrorMessage } from "../components/small.js";
import { usePage } from "../page-context.js";
import { pluralise } from "../times.js";
import { useResource } from "../use-resource.js";
import { type DeliveryFilter, findDeliveries } from "./calls.js";
import { chooseDeliveries, labelTimes, placeOf, planAttempts, selectRange, type TimeSpan } from "./plan.js";
import { Mark, type MarkKind, Track, type TrackProps, toMs, Uprights } from "./timeline-track.js";

/** Deliveries on the timeline. */
const LIMIT = 20;

/** Finds the deliveries for the timeline: those in trouble, and the newest. */
async function findForTimeline(
  api: Api,
  { id, stats: { pending, failed, health } }: WebhookWithStatsJson,
): Promise<readonly DeliveryRowJson[]> {
  // At most as many as there are, so that a log with fewer of them is not searched to its end.
  const find = async (count: number, filter: DeliveryFilter): Promise<readonly DeliveryRowJson[]> =>
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
        now
      </text>
    </svg>
  );
}

const LEGEND: readonly (readonly [MarkKind, string])[] = [
  ["bad", "failed attempt"],
  ["good", "delivered"],
  ["planned", "planned attempt"],
  ["skipped", "planned, but the webhook is disabled by then"],
];

const LINES = [
  ["now", "now"],
  ["email", "e-mail to the operator"],
  ["disable", "the webhook is disabled"],
] as const;

function Legend() {
  return (
    <ul class="legend">
      {LEGEND.map(([kind, text]) => (
        <li key={kind}>
          <svg aria-hidden="true">
            <Mark kind={kind} at={50} />
          </svg>{" "}
          {text}
        </li>
      ))}
      {LINES.map(([kind, text]) => (
        <li key={kind}>
          <svg aria-hidden="true">
            <line class={kind} x1="50%" x2="50%" y1="0" y2="100%" />
          </svg>{" "}
          {text}
        </li>
      ))}
    </ul>
  );
}

const SPANS: readonly (readonly [TimeSpan, string])[] = [
  ["day", "24 hours either side of now"],
  ["hour", "An hour around now"],
  ["all", "The whole schedule"],
];

/** The times that the whole schedule has to show. */
function collectTimes(
  deliveries: readonly DeliveryRowJson[],
  { stats }: WebhookWithStatsJson,
  schedule: readonly number[],
): readonly number[] {
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
function summariseTimeline(deliveries: readonly DeliveryRowJson[], { stats }: WebhookWithStatsJson): string {
  const retrying = deliveries.filter(({ state, attemptCount }) => state === "pending" && attemptCount > 0);
  const failed = deliveries.filter(({ state }) => state === "failed");
  const all = stats.pending + stats.delivered + stats.failed + stats.withheld;
  const count = pluralise(deliveries.length, "delivery", "deliveries");
  const rest = all > deliveries.length ? ` of ${all}, those with a problem first` : "";
  return `${count}${rest}: ${retrying.length} retrying, ${failed.length} failed.`;
}

export function Timeline({ webhook }: { readonly webhook: WebhookWithStatsJson }) {
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
  return (
    <section aria-label="Timeline">
      <div class="row">
        <h2>Timeline</h2>
        <SelectField
          label="Show"
          value={span}
          onChange={(value) => setSpan(value as TimeSpan)}
          options={SPANS}
        />
      </div>
      {error !== undefined && <ErrorMessage error={error} />}
      {data?.length === 0 && <p>No delivery yet.</p>}
      {data !== undefined && data.length > 0 && (
        <>
          <p>{summariseTimeline(data, webhook)}</p>
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
      )}
    </section>
  );
}
