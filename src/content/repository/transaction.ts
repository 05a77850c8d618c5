/** The unit of change: collects the writes of one commit, with the events that it causes. */

import type { JsonObject } from "../../schema/types.js";
import type { SiteIndex } from "../query/site-index.js";
import { type ContentChanged, describePostChange, describeTermChange } from "../records/record-changes.js";
import { encodePost, encodeRevision, encodeTerm } from "../records/record-codec.js";
import type { Post, Revision, Term } from "../records/records.js";
import type { ContentBasis, ContentStore, ContentWrite } from "../store.js";
import { markAsNamed, markAsOrphaned } from "./orphan-file-journal.js";
import { type SiteOption, type StoredUserMeta, toSiteOptionWrite, toUserMetaWrite } from "./small-records.js";

/** Collects the writes of one change. Nothing is stored until the change is complete. */
export interface Transaction {
  /** Returns an id for a new post of any type or revision (`post`), or for a new term (`term`). */
  newId: (kind: "post" | "term") => Promise<number>;
  /** Returns the first of `count` consecutive new ids. */
  newIds: (kind: "post" | "term", count: number) => Promise<number>;
  /**
   * Stores a post. Its `version` must be the one that was read, 0 for a new one. Its files leave
   * the orphan journal.
   */
  putPost: (post: Post) => void;
  /**
   * Stores a post whose internal data changed, such as its autosaves. The host is not told.
   */
  putBookkeeping: (post: Post) => void;
  /** Removes a post. Its files enter the orphan journal. */
  removePost: (post: Post) => void;
  putTerm: (term: Term) => void;
  removeTerm: (term: Term) => void;
  /** `version`: the one that was read, 0 for a new revision. */
  putRevision: (revision: Revision, version?: number) => void;
  removeRevision: (id: number, version: number) => void;
  /** Replaces an option of the site. The host is not told. */
  putOption: (name: SiteOption, value: JsonObject) => void;
  /** `version`: the one that was read. The host is not told. */
  putUserMeta: (userId: number, stored: StoredUserMeta) => void;
  /**
   * Makes the commit fail if another writer changed this record, although the transaction does not
   * write it. The change then runs again.
   */
  expectUnchanged: (key: string) => void;
}

/** A transaction and what it has collected. */
export interface OpenTransaction {
  transaction: Transaction;
  writes: ContentWrite[];
  /** Records that must still have these versions. */
  expected: Map<string, ContentBasis>;
  /** The slugs of posts that were put. Only some of them are unique names of the storage. */
  slugs: string[];
  /** The changes to tell the host after the commit. */
  events: ContentChanged[];
}

/** Opens a transaction on the state that `index` shows. */
export function openTransaction(
  store: { allocate: ContentStore["allocate"]; now: ContentStore["now"] },
  index: SiteIndex,
): OpenTransaction {
  const writes: ContentWrite[] = [];
  const slugs: string[] = [];
  const expected = new Map<string, ContentBasis>();
  const events: ContentChanged[] = [];

  function write(key: string, expectedVersion: number, record: ContentWrite["record"]): void {
    writes.push({ key, expectedVersion, record });
  }

  const transaction: Transaction = {
    newId: (kind) => store.allocate(kind, 1),
    newIds: (kind, count) => store.allocate(kind, count),
    putPost(post) {
      events.push(describePostChange({ before: index.post(post.id), after: post }, index.model));
      write(`post/${post.id}`, post.version, encodePost(post));
      if (post.slug !== "") slugs.push(post.slug);
      writes.push(...markAsNamed(post.media, { index, isNew: post.version === 0 }));
    },
    putBookkeeping: (post) => write(`post/${post.id}`, post.version, encodePost(post)),
    removePost(post) {
      events.push(describePostChange({ before: post, after: undefined }, index.model));
      write(`post/${post.id}`, post.version, null);
      writes.push(...markAsOrphaned(post.media, store.now()));
    },
    putTerm(term) {
      events.push(describeTermChange({ before: index.term(term.id), after: term }, index.model));
      write(`term/${term.id}`, term.version, encodeTerm(term));
    },
    removeTerm(term) {
      events.push(describeTermChange({ before: term, after: undefined }, index.model));
      write(`term/${term.id}`, term.version, null);
    },
    putRevision: (revision, version = 0) =>
      write(`revision/${revision.id}`, version, encodeRevision(revision)),
    removeRevision: (id, version) => write(`revision/${id}`, version, null),
    putOption: (name, value) => writes.push(toSiteOptionWrite(index, name, value)),
    putUserMeta: (userId, stored) => writes.push(toUserMetaWrite(userId, stored)),
    expectUnchanged(key) {
      // The first version counts: what was decided since then rests on it.
      if (!expected.has(key)) expected.set(key, { key, version: index.version(key) });
    },
  };
  return { transaction, writes, expected, slugs, events };
}

/** The most characters of texts that are committed together: a storage stores them in one step. */
const MAX_CHARACTERS = 1_048_576;

const countCharacters = ({ writes }: OpenTransaction): number =>
  writes.reduce((sum, { record }) => sum + (record?.body.length ?? 0) + (record?.columns?.length ?? 0), 0);

/**
 * Returns how many of the transactions, from the first on, can be committed together. They were
 * decided on the same state, so none may write what another one wrote or relied on, nor use a slug
 * or name that another one uses. The first one always counts.
 */
export function countCompatible(transactions: OpenTransaction[]): number {
  const written = new Set<string>();
  const expected = new Map<string, number>();
  const names = new Set<string>();
  let characters = 0;

  const conflicts = (one: OpenTransaction, uniqueNames: string[]): boolean =>
    one.writes.some(({ key }) => written.has(key) || expected.has(key)) ||
    [...one.expected.values()].some(
      ({ key, version }) => written.has(key) || (expected.get(key) ?? version) !== version,
    ) ||
    uniqueNames.some((name) => names.has(name));

  for (const [count, one] of transactions.entries()) {
    const uniqueNames = [...one.slugs, ...one.writes.flatMap(({ record }) => record?.unique ?? [])];
    characters += countCharacters(one);
    if (count > 0 && (characters > MAX_CHARACTERS || conflicts(one, uniqueNames))) return count;
    for (const { key } of one.writes) written.add(key);
    for (const { key, version } of one.expected.values()) expected.set(key, version);
    for (const name of uniqueNames) names.add(name);
  }
  return transactions.length;
}
