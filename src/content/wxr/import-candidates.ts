/** Selects the items of a file that become posts, and gives each its identity. */

import type { Collection } from "../collections.js";
import { getIdentity, getImportState, toIdentity } from "./identity.js";
import type { ImportSummaryBuilder } from "./import-summary.js";
import { findCollection } from "./item-to-post.js";
import type { WxrItem } from "./types.js";

/** An item that becomes a post of this site. */
export interface ImportCandidate {
  readonly item: WxrItem;
  readonly collection: Collection;
  /** Finds the post again in later imports. */
  readonly identity: string;
  /** Digest of the item; the same digest means that nothing changed in the file. */
  readonly state: string;
}

export interface CandidateSelection {
  /** Returns `undefined` for an item that is left out; the summary says why. */
  readonly select: (item: WxrItem) => ImportCandidate | undefined;
  /** Identity of the post with this id in the file; empty if the file has no such post. */
  readonly toIdentity: (id: number) => string;
}

export function createCandidateSelection({
  summary,
  url,
  isTrusted,
  getAuthorId,
}: {
  readonly summary: ImportSummaryBuilder;
  /** URL of the site that wrote the file; empty if the file does not name it. */
  readonly url: string;
  readonly isTrusted: boolean;
  readonly getAuthorId: (login: string) => number;
}): CandidateSelection {
  const seen = new Set<string>();
  /** Identities by id, for a file that does not name its site. */
  const byId = new Map<number, string>();

  function skip(collection: string): undefined {
    summary.count(collection, "skipped");
    return undefined;
  }

  return {
    select(item) {
      summary.leaveOut("comments", item.comments);
      const collection = findCollection(item.type);
      if (collection === undefined) {
        summary.leaveOut(`type ${item.type}`);
        return skip("others");
      }
      const identity = getIdentity(url, item);
      if (identity === undefined) {
        summary.warn(item.line, "An item was skipped: it has no guid, and its id belongs to no known site.");
        return skip(collection.base);
      }
      if (seen.has(identity)) {
        summary.warn(
          item.line,
          `The item ${item.id} was skipped: the file has it twice. The first one counts.`,
        );
        return skip(collection.base);
      }
      seen.add(identity);
      if (url === "" && item.id > 0) byId.set(item.id, identity);
      const state = getImportState(item, { isTrusted, author: getAuthorId(item.creator) });
      return { item, collection, identity, state };
    },
    toIdentity: (id) => (url === "" ? (byId.get(id) ?? "") : toIdentity(url, id)),
  };
}
