/** Brings the posts of a file into the site, a batch at a time; what points at a post that comes later is pointed there at the end. */

import { isDeepStrictEqual } from "node:util";
import type { Collection } from "../collections.js";
import type { Draft, Library } from "../library.js";
import type { WriteContext } from "../posts/writing.js";
import type { Post } from "../records.js";
import { allIds } from "./all-ids.js";
import { identityOf, identityOfId, stateOf } from "./identity.js";
import type { TermImport } from "./import-terms.js";
import type { MediaImport, TakenFile } from "./media-import.js";
import { createPlacement, type Placement, pointed, type Targets } from "./placement.js";
import { collectionOfType, type PlannedPost, plannedPost, type References } from "./post-of-item.js";
import type { Outcome, Tally } from "./tally.js";
import type { WxrItem } from "./types.js";

export interface PostImport {
  readonly take: (items: readonly WxrItem[]) => Promise<void>;
  readonly finish: () => Promise<void>;
}

export interface PostImportOptions {
  readonly library: Library;
  readonly tally: Tally;
  readonly terms: TermImport;
  readonly media: MediaImport;
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
  readonly outcome: Outcome;
  readonly planned?: PlannedPost;
  readonly hasFile?: boolean;
  /** What it points at that is not here. */
  readonly isOpen?: boolean;
}

/** A stored post that points at something that was not here yet. */
interface Pending {
  readonly id: number;
  readonly item: Pick<WxrItem, "line" | "id">;
  readonly slug: string;
  /** Once nothing is missing. */
  readonly state: string;
  readonly references: References;
}

/** Posts whose references are set in one commit. */
const BATCH = 500;

export function createPostImport(options: PostImportOptions): PostImport {
  const { library, tally, terms, media, write, url, isTrusted, authorOf } = options;
  const { index } = library;
  const { site } = write;
  const seen = new Set<string>();
  const pending: Pending[] = [];
  const numbers = new Map<string, number>();
  /** Ids of the posts here that an import made, by what they are known by. */
  let known: Map<string, number> | undefined;

  function readKnown(): Map<string, number> {
    const ids = allIds(index).flatMap((id) => {
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
    const collection = collectionOfType(item.type);
    if (collection === undefined) {
      tally.leaveOut(`type ${item.type}`);
      tally.count("others", "skipped");
      return undefined;
    }
    const identity = identityOf(url, item);
    const why =
      identity === undefined
        ? "An item without an id and a guid was left out."
        : `The item ${item.id} stands in the file twice; the first one counts.`;
    if (identity === undefined || seen.has(identity)) {
      tally.warn(item.line, why);
      tally.count(collection.base, "skipped");
      return undefined;
    }
    seen.add(identity);
    return {
      item,
      collection,
      identity,
      state: stateOf(item, { isTrusted, author: authorOf(item.creator) }),
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
    const files = await media.take(
      candidates.filter(
        ({ item, identity }) => item.type === "attachment" && media.isWanted(before.get(identity)),
      ),
    );
    const used = new Set<string>();
    try {
      let attempts = 0;
      const stored = await library.change((draft) => {
        // Refused: another import has stored some of them.
        if (attempts > 0) known = readKnown();
        attempts += 1;
        return storeAll(candidates, files, draft);
      });
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
    files: ReadonlyMap<string, TakenFile>,
    draft: Draft,
  ): Promise<readonly Stored[]> {
    const before = await previousOf(candidates);
    const fresh = candidates.filter(({ identity }) => !before.has(identity));
    const first = fresh.length === 0 ? 0 : await draft.newIds("post", fresh.length);
    const made = new Map(fresh.map(({ identity }, place) => [identity, first + place]));
    const targets = targetsIn((identity) => made.get(identity) ?? knownId(identity));
    const placement = createPlacement({ index, site, numbers });
    return candidates.map((candidate) => {
      const { identity, state } = candidate;
      const previous = before.get(identity);
      const id = previous?.id ?? made.get(identity) ?? 0;
      const file = files.get(identity);
      if (previous?.importedState === state && file === undefined) {
        return { candidate, id, outcome: "unchanged" };
      }
      return storeOne(candidate, { id, previous, file }, { targets, placement, draft });
    });
  }

  const targetsIn = (idOf: (identity: string) => number | undefined): Targets => ({
    post: (id) => idOf(identityOfId(url, id)),
    term: terms.idOfId,
  });

  function storeOne(
    candidate: Candidate,
    {
      id,
      previous,
      file,
    }: { readonly id: number; readonly previous: Post | undefined; readonly file: TakenFile | undefined },
    {
      targets,
      placement,
      draft,
    }: { readonly targets: Targets; readonly placement: Placement; readonly draft: Draft },
  ): Stored {
    const { item, collection, identity, state } = candidate;
    const planned = plannedPost(item, previous ?? null, id, {
      ...write,
      collection,
      index,
      isTrusted,
      now: library.now(),
      defaultCategory: library.defaultCategory(),
      author: authorOf(item.creator),
      termId: terms.idOf,
    });
    const { post, isOrphan, missing } = pointed(planned.post, planned.references, targets);
    const whole: Post = {
      ...media.withFile(post, previous, file),
      importedAs: identity,
      importedState: missing.length > 0 || media.isMissing(post, file) ? "" : state,
    };
    const isWaiting = isOrphan && whole.type === "page";
    const placed = isWaiting ? unplaced(whole, previous) : placement.place(whole, post.slug);
    if (isWaiting) placement.note(placed);
    const result = { candidate, id, planned, hasFile: file !== undefined, isOpen: missing.length > 0 };
    if (previous !== undefined && isDeepStrictEqual({ ...previous }, placed)) {
      return { ...result, outcome: "unchanged" };
    }
    draft.putPost(placed);
    return { ...result, outcome: previous === undefined ? "created" : "updated" };
  }

  /** A page waits for its parent under a slug that no page is given, so that it takes none from another. */
  const unplaced = (post: Post, previous: Post | undefined): Post => ({
    ...post,
    parent: previous?.parent ?? 0,
    slug: previous?.slug ?? `${post.id}--import`,
  });

  function report({ candidate, id, outcome, planned, isOpen }: Stored): void {
    const { item, collection, identity, state } = candidate;
    tally.count(collection.base, outcome);
    known?.set(identity, id);
    for (const name of planned?.unknownMeta ?? []) tally.leaveOut(`meta ${name}`);
    if (planned === undefined || !isOpen) return;
    const { line, id: itemId } = item;
    pending.push({
      ...{ id, state, references: planned.references, slug: planned.post.slug },
      item: { line, id: itemId },
    });
  }

  async function finish(): Promise<void> {
    for (let start = 0; start < pending.length; start += BATCH) {
      const batch = pending.slice(start, start + BATCH);
      const warnings = await library.change(async (draft) => {
        const posts = await library.posts(batch.map(({ id }) => id));
        const placement = createPlacement({ index, site, numbers });
        return batch.flatMap((entry, place) => {
          const post = posts[place];
          return post === undefined ? [] : settle(entry, post, placement, draft);
        });
      });
      for (const { line, message } of warnings) tally.warn(line, message);
    }
  }

  function settle(
    { references, state, slug, item }: Pending,
    before: Post,
    placement: Placement,
    draft: Draft,
  ): readonly { readonly line: number; readonly message: string }[] {
    const { post, missing } = pointed(before, references, targetsIn(knownId));
    const isWaiting = before.slug === `${before.id}--import`;
    const isMoved = isWaiting || post.parent !== before.parent;
    const whole: Post = {
      ...post,
      importedState: missing.length > 0 || media.isMissing(post, undefined) ? "" : state,
    };
    const placed = isMoved ? placement.place(whole, slug) : whole;
    if (!isDeepStrictEqual({ ...before }, placed)) draft.putPost(placed);
    return missing.map((what) => ({
      line: item.line,
      message: `The item ${item.id} points at something that is not here: ${what}.`,
    }));
  }

  return { take, finish };
}
