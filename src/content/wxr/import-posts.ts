/** Brings the posts of a file into the site, a batch at a time; what points at a post that comes later is pointed there at the end. */

import { isDeepStrictEqual } from "node:util";
import type { Collection } from "../collections.js";
import type { WriteContext } from "../posts/write-post.js";
import type { Post } from "../records/records.js";
import type { ContentRepository, Transaction } from "../repository/content-repository.js";
import { splitIntoBatches } from "./batches.js";
import { getIdentity, getImportState, toIdentity } from "./identity.js";
import type { FileImport, ImportedMediaFile } from "./import-files.js";
import type { ImportResult, ImportSummaryBuilder } from "./import-summary.js";
import type { TermImport } from "./import-terms.js";
import { findCollection, toPlannedPost } from "./item-to-post.js";
import { createPlacement, type Placement, pointed, type SlugNumbers, type Targets } from "./placement.js";
import { listPostIds } from "./post-ids.js";
import type { WxrItem } from "./types.js";
import {
  idle,
  isWaiting,
  listUnresolved,
  listUnresolvedWarnings,
  type PendingPost,
  waitingSlug,
  withUnresolved,
} from "./unresolved-references.js";

export interface PostImport {
  readonly take: (items: readonly WxrItem[]) => Promise<void>;
  readonly finish: () => Promise<void>;
}

export interface PostImportOptions {
  readonly library: ContentRepository;
  readonly tally: ImportSummaryBuilder;
  readonly terms: TermImport;
  readonly media: FileImport;
  readonly write: Pick<WriteContext, "caller" | "site">;
  /** The site that the file is of. */
  readonly url: string;
  readonly isTrusted: boolean;
  /** Id of the user for a login. */
  readonly authorOf: (login: string) => number;
}

interface Candidate {
  readonly item: WxrItem;
  readonly collection: Collection;
  readonly identity: string;
  readonly state: string;
}

/** What became of a candidate; `id` of the post here. */
interface Stored {
  readonly candidate: Candidate;
  readonly id: number;
  readonly outcome: ImportResult;
  readonly unknownMeta?: readonly string[];
  readonly hasFile?: boolean;
  readonly pending?: PendingPost;
}

/** What one commit may hold of posts that are pointed at something; characters in the file. */
const BATCH = { count: 500, weight: 4_194_304 };
/** Files that are fetched for one commit: what is published must not wait for long to be named. */
const FILES_AT_ONCE = 8;

export function createPostImport(options: PostImportOptions): PostImport {
  const { library, tally, terms, media, write, url, isTrusted, authorOf } = options;
  const { index } = library;
  const { site } = write;
  const seen = new Set<string>();
  /** Identities by the id in a file that does not name its site. */
  const byId = new Map<number, string>();
  const pending: PendingPost[] = [];
  const numbers = new Map<string, number>();
  const learn = (more: SlugNumbers): void => {
    for (const [key, number] of more) numbers.set(key, number);
  };
  /** Ids of the posts here that an import made, by what they are known by. */
  let known: Map<string, number> | undefined;

  function readKnown(): Map<string, number> {
    const ids = listPostIds(index).flatMap((id) => {
      const identity = index.post(id)?.importedAs;
      return identity === undefined ? [] : [[identity, id] as const];
    });
    return new Map(ids);
  }

  /** One that was deleted since is none. */
  function knownId(identity: string): number | undefined {
    const id = known?.get(identity);
    return id !== undefined && index.post(id)?.importedAs === identity ? id : undefined;
  }

  function candidateOf(item: WxrItem): Candidate | undefined {
    tally.leaveOut("comments", item.comments);
    const collection = findCollection(item.type);
    if (collection === undefined) {
      tally.leaveOut(`type ${item.type}`);
      tally.count("others", "skipped");
      return undefined;
    }
    const identity = getIdentity(url, item);
    const why =
      identity === undefined
        ? "An item was left out that has neither a guid nor an id of a known site."
        : `The item ${item.id} stands in the file twice; the first one counts.`;
    if (identity === undefined || seen.has(identity)) {
      tally.warn(item.line, why);
      tally.count(collection.base, "skipped");
      return undefined;
    }
    seen.add(identity);
    if (url === "" && item.id > 0) byId.set(item.id, identity);
    return {
      item,
      collection,
      identity,
      state: getImportState(item, { isTrusted, author: authorOf(item.creator) }),
    };
  }

  async function previousOf(candidates: readonly Candidate[]): Promise<ReadonlyMap<string, Post>> {
    const posts = await library.posts(candidates.flatMap(({ identity }) => knownId(identity) ?? []));
    return new Map(
      posts.flatMap((post) => (post?.importedAs === undefined ? [] : [[post.importedAs, post] as const])),
    );
  }

  async function take(items: readonly WxrItem[]): Promise<void> {
    known ??= readKnown();
    const candidates = items.flatMap((item) => candidateOf(item) ?? []);
    await terms.takeNamed(
      candidates.flatMap(({ item, collection }) =>
        item.terms.filter(({ taxonomy }) => collection.taxonomies.some((held) => held === taxonomy)),
      ),
    );
    const before = await previousOf(candidates);
    const isWanted = ({ item, identity }: Candidate): boolean =>
      item.type === "attachment" && media.isWanted(before.get(identity));
    const limits = { count: candidates.length, weight: FILES_AT_ONCE };
    for (const group of splitIntoBatches(candidates, limits, (candidate) => (isWanted(candidate) ? 1 : 0))) {
      await store(group, await media.take(group.filter(isWanted)));
    }
  }

  async function store(
    candidates: readonly Candidate[],
    files: ReadonlyMap<string, ImportedMediaFile>,
  ): Promise<void> {
    const used = new Set<string>();
    try {
      let attempts = 0;
      const { stored, nextNumbers } = await library.change((draft) => {
        // Refused: another import has stored some of them.
        if (attempts > 0) known = readKnown();
        attempts += 1;
        return storeAll(candidates, files, draft);
      });
      learn(nextNumbers);
      for (const result of stored) {
        if (result.hasFile) used.add(result.candidate.identity);
        report(result);
      }
    } finally {
      const unused = [...files].filter(([identity]) => !used.has(identity));
      await Promise.all(unused.map(([, file]) => file.discard()));
    }
  }

  async function storeAll(
    candidates: readonly Candidate[],
    files: ReadonlyMap<string, ImportedMediaFile>,
    draft: Transaction,
  ): Promise<{ readonly stored: readonly Stored[]; readonly nextNumbers: SlugNumbers }> {
    const before = await previousOf(candidates);
    const fresh = candidates.filter(({ identity }) => !before.has(identity));
    const first = fresh.length === 0 ? 0 : await draft.newIds("post", fresh.length);
    const made = new Map(fresh.map(({ identity }, place) => [identity, first + place]));
    const targets = targetsIn((identity) => made.get(identity) ?? knownId(identity));
    const placement = placementIn(draft);
    const stored = candidates.map((candidate): Stored => {
      const { identity, state } = candidate;
      const previous = before.get(identity);
      const id = previous?.id ?? made.get(identity) ?? 0;
      const file = files.get(identity);
      const isComplete = previous?.importedOpen === undefined && file === undefined;
      if (previous?.importedState === state && isComplete) return { candidate, id, outcome: "unchanged" };
      return storeOne(candidate, { id, previous, file }, { targets, placement, draft });
    });
    return { stored, nextNumbers: placement.nextNumbers };
  }

  const placementIn = (draft: Transaction): Placement =>
    createPlacement({ index, site, numbers, basedOn: (id) => draft.basedOn(`post/${id}`) });

  const targetsIn = (idOf: (identity: string) => number | undefined): Targets => ({
    post: (id) => idOf(url === "" ? (byId.get(id) ?? "") : toIdentity(url, id)),
    term: terms.idOfId,
  });

  function storeOne(
    candidate: Candidate,
    {
      id,
      previous,
      file,
    }: {
      readonly id: number;
      readonly previous: Post | undefined;
      readonly file: ImportedMediaFile | undefined;
    },
    {
      targets,
      placement,
      draft,
    }: { readonly targets: Targets; readonly placement: Placement; readonly draft: Transaction },
  ): Stored {
    const { item, collection, identity, state } = candidate;
    const planned = toPlannedPost(item, previous ?? null, id, {
      ...write,
      collection,
      index,
      isTrusted,
      now: library.now(),
      defaultCategory: library.defaultCategory(),
      author: authorOf(item.creator),
      termId: terms.idOf,
    });
    // What is the same in the file stays as it is here, but for what was missing.
    const isSame = previous?.importedState === state;
    const held = { parent: previous?.parent ?? 0, featuredMedia: previous?.featuredMedia ?? 0 };
    const { post, missing } = pointed(
      isSame ? previous : { ...planned.post, ...held },
      planned.references,
      targets,
      isSame ? (previous.importedOpen ?? []) : undefined,
    );
    const whole: Post = {
      ...media.withFile(post, previous, file),
      importedAs: identity,
      importedState: state,
    };
    const isUnplaced = previous === undefined || isWaiting(previous);
    const slug = isSame && !isUnplaced ? undefined : planned.post.slug;
    const isOrphan = missing.some(({ name }) => name === "parent");
    const waits = isUnplaced && isOrphan && whole.type === "page";
    const stays = slug === undefined && whole.parent === previous?.parent;
    const unplaced = waits ? { ...whole, slug: waitingSlug(id) } : whole;
    const placed = waits || stays ? placement.note(unplaced) : placement.place(whole, slug ?? whole.slug);
    const open = listUnresolved(missing, placed.parent !== whole.parent);
    const result: Stored = {
      ...{
        candidate,
        id,
        unknownMeta: planned.unknownMeta,
        hasFile: file !== undefined,
        outcome: "unchanged",
      },
      ...(open.length === 0
        ? {}
        : { pending: { id, slug, open, references: planned.references, item: idle(item) } }),
    };
    const written = withUnresolved(placed, open);
    if (previous !== undefined && isDeepStrictEqual({ ...previous }, written)) return result;
    draft.putPost(written);
    return { ...result, outcome: previous === undefined ? "created" : "updated" };
  }

  function report({ candidate, id, outcome, unknownMeta = [], pending: waiting }: Stored): void {
    tally.count(candidate.collection.base, outcome);
    known?.set(candidate.identity, id);
    for (const name of unknownMeta) tally.leaveOut(`meta ${name}`);
    if (waiting !== undefined) pending.push(waiting);
  }

  async function finish(): Promise<void> {
    for (const batch of splitIntoBatches(pending, BATCH, ({ item }) => item.size)) {
      const { warnings, nextNumbers } = await library.change(async (draft) => {
        const posts = await library.posts(batch.map(({ id }) => id));
        const placement = placementIn(draft);
        const warnings = batch.flatMap((entry, place) => {
          const post = posts[place];
          return post === undefined ? [] : settle(entry, post, placement, draft);
        });
        return { warnings, nextNumbers: placement.nextNumbers };
      });
      learn(nextNumbers);
      for (const { line, message } of warnings) tally.warn(line, message);
    }
  }

  function settle(
    { references, slug, item, open }: PendingPost,
    before: Post,
    placement: Placement,
    draft: Transaction,
  ): readonly { readonly line: number; readonly message: string }[] {
    const { post, missing } = pointed(before, references, targetsIn(knownId), open);
    const isMoved = isWaiting(before) || post.parent !== before.parent;
    const placed = isMoved ? placement.place(post, slug ?? before.slug) : post;
    const isRefused = placed.parent !== post.parent;
    const written = withUnresolved(placed, listUnresolved(missing, isRefused));
    if (!isDeepStrictEqual({ ...before }, written)) draft.putPost(written);
    return listUnresolvedWarnings(item, missing, isRefused);
  }

  return { take, finish };
}
