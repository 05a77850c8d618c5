import { test } from "vitest";
import { manualClock, outboxSourceContract } from "../../src/testing/index.js";
import { memorySource } from "../../storage/outbox/index.js";

outboxSourceContract({
  test,
  create() {
    const clock = manualClock(Date.parse("2026-11-20T09:30:00Z"));
    const source = memorySource({ clock });
    return { source, add: (events) => source.add(events), wait: (ms) => clock.advance(ms) };
  },
});
