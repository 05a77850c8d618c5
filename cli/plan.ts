/** `postbell plan`: shows when a delivery would be attempted, and when its endpoint is reported and disabled. */

import { systemClock } from "../src/core/clock.js";
import { buildSchedule, type RetryPolicy } from "../src/webhooks/delivery/back-off.js";
import { readSettings } from "../src/webhooks/options.js";
import { memoryStorage } from "../storage/memory/index.js";
import { command, EXIT, NO_ARGUMENTS, painter, toMessage } from "./command.js";
import { readTimeOption } from "./verify.js";

export const plan = command({
  usage: "plan [options]",
  summary: "show when a delivery is attempted, and when its endpoint is reported and disabled",
  details: `Durations are numbers with a unit: 90s, 15m, 8h, 3d. Without options it is the default policy.

  --intervals LIST    between the first attempts: 15m,30m,1h,2h,4h,8h   (retry.intervalsMs)
  --every DURATION    between those after them: 8h                      (retry.everyMs)
  --window DURATION   no attempt begins later after the first: 72h      (retry.windowMs)
  --jitter PART       of a step that chance may add: 0.1                (retry.jitter)
  --max-jitter DURATION  and at most this: 15m                          (retry.maxJitterMs)
  --warn DURATION     of failing, to the warning: 72h                   (health.warnAfterMs)
  --disable DURATION  of failing, to the disabling: 96h                 (health.disableAfterMs)
  --from TIME         of the first attempt: ISO 8601; default now
  --json              print it as JSON`,
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
  read({ intervals, every, window, jitter, warn, disable, from, json, ...given }, operands) {
    NO_ARGUMENTS(operands);
    const ms = (text: string | undefined, name: string): number | undefined =>
      text === undefined ? undefined : readDuration(text, name);
    // What the service refuses is refused here.
    const { retry, health } = inFlags(() =>
      readSettings({
        storage: memoryStorage(),
        access: { authenticate: () => null, canRead: () => false },
        retry: {
          intervalsMs: intervals?.split(",").map((one) => readDuration(one.trim(), "--intervals")),
          everyMs: ms(every, "--every"),
          windowMs: ms(window, "--window"),
          jitter: jitter === undefined ? undefined : readPart(jitter),
          maxJitterMs: ms(given["max-jitter"], "--max-jitter"),
        },
        health: { warnAfterMs: ms(warn, "--warn"), disableAfterMs: ms(disable, "--disable") },
      }),
    );
    return { retry, health, json, from: from === undefined ? undefined : readTimeOption(from, "--from") };
  },
  async run({ retry, health, json, from = systemClock.now() }, io) {
    const { warnAfterMs, disableAfterMs } = health;
    const attempts = attemptsOf(retry);
    const iso = (offsetMs: number): string => new Date(from + offsetMs).toISOString();
    if (json) {
      const result = {
        attempts: attempts.map(({ offsetMs, latestMs }, index) => ({
          ...{ number: index + 1, offsetMs, at: iso(offsetMs), latestAt: iso(latestMs) },
        })),
        warning: { offsetMs: warnAfterMs, at: iso(warnAfterMs) },
        disabled: { offsetMs: disableAfterMs, at: iso(disableAfterMs) },
      };
      io.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
      return EXIT.done;
    }
    const paint = painter(io);
    const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
    const rows = [
      ...attempts.map(({ offsetMs, latestMs }, index) => ({
        offsetMs,
        what: `attempt ${index + 1}${latestMs > offsetMs ? `, by ${clockText(latestMs)} at the latest` : ""}`,
      })),
      {
        offsetMs: warnAfterMs,
        what: paint("yellow", "the endpoint is reported, if nothing was answered 2xx"),
      },
      { offsetMs: disableAfterMs, what: paint("red", "the endpoint is disabled, if that went on") },
    ].toSorted((a, b) => a.offsetMs - b.offsetMs);
    const width = Math.max(...rows.map(({ offsetMs }) => clockText(offsetMs).length));
    const lines = rows.map(
      ({ offsetMs, what }) => `${clockText(offsetMs).padStart(width)}  ${dateText(from + offsetMs)}  ${what}`,
    );
    const axis = drawTimeAxis(
      attempts.map(({ offsetMs }) => offsetMs),
      warnAfterMs,
      disableAfterMs,
    );
    io.stdout.write(
      `Hours and minutes after the first attempt; dates in ${zone}.\n\n${lines.join("\n")}\n\n${axis}\n`,
    );
    return EXIT.done;
  },
});

const FLAGS: Readonly<Record<string, string>> = {
  "retry.intervalsMs": "--intervals",
  "retry.everyMs": "--every",
  "retry.windowMs": "--window",
  "retry.jitter": "--jitter",
  "retry.maxJitterMs": "--max-jitter",
  "health.warnAfterMs": "--warn",
  "health.disableAfterMs": "--disable",
};

/** What `read` gives; what it refuses names the flag that was typed in place of the option of a host. */
function inFlags<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    const text = toMessage(error).replace(/^createWebhooks: /, "");
    throw new Error(
      text.replace(/\b(?:retry|health)\.[A-Za-z]+/g, (option) => FLAGS[option] ?? option),
      {
        cause: error,
      },
    );
  }
}

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `90s`, `1.5h`. Errors: Error with a sentence for whoever typed it. */
export function readDuration(text: string, name: string): number {
  const [, number, unit] = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (number === undefined || unit === undefined)
    throw new Error(`${name} must be a number with a unit, such as 90s, 15m, 8h or 3d.`);
  return Math.round(Number(number) * UNITS[unit as keyof typeof UNITS]);
}

function readPart(text: string): number {
  if (/^\d(?:\.\d{1,6})?$/.test(text)) return Number(text);
  throw new Error("--jitter must be a number from 0 to 1.");
}

interface PlannedAttempt {
  readonly offsetMs: number;
  /** With all that chance may add. */
  readonly latestMs: number;
}

function attemptsOf(retry: RetryPolicy): readonly PlannedAttempt[] {
  const schedule = buildSchedule(retry);
  return schedule.map((offsetMs, step) => {
    const interval = offsetMs - (schedule[step - 1] ?? 0);
    const jitter = Math.floor(Math.min(retry.jitter * interval, retry.maxJitterMs));
    return { offsetMs, latestMs: Math.min(offsetMs + jitter, retry.windowMs) };
  });
}

/** `71:45`; with seconds where there are any. */
function clockText(ms: number): string {
  const two = (count: number): string => String(count).padStart(2, "0");
  const seconds = Math.round(ms / 1_000);
  const text = `${Math.floor(seconds / 3_600)}:${two(Math.floor(seconds / 60) % 60)}`;
  return seconds % 60 === 0 ? text : `${text}:${two(seconds % 60)}`;
}

const dateFormat: Intl.DateTimeFormatOptions = {
  ...{ weekday: "short", day: "2-digit", month: "short", year: "numeric" },
  ...{ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
};

const dateText = (time: number): string => new Intl.DateTimeFormat("en-GB", dateFormat).format(time);

const AXIS_WIDTH = 72;
const TICKS = 4;

/** Attempts as `o`, or how many fall together; `W` and `D`: warning and disabling. Under it hours and minutes. */
export function drawTimeAxis(attempts: readonly number[], warnMs: number, disableMs: number): string {
  const end = Math.max(...attempts, warnMs, disableMs);
  const cellOf = (ms: number): number => Math.round((ms / end) * AXIS_WIDTH);
  const cells = Array.from({ length: AXIS_WIDTH + 1 }, () => "-");
  for (const cell of new Set(attempts.map(cellOf))) {
    const count = attempts.filter((ms) => cellOf(ms) === cell).length;
    cells[cell] = count === 1 ? "o" : count < 10 ? String(count) : "+";
  }
  cells[cellOf(warnMs)] = "W";
  cells[cellOf(disableMs)] = "D";
  let labels = "";
  for (let tick = 0; tick <= TICKS; tick++)
    labels = labels.padEnd(cellOf((end * tick) / TICKS)) + clockText((end * tick) / TICKS);
  return `${cells.join("")}\n${labels}\no: an attempt, or how many fall together; W: warning; D: disabled`;
}
