import { describe, expect, it } from "vitest";
import {
  formatDuration,
  formatExactTime,
  formatRelativeTime,
  fromTimeInput,
  toTimeInput,
} from "../../../src/portal/app/times.js";
import "./support.js";

const AT = Date.UTC(2026, 10, 22, 14, 5, 9);
const MINUTE = 60_000;

describe("times in words", () => {
  it("are exact where it counts, with their zone", () => {
    expect(formatExactTime(AT, "UTC")).toBe("22 Nov 2026, 14:05:09 UTC");
  });

  it("are relative where that is quicker to read", () => {
    const from = (ms: number) => formatRelativeTime(AT + ms, AT);
    expect([0, -12_000, -5 * MINUTE, 8 * 60 * MINUTE, -4 * 24 * 60 * MINUTE].map(from)).toEqual([
      "just now",
      "12 s ago",
      "5 min ago",
      "in 8 h",
      "4 days ago",
    ]);
  });

  it.each([
    [38, "38 ms"],
    [1_240, "1.2 s"],
    [15_000, "15 s"],
    [20 * MINUTE, "20 min"],
  ])("give %i ms as %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

describe("a time that a visitor types", () => {
  it("is read as it is shown, in 24 hours", () => {
    const text = toTimeInput(AT, "UTC");
    expect(text).toBe("2026-11-22 14:05");
    expect(fromTimeInput(text, "UTC")).toBe("2026-11-22T14:05:00.000Z");
    expect(fromTimeInput(" 2026-11-22T9:05 ", "UTC")).toBe("2026-11-22T09:05:00.000Z");
    expect(fromTimeInput("2026-11-22", "UTC")).toBe("2026-11-22T00:00:00.000Z");
    expect(new Date(fromTimeInput(toTimeInput(AT, "local"), "local") ?? "").getTime()).toBe(AT - 9_000);
  });

  it("may be left out, but not be nonsense", () => {
    expect(fromTimeInput("  ", "UTC")).toBeUndefined();
    for (const text of ["tomorrow", "2026-13-45 10:00", "22.11.2026", "2026-11-22 2 pm"])
      expect(fromTimeInput(text, "UTC"), text).toBeNull();
  });
});
