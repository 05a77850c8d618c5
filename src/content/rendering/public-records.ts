/**
 * The records that every reader of the site may see, for contents that show others than their own:
 * galleries, patterns and lists of posts. What a content shows must not depend on its reader, since
 * readers share it.
 */

import type { PostQuery } from "../query/types.js";
import type { Post, PostColumns } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";

/** Records that one list reads. */
const MAX_RECORDS = 100;

/** The id of the post that a content belongs to: for a revision, that of its post. */
export const ownerId = ({ id, type, status, parent }: PostColumns): number =>
  status === "inherit" && type !== "attachment" ? parent : id;

export class PublicRecords {
  #repository: ContentRepository;

  constructor(repository: ContentRepository) {
    this.#repository = repository;
  }

  /**
   * True for a published post of a public type, and for media of such posts or of none. Media of
   * `owner` count, since whoever sees the post sees them.
   */
  isPublic(post: PostColumns | undefined, owner = 0): post is PostColumns {
    const { index } = this.#repository;
    if (post === undefined || index.model.types.get(post.type)?.isViewable !== true) return false;
    if (post.type !== "attachment") return post.status === "publish";
    if (post.status !== "inherit" || post.hasPassword) return false;
    const parent = post.parent === owner ? undefined : index.post(post.parent);
    return parent === undefined || (parent.status === "publish" && !parent.hasPassword);
  }

  /** Returns the attachments among `ids` that a content of `owner` may show, in this order. */
  async media(ids: number[], owner: number, mimeType: string, limit = MAX_RECORDS): Promise<Post[]> {
    const { index } = this.#repository;
    const shown = [...new Set(ids)].filter((id) => {
      const post = index.post(id);
      return this.isPublic(post, owner) && post.type === "attachment" && post.mimeType.startsWith(mimeType);
    });
    return this.#read(shown.slice(0, limit), owner);
  }

  /** Returns the media of a post in its order, of the types that begin with `mimeType`. */
  async mediaOf(parent: number, owner: number, mimeType: string): Promise<Post[]> {
    const { index } = this.#repository;
    if (parent !== owner && !this.isPublic(index.post(parent))) return [];
    const columns = index.childrenOf(parent, "attachment").flatMap((id) => index.post(id) ?? []);
    const ordered = columns.sort((a, b) => a.menuOrder - b.menuOrder || a.id - b.id);
    return this.media(
      ordered.map(({ id }) => id),
      owner,
      mimeType,
    );
  }

  /** Returns the published posts that a query finds. */
  async find(query: Omit<PostQuery, "visibility">): Promise<Post[]> {
    const { index, texts } = this.#repository;
    const limit = Math.min(query.limit, MAX_RECORDS);
    const { ids } = await index.find({ ...query, limit, visibility: { publish: "all" } }, texts);
    return this.#read(ids, 0);
  }

  /** Returns the columns of the published posts that a query without a search finds. */
  columns(query: Omit<PostQuery, "visibility" | "search">): PostColumns[] {
    const { index, texts } = this.#repository;
    const found = index.find({ ...query, visibility: { publish: "all" } }, texts);
    return "ids" in found ? found.ids.flatMap((id) => index.post(id) ?? []) : [];
  }

  /** Returns a published pattern, or the menu of a navigation, without a password. */
  async part(id: number, type: "wp_block" | "wp_navigation"): Promise<Post | undefined> {
    if (this.#repository.index.post(id)?.type !== type) return undefined;
    const [part] = await this.#repository.posts([id]);
    return part?.status === "publish" && part.password === "" ? part : undefined;
  }

  /** A record may have changed during the read. */
  async #read(ids: number[], owner: number): Promise<Post[]> {
    const posts = await this.#repository.posts(ids);
    return posts.filter((post) => post !== undefined && this.isPublic(post, owner)) as Post[];
  }
}
