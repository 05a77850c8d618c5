import { describe, expect, it } from "vitest";
import { allocateBriefly } from "../../src/core/bytes.js";

/**
 * As a host does that posts bytes to a worker. Node 20 copies what must not be transferred, later
 * versions refuse.
 */
function transferIfPossible(bytes: Buffer): void {
  try {
    structuredClone(bytes, { transfer: [bytes.buffer as ArrayBuffer] });
  } catch {}
}

describe("bytes for a moment", () => {
  it("never overlap, whatever their sizes", () => {
    const parts = Array.from({ length: 500 }, (_, index) =>
      allocateBriefly((index * 37) % 9_000).fill(index % 256),
    );
    for (const [index, part] of parts.entries()) {
      expect(part.length).toBe((index * 37) % 9_000);
      expect(part.every((byte) => byte === index % 256)).toBe(true);
    }
  });

  it("stay usable where a host transfers some of them to a worker", () => {
    const body = allocateBriefly(100).fill(7);
    transferIfPossible(body);
    expect(body.every((byte) => byte === 7)).toBe(true);
    expect(body).toHaveLength(100);
    expect(allocateBriefly(100)).toHaveLength(100);
  });
});
