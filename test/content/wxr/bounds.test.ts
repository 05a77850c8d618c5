import { describe, expect, it } from "vitest";
import type { ContentStorage, ContentStore, ContentWrite } from "../../../src/content/store.js";
import { splitIntoBatches } from "../../../src/content/wxr/batches.js";
import type { ImportOptions } from "../../../src/content/wxr/options.js";
import { memoryFiles } from "../../../storage/files/index.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { contentSite } from "../../support/content-site.js";
import { type ShortItem, streamOf, WXR_END, wxrHead, wxrItem } from "../../support/wxr-file.js";

/** A storage that reports every commit. */
function watched(told: (writes: readonly ContentWrite[]) => void): ContentStorage {
  const storage = memoryStorage();
  return {
    close: () => storage.close(),
    content(context): ContentStore {
      const store = storage.content(context);
      return {
        ...store,
        commit(...given) {
          told(given[0]);
          return store.commit(...given);
        },
      };
    },
  };
}

const charactersOf = (writes: readonly ContentWrite[]): number =>
  writes.reduce((sum, { record }) => sum + (record?.body.length ?? 0) + (record?.columns?.length ?? 0), 0);

const WORDS = "word ".repeat(40_000);

describe("one commit of an import", () => {
  it("is limited in characters when references to later posts are resolved", async () => {
    let largest = 0;
    const storage = watched((writes) => {
      largest = Math.max(largest, charactersOf(writes));
    });
    function* file(): Generator<string> {
      yield wxrHead();
      for (let id = 1; id <= 60; id += 1)
        yield wxrItem({ id, content: WORDS, meta: { _thumbnail_id: "999" } });
      yield wxrItem({ id: 999, type: "attachment" });
      yield WXR_END;
    }
    const { warnings } = await contentSite({ storage }).import(streamOf(file()), { as: 1 });
    expect(warnings).toEqual([]);
    expect(largest).toBeGreaterThan(1_000_000);
    expect(largest).toBeLessThan(5_000_000);
  });

  it("is limited in characters when terms have long descriptions", async () => {
    let largest = 0;
    const storage = watched((writes) => {
      largest = Math.max(largest, charactersOf(writes));
    });
    function* file(): Generator<string> {
      yield wxrHead();
      for (let id = 1; id <= 60; id += 1) {
        yield `<wp:category><wp:category_nicename>c${id}</wp:category_nicename><wp:category_parent>last</wp:category_parent><wp:cat_name>C${id}</wp:cat_name><wp:category_description>${WORDS}</wp:category_description></wp:category>`;
      }
      yield `<wp:category><wp:category_nicename>last</wp:category_nicename><wp:cat_name>Last</wp:cat_name></wp:category>${WXR_END}`;
    }
    await contentSite({ storage }).import(streamOf(file()), { as: 1 });
    expect(largest).toBeGreaterThan(1_000_000);
    expect(largest).toBeLessThan(5_000_000);
  });

  it("follows soon after the files that it names", async () => {
    let fetched = 0;
    let most = 0;
    const storage = watched((writes) => {
      if (!writes.some(({ key }) => key.startsWith("post/"))) return;
      most = Math.max(most, fetched);
      fetched = 0;
    });
    const items = Array.from(
      { length: 100 },
      (_, n): ShortItem => ({
        ...{ id: n + 1, type: n % 4 === 0 ? "post" : "attachment" },
        attachmentUrl: `https://old.example.org/${n}.txt`,
      }),
    );
    const content = contentSite({ storage, files: memoryFiles() });
    const summary = await content.import(streamOf([wxrHead(), ...items.map(wxrItem), WXR_END]), {
      as: 1,
      files: () => {
        fetched += 1;
        return Buffer.from("text");
      },
    });
    expect(summary).toMatchObject({ warnings: [], created: 100 });
    expect(most).toBe(8);
  });
});

describe("batches", () => {
  it("are split by count and by weight, in order, and never empty", () => {
    const limits = { count: 3, weight: 10 };
    expect(splitIntoBatches([1, 1, 1, 1, 9, 2, 20, 5, 5], limits, (weight) => weight)).toEqual([
      ...[[1, 1, 1], [1, 9], [2], [20], [5, 5]],
    ]);
    expect(splitIntoBatches([], limits, () => 1)).toEqual([]);
  });
});

describe("a file that does not name its site", () => {
  const head = (link: string, title: string): string =>
    `<rss version="2.0" xmlns:content="c" xmlns:excerpt="e" xmlns:dc="d" xmlns:wp="w"><channel><title>${title}</title>${link}<wp:wxr_version>1.2</wp:wxr_version>`;
  const item = (guid: string, parent = 0, id = 1): string =>
    `<item><title>${guid}</title><guid>${guid}</guid><wp:post_id>${id}</wp:post_id><wp:post_parent>${parent}</wp:post_parent><wp:post_type>page</wp:post_type><wp:status>publish</wp:status></item>`;

  it("is identified by its link, and does not overwrite posts of another site", async () => {
    const content = contentSite();
    for (const site of ["https://a.example", "https://b.example"]) {
      const text = [head(`<link>${site}</link>`, site), item(""), WXR_END];
      expect(await content.import(streamOf(text), { as: 1 })).toMatchObject({
        created: 1,
        site: { url: site },
      });
      expect(await content.import(streamOf(text), { as: 1 })).toMatchObject({ created: 0, unchanged: 1 });
    }
  });

  it("identifies items by guid or else by their texts, and resolves their references", async () => {
    const content = contentSite();
    for (const site of ["a", "b"]) {
      const text = [head("", site), item(`${site}1`, 2), item(`${site}2`, 0, 2), item("", 0, 3), WXR_END];
      const summary = await content.import(streamOf(text), { as: 1 });
      expect(summary).toMatchObject({ created: 3, skipped: 0, warnings: [] });
      expect(await content.import(streamOf(text), { as: 1 })).toMatchObject({ created: 0, unchanged: 3 });
    }
    const { body } = await content.request({
      ...{ method: "GET", path: "/core/v2/pages", as: 1 },
      query: { orderby: "id", order: "asc" },
    });
    const pages = body as unknown as readonly { id: number; parent: number }[];
    expect(pages.map(({ parent }) => pages.findIndex(({ id }) => id === parent))).toEqual([
      1, -1, -1, 4, -1, -1,
    ]);
  });
});

describe("the signal of an import", () => {
  it.each<[string, (silent: Promise<never>) => Partial<ImportOptions>]>([
    ["the file", () => ({})],
    ["whoever gives the files of media", (silent) => ({ files: () => silent })],
    [
      "the bytes of such a file",
      (silent) => ({
        files: async function* () {
          yield await silent;
        },
      }),
    ],
  ])("stops it while it waits for %s", async (what, optionsOf) => {
    const silent = new Promise<never>(() => {});
    const stop = new AbortController();
    async function* file(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(
        wxrHead() + wxrItem({ id: 1, type: "attachment", attachmentUrl: "https://a.example/a" }),
      );
      if (what === "the file") yield await silent;
      yield Buffer.from(WXR_END);
    }
    const content = contentSite({ files: memoryFiles() });
    const run = content.import(file(), { as: 1, signal: stop.signal, ...optionsOf(silent) });
    setImmediate(() => setImmediate(() => stop.abort(new Error("enough"))));
    await expect(run).rejects.toThrow("enough");
  });

  it("keeps no listeners after a long file", async () => {
    const { signal } = new AbortController();
    let held = 0;
    let most = 0;
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    signal.addEventListener = (...given: Parameters<typeof add>) => {
      held += 1;
      most = Math.max(most, held);
      add(...given);
    };
    signal.removeEventListener = (...given: Parameters<typeof remove>) => {
      held -= 1;
      remove(...given);
    };
    const items = Array.from({ length: 300 }, (_, n) => wxrItem({ id: n + 1 }));
    await contentSite().import(streamOf([wxrHead(), ...items, WXR_END]), { as: 1, signal });
    expect(most).toBe(1);
    expect(held).toBe(0);
  });
});
