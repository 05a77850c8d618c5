/** Decides which users a caller may see. The authors of published posts are public. */

import type { User } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { RestError } from "../rest/error.js";
import type { RestRequest } from "../rest/types.js";
import type { Users } from "./users.js";

export interface UserVisibility {
  /** Resolves with those of `everybody` whom anonymous callers may see. */
  readonly listPublishedAuthors: (everybody: readonly User[]) => Promise<readonly User[]>;
  /**
   * Resolves with the requested user. A user whom the caller may not see is reported like one who
   * does not exist, so that ids cannot be probed; WordPress tells the two apart.
   *
   * @throws RestError 404 `rest_user_invalid_id`.
   */
  readonly find: (request: RestRequest) => Promise<User>;
}

export interface UserVisibilityOptions {
  readonly repository: Pick<ContentRepository, "index" | "stamp">;
  readonly users: Users;
}

/** Types whose published posts everybody may read, so their authors are no secret. */
const PUBLIC_TYPES = ["post", "page"] as const;

interface CachedAuthors {
  readonly stamp: number;
  readonly everybody: readonly User[];
  readonly authors: readonly User[];
}

export function createUserVisibility({ repository, users }: UserVisibilityOptions): UserVisibility {
  let cache: CachedAuthors | undefined;

  async function hasPublished({ id }: User): Promise<boolean> {
    for (const type of PUBLIC_TYPES) {
      const { total } = await repository.index.find(
        {
          type,
          visibility: { publish: "all" },
          author: [id],
          orderBy: "date",
          order: "desc",
          offset: 0,
          limit: 1,
        },
        async () => [],
      );
      if (total > 0) return true;
    }
    return false;
  }

  async function isVisible(user: User, caller: RestRequest["caller"]): Promise<boolean> {
    if (caller.id === user.id || caller.has("list_users") || caller.has("edit_users")) return true;
    return hasPublished(user);
  }

  return {
    async listPublishedAuthors(everybody) {
      const stamp = repository.stamp();
      if (cache?.stamp === stamp && cache.everybody === everybody) return cache.authors;
      const authors: User[] = [];
      for (const user of everybody) if (await hasPublished(user)) authors.push(user);
      cache = { stamp, everybody, authors };
      return authors;
    },
    async find({ values, caller }) {
      const id = Number(values["id"]);
      const user = caller.user?.id === id ? caller.user : await users.get(id);
      if (user !== null && (await isVisible(user, caller))) return user;
      throw new RestError(404, "rest_user_invalid_id", "Invalid user ID.");
    },
  };
}
