/**
 * Selects the items of a file that become posts, and builds their records, with the references that
 * can be resolved.
 */

import { isDeepStrictEqual } from "node:util";
import type { WriteContext } from "../posts/post-type-handler.js";
import type { Collection, ContentModel } from "../records/content-model.js";
import type { Post } from "../records/records.js";
import { hasSlugPerParent } from "../records/unique-names.js";
import type { ContentRepository } from "../repository/content-repository.js";
import type { Site } from "../site.js";
import { getIdentity, getImportState, getMenu, toIdentity } from "./identity.js";
import type { FileImport, ImportedMediaFile } from "./import-files.js";
import type { TermImport } from "./import-terms.js";
import { type PlannedPost, toPlannedPost } from "./item-to-post.js";
import { type ImportSummaryBuilder, mayImport } from "./options.js";
import {
  isWaiting,
  listOpen,
  listUnresolved,
  type PendingPost,
  type Placement,
  type ReferenceTargets,
  type ResolvedPost,
  resolveReferences,
  toWaitingSlug,
  withUnresolved,
} from "./resolve-references.js";
import type { WxrItem, WxrSite } from "./types.js";

/** The state of a candidate on this site. */
interface ExistingPost {
  id: number;
  previous: Post | undefined;
  /** A file that was stored for it just now. */
  file: ImportedMediaFile | undefined;
}

export interface BuiltPost {
  post: Post;
  /** False if the site has exactly this record already. */
  isChanged: boolean;
  /** Set if the post waits for the target of a reference. */
  pending: PendingPost | undefined;
  unknownMeta: string[];
}

type PostBuilder = (
  candidate: ImportCandidate,
  existing: ExistingPost,
  targets: ReferenceTargets,
  placement: Placement,
) => Promise<BuiltPost>;

export function createPostBuilder({
  repository,
  terms,
  files,
  write,
  isTrusted,
  getAuthorId,
}: {
  repository: ContentRepository;
  terms: TermImport;
  files: FileImport;
  write: { caller: WriteContext["caller"]; site: WriteContext["site"] };
  isTrusted: boolean;
  getAuthorId: (login: string) => number;
}): PostBuilder {
  const plan = async (
    { item, collection }: ImportCandidate,
    { id, previous }: ExistingPost,
  ): Promise<PlannedPost> =>
    toPlannedPost(
      isTrusted ? item : await sanitiseItem(item, write.site),
      { id, previous: previous ?? null },
      {
        ...write,
        collection,
        index: repository.index,
        isTrusted,
        now: repository.now(),
        defaultCategory: repository.defaultCategory(),
        author: mayImport(write.caller, collection.type, "edit_others_posts")
          ? getAuthorId(item.creator)
          : write.caller.id,
        findTermId: terms.findId,
      },
    );

  return async (candidate, existing, targets, placement) => {
    const { id, previous, file } = existing;
    const planned = await plan(candidate, existing);
    const { post, missing } = mergeWithPrevious(planned, candidate.state, previous, targets);
    const whole: Post = {
      ...files.withFile(post, previous, file),
      importedAs: candidate.identity,
      importedState: candidate.state,
    };
    const isUnplaced = previous === undefined || isWaiting(previous);
    const isSame = previous?.importedState === candidate.state;
    const slug = isSame && !isUnplaced ? undefined : planned.post.slug;
    const lacksParent = missing.some(({ name }) => name === "parent");
    const placed = placePost(whole, { previous, slug, lacksParent }, placement);
    const open = listUnresolved(missing, placed.parent !== whole.parent);
    const written = withUnresolved(placed, open, planned.references, targets);
    const { line, size } = candidate.item;
    const item = { line, id: candidate.item.id, size };
    return {
      post: written,
      isChanged: previous === undefined || !isDeepStrictEqual({ ...previous }, written),
      pending: open.length === 0 ? undefined : { id, slug, open, references: planned.references, item },
      unknownMeta: planned.unknownMeta,
    };
  };
}

/** Other requests run while a long text is sanitised. */
async function sanitiseItem(item: WxrItem, { sanitise }: Site): Promise<WxrItem> {
  const meta: { name: string; value: string }[] = [];
  for (const { name, value } of item.meta) {
    meta.push({ name, value: name === "footnotes" ? await sanitise("footnotes", value) : value });
  }
  return {
    ...item,
    title: await sanitise("title", item.title),
    content: await sanitise("content", item.content),
    excerpt: await sanitise("excerpt", item.excerpt),
    meta,
  };
}

/**
 * A post that is the same in the file keeps the edits made here; only its unresolved references are
 * tried again.
 */
function mergeWithPrevious(
  { post, references }: PlannedPost,
  state: string,
  previous: Post | undefined,
  targets: ReferenceTargets,
): ResolvedPost {
  if (previous?.importedState === state)
    return resolveReferences(previous, references, targets, listOpen(previous));
  const held = { parent: previous?.parent ?? 0, featuredMedia: previous?.featuredMedia ?? 0 };
  return resolveReferences({ ...post, ...held }, references, targets, undefined);
}

function placePost(
  post: Post,
  {
    previous,
    slug,
    lacksParent,
  }: {
    previous: Post | undefined;
    slug: string | undefined;
    lacksParent: boolean;
  },
  placement: Placement,
): Post {
  const isUnplaced = previous === undefined || isWaiting(previous);
  if (isUnplaced && lacksParent && hasSlugPerParent(post.type))
    return placement.keep({ ...post, slug: toWaitingSlug(post.id) });
  if (slug === undefined && post.parent === previous?.parent) return placement.keep(post);
  return placement.place(post, slug ?? post.slug);
}

// Selects the items of a file that become posts, and gives each its identity.

/** An item that becomes a post of this site. */
export interface ImportCandidate {
  item: WxrItem;
  collection: Collection;
  /** Finds the post again in later imports. */
  identity: string;
  /** Digest of the item; the same digest means that nothing changed in the file. */
  state: string;
}

interface CandidateSelection {
  /** Returns `undefined` for an item that is left out; the summary says why. */
  select: (item: WxrItem) => ImportCandidate | undefined;
  /**
   * Identity of the post with this id in the file; empty if the file has no such post. `menu`: the
   * slug of its menu if it is a menu item, else empty.
   */
  toIdentity: (id: number, menu: string) => string;
}

export function createCandidateSelection({
  model,
  summary,
  source,
  isTrusted,
  getAuthorId,
  write: { caller },
}: {
  model: ContentModel;
  write: { caller: WriteContext["caller"] };
  summary: ImportSummaryBuilder;
  /** The site that wrote the file. */
  source: WxrSite;
  isTrusted: boolean;
  getAuthorId: (login: string) => number;
}): CandidateSelection {
  const { url } = source;
  const seen = new Set<string>();
  /** Identities by id and menu, for a file that does not name its site. */
  const byId = new Map<string, string>();

  function skip(collection: string): undefined {
    summary.count(collection, "skipped");
    return undefined;
  }

  return {
    select(item) {
      summary.leaveOut("comments", item.comments);
      const collection = model.types.get(item.type);
      if (collection === undefined) {
        summary.leaveOut(`type ${item.type}`);
        return skip("others");
      }
      if (!mayImport(caller, collection.type, "create_posts")) {
        summary.leaveOut(`type ${item.type}, which the importing user may not write`);
        return skip(collection.base);
      }
      const identity = getIdentity(source, item);
      if (seen.has(identity)) {
        summary.warn(
          item.line,
          `The item ${item.id} was skipped: the file has it twice. The first one counts.`,
        );
        return skip(collection.base);
      }
      seen.add(identity);
      if (url === "" && item.id > 0) byId.set(`${item.id} ${getMenu(item)}`, identity);
      const state = getImportState(item, { isTrusted, author: getAuthorId(item.creator) });
      return { item, collection, identity, state };
    },
    toIdentity: (id, menu) => (url === "" ? (byId.get(`${id} ${menu}`) ?? "") : toIdentity(url, id, menu)),
  };
}
