import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createAuthorization } from "../../../src/content/auth/caller.js";
import { readRoles } from "../../../src/content/auth/roles.js";
import { builtInModel } from "../../../src/content/declared-types.js";
import { createPostTypes } from "../../../src/content/posts/post-types.js";
import { createRevisionKeeper } from "../../../src/content/posts/revisions/keep-revisions.js";
import { createRestoreRevision } from "../../../src/content/posts/revisions/restore-revision.js";
import {
  selectCandidates,
  sortEntries,
  toLoadedEntry,
  toRevisionPage,
  toRevisionQuery,
} from "../../../src/content/posts/revisions/revision-list.js";
import type { ContentChanged } from "../../../src/content/records/record-changes.js";
import type { Revision } from "../../../src/content/records/records.js";
import { createContentRepository } from "../../../src/content/repository/content-repository.js";
import { RestError } from "../../../src/content/rest/error.js";
import type { ContentResponse } from "../../../src/content/service.js";
import { createSite } from "../../../src/content/site.js";
import { createSiteZone } from "../../../src/content/text/dates.js";
import { silentLogger } from "../../../src/core/logger.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { contentSite, idOf, type Role } from "../../support/content-site.js";

type Site = ReturnType<typeof contentSite>;
type Body = { readonly [name: string]: unknown };
type Saved = Body & {
  readonly id: number;
  readonly slug: string;
  readonly title: { readonly raw: string; readonly rendered: string };
  readonly content: { readonly raw: string; readonly rendered: string };
};

const NOON = Date.UTC(2026, 10, 21, 12);
const MINUTE_MS = 60_000;

const send = (
  site: Site,
  as: Role | null,
  method: string,
  path: string,
  more: object = {},
): Promise<ContentResponse> =>
  site.request({ method, path: `/core/v2${path}`, as: as === null ? null : idOf(as), ...more });

/** Returns the body of a successful response. */
async function expectSuccess<T = Saved>(response: Promise<ContentResponse>): Promise<T> {
  const { status, body } = await response;
  expect([200, 201]).toContain(status);
  return body as T;
}

const toStatusAndCode = ({ status, body }: ContentResponse): readonly unknown[] => [
  status,
  (body as Body)["code"],
];

const write = (site: Site, as: Role, path: string, body: Body): Promise<Saved> =>
  expectSuccess(send(site, as, "POST", path, { body }));

const publish = (site: Site, as: Role, fields: Body = {}): Promise<Saved> =>
  write(site, as, "/posts", { title: "Hearts", content: "one", status: "publish", ...fields });

const listRevisions = (site: Site, id: number, query: Body = {}): Promise<readonly Saved[]> =>
  expectSuccess(
    send(site, "administrator", "GET", `/posts/${id}/revisions`, { query: { context: "edit", ...query } }),
  );

const listContents = (saved: readonly Saved[]): readonly string[] => saved.map(({ content }) => content.raw);

const listAutosaves = (site: Site, id: number): Promise<readonly Saved[]> =>
  expectSuccess(send(site, "administrator", "GET", `/posts/${id}/autosaves`, { query: { context: "edit" } }));

/** Creates a post and saves it with each of `contents` in turn. */
async function saveEach(site: Site, contents: readonly string[]): Promise<Saved> {
  const post = await publish(site, "editor", { content: "as created" });
  for (const content of contents) await write(site, "editor", `/posts/${post.id}`, { content });
  return post;
}

/** True if the storage has the revision: read below another post, it causes an error of its own. */
async function isStored(site: Site, revision: number): Promise<boolean> {
  const other = await publish(site, "administrator");
  const response = await send(site, "administrator", "GET", `/posts/${other.id}/revisions/${revision}`);
  expect(response.status).toBe(404);
  return (response.body as Body)["code"] === "rest_revision_parent_id_mismatch";
}

describe("the revisions of a post", () => {
  it("are limited in number: the oldest are removed", async () => {
    const site = contentSite({ limits: { revisions: 3 } });
    const post = await saveEach(site, ["a", "b"]);
    const first = (await listRevisions(site, post.id)).at(-1)?.id as number;
    for (const content of ["c", "d"]) await write(site, "editor", `/posts/${post.id}`, { content });
    expect(listContents(await listRevisions(site, post.id))).toEqual(["d", "c", "b"]);
    expect(await isStored(site, first)).toBe(false);
  });

  it("are not added for a change of white space alone, but for one of the footnotes", async () => {
    const site = contentSite();
    const post = await saveEach(site, ["one two\n\nthree"]);
    await write(site, "editor", `/posts/${post.id}`, { content: "  one  two\r\nthree\n" });
    expect(await listRevisions(site, post.id)).toHaveLength(1);
    await write(site, "editor", `/posts/${post.id}`, { meta: { footnotes: "See below." } });
    const [newest, oldest] = await listRevisions(site, post.id);
    expect(newest?.["meta"]).toEqual({ inline_featured_image: false, footnotes: "See below." });
    expect(oldest?.["meta"]).toEqual({ inline_featured_image: false, footnotes: "" });
  });

  it("name their authors and dates", async () => {
    const clock = manualClock(NOON);
    const site = contentSite({
      clock,
      site: { url: "http://localhost", name: "Example", timezone: "+02:00" },
    });
    const post = await publish(site, "author");
    await clock.advance(5 * MINUTE_MS);
    await write(site, "editor", `/posts/${post.id}`, { content: "two" });
    expect(await listRevisions(site, post.id)).toMatchObject([
      {
        author: idOf("editor"),
        parent: post.id,
        date: "2026-11-21T14:05:00",
        date_gmt: "2026-11-21T12:05:00",
        modified: "2026-11-21T14:05:00",
        guid: { rendered: expect.stringMatching(/^http:\/\/localhost\/\?p=\d+$/) },
      },
    ]);
  });

  it("are sanitised unless their own author may write unfiltered HTML", async () => {
    const site = contentSite();
    const post = await publish(site, "author");
    await write(site, "editor", `/posts/${post.id}`, { content: "<iframe></iframe>" });
    await write(site, "author", `/posts/${post.id}`, { content: "<iframe></iframe>plain" });
    const [byAuthor, byEditor] = await listRevisions(site, post.id);
    expect(byEditor?.content.rendered).toContain("<iframe>");
    expect(byAuthor?.content.raw).toBe("plain");
  });

  it("show an empty excerpt, although the post shows a generated one", async () => {
    const site = contentSite();
    const post = await saveEach(site, ["words"]);
    expect(await listRevisions(site, post.id)).toMatchObject([{ excerpt: { rendered: "" } }]);
  });

  it("are found by their texts, and ordered by relevance", async () => {
    const site = contentSite();
    const post = await publish(site, "editor", { title: "Plain" });
    await write(site, "editor", `/posts/${post.id}`, { title: "Plain", content: "the valve" });
    await write(site, "editor", `/posts/${post.id}`, { title: "Valve", content: "the heart" });
    await write(site, "editor", `/posts/${post.id}`, { title: "Plain", content: "nothing; Valve" });
    await write(site, "editor", `/posts/${post.id}`, { title: "Other", content: "rhythm" });
    const found = await listRevisions(site, post.id, { search: "VALVE", orderby: "relevance" });
    expect(listContents(found)).toEqual(["the heart", "nothing; Valve", "the valve"]);
  });

  it("are all on one page without per_page, and offset counts only with per_page", async () => {
    const site = contentSite();
    const post = await saveEach(site, ["a", "b", "c"]);
    expect(await listRevisions(site, post.id, { offset: 1 })).toHaveLength(3);
    expect(listContents(await listRevisions(site, post.id, { offset: 1, per_page: 1 }))).toEqual(["b"]);
  });

  it("lose a deleted one, also in the count of the post's links", async () => {
    const site = contentSite();
    const post = await saveEach(site, ["a", "b", "c"]);
    const [, b] = await listRevisions(site, post.id);
    const path = `/posts/${post.id}/revisions/${b?.id}`;
    await expectSuccess(send(site, "editor", "DELETE", path, { query: { force: true } }));
    expect(listContents(await listRevisions(site, post.id))).toEqual(["c", "a"]);
    const { _links } = await expectSuccess<{ readonly _links: Body }>(
      send(site, "editor", "GET", `/posts/${post.id}`),
    );
    expect(_links["version-history"]).toMatchObject([{ count: 2 }]);
    expect(await isStored(site, b?.id as number)).toBe(false);
  });

  it("survive an update during the deletion of one of them", async () => {
    const site = contentSite({ limits: { revisions: 2 } });
    const post = await saveEach(site, ["a", "b"]);
    const [, oldest] = await listRevisions(site, post.id);
    const path = `/posts/${post.id}/revisions/${oldest?.id}`;
    const answers = await Promise.all([
      send(site, "editor", "POST", `/posts/${post.id}`, { body: { content: "c" } }),
      send(site, "administrator", "DELETE", path, { query: { force: true } }),
    ]);
    expect(answers[0]?.status).toBe(200);
    expect([200, 404]).toContain(answers[1]?.status);
    expect(listContents(await listRevisions(site, post.id))).toEqual(["c", "b"]);
  });

  it("are hidden from the public and from users who may not edit the post", async () => {
    const site = contentSite();
    const post = await saveEach(site, ["a"]);
    const [revision] = await listRevisions(site, post.id);
    for (const path of [`/posts/${post.id}/revisions`, `/posts/${post.id}/revisions/${revision?.id}`]) {
      expect(toStatusAndCode(await send(site, null, "GET", path))).toEqual([401, "rest_cannot_read"]);
      expect(toStatusAndCode(await send(site, "contributor", "GET", path))).toEqual([
        403,
        "rest_cannot_read",
      ]);
    }
  });

  it("cannot be removed by a user who may delete the post but not edit it", async () => {
    const site = contentSite({
      roles: { cleaner: { capabilities: ["read", "delete_others_posts", "delete_published_posts"] } },
      users: [
        { id: idOf("administrator"), slug: "ann", name: "Ann", roles: ["administrator"] },
        { id: idOf("editor"), slug: "ed", name: "Ed", roles: ["editor"] },
        { id: idOf("subscriber"), slug: "cleo", name: "Cleo", roles: ["cleaner"] },
      ],
    });
    const post = await saveEach(site, ["secret"]);
    const [revision] = await listRevisions(site, post.id);
    const path = `/posts/${post.id}/revisions/${revision?.id}`;
    const response = await send(site, "subscriber", "DELETE", path, { query: { force: true } });
    expect(toStatusAndCode(response)).toEqual([403, "rest_cannot_read"]);
    expect(await listRevisions(site, post.id)).toHaveLength(1);
  });
});

describe("the order and pages of a list of revisions", () => {
  const revision = fc.record<Revision>({
    id: fc.integer({ min: 1, max: 30 }),
    parent: fc.constant(1),
    author: fc.constant(1),
    date: fc.integer({ min: 0, max: 5 }),
    dateGmt: fc.constant(0),
    title: fc.constantFrom("Heart", "heart", "Valve", ""),
    content: fc.constantFrom("heart", "valve and heart", ""),
    excerpt: fc.constant(""),
    isTrusted: fc.constant(true),
    meta: fc.constant({}),
  });
  const revisions = fc.uniqueArray(revision, { selector: ({ id }) => id, maxLength: 12 });
  const ids = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 5 });
  const asked = fc.record({
    orderby: fc.constantFrom("date", "id", "include", "relevance", "slug", "include_slugs", "title"),
    order: fc.constantFrom("asc", "desc"),
    search: fc.constantFrom("heart", "valve -heart", " "),
    include: ids,
    exclude: ids,
  });
  const list = (stored: readonly Revision[], values: Parameters<typeof toRevisionQuery>[0]) => {
    const query = toRevisionQuery(values);
    const wanted = selectCandidates(
      stored.map(({ id }) => id),
      query,
    );
    const entries = stored
      .filter(({ id }) => wanted.includes(id))
      .map((one) => toLoadedEntry(one, one.id % 3 === 0, query));
    return sortEntries(
      entries.filter((entry) => entry !== undefined),
      query,
    );
  };

  it("does not depend on how revisions are stored, and the pages together are the whole list", () => {
    fc.assert(
      fc.property(revisions, asked, fc.integer({ min: 1, max: 5 }), (stored, values, perPage) => {
        const whole = list(stored, values);
        expect(list([...stored].reverse(), values)).toEqual(whole);
        const pages: number[] = [];
        for (let page = 1; page <= Math.ceil(whole.length / perPage); page += 1) {
          const { start, end } = toRevisionPage({ page, per_page: perPage }, whole.length);
          pages.push(...whole.slice(start, end));
        }
        expect(pages).toEqual(whole);
      }),
    );
  });

  it("is reversed by the other direction, if no two entries are equal", () => {
    fc.assert(
      fc.property(revisions, fc.constantFrom("date", "id"), (stored, orderby) => {
        const descending = list(stored, { orderby, order: "desc" });
        expect(list(stored, { orderby, order: "asc" })).toEqual([...descending].reverse());
      }),
    );
  });

  it("obeys include if exclude is given too", () => {
    expect(selectCandidates([1, 2, 3], toRevisionQuery({ include: [2, 3], exclude: [3] }))).toEqual([2, 3]);
  });
});

describe("an autosave", () => {
  it("exists once per user, also if two save at the same time, and is listed newest first", async () => {
    const clock = manualClock(NOON);
    const site = contentSite({ clock });
    const post = await publish(site, "author");
    const [first, second] = await Promise.all([
      write(site, "editor", `/posts/${post.id}/autosaves`, { content: "by the editor" }),
      write(site, "author", `/posts/${post.id}/autosaves`, { content: "by the author" }),
    ]);
    await clock.advance(MINUTE_MS);
    const again = await write(site, "author", `/posts/${post.id}/autosaves`, { content: "later" });
    expect(again.id).toBe(second?.id);
    const listed = await listAutosaves(site, post.id);
    expect(listed.map(({ id }) => id)).toEqual([second?.id, first?.id]);
    expect(listContents(listed)).toEqual(["later", "by the editor"]);
    await clock.advance(MINUTE_MS);
    await write(site, "editor", `/posts/${post.id}/autosaves`, { content: "last" });
    expect(listContents(await listAutosaves(site, post.id))).toEqual(["last", "later"]);
  });

  it("is listed among the revisions by date, and does not count towards their limit", async () => {
    const clock = manualClock(NOON);
    const site = contentSite({ clock, limits: { revisions: 2 } });
    const post = await publish(site, "editor");
    const saved = await write(site, "editor", `/posts/${post.id}/autosaves`, { content: "unsaved" });
    for (const content of ["a", "b", "c"]) {
      await clock.advance(MINUTE_MS);
      await write(site, "editor", `/posts/${post.id}`, { content });
    }
    expect(listContents(await listRevisions(site, post.id))).toEqual(["c", "b", "unsaved"]);
    await clock.advance(MINUTE_MS);
    await write(site, "editor", `/posts/${post.id}/autosaves`, { content: "unsaved again" });
    const listed = await listRevisions(site, post.id);
    expect(listContents(listed)).toEqual(["unsaved again", "c", "b"]);
    expect(listed[0]).toMatchObject({ id: saved.id, slug: `${post.id}-autosave-v1` });
  });

  it("does not prevent an update from leaving a revision with the same text", async () => {
    const site = contentSite();
    const post = await publish(site, "editor");
    await write(site, "editor", `/posts/${post.id}/autosaves`, { content: "two" });
    await write(site, "editor", `/posts/${post.id}`, { content: "two" });
    expect(new Set((await listRevisions(site, post.id)).map(({ slug }) => slug))).toEqual(
      new Set([`${post.id}-autosave-v1`, `${post.id}-revision-v1`]),
    );
  });

  it("changes neither the post nor public responses, and is not reported to the host", async () => {
    const changes: ContentChanged[] = [];
    const site = contentSite({ changed: (change) => changes.push(change) });
    const post = await publish(site, "editor");
    const before = await send(site, null, "GET", `/posts/${post.id}`);
    await write(site, "administrator", `/posts/${post.id}/autosaves`, { title: "Other", status: "draft" });
    // The links count it.
    const fieldsOf = ({ body }: ContentResponse) => ({ ...(body as Body), _links: undefined });
    expect(fieldsOf(await send(site, null, "GET", `/posts/${post.id}`))).toEqual(fieldsOf(before));
    expect(changes).toHaveLength(1);
  });

  it("retains texts that the next save leaves out", async () => {
    const site = contentSite();
    const post = await publish(site, "author");
    await write(site, "editor", `/posts/${post.id}/autosaves`, { title: "New", content: "new" });
    const second = await write(site, "editor", `/posts/${post.id}/autosaves`, { content: "newer" });
    expect(second).toMatchObject({ title: { raw: "New" }, content: { raw: "newer" } });
  });

  it("is not changed by texts that equal those of the post", async () => {
    const clock = manualClock(NOON);
    const site = contentSite({ clock });
    const post = await publish(site, "author");
    const kept = await write(site, "editor", `/posts/${post.id}/autosaves`, { content: "two", excerpt: "x" });
    await clock.advance(MINUTE_MS);
    const again = await write(site, "editor", `/posts/${post.id}/autosaves`, {
      title: "Hearts",
      content: "one ",
      meta: { footnotes: "" },
    });
    expect(again).toEqual(kept);
    const changed = await write(site, "editor", `/posts/${post.id}/autosaves`, { meta: { footnotes: "x" } });
    expect(changed).toMatchObject({ meta: { footnotes: "x" }, date: "2026-11-21T12:01:00" });
  });

  it("is sanitised if its user may not write unfiltered HTML", async () => {
    const site = contentSite();
    const post = await publish(site, "author");
    const path = `/posts/${post.id}/autosaves`;
    const content = "<script>alert(1)</script><p onclick='x'>safe</p>";
    expect((await write(site, "author", path, { content })).content.raw).not.toMatch(/script|onclick/);
    expect((await write(site, "editor", path, { content })).content.raw).toBe(content);
  });

  it("is refused if an update would be: status, author, date, permission", async () => {
    const site = contentSite();
    const post = await publish(site, "contributor", { status: "draft" });
    const path = `/posts/${post.id}/autosaves`;
    const refused = async (as: Role | null, body: Body) =>
      toStatusAndCode(await send(site, as, "POST", path, { body }));
    expect(await refused("contributor", { status: "publish" })).toEqual([403, "rest_cannot_publish"]);
    expect(await refused("editor", { author: 999 })).toEqual([400, "rest_invalid_author"]);
    expect(await refused("editor", { date: "never" })).toEqual([400, "rest_invalid_param"]);
    expect(await refused("author", { title: "Mine" })).toEqual([403, "rest_cannot_edit"]);
    expect(await refused(null, { title: "Mine" })).toEqual([401, "rest_cannot_edit"]);
    expect(await listAutosaves(site, post.id)).toEqual([]);
  });

  it("may be empty", async () => {
    const site = contentSite();
    const post = await publish(site, "editor", { content: "" });
    const saved = await write(site, "administrator", `/posts/${post.id}/autosaves`, { title: "" });
    expect(saved.title.raw).toBe("");
  });

  it("is read by its own id, not by that of a revision or any other", async () => {
    const site = contentSite();
    const post = await saveEach(site, ["a"]);
    const [revision] = await listRevisions(site, post.id);
    const saved = await write(site, "editor", `/posts/${post.id}/autosaves`, { content: "b" });
    const path = `/posts/${post.id}/autosaves`;
    expect((await expectSuccess(send(site, "editor", "GET", `${path}/${saved.id}`))).id).toBe(saved.id);
    for (const id of [revision?.id, post.id, 0]) {
      const response = await send(site, "editor", "GET", `${path}/${id}`);
      expect(toStatusAndCode(response)).toEqual([404, "rest_post_no_autosave"]);
    }
  });

  it("is deleted like a revision, and the next save creates a new one", async () => {
    const site = contentSite();
    const post = await publish(site, "author");
    const path = `/posts/${post.id}/autosaves`;
    const saved = await write(site, "editor", path, { content: "two" });
    const query = { force: true };
    await expectSuccess(send(site, "editor", "DELETE", `/posts/${post.id}/revisions/${saved.id}`, { query }));
    expect(await listAutosaves(site, post.id)).toEqual([]);
    expect((await write(site, "editor", path, { content: "three" })).id).not.toBe(saved.id);
  });

  it("has a preview link for editors alone", async () => {
    const site = contentSite();
    const page = await write(site, "editor", "/pages", { title: "Über uns", status: "publish" });
    const saved = await write(site, "administrator", `/pages/${page.id}/autosaves`, { title: "Us" });
    expect(saved["preview_link"]).toBe(`http://localhost/uber-uns/?preview_id=${page.id}&preview=true`);
    expect(saved["guid"]).toMatchObject({ rendered: `http://localhost/?p=${saved.id}` });
    const viewed = await expectSuccess(
      send(site, "editor", "GET", `/pages/${page.id}/autosaves/${saved.id}`),
    );
    expect(viewed).not.toHaveProperty("preview_link");
    const block = await write(site, "editor", "/blocks", { title: "Box", content: "x", status: "publish" });
    const inBlock = await write(site, "editor", `/blocks/${block.id}/autosaves`, { content: "y" });
    expect(inBlock["preview_link"]).toBe("");
  });
});

describe("an autosave of a draft", () => {
  it("by its author changes the draft itself, without a revision, and is reported to the host", async () => {
    const changes: ContentChanged[] = [];
    const site = contentSite({ changed: (change) => changes.push(change) });
    const post = await publish(site, "author", { status: "draft" });
    const body = { content: "two", sticky: false, format: "aside", meta: { footnotes: "x" } };
    const saved = await write(site, "author", `/posts/${post.id}/autosaves`, body);
    expect(saved).toMatchObject({ id: post.id, parent: 0, slug: "", content: { raw: "two" } });
    expect(saved["preview_link"]).toBe(`http://localhost/?p=${post.id}&preview=true`);
    expect(changes.at(-1)).toEqual({
      action: "updated",
      collection: "posts",
      id: post.id,
      status: { before: "draft", after: "draft" },
    });
    const query = { context: "edit" };
    expect(await expectSuccess(send(site, "author", "GET", `/posts/${post.id}`, { query }))).toMatchObject({
      content: { raw: "two" },
      format: "standard",
      meta: { footnotes: "" },
    });
    expect(await listRevisions(site, post.id)).toEqual([]);
  });

  it("by another user is stored beside it", async () => {
    const site = contentSite();
    const post = await publish(site, "author", { status: "draft" });
    const saved = await write(site, "editor", `/posts/${post.id}/autosaves`, { content: "two" });
    expect(saved).toMatchObject({ parent: post.id, slug: `${post.id}-autosave-v1` });
    const query = { context: "edit" };
    const draft = await expectSuccess(send(site, "author", "GET", `/posts/${post.id}`, { query }));
    expect(draft.content.raw).toBe("one");
  });
});

describe("removing also removes the revisions and autosaves of", () => {
  it("a post and the menu items that point at it", async () => {
    const site = contentSite();
    const post = await saveEach(site, ["a"]);
    const item = await write(site, "administrator", "/menu-items", {
      type: "post_type",
      object: "post",
      object_id: post.id,
      status: "publish",
    });
    const saved = [
      ...(await listRevisions(site, post.id)),
      await write(site, "administrator", `/posts/${post.id}/autosaves`, { content: "b" }),
      await write(site, "administrator", `/posts/${post.id}/autosaves`, { content: "c" }),
      await write(site, "administrator", `/menu-items/${item.id}/autosaves`, { title: "Other" }),
    ];
    for (const { id } of saved) expect(await isStored(site, id)).toBe(true);
    await expectSuccess(
      send(site, "administrator", "DELETE", `/posts/${post.id}`, { query: { force: true } }),
    );
    for (const { id } of saved) expect(await isStored(site, id)).toBe(false);
  });

  it("a menu and its items", async () => {
    const site = contentSite();
    const menu = await write(site, "administrator", "/menus", { name: "Top" });
    const item = await write(site, "administrator", "/menu-items", {
      title: "Home",
      url: "https://example.org/",
      menus: menu.id,
      status: "publish",
    });
    const saved = await write(site, "administrator", `/menu-items/${item.id}/autosaves`, { title: "Start" });
    expect(await isStored(site, saved.id)).toBe(true);
    await expectSuccess(
      send(site, "administrator", "DELETE", `/menus/${menu.id}`, { query: { force: true } }),
    );
    expect(await isStored(site, saved.id)).toBe(false);
  });
});

describe("restoring a revision", () => {
  function restorable() {
    const clock = manualClock(NOON);
    const storage = memoryStorage();
    const site = contentSite({ clock, storage });
    const changes: ContentChanged[] = [];
    const repository = createContentRepository({
      model: builtInModel,
      store: storage.content({ clock, logger: silentLogger }),
      changed: (change) => changes.push(change),
      cacheCharacters: 1_000_000,
    });
    const restore = createRestoreRevision({
      repository,
      postTypes: createPostTypes({}, builtInModel),
      site: createSite({ url: "http://localhost", name: "Example" }, createSiteZone("UTC"), undefined),
      keepRevision: createRevisionKeeper({ repository, maxRevisions: 100 }),
    });
    const callerOf = createAuthorization({ roles: readRoles(), model: builtInModel });
    const as = (role: Role) => callerOf({ id: idOf(role), slug: role, name: role, roles: [role] });
    return { site, restore, as, changes };
  }

  it("sets the texts and footnotes of the post, leaves a new revision, and is reported to the host", async () => {
    const { site, restore, as, changes } = restorable();
    const post = await publish(site, "editor");
    await write(site, "editor", `/posts/${post.id}`, {
      title: "A",
      content: "a",
      excerpt: "",
      meta: { footnotes: "1" },
    });
    await write(site, "editor", `/posts/${post.id}`, {
      title: "B",
      content: "b",
      excerpt: "e",
      meta: { footnotes: "" },
    });
    const a = (await listRevisions(site, post.id)).at(-1) as Saved;
    await restore(post.id, a.id, as("editor"));
    const query = { context: "edit" };
    expect(await expectSuccess(send(site, "editor", "GET", `/posts/${post.id}`, { query }))).toMatchObject({
      title: { raw: "A" },
      content: { raw: "a" },
      excerpt: { raw: "" },
      meta: { footnotes: "1" },
      status: "publish",
    });
    expect(listContents(await listRevisions(site, post.id))).toEqual(["a", "b", "a"]);
    expect(changes).toMatchObject([{ action: "updated", collection: "posts", id: post.id }]);
  });

  it("sanitises the texts for a user without unfiltered HTML", async () => {
    const { site, restore, as } = restorable();
    const post = await publish(site, "author");
    await write(site, "editor", `/posts/${post.id}`, { content: "<iframe></iframe>a" });
    await write(site, "editor", `/posts/${post.id}`, { content: "b" });
    const a = (await listRevisions(site, post.id)).at(-1) as Saved;
    await restore(post.id, a.id, as("author"));
    expect(listContents(await listRevisions(site, post.id))[0]).toBe("a");
  });

  it("changes nothing for a user who may not edit the post, or with a revision of another post", async () => {
    const { site, restore, as, changes } = restorable();
    const post = await saveEach(site, ["a", "b"]);
    const other = await saveEach(site, ["x"]);
    const a = (await listRevisions(site, post.id)).at(-1) as Saved;
    const code = (attempt: Promise<void>) =>
      attempt.then(
        () => undefined,
        (error: unknown) => error instanceof RestError && error.code,
      );
    expect(await code(restore(post.id, a.id, as("author")))).toBe("rest_cannot_edit");
    expect(await code(restore(other.id, a.id, as("editor")))).toBe("rest_revision_parent_id_mismatch");
    expect(await code(restore(post.id, 999_999, as("editor")))).toBe("rest_post_invalid_id");
    expect(await code(restore(999_999, a.id, as("editor")))).toBe("rest_post_invalid_id");
    expect(listContents(await listRevisions(site, post.id))).toEqual(["b", "a"]);
    expect(changes).toEqual([]);
  });
});
