/** Renders posts: their fields in one context and their links, from a cache where possible. */

import { LRUCache } from "lru-cache";
import type { Context, Json } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import type { Callers } from "../callers.js";
import { listAncestors } from "../query/row.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post, PostColumns, PostType } from "../records/records.js";
import { RenderBudget } from "../render-budget.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { createItem, type FieldSelection } from "../rest/serialise.js";
import type { Item, RestRequest } from "../rest/types.js";
import type { Site } from "../site.js";
import { listImageIds } from "../text/markup.js";
import type { Users } from "../users/users.js";
import type { FieldView } from "./post-field.js";
import { type AllowedOperations, listActions, listPostLinks, mayReadFeatured } from "./post-links.js";
import type { LinkView, PostTypeHandler, PostTypes } from "./post-type-handler.js";

export interface RenderPostRequest {
  context: Context;
  caller: Caller;
  url: (path: string) => string;
  /** True if the client gave the password of this post. */
  isUnlocked?: boolean | undefined;
  excerptLength?: number | undefined;
  /** True for the response to a write. It is not cached: its client has it, and few others ask. */
  isWritten?: boolean | undefined;
  /**
   * The fields that the response needs. Default: all. A selection without costly fields renders
   * only these fields, and the item is not cached.
   */
  selection?: FieldSelection | undefined;
  /** Shared by the posts of one response. Default: that of one post. */
  budget?: RenderBudget | undefined;
}

export interface PostRenderer {
  render: (post: Post, request: RenderPostRequest) => Promise<Item>;
  /** Returns the item from the cache alone, without reading a record. */
  getCached: (id: number, request: RenderPostRequest) => Item | undefined;
}

const DEFAULT_EXCERPT_WORDS = 55;

/** Reads the argument `excerpt_length`, in words; `undefined` without it. */
export const readExcerptLength = ({ excerpt_length: words }: RestRequest["values"]): number | undefined =>
  typeof words === "number" ? words : undefined;

/** Returns `undefined` if every field is rendered: only whole items are cached. */
function selectPart({ selection }: RenderPostRequest, type: PostTypeHandler): FieldSelection | undefined {
  if (selection === undefined) return undefined;
  return type.costlyFields.some((name) => selection.has(name)) ? undefined : selection;
}

async function renderPostFields(
  { shownFields }: PostTypeHandler,
  view: FieldView,
  { context, part }: { context: Context; part: FieldSelection | undefined },
): Promise<{ [name: string]: Json }> {
  const fields: { [name: string]: Json } = {};
  for (const { name, field, show } of shownFields[context]) {
    if (part !== undefined && !part.has(name)) continue;
    const value = await field.read(view);
    if (value !== undefined) fields[name] = show(value);
  }
  return fields;
}

export function createPostRenderer({
  repository,
  postTypes,
  site,
  users,
  callers: { anonymous },
  namespace,
  cacheShare,
}: {
  repository: ContentRepository;
  postTypes: PostTypes;
  site: Site;
  users: Users;
  /** Only an item whose links everybody may see is cached. */
  callers: Callers;
  /** `core/v2` */
  namespace: string;
  /** A quarter of the cache, in bytes. Rendered items take half. */
  cacheShare: number;
}): PostRenderer {
  const { index } = repository;
  const stamp = (): number => repository.stamp() + users.stamp();
  const cache = createRenderedPosts({ index, site, maxBytes: Math.max(cacheShare * 2, 1), stamp });

  /** Like in WordPress, the links tell editors which methods they may use on an item. */
  const listMethods = (post: PostColumns | undefined, caller: Caller): string[] => {
    if (post === undefined || caller.id === 0) return ["GET"];
    const canEdit = caller.may("edit", post);
    const canDelete = caller.may("delete", post);
    return ["GET", ...(canEdit ? ["POST", "PUT", "PATCH"] : []), ...(canDelete ? ["DELETE"] : [])];
  };

  /** By caller: a list asks for each of its items. */
  const knownActions = new WeakMap<Caller, Map<PostType, string[]>>();

  const listActionsOnce = (type: PostType, caller: Caller): string[] => {
    const byType = knownActions.get(caller) ?? new Map<PostType, string[]>();
    knownActions.set(caller, byType);
    const actions = byType.get(type) ?? listActions(postTypes.get(type), caller);
    byType.set(type, actions);
    return actions;
  };

  const listAllowed = (
    { type }: PostColumns,
    stored: PostColumns | undefined,
    { context, caller }: RenderPostRequest,
  ): Omit<AllowedOperations, "canReadFeatured"> => ({
    methods: listMethods(stored, caller),
    actions: context === "edit" ? listActionsOnce(type, caller) : [],
  });

  /** Returns `undefined` for an item that only this caller can use, or that is rarely requested. */
  function toCacheKey(id: number, request: RenderPostRequest): string | undefined {
    const { context, isUnlocked, isWritten, excerptLength, url } = request;
    const stored = index.post(id);
    if (stored === undefined || isUnlocked || isWritten || excerptLength !== undefined) return undefined;
    const { methods, actions } = listAllowed(stored, stored, request);
    const view = `${context} ${methods.length} ${actions.join()} ${site.frontPage() === id} ${site.hasSmilies()}`;
    return `${repository.loads()} ${id} ${view} ${url("")}`;
  }

  function getCached(id: number, request: RenderPostRequest): Item | undefined {
    const key = toCacheKey(id, request);
    return key === undefined ? undefined : cache.get(key);
  }

  const toView = (
    post: Post,
    { context, isUnlocked, excerptLength, budget }: RenderPostRequest,
  ): FieldView => ({
    post,
    collection: postTypes.get(post.type).collection,
    context,
    site,
    index,
    isRevealed: context === "edit" || isUnlocked === true,
    excerptLength: excerptLength ?? DEFAULT_EXCERPT_WORDS,
    budget,
  });

  async function renderItem(
    post: Post,
    request: RenderPostRequest,
    part: FieldSelection | undefined,
  ): Promise<Item> {
    const { context, caller, url } = request;
    const type = postTypes.get(post.type);
    const view: LinkView = { index, to: (path) => url(`/${namespace}${path}`) };
    const links = listPostLinks(post, type, view, {
      ...listAllowed(post, index.post(post.id), request),
      canReadFeatured: mayReadFeatured(post, caller, index),
    });
    return createItem(await renderPostFields(type, toView(post, request), { context, part }), links);
  }

  /** Replaces the excerpt by one of another length, without rendering the other fields again. */
  async function withExcerpt({ fields, links }: Item, post: Post, request: RenderPostRequest): Promise<Item> {
    const { shownFields } = postTypes.get(post.type);
    const excerpt = shownFields[request.context].find(({ name }) => name === "excerpt");
    const value = await excerpt?.field.read(toView(post, request));
    return excerpt === undefined || value === undefined
      ? createItem(fields, links)
      : createItem({ ...fields, excerpt: excerpt.show(value) }, links);
  }

  async function render(post: Post, request: RenderPostRequest): Promise<Item> {
    const { excerptLength, selection, ...plain } = request;
    const isCut = excerptLength !== undefined && selection?.has("excerpt") !== false;
    if (isCut) return withExcerpt(await render(post, { ...plain, selection }), post, request);
    const cached = getCached(post.id, request);
    if (cached !== undefined) return cached;
    const type = postTypes.get(post.type);
    const part = selectPart(request, type);
    const isShared = part === undefined && mayReadFeatured(post, anonymous, index);
    const key = isShared ? toCacheKey(post.id, request) : undefined;
    // If the record changed since it was read, the item must not be cached under the new version.
    const isCurrent = post.version === index.post(post.id)?.version;
    // Those of before: other requests may change records while this one renders.
    const versions = key !== undefined && isCurrent ? cache.readVersions(post, type) : undefined;
    const { budget = new RenderBudget() } = request;
    const { isUntouched, refused } = budget;
    const rendering = (): Promise<Item> => renderItem(post, { ...request, budget }, part);
    if (key === undefined || versions === undefined) return rendering();
    // With a whole budget, every response would show the same.
    const isWhole = (): boolean => isUntouched || budget.refused === refused;
    return cache.shareRendering(key, { versions, isWhole }, rendering);
  }

  return { render, getCached };
}

/** The versions of records by their keys. */
type Versions = Map<string, number | undefined>;

interface RenderedPost {
  item: Item;
  /** Of the records whose fields went into the item. */
  versions: Versions;
}

interface RenderedPosts {
  get: (key: string) => Item | undefined;
  /** Returns the versions of the records that an item depends on. Call it before rendering. */
  readVersions: (post: Post, type: PostTypeHandler) => Versions;
  /**
   * Renders an item and keeps it. Requests that arrive meanwhile get the same item, unless a record
   * that it depends on has changed, or the budget of its request has left something out.
   */
  shareRendering: (key: string, state: RenderingState, render: () => Promise<Item>) => Promise<Item>;
}

interface RenderingState {
  versions: Versions;
  /** Asked after the rendering. */
  isWhole: () => boolean;
}

/** Bytes that an entry takes beside its item. */
const OVERHEAD_BYTES = 200;

/** Stands for all records of the site: contents that show other records depend on it. */
const WHOLE_SITE = "site";

function createRenderedPosts({
  index,
  site,
  maxBytes,
  stamp,
}: {
  index: SiteIndex;
  site: Site;
  maxBytes: number;
  stamp: () => number;
}): RenderedPosts {
  const versionOf = (record: string): number => (record === WHOLE_SITE ? stamp() : index.version(record));
  const cache = new LRUCache<string, RenderedPost>({
    maxSize: maxBytes,
    sizeCalculation: ({ item }) => OVERHEAD_BYTES + item.bytes().length,
  });
  const inProgress = new Map<string, RenderingState & { item: Promise<Item> }>();
  const areCurrent = (versions: Versions): boolean => {
    for (const [record, version] of versions) {
      if (versionOf(record) !== version) return false;
    }
    return true;
  };
  return {
    get(key) {
      const found = cache.get(key);
      return found !== undefined && areCurrent(found.versions) ? found.item : undefined;
    },
    readVersions(post, type) {
      const records = listDependencies(post, type, index);
      const all = site.showsOthers(post) ? [...records, WHOLE_SITE] : records;
      return new Map(all.map((record) => [record, versionOf(record)]));
    },
    async shareRendering(key, { versions, isWhole }, render) {
      const other = inProgress.get(key);
      if (other !== undefined && areCurrent(other.versions)) {
        const shared = await other.item;
        return other.isWhole() ? shared : render();
      }
      const entry = { item: render(), versions, isWhole };
      inProgress.set(key, entry);
      try {
        const item = await entry.item;
        if (isWhole()) cache.set(key, { item, versions });
        return item;
      } finally {
        if (inProgress.get(key) === entry) inProgress.delete(key);
      }
    },
  };
}

/** Keys of the post and of the records that its addresses and classes are made of. */
function listDependencies(post: Post, type: PostTypeHandler, index: SiteIndex): string[] {
  return [
    `post/${post.id}`,
    ...listAncestors(post, index).map((id) => `post/${id}`),
    ...type.collection.taxonomies.flatMap(({ taxonomy }) =>
      [...(post.terms[taxonomy] ?? []), ...index.termsOf(post, taxonomy)].map((id) => `term/${id}`),
    ),
    ...(post.featuredMedia > 0 ? listMediaRecords(post.featuredMedia, index) : []),
    ...listImageIds(post.content).flatMap((id) => listMediaRecords(id, index)),
    ...(type.listDependencies?.(post, index) ?? []),
  ];
}

/** The post that media belong to decides who may read them. */
const listMediaRecords = (id: number, index: SiteIndex): string[] => {
  const { parent = 0 } = index.post(id) ?? {};
  return [`post/${id}`, ...(parent > 0 ? [`post/${parent}`] : [])];
};
