import { test } from "vitest";
import { memorySource } from "../../outbox/index.js";
import { manualClock, outboxSourceContract } from "../../testing/index.js";

outboxSourceContract({
  test,
  create() {
    const clock = manualClock(Date.parse("2026-11-20T09:30:00Z"));
    const source = memorySource({ clock });
    return { source, add: (events) => source.add(events), wait: (ms) => clock.advance(ms) };
  },
});
