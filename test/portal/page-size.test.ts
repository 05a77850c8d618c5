import { gzipSync } from "node:zlib";
import { script, style } from "virtual:portal-app";
import { expect, it } from "vitest";

it("the page of the portal stays under 60 kB compressed", () => {
  const bytes = gzipSync(script).length + gzipSync(style).length;
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThan(60_000);
});
