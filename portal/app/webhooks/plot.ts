/** Draws the time axis of a webhook in SVG: deliveries, schedule, warning and disabling. */

import type { DeliveryJson, StatsJson } from "../../shapes.js";
import { type Child, h, svg } from "../dom.js";
import { dayText, minuteText, pluralise, timeText } from "../format.js";
import { table } from "../forms.js";
import { attemptText, stateBadge } from "./health.js";
import { plannedAttempts, type TimeSpan, ticks, toDomain } from "./plan.js";

export interface PlotInput {
  /** The newest first. */
  readonly deliveries: readonly DeliveryJson[];
  readonly stats: StatsJson;
  readonly schedule: readonly number[];
  readonly now: number;
  readonly span: TimeSpan;
  /** Pixels. */
  readonly width: number;
}

const ROW = 24;
const TOP = 52;
const BOTTOM = 30;
const DAY_MS = 86_400_000;

const msOf = (iso: string | null): number | null => (iso === null ? null : Date.parse(iso));

type MarkKind = "good" | "bad" | "planned" | "idle";

function mark(kind: MarkKind, x: number, y: number, title?: string): SVGElement {
  const label: Child = title === undefined ? null : svg("title", {}, title);
  if (kind === "bad") {
    const d = `M${x - 4.5} ${y - 4.5}l9 9m0 -9l-9 9`;
    return svg("path", { class: "mark bad", d }, label);
  }
  return svg("circle", { class: `mark ${kind}`, cx: x, cy: y, r: kind === "good" ? 5 : 4.5 }, label);
}

const LEGEND: readonly (readonly [MarkKind, string])[] = [
  ["bad", "failed attempt"],
  ["good", "delivered"],
  ["planned", "planned attempt"],
  ["idle", "planned, but the endpoint is disabled by then"],
];

/** Describes the plot in words, with the number of deliveries that it leaves out. */
export function summarise({ stats, deliveries }: Pick<PlotInput, "stats" | "deliveries">): string {
  const retried = deliveries.filter(
    ({ state, attempts }) => state === "pending" && attempts.length > 0,
  ).length;
  const failed = deliveries.filter(({ state }) => state === "failed").length;
  const all = stats.pending + stats.delivered + stats.failed + stats.withheld;
  const count =
    all > deliveries.length
      ? `${deliveries.length} of ${all} deliveries`
      : pluralise(deliveries.length, "delivery", "deliveries");
  const { warnAt, disableAt, status } = stats.health;
  const parts = [
    `${count} on the time axis: ${retried} failing and tried again, ${failed} failed for good.`,
    all > deliveries.length ? "Those in trouble come first; the others stand in the list below." : "",
    stats.nextAttemptAt === null
      ? "Nothing waits for an attempt."
      : `Next attempt ${timeText(stats.nextAttemptAt)}.`,
    warnAt === null ? "" : `${status === "warned" ? "Warned" : "Will be warned"} ${timeText(warnAt)}.`,
    disableAt === null ? "" : `Will be disabled ${timeText(disableAt)}.`,
    status === "disabled" ? "The endpoint is disabled: nothing is sent." : "",
  ];
  return parts.filter((part) => part !== "").join(" ");
}

/** Returns the time from which planned attempts are skipped, or `null` if none is. */
const stopsAt = ({ health }: StatsJson): number | null =>
  health.status === "disabled" ? Number.NEGATIVE_INFINITY : msOf(health.disableAt);

export function plot(input: PlotInput): SVGElement {
  const { deliveries, stats, schedule, now, span, width } = input;
  const left = Math.min(220, Math.round(width * 0.28));
  const right = 16;
  const height = TOP + Math.max(1, deliveries.length) * ROW + BOTTOM;
  const bottom = height - BOTTOM;
  const warnAt = msOf(stats.health.warnAt);
  const disableAt = msOf(stats.health.disableAt);
  const stop = stopsAt(stats);

  const rows = deliveries.map((delivery) => ({ delivery, planned: plannedAttempts(delivery, schedule) }));
  const times = rows.flatMap(({ delivery, planned }) => [
    Date.parse(delivery.createdAt),
    ...delivery.attempts.map(({ at }) => Date.parse(at)),
    ...planned,
  ]);
  const marks = [warnAt, disableAt].filter((at) => at !== null);
  const [from, to] = toDomain(span, now, [...times, ...marks]);
  const xOf = (at: number): number =>
    Math.round((left + ((at - from) / (to - from)) * (width - left - right)) * 10) / 10;
  const isIn = (at: number): boolean => at >= from && at <= to;
  const clamp = (at: number): number => Math.min(Math.max(at, from), to);

  const offsetMs = -new Date(now).getTimezoneOffset() * 60_000;
  const { step, at: tickTimes } = ticks(from, to, Math.max(2, Math.floor((width - left) / 90)), offsetMs);
  const tickText = (at: number): string =>
    step >= DAY_MS || (at + offsetMs) % DAY_MS === 0 ? dayText(at) : minuteText(at);
  const grid = tickTimes.map((at) => [
    svg("line", { class: "grid", x1: xOf(at), x2: xOf(at), y1: TOP - 8, y2: bottom }),
    svg("text", { class: "tick", x: xOf(at), y: height - 10, "text-anchor": "middle" }, tickText(at)),
  ]);

  const upright = (
    kind: "now" | "warn" | "disable",
    at: number | null,
    label: string,
    line: number,
  ): Child => {
    if (at === null || !isIn(at)) return null;
    const x = xOf(at);
    const isRight = x > (left + width) / 2;
    return [
      svg("line", { class: kind, x1: x, x2: x, y1: 14 + line * 16, y2: bottom }),
      svg(
        "text",
        {
          class: kind,
          x: isRight ? x - 5 : x + 5,
          y: 14 + line * 16,
          "text-anchor": isRight ? "end" : "start",
        },
        label,
      ),
    ];
  };

  const rowOf = ({ delivery, planned }: (typeof rows)[number], index: number): Child => {
    const y = TOP + index * ROW + ROW / 2;
    const created = Date.parse(delivery.createdAt);
    const ended = msOf(delivery.endedAt);
    const last = planned.at(-1) ?? ended ?? created;
    const past = Math.min(ended ?? now, now);
    const room = Math.floor((left - 12) / 6.6);
    const full = `${delivery.type}, ${timeText(delivery.createdAt)}`;
    const label = full.length > room ? delivery.type : full;
    const line = (className: string, a: number, b: number): Child =>
      b <= from || a >= to || b <= a
        ? null
        : svg("line", { class: className, x1: xOf(clamp(a)), x2: xOf(clamp(b)), y1: y, y2: y });
    return [
      svg(
        "text",
        { x: 8, y: y + 4 },
        label.length > room ? `${label.slice(0, Math.max(1, room - 1))}…` : label,
        svg("title", {}, full),
      ),
      line("span", created, past),
      line("span ahead", now, last),
      delivery.attempts.map((attempt) => {
        const at = Date.parse(attempt.at);
        const kind = attempt.kind === "delivered" ? "good" : "bad";
        return isIn(at) && mark(kind, xOf(at), y, `${timeText(at)}: ${attemptText(attempt)}`);
      }),
      planned.map((at) => {
        const kind = stop !== null && at > stop ? "idle" : "planned";
        return isIn(at) && mark(kind, xOf(at), y, `${timeText(at)}: planned attempt`);
      }),
    ];
  };

  return svg(
    "svg",
    {
      class: "plot",
      viewBox: `0 0 ${width} ${height}`,
      height,
      role: "img",
      "aria-label": `Time axis. ${summarise(input)} The same facts follow as a table.`,
    },
    grid,
    rows.map(rowOf),
    upright("warn", warnAt, stats.health.status === "warned" ? "warned" : "will be warned", 0),
    upright("disable", disableAt, "will be disabled", 1),
    upright("now", now, "now", 2),
  );
}

const renderLegend = (): readonly Child[] =>
  LEGEND.map(([kind, text]) =>
    h(
      "li",
      { "data-key": kind },
      svg("svg", { width: 16, height: 16, "aria-hidden": "true" }, mark(kind, 8, 8)),
      ` ${text}`,
    ),
  );

/** Returns the table row of a delivery: its failed attempts and its planned ones. */
function toTableRow(
  delivery: DeliveryJson,
  schedule: readonly number[],
  deliveryLink: (delivery: DeliveryJson) => Child,
) {
  const planned = plannedAttempts(delivery, schedule);
  const last = planned.at(-1);
  const failed = delivery.attempts.filter(({ kind }) => kind !== "delivered");
  const lastFailed = failed.at(-1);
  return {
    key: delivery.id,
    cells: [
      deliveryLink(delivery),
      stateBadge(delivery),
      lastFailed === undefined
        ? "none"
        : `${failed.length}, the last ${timeText(lastFailed.at)}: ${attemptText(lastFailed)}`,
      planned[0] === undefined ? "none" : timeText(planned[0]),
      last === undefined ? "–" : timeText(last),
    ],
  };
}

/** Renders the plot with its legend, and the same facts as a table. */
export function renderTimeAxis(
  input: PlotInput,
  deliveryLink: (delivery: DeliveryJson) => Child,
): readonly Child[] {
  const rows = input.deliveries.map((delivery) => toTableRow(delivery, input.schedule, deliveryLink));
  return [
    h(
      "figure",
      {},
      plot(input),
      h("figcaption", {}, h("p", {}, summarise(input)), h("ul", { class: "legend" }, renderLegend())),
    ),
    h(
      "details",
      {},
      h("summary", {}, "The time axis as a table"),
      table(
        "Deliveries against the schedule",
        ["Delivery", "State", "Failed attempts", "Next attempt", "Last planned attempt"],
        rows,
      ),
    ),
  ];
}
