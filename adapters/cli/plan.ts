/**
 * `postbell plan`: shows when a delivery would be attempted, and when the operator would be warned
 * and the endpoint disabled.
 */

import { systemClock } from "../../src/core/clock.js";
import { buildSchedule, type RetryPolicy } from "../../src/webhooks/delivery/retry-schedule.js";
import { readConfig } from "../../src/webhooks/options.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { createPainter, defineCommand, EXIT, printable, refuseOperands, toMessage } from "./command.js";
import { readTimeOption } from "./verify.js";

export const plan = defineCommand({
  usage: "plan [options]",
  summary: "show when a delivery is attempted, and when the operator is warned and the endpoint disabled",
  details: `Durations are numbers with a unit: 90s, 15m, 8h, 3d. Without options, the default policy is shown.

  --intervals LIST    intervals between the first attempts: 15m,30m,1h,2h,4h,8h  (retry.intervalsMs)
  --every DURATION    interval between later attempts: 8h                   (retry.everyMs)
  --window DURATION   time from the first attempt to the last one: 72h      (retry.windowMs)
  --jitter PART       maximum random part of an interval: 0.1               (retry.jitter)
  --max-jitter DURATION  maximum random delay: 15m                          (retry.maxJitterMs)
  --warn DURATION     time of failing before the warning: 72h               (endpoints.warnAfterMs)
  --disable DURATION  time of failing before it is disabled: 96h            (endpoints.disableAfterMs)
  --from TIME         time of the first attempt: ISO 8601; default now
  --json              print the plan as JSON`,
  options: {
    intervals: { type: "string" },
    every: { type: "string" },
    window: { type: "string" },
    jitter: { type: "string" },
    "max-jitter": { type: "string" },
    warn: { type: "string" },
    disable: { type: "string" },
    from: { type: "string" },
    json: { type: "boolean", default: false },
  },
  read({ intervals, every, window, jitter, warn, disable, from, json, ...options }, operands) {
    refuseOperands(operands);
    const ms = (text: string | undefined, name: string): number | undefined =>
      text === undefined ? undefined : readDuration(text, name);
    // The service checks the values, so that both refuse the same ones.
    const { retry, endpoints } = withFlagNames(() =>
      readConfig({
        storage: memoryStorage(),
        access: { authenticate: () => null, canRead: () => false },
        retry: {
          intervalsMs: intervals?.split(",").map((one) => readDuration(one.trim(), "--intervals")),
          everyMs: ms(every, "--every"),
          windowMs: ms(window, "--window"),
          jitter: jitter === undefined ? undefined : readPart(jitter),
          maxJitterMs: ms(options["max-jitter"], "--max-jitter"),
        },
        endpoints: { warnAfterMs: ms(warn, "--warn"), disableAfterMs: ms(disable, "--disable") },
      }),
    );
    return { retry, endpoints, json, from: from === undefined ? undefined : readTimeOption(from, "--from") };
  },
  async run({ retry, endpoints, json, from = systemClock.now() }, io) {
    const timeline: Timeline = { attempts: listAttempts(retry), endpoints, from };
    const paint = createPainter(io);
    io.stdout.write(
      json ? `${JSON.stringify(toJson(timeline), null, 2)}\n` : formatTimeline(timeline, paint),
    );
    return EXIT.done;
  },
});

interface Timeline {
  attempts: PlannedAttempt[];
  endpoints: { warnAfterMs: number; disableAfterMs: number };
  /** Time of the first attempt. */
  from: number;
}

function toJson({ attempts, endpoints, from }: Timeline): object {
  const { warnAfterMs, disableAfterMs } = endpoints;
  const toIso = (offsetMs: number): string => new Date(from + offsetMs).toISOString();
  return {
    attempts: attempts.map(({ offsetMs, latestMs }, index) => ({
      number: index + 1,
      offsetMs,
      at: toIso(offsetMs),
      latestAt: toIso(latestMs),
    })),
    warning: { offsetMs: warnAfterMs, at: toIso(warnAfterMs) },
    disabled: { offsetMs: disableAfterMs, at: toIso(disableAfterMs) },
  };
}

function formatTimeline(timeline: Timeline, paint: ReturnType<typeof createPainter>): string {
  const { attempts, endpoints, from } = timeline;
  const { warnAfterMs, disableAfterMs } = endpoints;
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const rows = [
    ...attempts.map(({ offsetMs, latestMs }, index) => ({
      offsetMs,
      what: `attempt ${index + 1}${latestMs > offsetMs ? `, by ${formatHours(latestMs)} at the latest` : ""}`,
    })),
    {
      offsetMs: warnAfterMs,
      what: paint("yellow", "the operator is warned, unless an attempt got a 2xx response"),
    },
    {
      offsetMs: disableAfterMs,
      what: paint("red", "the endpoint is disabled, unless an attempt got a 2xx response"),
    },
  ].toSorted((a, b) => a.offsetMs - b.offsetMs);
  const width = Math.max(...rows.map(({ offsetMs }) => formatHours(offsetMs).length));
  const lines = rows.map(
    ({ offsetMs, what }) =>
      `${formatHours(offsetMs).padStart(width)}  ${formatDate(from + offsetMs)}  ${what}`,
  );
  const axis = drawTimeAxis(
    attempts.map(({ offsetMs }) => offsetMs),
    warnAfterMs,
    disableAfterMs,
  );
  return `Hours and minutes after the first attempt; dates in ${zone}.\n\n${lines.join("\n")}\n\n${axis}\n`;
}

const FLAGS: Record<string, string> = {
  "retry.intervalsMs": "--intervals",
  "retry.everyMs": "--every",
  "retry.windowMs": "--window",
  "retry.jitter": "--jitter",
  "retry.maxJitterMs": "--max-jitter",
  "endpoints.warnAfterMs": "--warn",
  "endpoints.disableAfterMs": "--disable",
};

/** Calls `read`, and replaces names of options by names of flags in the error that it throws. */
function withFlagNames<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    const text = toMessage(error).replace(/^createWebhooks: /, "");
    throw new Error(
      text.replace(/\b(?:retry|endpoints)\.[A-Za-z]+/g, (option) => FLAGS[option] ?? option),
      {
        cause: error,
      },
    );
  }
}

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Reads a duration such as `90s` or `1.5h`. @throws `Error` whose message is for the user. */
function readDuration(text: string, name: string): number {
  const [, number, unit] = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (number === undefined || unit === undefined)
    throw new Error(
      `${name} must be a number with a unit, such as 90s, 15m, 8h or 3d (got ${printable(text)}).`,
    );
  return Math.round(Number(number) * UNITS[unit as keyof typeof UNITS]);
}

function readPart(text: string): number {
  if (/^\d(?:\.\d{1,6})?$/.test(text)) return Number(text);
  throw new Error(`--jitter must be a number from 0 to 1 (got ${printable(text)}).`);
}

interface PlannedAttempt {
  offsetMs: number;
  /** Time with the largest jitter. */
  latestMs: number;
}

function listAttempts(retry: RetryPolicy): PlannedAttempt[] {
  const schedule = buildSchedule(retry);
  return schedule.map((offsetMs, step) => {
    const interval = offsetMs - (schedule[step - 1] ?? 0);
    const jitter = Math.floor(Math.min(retry.jitter * interval, retry.maxJitterMs));
    return { offsetMs, latestMs: Math.min(offsetMs + jitter, retry.windowMs) };
  });
}

/** Formats hours and minutes such as `71:45`, with seconds if there are any. */
function formatHours(ms: number): string {
  const two = (count: number): string => String(count).padStart(2, "0");
  const seconds = Math.round(ms / 1_000);
  const text = `${Math.floor(seconds / 3_600)}:${two(Math.floor(seconds / 60) % 60)}`;
  return seconds % 60 === 0 ? text : `${text}:${two(seconds % 60)}`;
}

const dateFormat: Intl.DateTimeFormatOptions = {
  weekday: "short",
  day: "2-digit",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
};

const formatDate = (time: number): string => new Intl.DateTimeFormat("en-GB", dateFormat).format(time);

const AXIS_WIDTH = 72;
const TICKS = 4;

/**
 * Draws attempts as `o`, or as their number if several fall together, and warning and disabling as
 * `W` and `D`. The line below has hours and minutes.
 */
export function drawTimeAxis(attempts: number[], warnMs: number, disableMs: number): string {
  const end = Math.max(...attempts, warnMs, disableMs);
  const toCell = (ms: number): number => Math.round((ms / end) * AXIS_WIDTH);
  const cells = Array.from({ length: AXIS_WIDTH + 1 }, () => "-");
  for (const cell of new Set(attempts.map(toCell))) {
    const count = attempts.filter((ms) => toCell(ms) === cell).length;
    cells[cell] = count === 1 ? "o" : count < 10 ? String(count) : "+";
  }
  cells[toCell(warnMs)] = "W";
  cells[toCell(disableMs)] = "D";
  let labels = "";
  for (let tick = 0; tick <= TICKS; tick++)
    labels = labels.padEnd(toCell((end * tick) / TICKS)) + formatHours((end * tick) / TICKS);
  return `${cells.join("")}\n${labels}\no: an attempt, or the number of attempts that fall together; W: warning; D: disabled`;
}
