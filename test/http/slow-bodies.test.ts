/**
 * Bodies that trickle in are not waited for: 408 after the same time in every service, and uploads
 * have to keep up a rate.
 */

import { describe, expect, it } from "vitest";
import { chunksUntilLeft } from "../../src/http/body-chunks.js";
import type { HttpRequest, HttpResponse, ReadableBody, Service } from "../../src/http/types.js";
import { createWebhooks } from "../../src/index.js";
import { createPortal } from "../../src/portal/index.js";
import { createReceiver } from "../../src/receiver/index.js";
import { newSecret } from "../../src/signature/signature.js";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.js";
import { memoryFiles } from "../../storage/files/index.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { contentSite, credentials, idOf } from "../support/content-site.js";
import { access, registrationApi } from "../support/registration-api.js";

const START = Date.UTC(2026, 0, 1);
const JSON_TYPE = { "content-type": "application/json" };
const FORM_TYPE = { "content-type": "application/x-www-form-urlencoded" };

/** `bytes` every `ms` milliseconds, without end. */
async function* trickle(clock: ManualClock, bytes: Uint8Array, ms: number): ReadableBody {
  for (;;) {
    yield bytes;
    await new Promise<void>((resolve) => clock.setTimeout(resolve, ms));
  }
}

const blank = Buffer.from(" ");

const codeIn = ({ body }: HttpResponse): unknown => {
  const { code, error } = JSON.parse(Buffer.from(body as Uint8Array).toString()) as {
    code?: string;
    error?: { code: string };
  };
  return error?.code ?? code;
};

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate);
};

/** Moves time on in steps, between which what has arrived gets through the parsers. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 500) {
    await clock.advance(Math.min(left, 500));
    await turns(10);
  }
}

interface Asked {
  /** Once there is one. */
  readonly found: { answer?: HttpResponse | undefined };
  readonly done: Promise<void>;
}

/** Resolves when the service reads the body: from then on time counts. */
async function asked(
  service: Pick<Service, "handle">,
  { body, ...request }: Omit<Partial<HttpRequest>, "body"> & { readonly body: ReadableBody },
): Promise<Asked> {
  const found: Asked["found"] = {};
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const watched = async function* (): ReadableBody {
    begin();
    yield* body;
  };
  const answered = service.handle({
    method: "POST",
    path: "/",
    query: "",
    headers: JSON_TYPE,
    body: watched(),
    baseUrl: "http://localhost",
    ...request,
  });
  const done = Promise.resolve(answered).then((answer) => {
    found.answer = answer;
  });
  await Promise.race([begun, done]);
  return { found, done };
}

describe("an upload that starts fast", () => {
  it("is waited for only six times as long when it then trickles", async () => {
    const clock = manualClock(START);
    async function* body(): ReadableBody {
      yield Buffer.alloc(10_000_000);
      yield* trickle(clock, blank, 5_000);
    }
    let failure: unknown;
    const reading = (async () => {
      for await (const _ of chunksUntilLeft(body(), undefined, { clock, ms: 10_000, bytesPerSecond: 4_096 }));
    })().catch((error: unknown) => {
      failure = error;
    });
    await turns(10);
    await pass(clock, 55_000);
    expect(failure).toBeUndefined();
    await pass(clock, 10_000);
    expect(failure).toMatchObject({ status: 408, code: "request_timeout" });
    await reading;
  });
});

type Case = [name: string, path: string, request?: Omit<Partial<HttpRequest>, "body">];

describe("a body that trickles in", () => {
  const author = { authorization: credentials("author") };

  it.each<Case>([
    ["a post by somebody anonymous", "/core/v2/posts"],
    ["a post by an author", "/core/v2/posts", { headers: { ...JSON_TYPE, ...author } }],
    ["a form", "/core/v2/posts", { headers: FORM_TYPE }],
    ["no content type", "/core/v2/posts", { headers: {} }],
    ["an update", "/core/v2/posts/1", { method: "PATCH" }],
    ["a deletion", "/core/v2/posts/1", { method: "DELETE" }],
    ["a read", "/core/v2/posts", { method: "GET" }],
    ["a read by another method", "/core/v2/posts", { query: "_method=GET" }],
    ["a batch", "/batch/v1"],
    ["an autosave", "/core/v2/posts/1/autosaves"],
    ["a category", "/core/v2/categories"],
    ["fields of media", "/core/v2/media", { headers: { ...JSON_TYPE, ...author } }],
    ["an edit of an image", "/core/v2/media/1/edit", { headers: { ...JSON_TYPE, ...author } }],
  ])("to the content service with %s gets 408 after ten seconds", async (_, path, request) => {
    const clock = manualClock(START);
    const site = contentSite({ clock, files: memoryFiles() });
    const { found, done } = await asked(site, { path, body: trickle(clock, blank, 1000), ...request });
    await clock.advance(9_999);
    expect(found.answer).toBeUndefined();
    await clock.advance(1);
    await done;
    expect([found.answer?.status, found.answer && codeIn(found.answer)]).toEqual([
      408,
      "rest_request_timeout",
    ]);
  });

  it("is waited for as long as `limits.bodyMs` says, and no longer once it is whole", async () => {
    const clock = manualClock(START);
    const site = contentSite({ clock, limits: { bodyMs: 2_000 } });
    const { found, done } = await asked(site, { path: "/core/v2/posts", body: trickle(clock, blank, 100) });
    await clock.advance(2_000);
    await done;
    expect(found.answer?.status).toBe(408);
    async function* late(): ReadableBody {
      yield Buffer.from('{"title":');
      await new Promise<void>((resolve) => clock.setTimeout(resolve, 1_900));
      yield Buffer.from('"T"}');
    }
    const whole = await asked(site, {
      path: "/core/v2/posts",
      headers: { ...JSON_TYPE, ...author },
      body: late(),
    });
    await clock.advance(1_900);
    await whole.done;
    expect(whole.found.answer?.status).toBe(201);
    expect(clock.nextTimerAt()).toBeUndefined();
  });

  it("to the webhook service, to the portal and its console, and to a receiver gets 408 after ten seconds too", async () => {
    const { call, clock } = registrationApi();
    const viaApi = call("POST", "/v1/webhooks", { body: trickle(clock, blank, 1000) });
    await clock.advance(10_000);
    expect((await viaApi).status).toBe(408);

    const time = manualClock(START);
    const content = contentSite({ clock: time });
    const webhooks = createWebhooks({ storage: memoryStorage(), access, clock: time });
    const portal = createPortal({
      content,
      webhooks,
      authorize: () => ({
        name: "Ada",
        userId: idOf("editor"),
        subscriber: { id: "key-1", account: "clinic" },
      }),
      clock: time,
    });
    const receiver = createReceiver({ secrets: newSecret(), onEvent: () => {}, clock: time });
    const fromPage = { ...JSON_TYPE, "x-postbell-portal": "1", host: "localhost" };
    const requests = [
      await asked(portal, { path: "/api/v1/webhooks", headers: fromPage, body: trickle(time, blank, 1000) }),
      await asked(portal, {
        path: "/api/content/posts",
        headers: fromPage,
        body: trickle(time, blank, 1000),
      }),
      await asked(receiver, { body: trickle(time, blank, 1000) }),
    ];
    await time.advance(10_000);
    await Promise.all(requests.map(({ done }) => done));
    expect(requests.map(({ found }) => found.answer?.status)).toEqual([408, 408, 408]);
  });
});

describe("an upload", () => {
  const PNG_HEAD = Buffer.concat([
    Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"),
    Buffer.from("0000000100000001080600000", "hex"),
  ]);
  const RAW = { "content-type": "image/png", "content-disposition": 'attachment; filename="a.png"' };
  const MULTIPART = { "content-type": "multipart/form-data; boundary=b" };
  const PART = Buffer.from(
    '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\n',
  );

  /**
   * `head`, then `bytes` every `ms`: until `stopped` seconds are over, from when on nothing comes.
   */
  async function* arriving(
    clock: ManualClock,
    {
      head,
      bytes,
      ms,
      stopsAfterMs = Number.POSITIVE_INFINITY,
    }: {
      readonly head: Uint8Array;
      readonly bytes: number;
      readonly ms: number;
      readonly stopsAfterMs?: number;
    },
  ): ReadableBody {
    yield head;
    const since = clock.monotonic();
    while (clock.monotonic() - since < stopsAfterMs) {
      await new Promise<void>((resolve) => clock.setTimeout(resolve, ms));
      yield Buffer.alloc(bytes, "a");
    }
    await new Promise(() => {});
  }

  function site() {
    const clock = manualClock(START);
    const files = memoryFiles();
    const content = contentSite({ clock, files, limits: { uploadBytesPerSecond: 1_000 } });
    const upload = (headers: Record<string, string>, body: ReadableBody) =>
      asked(content, {
        path: "/core/v2/media",
        headers: { ...headers, authorization: credentials("author") },
        body,
      });
    const stored = async (): Promise<number> => {
      let count = 0;
      for await (const _ of files.list()) count += 1;
      return count;
    };
    return { clock, upload, stored };
  }

  it.each([
    ["the file itself", RAW, PNG_HEAD],
    ["multipart form data", MULTIPART, PART],
  ])(
    "as %s gets 408 where it stops, where it never begins and where it is too slow",
    async (_, headers, head) => {
      const { clock, upload, stored } = site();
      const cases = [
        [{ head: Buffer.alloc(0), bytes: 0, ms: 20_000 }, 10_000],
        [{ head, bytes: 100_000, ms: 1_000, stopsAfterMs: 30_000 }, 40_000],
        // A hundred bytes a second in place of a thousand: the first ten seconds are free.
        [{ head, bytes: 100, ms: 1_000 }, 12_000],
      ] as const;
      for (const [how, latestMs] of cases) {
        const { found, done } = await upload(headers, arriving(clock, how));
        await pass(clock, latestMs - 3_000);
        expect([how, found.answer?.status]).toEqual([how, undefined]);
        await pass(clock, 3_000);
        await done;
        expect([how, found.answer?.status]).toEqual([how, 408]);
        expect(found.answer && codeIn(found.answer)).toBe("rest_request_timeout");
      }
      expect(await stored()).toBe(0);
    },
  );

  it("that keeps up the rate may take as long as it needs", async () => {
    const { clock, upload } = site();
    const text = {
      "content-type": "text/plain",
      "content-disposition": 'attachment; filename="a.txt"',
    };
    async function* slowly(): ReadableBody {
      for (let second = 0; second < 120; second += 1) {
        yield Buffer.alloc(1_100, "a");
        await new Promise<void>((resolve) => clock.setTimeout(resolve, 1_000));
      }
    }
    const { found, done } = await upload(text, slowly());
    await pass(clock, 120_000);
    await done;
    expect(found.answer?.status).toBe(201);
  });
});
