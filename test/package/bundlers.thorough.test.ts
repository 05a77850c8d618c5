/**
 * Hosts that a bundler compiled. Bundlers wrap CommonJS packages in other ways than Node does, so
 * the drivers that the package imports when it needs them have to be found in each.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBundledHost, esbuildCases, webpackCases } from "../support/bundled-host.js";
import { startMailServer } from "../support/mail-server.js";
import { redisUrl } from "../support/redis.js";

let host: ReturnType<typeof createBundledHost>;

beforeAll(() => {
  host = createBundledHost();
});
afterAll(() => host.remove());

async function expectToWork(file: string): Promise<void> {
  const mail = await startMailServer();
  try {
    const printed = await host.run(file, { redis: redisUrl(), images: true, smtp: mail.url });
    expect(printed).toEqual(["redis: delivered", "images: 1 × 1", "smtp: sent"]);
    expect(mail.mails).toHaveLength(1);
  } finally {
    await mail.close();
  }
}

describe("a bundled host uses Redis, sharp and nodemailer", () => {
  it.each(esbuildCases)("by esbuild as $format of $source with drivers $drivers", async (settings) => {
    await expectToWork(await host.withEsbuild(settings));
  });

  it.each(webpackCases)("by webpack of $source with drivers as $drivers", async (settings) => {
    await expectToWork(await host.withWebpack(settings));
  });
});
