/** Resolves the references to posts that come later in the file, once the whole file is read. */

import { isDeepStrictEqual } from "node:util";
import { nextTurn } from "../../core/next-turn.js";
import type { Post } from "../records/records.js";
import type { ContentRepository, Transaction } from "../repository/content-repository.js";
import { splitIntoBatches } from "./batches.js";
import type { ImportSummaryBuilder } from "./import-summary.js";
import type { Placement } from "./placement.js";
import { type ReferenceTargets, resolveReferences } from "./resolve-references.js";
import {
  type ImportNote,
  isWaiting,
  listUnresolved,
  listUnresolvedWarnings,
  type PendingPost,
  withUnresolved,
} from "./unresolved-references.js";

export interface PendingPosts {
  readonly add: (post: PendingPost) => void;
  /** References that still have no target become warnings. */
  readonly resolve: () => Promise<void>;
}

/** Limits of one commit; `weight` is in characters of the file. */
const BATCH = { count: 500, weight: 4_194_304 };
/** Posts that are resolved before requests of the host run again. */
const POSTS_PER_TURN = 50;

export function createPendingPosts({
  repository,
  summary,
  targets,
  beginPlacement,
}: {
  readonly repository: ContentRepository;
  readonly summary: ImportSummaryBuilder;
  readonly targets: ReferenceTargets;
  readonly beginPlacement: (transaction: Transaction) => Placement;
}): PendingPosts {
  const pending: PendingPost[] = [];

  async function resolveBatch(batch: readonly PendingPost[]): Promise<void> {
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

  return {
    add: (post) => pending.push(post),
    async resolve() {
      for (const batch of splitIntoBatches(pending, BATCH, ({ item }) => item.size))
        await resolveBatch(batch);
    },
  };
}

function resolvePost(
  { references, slug, item, open }: PendingPost,
  before: Post,
  targets: ReferenceTargets,
  placement: Placement,
): { readonly post: Post; readonly notes: readonly ImportNote[] } {
  const { post, missing } = resolveReferences(before, references, targets, open);
  const isMoved = isWaiting(before) || post.parent !== before.parent;
  const placed = isMoved ? placement.place(post, slug ?? before.slug) : post;
  const isRefused = placed.parent !== post.parent;
  return {
    post: withUnresolved(placed, listUnresolved(missing, isRefused)),
    notes: listUnresolvedWarnings(item, missing, isRefused),
  };
}
