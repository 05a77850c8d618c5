import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { createSiteZone } from "../../../src/content/text/dates.js";
import { createFetchFile, createFileImport } from "../../../src/content/wxr/import-files.js";
import { createImportSummary } from "../../../src/content/wxr/options.js";
import type { WxrItem } from "../../../src/content/wxr/types.js";
import { systemClock, type Timer } from "../../../src/core/clock.js";
import { BodyError, type GetResponse } from "../../../src/outbound/guarded-get.js";
import type { OutboundFailure } from "../../../src/outbound/types.js";
import { memoryFiles } from "../../../storage/files/index.js";

const URL = "https://old.example/notes.txt";

type Answer = number | OutboundFailure | Error;

const failure = (kind: OutboundFailure["kind"], code: string): OutboundFailure => ({
  kind,
  code,
  message: `It failed (${code}).`,
});
const cutOff = new BodyError("BODY_CUT_OFF");

async function* brokenBody(error: Error): AsyncGenerator<Uint8Array> {
  yield Buffer.from("some ");
  throw error;
}

function toResponse(answer: Answer): GetResponse | OutboundFailure {
  if (typeof answer === "object" && !(answer instanceof Error)) return answer;
  const status = answer instanceof Error ? 200 : answer;
  const body = Readable.from(answer instanceof Error ? brokenBody(answer) : [Buffer.from("some text")]);
  return { kind: "response", status, url: URL, headers: {}, body };
}

/** An import from a site that gives `answers` one after the other, then always the last one. */
function startImport(...answers: readonly Answer[]) {
  let requests = 0;
  const pauses: number[] = [];
  const files = memoryFiles();
  const summary = createImportSummary();
  const fileImport = createFileImport({
    clock: {
      ...systemClock,
      random: () => 0.5,
      setTimeout(callback, ms) {
        pauses.push(ms);
        setImmediate(callback);
        return {} as Timer;
      },
      clearTimeout: () => {},
    },
    source: createFetchFile(async () => toResponse(answers[requests++] ?? (answers.at(-1) as Answer)), 1_000),
    ...{ files, images: undefined, zone: createSiteZone("UTC"), now: () => 0, summary },
    ...{ maxBytes: 1_000, signal: undefined },
  });
  const item = { kind: "item", line: 1, id: 1, attachmentUrl: URL, title: "Notes", meta: [] };
  const take = (count = 1) =>
    fileImport.take(
      Array.from({ length: count }, (_, at) => ({
        item: { ...item, date: "", dateGmt: "" } as unknown as WxrItem,
        identity: String(at),
      })),
    );
  const site = { version: "1.2", title: "", url: URL } as Parameters<typeof summary.summary>[1];
  const warnings = () =>
    summary.summary(summary.progress({ bytesRead: 0, bytesTotal: undefined, items: 0 }), site).warnings;
  return { take, files, warnings, pauses, requests: () => requests };
}

describe("a file that an import fetches", () => {
  it.each<[string, Answer]>([
    ["a refusal for the moment", 503],
    ["too many requests", 429],
    ["a connection that is refused", failure("connect", "ECONNREFUSED")],
    ["a resolver that does not respond", failure("dns", "EAI_AGAIN")],
    ["the deadline", failure("timeout", "DEADLINE")],
    ["a body that is cut off", cutOff],
  ])("is requested again after %s", async (_, answer) => {
    const { take, files, warnings, pauses, requests } = startImport(answer, answer, 200);
    const taken = await take();
    expect([taken.size, warnings(), requests(), pauses]).toEqual([1, [], 3, [1_000, 2_000]]);
    const stored = [];
    for await (const { name } of files.list()) stored.push(name);
    expect(stored).toHaveLength(1);
  });

  it("is given up after a few requests, with a warning", async () => {
    const { take, warnings, requests } = startImport(502);
    expect((await take()).size).toBe(0);
    expect(requests()).toBe(3);
    expect(warnings()).toMatchObject([{ message: expect.stringMatching(/its host responded with 502$/) }]);
  });

  it.each<[string, Answer]>([
    ["that is not there", 404],
    ["on no host", failure("dns", "ENOTFOUND")],
    ["on a host of the own network", failure("refused", "R5")],
    ["behind a certificate that is not valid", failure("tls", "CERT_HAS_EXPIRED")],
    ["that is too large", new BodyError("BODY_TOO_LARGE")],
  ])("is not requested again: one %s", async (_, answer) => {
    const { take, files, warnings, requests } = startImport(answer, 200);
    expect((await take()).size).toBe(0);
    expect([requests(), warnings().length]).toEqual([1, 1]);
    for await (const { name } of files.list()) throw new Error(name);
  });

  it("is requested once if the files before it were all retried in vain", async () => {
    const { take, requests } = startImport(failure("connect", "ETIMEDOUT"));
    await take(60);
    // Files that are in progress at the same time finish their retries.
    expect(requests()).toBeGreaterThanOrEqual(20 * 3 + 40);
    expect(requests()).toBeLessThanOrEqual(23 * 3 + 37);
  });
});
