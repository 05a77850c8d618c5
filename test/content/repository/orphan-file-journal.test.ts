/**
 * Files and records agree again after a process that died anywhere: no file without a record, no
 * record without its files.
 */

import sharp from "sharp";
import { beforeAll, describe, expect, it } from "vitest";
import { sharpImages } from "../../../adapters/sharp/index.js";
import type { FileStore } from "../../../src/content/files.js";
import type { ContentStorage } from "../../../src/content/store.js";
import { PostbellError } from "../../../src/core/errors.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { memoryFiles } from "../../../storage/files/index.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite, credentials } from "../../support/content-site.js";

type Site = ReturnType<typeof contentSite>;

const HOUR = 3_600_000;
const forever = (): Promise<never> => new Promise<never>(() => {});

let photo: Uint8Array;
beforeAll(async () => {
  photo = await sharp({ create: { width: 400, height: 300, channels: 3, background: "teal" } })
    .png()
    .toBuffer();
});

/**
 * Wraps the lasting effects of a process, which dies before or after the `at`-th of them. Later
 * calls have no effect and never settle.
 */
function mortal(at: number, isAfter: boolean) {
  let count = 0;
  let die: () => void = () => {};
  const death = new Promise<"dead">((resolve) => {
    die = () => resolve("dead");
  });
  let isDead = false;
  async function effect<T>(act: () => Promise<T>): Promise<T> {
    if (isDead) return forever();
    count += 1;
    const isLast = count === at;
    if (isLast && !isAfter) {
      isDead = true;
      die();
      return forever();
    }
    const result = await act();
    if (!isLast) return result;
    isDead = true;
    die();
    return forever();
  }
  return { effect, death };
}

type Effect = ReturnType<typeof mortal>["effect"];

const dyingStorage = (storage: ContentStorage, effect: Effect): ContentStorage => ({
  ...storage,
  content(context) {
    const store = storage.content(context);
    return { ...store, commit: (...given) => effect(() => store.commit(...given)) };
  },
});

const dyingFiles = (files: FileStore, effect: Effect): FileStore => ({
  ...files,
  async stage(bytes) {
    const staged = await files.stage(bytes);
    return {
      ...staged,
      publish: (name) => effect(() => staged.publish(name)),
      discard: () => effect(() => staged.discard()),
    };
  },
  remove: (name) => effect(() => files.remove(name)),
});

async function upload(
  site: Site,
  name: string,
): Promise<{ status: number; body: ReturnType<typeof JSON.parse> }> {
  const response = await site.handle({
    method: "POST",
    path: "/core/v2/media",
    query: "",
    headers: {
      authorization: credentials("administrator"),
      "content-type": "image/png",
      "content-disposition": `attachment; filename="${name}"`,
    },
    body: photo,
    baseUrl: "http://localhost",
  });
  return {
    status: response?.status ?? 0,
    body: JSON.parse(Buffer.from(response?.body as Uint8Array).toString()),
  };
}

async function namesOf(files: FileStore): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const { name } of files.list()) names.push(name);
  return names.sort();
}

/** By the answers of the site: every address of every media item. */
async function namedBy(site: Site): Promise<readonly string[]> {
  const { body } = await callsOf(site)("GET /media", { as: "administrator", query: { per_page: 100 } });
  return body
    .flatMap(
      (item: { source_url: string; media_details: { sizes?: Record<string, { source_url: string }> } }) => [
        item.source_url,
        ...Object.values(item.media_details.sizes ?? {}).map((size) => size.source_url),
      ],
    )
    .map((address: string) => address.split("/uploads/")[1])
    .filter((name: string, place: number, all: readonly string[]) => all.indexOf(name) === place)
    .sort();
}

/** Uploads, an edit and removals; a name that is free again is used again. */
async function work(site: Site): Promise<"done"> {
  const call = callsOf(site);
  const first = await upload(site, "heart.png");
  await upload(site, "heart.png");
  await call(`POST /media/${first.body.id}/edit`, {
    as: "administrator",
    body: { src: first.body.source_url, modifiers: [{ type: "rotate", args: { angle: 90 } }] },
  });
  await call(`DELETE /media/${first.body.id}`, { as: "administrator", query: { force: true } });
  await upload(site, "heart.png");
  return "done";
}

/** Returns the state hours after another process replaced one that died. */
async function aftermath(at: number, isAfter: boolean) {
  const clock = manualClock(Date.UTC(2026, 10, 1));
  const [storage, files] = [memoryStorage(), memoryFiles()];
  const images = sharpImages();
  const { effect, death } = mortal(at, isAfter);
  const site = contentSite({
    storage: dyingStorage(storage, effect),
    files: dyingFiles(files, effect),
    images,
    clock,
  });
  const end = await Promise.race([work(site), death]);
  const next = contentSite({ storage, files, images, clock });
  await next.start();
  await clock.advance(3 * HOUR);
  const [stored, named] = [await namesOf(files), await namedBy(next)];
  const again = await upload(next, "heart.png");
  await next.stop();
  return { end, stored, named, again: again.status };
}

describe("a process that dies while it stores, edits or removes media", () => {
  it.each([
    ["before", false],
    ["after", true],
  ])(
    "leaves no file that no record names, and no record without its files, %s any step",
    async (_, isAfter) => {
      let deaths = 0;
      for (let at = 1; ; at += 1) {
        const { end, stored, named, again } = await aftermath(at, isAfter);
        expect({ at, stored }).toEqual({ at, stored: named });
        expect({ at, again }).toEqual({ at, again: 201 });
        if (end === "done") break;
        deaths += 1;
      }
      expect(deaths).toBeGreaterThan(30);
    },
  );
});

describe("a storage that stores the record of an upload, and then does not say so", () => {
  it("does not lose the files that the record names", async () => {
    const [storage, files] = [memoryStorage(), memoryFiles()];
    let isSilent = false;
    const silent: ContentStorage = {
      ...storage,
      content(context) {
        const store = storage.content(context);
        return {
          ...store,
          async commit(writes, basis) {
            const answer = await store.commit(writes, basis);
            if (!isSilent || !writes.some(({ key }) => key.startsWith("post/"))) return answer;
            isSilent = false;
            throw new PostbellError("storage_unavailable", "The connection is lost.");
          },
        };
      },
    };
    const site = contentSite({ storage: silent, files, images: sharpImages() });
    await callsOf(site)("GET /media");
    isSilent = true;
    expect(await upload(site, "heart.png")).toMatchObject({ status: 503 });
    expect(await namedBy(site)).toHaveLength(3);
    expect(await namesOf(files)).toEqual(await namedBy(site));
  });
});

describe("a process that stands still for hours between storing a file and its record", () => {
  it("stores no record of what another one has swept meanwhile", async () => {
    const clock = manualClock(Date.UTC(2026, 10, 1));
    const [storage, files] = [memoryStorage(), memoryFiles()];
    const other = contentSite({ storage, files, clock });
    await other.start();
    let isStill = false;
    const slow: ContentStorage = {
      ...storage,
      content(context) {
        const store = storage.content(context);
        return {
          ...store,
          async commit(writes, basis) {
            if (isStill && writes.some(({ key }) => key.startsWith("post/"))) {
              isStill = false;
              // No longer than a call may take by the clock of its own process, which stands still
              // too.
              await clock.advance(3 * HOUR);
            }
            return store.commit(writes, basis);
          },
        };
      },
    };
    const site = contentSite({ storage: slow, files });
    await callsOf(site)("GET /media");
    isStill = true;
    expect(await upload(site, "heart.png")).toMatchObject({ status: 503 });
    await other.stop();
    expect(await namedBy(other)).toEqual([]);
    expect(await namesOf(files)).toEqual([]);
  });
});

describe("a file that the host put among the uploads", () => {
  it("is never removed, and its name never given to another", async () => {
    const clock = manualClock(Date.UTC(2026, 10, 1));
    const files = memoryFiles();
    const staged = await files.stage(
      (async function* () {
        yield photo;
      })(),
    );
    await staged.publish("2026/11/heart.png");
    const site = contentSite({ files, clock });
    await site.start();
    const { body } = await upload(site, "heart.png");
    await clock.advance(3 * HOUR);
    await site.stop();
    expect(body.source_url).toMatch(/heart-1\.png$/);
    expect(await namesOf(files)).toEqual(["2026/11/heart-1.png", "2026/11/heart.png"]);
  });
});
