/**
 * Imports the posts of a file, a batch at a time. References to posts that come later in the file
 * are resolved at the end.
 */

import { nextTurn } from "../../core/next-turn.js";
import type { WriteContext } from "../posts/write-context.js";
import type { ContentRepository, Transaction } from "../repository/content-repository.js";
import { splitIntoBatches } from "./batches.js";
import { type BuiltPost, createPostBuilder } from "./build-post.js";
import { createCandidateSelection, type ImportCandidate } from "./import-candidates.js";
import type { FileImport, ImportedMediaFile } from "./import-files.js";
import type { ImportResult, ImportSummaryBuilder } from "./import-summary.js";
import type { TermImport } from "./import-terms.js";
import { createImportedPosts } from "./imported-posts.js";
import { createPendingPosts } from "./pending-posts.js";
import { createPlacement, type Placement } from "./placement.js";
import type { ReferenceTargets } from "./resolve-references.js";
import type { WxrItem, WxrSite } from "./types.js";

export interface PostImport {
  readonly take: (items: readonly WxrItem[]) => Promise<void>;
  readonly finish: () => Promise<void>;
}

export interface PostImportOptions {
  readonly repository: ContentRepository;
  readonly summary: ImportSummaryBuilder;
  readonly terms: TermImport;
  readonly files: FileImport;
  readonly write: Pick<WriteContext, "caller" | "site">;
  /** The site that wrote the file. */
  readonly source: Pick<WxrSite, "url" | "title">;
  readonly isTrusted: boolean;
  /** Returns the id of the user for a login in the file. */
  readonly getAuthorId: (login: string) => number;
}

type Files = ReadonlyMap<string, ImportedMediaFile>;

/** Result of one candidate; `id` is the post's id on this site. */
interface StoredPost extends Partial<BuiltPost> {
  readonly candidate: ImportCandidate;
  readonly id: number;
  readonly result: ImportResult;
}

/** Files per commit. A published file must not wait long for the record that names it. */
const FILES_PER_COMMIT = 8;
/** Characters of items that are sanitised and stored before requests of the host run again. */
const CHARACTERS_PER_TURN = 32_768;

export function createPostImport(options: PostImportOptions): PostImport {
  const { repository, summary, terms, files: fileImport, write } = options;
  const { index } = repository;
  const candidates = createCandidateSelection(options);
  const imported = createImportedPosts(repository);
  const build = createPostBuilder(options);
  let isStarted = false;

  const beginPlacement = (transaction: Transaction): Placement =>
    createPlacement({
      index,
      site: write.site,
      expectUnchanged: (id) => transaction.expectUnchanged(`post/${id}`),
    });
  const toTargets = (getId: (identity: string) => number | undefined): ReferenceTargets => ({
    post: (id, menu) => getId(candidates.toIdentity(id, menu)),
    term: terms.findIdByFileId,
  });
  const pending = createPendingPosts({
    ...{ repository, summary, beginPlacement },
    targets: toTargets(imported.getId),
  });

  async function store(group: readonly ImportCandidate[], files: Files): Promise<void> {
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
    group: readonly ImportCandidate[],
    files: Files,
  ): Promise<readonly StoredPost[]> {
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

  function report({ candidate, id, result, unknownMeta = [], pending: waiting }: StoredPost): void {
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
  item.terms.filter(({ taxonomy }) => collection.taxonomies.some((held) => held === taxonomy));
