import { describe, expect, it } from "vitest";
import { isPostbellError, PostbellError } from "../../src/core/errors.js";

class OwnError extends PostbellError {}
class OtherError extends PostbellError {}

/** An error as another copy of the package makes it, whose class this copy does not know. */
const foreign = Object.assign(new Error("full"), {
  [Symbol.for("postbell.error")]: true,
  code: "storage_full",
});

describe("an error of the package", () => {
  it("is recognised whichever copy of the package made it", () => {
    expect(foreign instanceof PostbellError).toBe(true);
    expect(isPostbellError(foreign)).toBe(true);
    expect(isPostbellError(foreign, "storage_full")).toBe(true);
    expect(isPostbellError(foreign, "not_found")).toBe(false);
  });

  it("is an instance of its own subclass and of no other", () => {
    const own = new OwnError("not_found", "gone");
    expect(own instanceof PostbellError).toBe(true);
    expect(own instanceof OwnError).toBe(true);
    expect(own instanceof OtherError).toBe(false);
    expect(foreign instanceof OwnError).toBe(false);
    expect(new PostbellError("not_found", "gone") instanceof OwnError).toBe(false);
  });

  it("is not what only looks like one", () => {
    const look = Object.assign(new Error("full"), { name: "PostbellError", code: "storage_full" });
    for (const value of [
      look,
      new Error("full"),
      { code: "storage_full" },
      "storage_full",
      null,
      undefined,
      1,
    ]) {
      expect(value instanceof PostbellError).toBe(false);
      expect(isPostbellError(value)).toBe(false);
    }
  });

  it("keeps its mark out of what is enumerated or logged", () => {
    const error = new PostbellError("not_found", "gone");
    expect([...Object.keys(error), ...Object.getOwnPropertySymbols(error)]).toEqual([
      "name",
      "code",
      "field",
      "retryAfterMs",
      "effect",
      "eventId",
      "reason",
      "isPermanent",
      "isOutage",
    ]);
  });
});
