/** Selects the items of a file that become posts, and gives each its identity. */

import type { Collection } from "../collections.js";
import { findCollection } from "../collections.js";
import { getIdentity, getImportState, getMenu, toIdentity } from "./identity.js";
import type { ImportSummaryBuilder } from "./import-summary.js";
import type { WxrItem, WxrSite } from "./types.js";

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
  /**
   * Identity of the post with this id in the file; empty if the file has no such post. `menu`: the
   * slug of its menu if it is a menu item, else empty.
   */
  readonly toIdentity: (id: number, menu: string) => string;
}

export function createCandidateSelection({
  summary,
  source,
  isTrusted,
  getAuthorId,
}: {
  readonly summary: ImportSummaryBuilder;
  /** The site that wrote the file. */
  readonly source: Pick<WxrSite, "url" | "title">;
  readonly isTrusted: boolean;
  readonly getAuthorId: (login: string) => number;
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
      const collection = findCollection(item.type);
      if (collection === undefined) {
        summary.leaveOut(`type ${item.type}`);
        return skip("others");
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
