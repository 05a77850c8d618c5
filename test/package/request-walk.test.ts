import { beforeAll, describe, expect, it } from "vitest";
import { listWalks } from "../../scripts/walk.js";
import { redisUrl } from "../support/redis.js";

let walks: Awaited<ReturnType<typeof listWalks>>;

beforeAll(async () => {
  walks = await listWalks(redisUrl());
});

/** The files that a reader has to open to follow a request, down to the helpers of helpers. */
describe("the path of an event, from emit to its settlement", () => {
  it.each([
    ["memory", 36],
    ["redis", 45],
  ])("passes few files: %s", (storage, limit) => {
    const files = walks[storage] ?? [];
    expect(files).toContain("src/webhooks/delivery/worker.js");
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(limit);
  });
});

describe("the way of a list of posts", () => {
  it.each([
    ["first", 65],
    ["rendered", 44],
    ["cached", 20],
  ])("passes few files: %s", (request, limit) => {
    const files = walks[request] ?? [];
    expect(files).toContain("src/content/rest/server.js");
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(limit);
  });
});
