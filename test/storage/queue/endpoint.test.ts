import { describe, expect, it } from "vitest";
import { addClaimed, countLeft, findOpenTime } from "../../../storage/queue/endpoint.js";

const NOW = Date.UTC(2026, 0, 1) + 250;
const SECOND = Math.floor(NOW / 1_000);

describe("the rate of an endpoint", () => {
  it("counts within a second, and begins again at 0 with the next", () => {
    const claimed = addClaimed(addClaimed(null, NOW, 2), NOW + 749, 1);
    expect(claimed).toEqual({ second: SECOND, count: 3 });
    expect([countLeft(5, claimed, NOW + 749), countLeft(5, claimed, NOW + 750)]).toEqual([2, 5]);
    expect(addClaimed(claimed, NOW + 750, 1)).toEqual({ second: SECOND + 1, count: 1 });
  });

  it("is open until the second is used up, and then from the next on", () => {
    expect(findOpenTime(3, { second: SECOND, count: 2 }, NOW)).toBe(NOW);
    expect(findOpenTime(3, { second: SECOND, count: 3 }, NOW)).toBe(NOW + 750);
    expect(findOpenTime(3, { second: SECOND, count: 3 }, NOW + 750)).toBe(NOW + 750);
  });

  it("has nothing left, not less, after the limit was lowered", () => {
    expect(countLeft(3, { second: SECOND, count: 9 }, NOW)).toBe(0);
  });

  it("counts in a second that is a minute ahead, and forgets one that is further ahead", () => {
    const ahead = { second: SECOND + 60, count: 3 };
    expect(findOpenTime(3, ahead, NOW)).toBe((SECOND + 61) * 1_000);
    expect(addClaimed(ahead, NOW, 1)).toEqual({ second: SECOND + 60, count: 4 });
    expect(findOpenTime(3, ahead, NOW - 1_000)).toBe(NOW - 1_000);
    expect(addClaimed(ahead, NOW - 1_000, 1)).toEqual({ second: SECOND - 1, count: 1 });
  });

  it("limits nothing if it is null", () => {
    const claimed = { second: SECOND, count: 1_000_000 };
    expect([countLeft(null, claimed, NOW), findOpenTime(null, claimed, NOW)]).toEqual([
      Number.POSITIVE_INFINITY,
      NOW,
    ]);
  });
});
