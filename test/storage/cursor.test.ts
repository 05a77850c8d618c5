import { describe, expect, it } from "vitest";
import { validateCursor } from "../../storage/cursor.js";

const PATTERN = /^[0-9]+$/;

describe("a cursor", () => {
  it("is empty for the first page", () => {
    expect(validateCursor(undefined, PATTERN)).toBe("");
  });

  it("is returned if it has the form that the storage gave it", () => {
    expect(validateCursor("12", PATTERN)).toBe("12");
  });

  it.each([null, 12, {}, "x", "", Object.create(null)])("is refused with its field if it is %j", (cursor) => {
    expect(() => validateCursor(cursor as string, PATTERN)).toThrow(
      expect.objectContaining({ code: "invalid_argument", field: "cursor" }),
    );
  });
});
