/**
 * Imports the posts of a file, a batch at a time. References to posts that come later in the file
 * are resolved at the end.
 */

import { isDeepStrictEqual } from "node:util";
import { nextTurn } from "../../core/next-turn.js";
import type { WriteContext } from "../posts/post-type-handler.js";
import type { Post } from "../records/records.js";
import type { ContentRepository, Transaction } from "../repository/content-repository.js";
import { splitIntoBatches } from "./batches.js";
import {
  type BuiltPost,
  createCandidateSelection,
  createPostBuilder,
  type ImportCandidate,
} from "./build-post.js";
import type { FileImport, ImportedMediaFile } from "./import-files.js";
import type { TermImport } from "./import-terms.js";
import type { ImportResult, ImportSummaryBuilder } from "./options.js";
import { listPostIds } from "./post-ids.js";
import {
  createPlacement,
  type ImportNote,
  isWaiting,
  listUnresolved,
  listUnresolvedWarnings,
  type PendingPost,
  type Placement,
  type ReferenceTargets,
  resolveOpen,
  resolveReferences,
  withUnresolved,
} from "./resolve-references.js";
import type { WxrItem, WxrSite } from "./types.js";

export interface PostImport {
  take: (items: WxrItem[]) => Promise<void>;
  finish: () => Promise<void>;
}

type Files = Map<string, ImportedMediaFile>;

/** Result of one candidate; `id` is the post's id on this site. */
interface StoredPost extends Partial<BuiltPost> {
  candidate: ImportCandidate;
  id: number;
  result: ImportResult;
  /** True if the record exists, and the one who imports may not change it so. */
  isForbidden?: boolean;
}

/** Files per commit. A published file must not wait long for the record that names it. */
const FILES_PER_COMMIT = 8;
/** Characters of items that are sanitised and stored before requests of the host run again. */
const CHARACTERS_PER_TURN = 32_768;

export function createPostImport(options: {
  repository: ContentRepository;
  summary: ImportSummaryBuilder;
  terms: TermImport;
  files: FileImport;
  write: { caller: WriteContext["caller"]; site: WriteContext["site"] };
  /** The site that wrote the file. */
  source: WxrSite;
  isTrusted: boolean;
  /** Returns the id of the user for a login in the file. */
  getAuthorId: (login: string) => number;
}): PostImport {
  const { repository, summary, terms, files: fileImport, write } = options;
  const { index } = repository;
  const candidates = createCandidateSelection({ ...options, model: index.model });
  const imported = createImportedPosts(repository);
  const build = createPostBuilder(options);
  let isStarted = false;

  const mayReplace = (previous: Post, status: string): boolean =>
    write.caller.has("manage_options") ||
    (write.caller.may("edit", previous) && (status !== "trash" || write.caller.may("delete", previous)));

  const beginPlacement = (transaction: Transaction): Placement =>
    createPlacement({
      index,
      site: write.site,
      expectUnchanged: (id) => transaction.expectUnchanged(`post/${id}`),
    });
  const toTargets = (getId: (identity: string) => number | undefined): ReferenceTargets => ({
    post: (id, menu) => getId(candidates.toIdentity(id, menu)),
    term: terms.findIdByFileId,
    identity: candidates.toIdentity,
  });
  const pending = createPendingPosts({
    repository,
    summary,
    beginPlacement,
    targets: toTargets(imported.getId),
    getId: imported.getId,
    mayEdit: (post) => mayReplace(post, post.status),
  });

  async function store(group: ImportCandidate[], files: Files): Promise<void> {
    const used = new Set<string>();
    try {
      let attempts = 0;
      const stored = await repository.change((transaction) => {
        // A conflict may mean that another import has stored some of these posts.
        if (attempts > 0) imported.refresh();
        attempts += 1;
        return storeIn(transaction, group, files);
      });
      for (const result of stored) {
        if (result.post !== undefined) used.add(result.candidate.identity);
        report(result);
      }
    } finally {
      const unused = [...files].filter(([identity]) => !used.has(identity));
      await Promise.all(unused.map(([, file]) => file.discard()));
    }
  }

  async function storeIn(
    transaction: Transaction,
    group: ImportCandidate[],
    files: Files,
  ): Promise<StoredPost[]> {
    const before = await imported.load(group.map(({ identity }) => identity));
    const added = group.filter(({ identity }) => !before.has(identity));
    const firstId = added.length === 0 ? 0 : await transaction.newIds("post", added.length);
    const newIds = new Map(added.map(({ identity }, place) => [identity, firstId + place]));
    const targets = toTargets((identity) => newIds.get(identity) ?? imported.getId(identity));
    const placement = beginPlacement(transaction);
    const store = async (candidate: ImportCandidate): Promise<StoredPost> => {
      const { identity, state } = candidate;
      const previous = before.get(identity);
      const id = previous?.id ?? newIds.get(identity) ?? 0;
      const file = files.get(identity);
      if (previous !== undefined && !mayReplace(previous, candidate.item.status))
        return { candidate, id, result: "unchanged", isForbidden: true };
      const isComplete = previous?.importedOpen === undefined && file === undefined;
      if (previous?.importedState === state && isComplete) return { candidate, id, result: "unchanged" };
      const built = await build(candidate, { id, previous, file }, targets, placement);
      if (!built.isChanged) return { ...built, candidate, id, result: "unchanged" };
      transaction.putPost(built.post);
      return { ...built, candidate, id, result: previous === undefined ? "created" : "updated" };
    };
    const stored: StoredPost[] = [];
    let sinceTurn = 0;
    for (const candidate of group) {
      stored.push(await store(candidate));
      sinceTurn += candidate.item.size;
      if (sinceTurn < CHARACTERS_PER_TURN) continue;
      sinceTurn = 0;
      await nextTurn();
    }
    return stored;
  }

  function report(stored: StoredPost): void {
    const { candidate, id, result, unknownMeta = [], pending: waiting, isForbidden } = stored;
    if (isForbidden)
      summary.warn(
        candidate.item.line,
        `The item ${candidate.item.id} exists and may not be changed by this user.`,
      );
    summary.count(candidate.collection.base, result);
    imported.add(candidate.identity, id);
    for (const name of unknownMeta) summary.leaveOut(`meta ${name}`);
    if (waiting !== undefined) pending.add(waiting);
  }

  return {
    async take(items) {
      if (!isStarted) imported.refresh();
      isStarted = true;
      const selected = items.flatMap((item) => candidates.select(item) ?? []);
      await terms.takeNamed(selected.flatMap(listAssignedTerms));
      const before = await imported.load(selected.map(({ identity }) => identity));
      const needsFile = ({ item, identity }: ImportCandidate): boolean =>
        item.type === "attachment" && fileImport.isNeeded(before.get(identity));
      const limits = { count: selected.length, weight: FILES_PER_COMMIT };
      for (const group of splitIntoBatches(selected, limits, (candidate) => (needsFile(candidate) ? 1 : 0)))
        await store(group, await fileImport.take(group.filter(needsFile)));
    },
    finish: pending.resolve,
  };
}

const listAssignedTerms = ({ item, collection }: ImportCandidate): WxrItem["terms"] =>
  item.terms.filter(({ taxonomy }) => collection.taxonomies.some((held) => held.taxonomy === taxonomy));

// Finds the posts of this site that an import made, by their identity.

interface ImportedPosts {
  /** Reads the identities of all posts. Needed before the first call of the others. */
  refresh: () => void;
  /** Returns `undefined` for a post that was never imported, or deleted since. */
  getId: (identity: string) => number | undefined;
  add: (identity: string, id: number) => void;
  /** Loads the posts that exist, by identity. */
  load: (identities: string[]) => Promise<Map<string, Post>>;
}

function createImportedPosts(repository: ContentRepository): ImportedPosts {
  const { index } = repository;
  const ids = new Map<string, number>();

  function getId(identity: string): number | undefined {
    const id = ids.get(identity);
    return id !== undefined && index.post(id)?.importedAs === identity ? id : undefined;
  }

  return {
    refresh() {
      ids.clear();
      for (const id of listPostIds(index)) {
        const identity = index.post(id)?.importedAs;
        if (identity !== undefined) ids.set(identity, id);
      }
    },
    getId,
    add: (identity, id) => ids.set(identity, id),
    async load(identities) {
      const posts = await repository.posts(identities.flatMap((identity) => getId(identity) ?? []));
      return new Map(
        posts.flatMap((post) => (post?.importedAs === undefined ? [] : [[post.importedAs, post] as const])),
      );
    },
  };
}

// Resolves the references to posts that come later in the file, once the whole file is read.

interface PendingPosts {
  add: (post: PendingPost) => void;
  /** References that still have no target become warnings. */
  resolve: () => Promise<void>;
}

/** Limits of one commit; `weight` is in characters of the file. */
const BATCH = { count: 500, weight: 4_194_304 };
/** Posts that are resolved before requests of the host run again. */
const POSTS_PER_TURN = 50;

function createPendingPosts({
  repository,
  summary,
  targets,
  getId,
  mayEdit,
  beginPlacement,
}: {
  repository: ContentRepository;
  summary: ImportSummaryBuilder;
  targets: ReferenceTargets;
  getId: (identity: string) => number | undefined;
  mayEdit: (post: Post) => boolean;
  beginPlacement: (transaction: Transaction) => Placement;
}): PendingPosts {
  const pending: PendingPost[] = [];

  async function resolveBatch(batch: PendingPost[]): Promise<void> {
    const warnings = await repository.change(async (transaction) => {
      const posts = await repository.posts(batch.map(({ id }) => id));
      const placement = beginPlacement(transaction);
      const all: ImportNote[] = [];
      for (const [place, entry] of batch.entries()) {
        if (place % POSTS_PER_TURN === 0) await nextTurn();
        const before = posts[place];
        if (before === undefined) continue;
        const { post, notes } = resolvePost(entry, before, targets, placement);
        if (!isDeepStrictEqual({ ...before }, post)) transaction.putPost(post);
        all.push(...notes);
      }
      return all;
    });
    for (const { line, message } of warnings) summary.warn(line, message);
  }

  /** A split export has the target of a reference in a later file. */
  async function resolveEarlierImports(): Promise<void> {
    const { index } = repository;
    const resolved = new Set(pending.map(({ id }) => id));
    const isResolvable = (id: number): boolean =>
      !resolved.has(id) &&
      Object.values(index.post(id)?.importedOpen ?? {}).some(
        (identity) => identity !== "" && getId(identity) !== undefined,
      );
    const ids = listPostIds(index).filter(isResolvable);
    for (const batch of splitIntoBatches(ids, { ...BATCH, weight: BATCH.count }, () => 1)) {
      await repository.change(async (transaction) => {
        const placement = beginPlacement(transaction);
        for (const before of await repository.posts(batch)) {
          if (before === undefined || !mayEdit(before)) continue;
          const post = resolveOpen(before, getId);
          // An import that was stopped left it with a slug of its own: it gets that of its title.
          const wanted = isWaiting(before) ? "" : before.slug;
          const isMoved = wanted === "" || post.parent !== before.parent;
          const placed = isMoved ? placement.place(post, wanted) : placement.keep(post);
          // A parent that is below the post stays open.
          if (placed.parent === post.parent) transaction.putPost(placed);
        }
      });
    }
  }

  return {
    add: (post) => pending.push(post),
    async resolve() {
      for (const batch of splitIntoBatches(pending, BATCH, ({ item }) => item.size))
        await resolveBatch(batch);
      await resolveEarlierImports();
    },
  };
}

function resolvePost(
  { references, slug, item, open }: PendingPost,
  before: Post,
  targets: ReferenceTargets,
  placement: Placement,
): { post: Post; notes: ImportNote[] } {
  const { post, missing } = resolveReferences(before, references, targets, open);
  const isMoved = isWaiting(before) || post.parent !== before.parent;
  const placed = isMoved ? placement.place(post, slug ?? before.slug) : post;
  const isRefused = placed.parent !== post.parent;
  return {
    post: withUnresolved(placed, listUnresolved(missing, isRefused), references, targets),
    notes: listUnresolvedWarnings(item, missing, isRefused),
  };
}
