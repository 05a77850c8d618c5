/**
 * Charts as SVG. Each is an image with a sentence for screen readers, and bars and lines also have a
 * table. Bad parts are hatched, so that no chart depends on its colours.
 */

import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { texts } from "../texts.js";
import { formatNumber } from "../times.js";
import { type Column, Table } from "./table.js";

/** The height of a plot in px. */
const HEIGHT = 160;

/** A label below a plot, at a place in per cent of its width. */
export interface Tick {
  at: number;
  text: string;
}

export interface Stack {
  good: number;
  bad: number;
}

/** Returns the end of an axis: a round number, at least `highest`. */
function roundUp(highest: number): number {
  if (highest <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(highest));
  return ([1, 1.2, 1.5, 2, 3, 4, 5, 6, 8].find((factor) => factor * power >= highest) ?? 10) * power;
}

/**
 * Bars over the whole width, each of two parts, the bad one on top with a gap of 1 px. Each part is
 * at least 2 px high, so that one failure among thousands is seen. `height`: in px.
 */
function Stacks({ stacks, highest, height }: { stacks: Stack[]; highest: number; height: number }) {
  const id = useId();
  const size = height < HEIGHT ? 3 : 5;
  const toHeight = (count: number): number =>
    count === 0 ? 0 : Math.max(2, Math.round((count / highest) * (height - 4)));
  return (
    <>
      <pattern id={id} width={size} height={size} patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect class="hatch-ground" width={size} height={size} />
        <line class="hatch" y2={size} />
      </pattern>
      {stacks.map(({ good, bad }, index) => {
        const place = { x: `${((index + 0.1) * 100) / stacks.length}%`, width: `${80 / stacks.length}%` };
        const top = height - toHeight(good);
        const badTop = top - (good > 0 ? 1 : 0) - toHeight(bad);
        return [
          good > 0 && <rect class="bar-good" y={top} height={toHeight(good)} {...place} />,
          bad > 0 && (
            <rect class="bar-bad" fill={`url(#${id})`} y={badTop} height={toHeight(bad)} {...place} />
          ),
        ];
      })}
    </>
  );
}

/** A small chart of 120 × 24 px for a row of a table, whose cells have the numbers. */
export function Spark({ sentence, stacks }: { sentence: string; stacks: Stack[] }) {
  const highest = Math.max(1, ...stacks.map(({ good, bad }) => good + bad));
  return (
    <svg class="spark" role="img" aria-label={sentence} width="120" height="24">
      <title>{sentence}</title>
      <line class="axis-line" x2="100%" y1="23.5" y2="23.5" />
      <Stacks stacks={stacks} highest={highest} height={24} />
    </svg>
  );
}

/** An hour on the axis of a chart. */
interface Slot {
  key: string;
  /** `13 Jan, 10:00–11:00` */
  name: string;
}

interface ChartProps<T extends Slot> {
  title: string;
  /** What the chart shows, for screen readers. */
  sentence: string;
  ticks: Tick[];
  /** Oldest first. */
  slots: T[];
  /** Controls beside the title. */
  tools?: ComponentChildren;
}

/** Moves between the links of a row with the arrow keys, so that the row is one stop of the Tab key. */
function moveFocus(event: KeyboardEvent): void {
  const links = [...(event.currentTarget as HTMLElement).querySelectorAll("a")];
  const index = links.indexOf(event.target as HTMLAnchorElement);
  const moves: Record<string, number> = {
    ArrowLeft: index - 1,
    ArrowRight: index + 1,
    Home: 0,
    End: links.length - 1,
  };
  const next = moves[event.key];
  if (next === undefined) return;
  event.preventDefault();
  links[next]?.focus();
}

/**
 * The frame of a chart: heading, axes, legend, table, and a strip of slots over the plot, which
 * says what the pointer or the focus is on. `children`: the marks of the plot.
 */
function Chart<T extends Slot>({
  title,
  sentence,
  ticks,
  slots,
  tools,
  top,
  legend,
  columns,
  isMeasured,
  describe,
  link,
  children,
}: ChartProps<T> & {
  /** The label of the upper end of the axis. */
  top: string;
  legend: ComponentChildren;
  columns: Column<T>[];
  /** False for a slot that has nothing to show. */
  isMeasured: (slot: T) => boolean;
  describe: (slot: T) => string;
  /** Where a slot leads. */
  link?: (slot: T) => string;
  children: ComponentChildren;
}) {
  const [isTable, setTable] = useState(false);
  const [pointedAt, setPointedAt] = useState<string>();
  const lastStop = useRef<string | undefined>(undefined);
  const measured = slots.filter(isMeasured);
  const stop = measured.find(({ key }) => key === lastStop.current) ?? measured.at(-1);
  const shown = measured.find(({ key }) => key === pointedAt);
  const point = (key: string | undefined) => (): void => setPointedAt(key);
  return (
    <section class="card chart" aria-label={title}>
      <div class="card-head">
        <h2>{title}</h2>
        {tools}
      </div>
      <div class="chart-body" hidden={isTable}>
        <div class="chart-scale" aria-hidden="true">
          <span>{top}</span>
          <span>0</span>
        </div>
        <div class="chart-plot">
          <svg role="img" aria-label={sentence}>
            {[0.5, HEIGHT / 2, HEIGHT - 0.5].map((y) => (
              <line key={y} class="axis-line" x2="100%" y1={y} y2={y} />
            ))}
            {children}
          </svg>
          {/* biome-ignore lint/a11y/noStaticElementInteractions: the keys move between the links in it. */}
          <div class="chart-slots" onKeyDown={moveFocus} onPointerLeave={point(undefined)}>
            {slots.map((slot) =>
              link === undefined || !isMeasured(slot) ? (
                <span key={slot.key} onPointerEnter={point(slot.key)} />
              ) : (
                <a
                  key={slot.key}
                  href={link(slot)}
                  tabIndex={slot === stop ? 0 : -1}
                  onPointerEnter={point(slot.key)}
                  onFocus={() => {
                    lastStop.current = slot.key;
                    setPointedAt(slot.key);
                  }}
                  onBlur={point(undefined)}
                >
                  <span class="unseen">{describe(slot)}</span>
                </a>
              ),
            )}
          </div>
        </div>
        <svg class="chart-ticks" aria-hidden="true">
          {ticks.map(({ at, text }) => (
            <text key={text} x={`${at}%`} y="12" text-anchor="middle">
              {text}
            </text>
          ))}
        </svg>
      </div>
      {isTable && (
        <Table
          caption={texts.charts.asTable({ title })}
          columns={columns}
          header={texts.charts.hour}
          rows={measured.toReversed()}
        />
      )}
      <div class="chart-foot">
        <div class="chart-legend" aria-hidden="true">
          {shown === undefined ? legend : describe(shown)}
        </div>
        <button type="button" class="link" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          {texts.charts.showAsTable}
        </button>
      </div>
    </section>
  );
}

/** A bar of two parts. */
export interface Bar extends Stack, Slot {
  /** Where the bar leads: `#/webhooks/…`. */
  link: string;
}

const listBarColumns = (): Column<Bar>[] => [
  { name: texts.charts.hour, cell: ({ name, link }) => <a href={link}>{name}</a> },
  { name: texts.charts.delivered, isNumber: true, cell: ({ good }) => good },
  { name: texts.charts.failed, isNumber: true, cell: ({ bad }) => bad },
];

/** Bars of two parts. A bar is a link; the arrow keys, Home and End move between them. */
export function Bars(props: ChartProps<Bar>) {
  const { slots } = props;
  const highest = roundUp(Math.max(...slots.map(({ good, bad }) => good + bad)));
  return (
    <Chart
      {...props}
      top={formatNumber(highest)}
      columns={listBarColumns()}
      isMeasured={({ good, bad }) => good + bad > 0}
      describe={({ name, good, bad }) => texts.charts.describe({ name, good, bad })}
      link={({ link }) => link}
      legend={[0, 1].map((bad) => (
        <span key={bad}>
          {/* biome-ignore lint/a11y/noSvgWithoutTitle: its text stands next to it. */}
          <svg width="12" height="12">
            <Stacks stacks={[{ good: 1 - bad, bad }]} highest={1} height={12} />
          </svg>{" "}
          {bad === 0 ? texts.charts.deliveredLegend : texts.charts.failedLegend}
        </span>
      ))}
    >
      <Stacks stacks={slots} highest={highest} height={HEIGHT} />
    </Chart>
  );
}

/** The values of both lines at an hour; `null` for an hour without one. */
export interface LinePoint extends Slot {
  values: [lower: number | null, upper: number | null];
}

/** Returns the path of a line with gaps. A point with a gap on each side is drawn as a dot. */
function toPath(values: (number | null)[], highest: number): string {
  let isDrawing = false;
  return values
    .map((value, index) => {
      if (value === null) {
        isDrawing = false;
        return "";
      }
      const point = `${index + 0.5} ${HEIGHT - (value / highest) * (HEIGHT - 4)}`;
      const step = isDrawing ? `L${point}` : `M${point}h0.001`;
      isDrawing = true;
      return step;
    })
    .join("");
}

/** Two lines over one axis: the lower one dashed, the upper one thick. */
export function Line({
  names,
  format,
  ...props
}: ChartProps<LinePoint> & {
  names: [lower: string, upper: string];
  format: (value: number) => string;
}) {
  const { slots } = props;
  const highest = roundUp(Math.max(...slots.flatMap(({ values }) => values.map((value) => value ?? 0))));
  const show = (value: number | null): string => (value === null ? "–" : format(value));
  const lines = [0, 1] as const;
  return (
    <Chart
      {...props}
      top={format(highest)}
      columns={[
        { name: texts.charts.hour, cell: ({ name }) => name },
        ...lines.map((line) => ({
          name: names[line],
          isNumber: true,
          cell: ({ values }: LinePoint) => show(values[line]),
        })),
      ]}
      isMeasured={({ values }) => values.some((value) => value !== null)}
      describe={({ name, values }) =>
        `${name}: ${lines.map((line) => `${names[line]} ${show(values[line])}`).join(", ")}`
      }
      legend={lines.map((line) => (
        <span key={line}>
          {/* biome-ignore lint/a11y/noSvgWithoutTitle: its text stands next to it. */}
          <svg width="20" height="12">
            <path class={`line-${line}`} d="M1 6h18" />
          </svg>{" "}
          {names[line]}
        </span>
      ))}
    >
      {/* biome-ignore lint/a11y/noSvgWithoutTitle: a part of an image with a name. */}
      <svg viewBox={`0 0 ${slots.length} ${HEIGHT}`} preserveAspectRatio="none">
        {lines.map((line) => (
          <path
            key={line}
            class={`line-${line}`}
            d={toPath(
              slots.map(({ values }) => values[line]),
              highest,
            )}
          />
        ))}
      </svg>
    </Chart>
  );
}
