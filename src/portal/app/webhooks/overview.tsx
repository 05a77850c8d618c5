/** The first tab of a webhook: why it fails, its numbers, its hours, and what is retried. */

import { useState } from "preact/hooks";
import type {
  AttemptJson,
  AuditEntryJson,
  AuditPageJson,
  DeliveryJson,
  DeliveryRowJson,
  WebhookWithStatsJson,
} from "../../shapes.js";
import type { Api } from "../api.js";
import { type Bar, Bars, Line, type LinePoint, type Tick } from "../components/charts.js";
import { Facts, RelativeTime, Time } from "../components/small.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import {
  estimatePercentile,
  fillHours,
  formatDuration,
  formatMinute,
  formatNumber,
  formatTime,
  type Hour,
  summariseHours,
  type Zone,
} from "../times.js";
import { useResource } from "../use-resource.js";
import { deliveryLink, deliveryPath, findDeliveries } from "./calls.js";
import { RotationNotice, type TabProps } from "./endpoint-actions.js";
import { listOptions } from "./endpoint-options.js";
import { describeEventTypes } from "./event-types.js";
import { labelTimes, placeOf } from "./plan.js";
import { Timeline } from "./timeline.js";
import {
  countLogged,
  describeCause,
  describeDisabling,
  describeHealth,
  formatSuccessRate,
  getHealth,
  getHealthTone,
  getNextAttempt,
  isTroubled,
  labelHealth,
  needsAttention,
  quoteAnswer,
} from "./wording.js";

const HOUR = 3_600_000;

/** An attempt that failed, and its delivery. */
export interface Cause {
  delivery: DeliveryRowJson;
  attempt: AttemptJson;
}

const lastAt = ({ lastAttempt }: DeliveryRowJson): number => Date.parse(lastAttempt?.at ?? "") || 0;

/** The newest deliveries that are looked at for an attempt that failed. */
const CANDIDATES = 5;

/**
 * Finds the attempt that failed last, among the deliveries that wait for the next one and those that
 * failed for good. The newest may all wait for their first attempt; the one that the trouble began
 * with does not.
 */
async function findCause(
  api: Api,
  { id, stats: { pending, failed, health } }: WebhookWithStatsJson,
): Promise<Cause | undefined> {
  const find = async (count: number, state: "pending" | "failed", until?: string) =>
    count === 0
      ? []
      : (await findDeliveries(api, id, { state, until }, { limit: Math.min(count, CANDIDATES) })).deliveries;
  const began = health.failingSince;
  const found = await Promise.all([
    find(pending, "pending"),
    began === null ? [] : find(pending, "pending", new Date(Date.parse(began) + 1).toISOString()),
    find(failed, "failed"),
  ]);
  const [delivery] = found
    .flat()
    .filter(({ lastAttempt }) => lastAttempt !== null && lastAttempt.kind !== "delivered")
    .sort((a, b) => lastAt(b) - lastAt(a));
  if (delivery === undefined) return undefined;
  // Only a delivery by itself has what the endpoint answered.
  const attempt = (await api.get<DeliveryJson>(deliveryPath(id, delivery.id))).attempts.at(-1);
  return attempt === undefined || attempt.kind === "delivered" ? undefined : { delivery, attempt };
}

/** Returns why a webhook is in trouble. It is read again after each attempt. */
export function useCause(webhook: WebhookWithStatsJson): Cause | undefined {
  const { stats } = webhook;
  const isNeeded = isTroubled(stats);
  const { data } = useResource<Cause | undefined>(
    async (api) => (isNeeded ? findCause(api, webhook) : undefined),
    [webhook.id, stats.lastAttempt?.at, isNeeded],
  );
  return data;
}

/** Pages of the audit log that are searched for the one entry that says who disabled an endpoint. */
const AUDIT_PAGES = 5;

async function findDisabling({ get }: Api, id: string): Promise<AuditEntryJson | undefined> {
  let cursor: string | undefined;
  for (let pages = 0; pages < AUDIT_PAGES; pages += 1) {
    const page: AuditPageJson = await get("v1/audit", { cursor, limit: 100 });
    const found = page.entries.find((entry) => entry.webhookId === id && entry.action === "webhook.disabled");
    if (found !== undefined || page.next === null) return found;
    cursor = page.next;
  }
  return undefined;
}

/** Says when an endpoint was disabled, and by whom, as far as the audit log knows. */
function DisabledSentence({ webhook }: { webhook: WebhookWithStatsJson }) {
  const { session, zone } = usePage();
  const { data } = useResource(
    async (api) => (session.hasAuditLog ? ((await findDisabling(api, webhook.id)) ?? null) : null),
    [webhook.id, webhook.updatedDate],
  );
  if (data === undefined) return null;
  return <p>{describeDisabling(data, webhook.stats.health, zone)}</p>;
}

/** What to do next, by the health of the endpoint. */
function NextStep({ webhook }: { webhook: WebhookWithStatsJson }) {
  const settings = <a href={`#/webhooks/${webhook.id}/settings`}>{texts.webhook.settings}</a>;
  const health = getHealth(webhook.stats);
  if (!needsAttention(webhook.stats)) return <p>{texts.webhook.enableFirst}</p>;
  if (health === "untested") return <p>{texts.webhook.testThenSend}</p>;
  const { repairThenEnable, repairThenSend } = texts.webhook;
  return <p>{(health === "disabled" ? repairThenEnable : repairThenSend)({ settings })}</p>;
}

/** The trouble of an endpoint: its last answer, what happens next, and what to do. */
function CauseCard({ webhook }: { webhook: WebhookWithStatsJson }) {
  const { zone, now } = usePage();
  const found = useCause(webhook);
  const { stats } = webhook;
  if (!isTroubled(stats)) return null;
  const { failingSince } = stats.health;
  // An old failure is not why somebody disabled it.
  const cause = needsAttention(stats) ? found : undefined;
  const title = cause === undefined ? labelHealth(stats) : describeCause({ ...cause.attempt, excerpt: null });
  const quote = cause && quoteAnswer(cause.attempt.excerpt);
  return (
    <section class={`card cause ${getHealthTone(stats)}`} aria-label={texts.webhook.whatIsWrong}>
      <h2>
        {failingSince === null
          ? title
          : texts.webhook.causeSince({
              cause: title,
              time: formatTime(failingSince, zone),
              duration: formatDuration(now() - Date.parse(failingSince)),
            })}
      </h2>
      {cause !== undefined && (
        <p>
          {quote !== undefined && <q class="answer">{quote}</q>}{" "}
          {texts.webhook.lastFailed({
            time: <RelativeTime at={cause.attempt.at} />,
            link: <a href={deliveryLink(cause.delivery)}>{texts.webhook.openIt}</a>,
          })}
        </p>
      )}
      {getHealth(stats) === "disabled" ? (
        <DisabledSentence webhook={webhook} />
      ) : (
        <p>{describeHealth(stats, zone)}</p>
      )}
      <NextStep webhook={webhook} />
    </section>
  );
}

const formatMs = (ms: number | null): string => (ms === null ? "–" : formatDuration(ms));

/** The four numbers to look at first. */
function KeyFigures({ webhook, day }: { webhook: WebhookWithStatsJson; day: Hour[] }) {
  const { stats } = webhook;
  const { lastDay } = stats;
  const next = getNextAttempt(webhook, stats.nextAttemptAt);
  const [p50, p95] = [formatMs(estimatePercentile(day, "p50")), formatMs(estimatePercentile(day, "p95"))];
  const isMeasured = day.some((hour) => hour.p95 !== null);
  return (
    <dl class="figures">
      <div class="card">
        <dt>{texts.webhook.success24h}</dt>
        <dd class="figure">{formatSuccessRate(lastDay)}</dd>
        <dd class="quiet">{texts.webhook.ofAttempts(lastDay)}</dd>
      </div>
      <div class="card">
        <dt>{texts.webhook.answerTime24h}</dt>
        <dd class="figure">{isMeasured ? p95 : formatMs(lastDay.averageMs)}</dd>
        <dd class="quiet">{isMeasured ? texts.webhook.percentiles({ p50 }) : texts.webhook.onAverage}</dd>
      </div>
      <div class="card">
        <dt>{texts.webhook.waiting}</dt>
        <dd class="figure">{formatNumber(stats.pending)}</dd>
        <dd class="quiet">
          {next === null
            ? texts.webhook.noAttemptPlanned
            : texts.webhook.nextAttempt({ time: <RelativeTime at={next} /> })}
        </dd>
      </div>
      <div class="card">
        <dt>{texts.webhook.failed}</dt>
        <dd class="figure">{formatNumber(stats.failed)}</dd>
        <dd class="quiet">{texts.webhook.inLog({ count: countLogged(stats) })}</dd>
      </div>
    </dl>
  );
}

/** `13 Jan, 10:00–11:00` */
const nameHour = ({ from }: Hour, zone: Zone): string =>
  `${formatTime(from, zone)}–${formatMinute(from + HOUR, zone)}`;

/**
 * Returns where the bar of an hour leads: to the deliveries that were created in it. With failed
 * attempts, to those that still wait or, if there are only such, failed; otherwise to those that were
 * delivered.
 */
function linkHour({ id, stats }: WebhookWithStatsJson, { from, failed }: Hour): string {
  const troubled = stats.failed > 0 ? "failed" : "pending";
  const search = new URLSearchParams({
    since: new Date(from).toISOString(),
    until: new Date(from + HOUR).toISOString(),
    state: failed > 0 && stats.failed + stats.pending > 0 ? troubled : "delivered",
  });
  return `#/webhooks/${id}/deliveries?${search}`;
}

const SPANS = [24, 72] as const;

/** The hours of a webhook as two charts. */
function HourCharts({ webhook, hours }: { webhook: WebhookWithStatsJson; hours: Hour[] }) {
  const { zone } = usePage();
  const [span, setSpan] = useState<number>(SPANS[0]);
  const shown = hours.slice(-span);
  const range = { from: shown[0]?.from ?? 0, to: (shown.at(-1)?.from ?? 0) + HOUR };
  const ticks: Tick[] = labelTimes(range, zone)
    .map(({ at, text }) => ({ at: placeOf(at, range), text }))
    .filter(({ at }) => at > 3 && at < 97);
  const bars = shown.map(
    (hour): Bar => ({
      key: String(hour.from),
      name: nameHour(hour, zone),
      good: hour.delivered,
      bad: hour.failed,
      link: linkHour(webhook, hour),
    }),
  );
  const points = shown.map(
    (hour): LinePoint => ({
      key: String(hour.from),
      name: nameHour(hour, zone),
      values: [hour.p50, hour.p95],
    }),
  );
  const [p50, p95] = [formatMs(estimatePercentile(shown, "p50")), formatMs(estimatePercentile(shown, "p95"))];
  return (
    <div class="cards charts">
      <Bars
        title={texts.webhook.attemptsPerHour}
        sentence={summariseHours(shown, zone)}
        slots={bars}
        ticks={ticks}
        tools={
          <fieldset class="switch" aria-label={texts.webhook.hours}>
            {SPANS.map((count) => (
              <button key={count} type="button" aria-pressed={span === count} onClick={() => setSpan(count)}>
                {texts.webhook.hoursShort({ count })}
              </button>
            ))}
          </fieldset>
        }
      />
      <Line
        title={texts.webhook.answerTime}
        sentence={texts.webhook.answerTimes({ hours: span, p50, p95 })}
        names={["p50", "p95"]}
        slots={points}
        ticks={ticks}
        format={formatDuration}
      />
    </div>
  );
}

export function OverviewTab({ webhook, reload }: TabProps) {
  const { now } = usePage();
  const { stats } = webhook;
  const hours = fillHours(stats.hours, now(), SPANS[1]);
  return (
    <>
      <CauseCard webhook={webhook} />
      <RotationNotice webhook={webhook} reload={reload} />
      <KeyFigures webhook={webhook} day={hours.slice(-SPANS[0])} />
      {stats.hours.length > 0 && <HourCharts webhook={webhook} hours={hours} />}
      <Timeline webhook={webhook} />
      <section class="card" aria-label={texts.webhook.details}>
        <h2>{texts.webhook.details}</h2>
        <Facts
          rows={[
            [texts.webhooks.eventTypes, describeEventTypes(stats.eventTypes)],
            ...listOptions(webhook),
            [texts.webhook.created, <Time key="created" at={webhook.createdDate} />],
            [texts.webhook.withheld, stats.withheld > 0 && stats.withheld],
          ]}
        />
      </section>
      {webhook.metadata !== null && (
        <section class="card" aria-label={texts.webhook.metadata}>
          <h2>{texts.webhook.metadata}</h2>
          <Facts rows={Object.entries(webhook.metadata)} />
        </section>
      )}
    </>
  );
}
