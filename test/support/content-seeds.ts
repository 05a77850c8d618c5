/**
 * Puts posts of any type, status and author straight into a storage, past every rule of the
 * service; and looks whether they are as they were.
 */

import { randomUUID } from "node:crypto";
import { builtInModel } from "../../src/content/declared-types.js";
import { createPost } from "../../src/content/posts/write-post.js";
import { getCollection } from "../../src/content/records/content-model.js";
import type { Post, PostType } from "../../src/content/records/records.js";
import { createContentRepository } from "../../src/content/repository/content-repository.js";
import { createOrphanFileJournal } from "../../src/content/repository/orphan-file-journal.js";
import { createSite } from "../../src/content/site.js";
import type { ContentStorage } from "../../src/content/store.js";
import { createSiteZone } from "../../src/content/text/dates.js";
import { silentLogger } from "../../src/core/logger.js";
import { manualClock } from "../../src/testing/manual-clock.js";

export interface Seeds {
  /** Gives the id. */
  readonly post: (type: PostType, given?: Partial<Post>) => Promise<number>;
  /** Of a post, by somebody. Gives the id. */
  readonly revision: (post: number, author: number) => Promise<number>;
  readonly autosave: (post: number, author: number) => Promise<number>;
  /** Grows with every change of the record; 0 if the record does not exist. */
  readonly versionOf: (id: number) => Promise<number>;
}

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);

export function seedsIn(storage: ContentStorage): Seeds {
  const clock = manualClock(NOW);
  const store = storage.content({ clock, logger: silentLogger });
  const library = createContentRepository({
    store,
    model: builtInModel,
    cacheCharacters: 10_000,
    changed: () => {},
  });
  const { index, current } = library;
  const notes = createOrphanFileJournal({ store, index, current });
  const site = createSite({ url: "http://localhost", name: "" }, createSiteZone("UTC"), undefined);

  const addRevision = (of: number, author: number, isAutosave: boolean): Promise<number> =>
    library.change(async (draft) => {
      const [post] = await library.posts([of]);
      if (post === undefined) throw new Error(`There is no post ${of}.`);
      const id = await draft.newId("post");
      const { title, content, excerpt } = post;
      draft.putRevision({
        ...{ id, parent: of, author, date: NOW, dateGmt: NOW },
        ...{ title, content: `${content} once`, excerpt, isTrusted: true, meta: {} },
      });
      draft.putPost({
        ...post,
        revisions: [...post.revisions, id],
        autosaves: isAutosave ? { ...post.autosaves, [author]: id } : post.autosaves,
      });
      return id;
    });

  return {
    revision: (post, author) => addRevision(post, author, false),
    autosave: (post, author) => addRevision(post, author, true),
    async post(type, given = {}) {
      const image = `2026/01/seed-${randomUUID()}.png`;
      if (type === "attachment") await notes.add(image);
      return library.change(async (draft) => {
        const id = await draft.newId("post");
        const blank = createPost({
          collection: getCollection(builtInModel, type),
          caller: {
            user: null,
            id: 0,
            has: () => false,
            may: () => false,
            canOf: () => false,
            canEditSomething: () => false,
          },
          site,
          index: library.index,
          now: NOW,
          defaultCategory: library.defaultCategory(),
        });
        const text = `Seed ${id}`;
        draft.putPost({
          ...blank,
          id,
          dateGmt: NOW,
          title: text,
          content: text,
          slug: `seed-${id}`,
          hasPassword: Boolean(given.password),
          ...(type === "nav_menu_item" ? { menuItem: LINK } : {}),
          ...(type === "attachment"
            ? { status: "inherit", mimeType: "image/png", media: imageOf(image) }
            : {}),
          ...given,
        });
        return id;
      });
    },
    versionOf: async (id) => (await store.read([`post/${id}`]))[0]?.version ?? 0,
  };
}

const LINK: Post["menuItem"] = {
  type: "custom",
  object: "custom",
  objectId: 0,
  url: "https://example.org/",
  target: "",
  attrTitle: "",
  description: "",
  classes: [],
  xfn: [],
};

const imageOf = (name: string): Post["media"] => ({
  name,
  bytes: 1,
  altText: "",
  width: 1,
  height: 1,
  sizes: {},
});
